"""Columns of a domain that other sessions create while ALTER DOMAIN checks the rows of tables."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from tailgate.gateway.execute.tables import changes
from tests.tables.world import World


@pytest.mark.parametrize(
    "meanwhile",
    [
        ("CREATE TABLE later (a positive)", "INSERT INTO later VALUES (7)"),
        ("ALTER TABLE first ADD COLUMN b positive DEFAULT 7",),
        ("INSERT INTO first VALUES (7)",),
    ],
    ids=["table", "column", "row"],
)
def test_they_are_checked(world: World, monkeypatch: pytest.MonkeyPatch, meanwhile: tuple[str, ...]) -> None:
    checked, statements = changes._altered_domain, list(meanwhile)

    def others() -> None:
        with psycopg.connect(world.dsn, autocommit=True) as other:
            while statements:
                other.execute(statements.pop(0))

    async def then_others(*arguments: Any) -> Any:
        change = await checked(*arguments)
        await asyncio.to_thread(others)
        return change

    monkeypatch.setattr(changes, "_altered_domain", then_others)
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
        sql.execute("CREATE TABLE first (a positive)")
        sql.execute("INSERT INTO first VALUES (1)")
        with pytest.raises(psycopg.errors.CheckViolation, match="values that violate the new constraint"):
            sql.execute("ALTER DOMAIN positive ADD CHECK (VALUE <> 7)")
        assert not statements
