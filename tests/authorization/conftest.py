"""A lake with a table that only its owner may read, and roles without privileges on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.authorization.world import World

CANARY = 918273645


def new_world(path: Path) -> World:
    """Creates a world in which boss owns `salaries`, which holds CANARY.

    `low` and `helper` have a schema each and no grant.
    """
    world = World(path / "lake")
    world.sql(
        "tailgate",
        *(f"CREATE ROLE {role} LOGIN" for role in ("boss", "low", "helper")),
        *(f"CREATE SCHEMA {schema} AUTHORIZATION {role}" for schema, role in (("lo", "low"), ("he", "helper"), ("own", "boss"))),
        "GRANT CREATE ON SCHEMA public TO boss",
    )
    world.sql("boss", "CREATE TABLE salaries (n int PRIMARY KEY, name text)", f"INSERT INTO salaries VALUES ({CANARY}, 'ann')")
    return world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = new_world(tmp_path)
    yield world
    world.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Creates a world that tests share, for statements that are refused.

    low has `lo.own`, the subscription `lo.sub` to it, and `lo.t()`, which reads it. `own.f()` reads
    the canary.
    """
    world = new_world(tmp_path_factory.mktemp("shared"))
    world.sql(
        "low",
        "CREATE TABLE lo.own (n int PRIMARY KEY)",
        "CREATE SUBSCRIPTION lo.sub FROM lo.own",
        "CREATE FUNCTION lo.t() RETURNS bigint LANGUAGE SQL AS 'SELECT max(n)::bigint FROM lo.own'",
    )
    world.sql(
        "boss",
        "CREATE FUNCTION own.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'",
        "GRANT USAGE ON SCHEMA own TO PUBLIC",
    )
    yield world
    world.close()


def refused(world: World, user: str, *texts: str, sqlstate: str = "42501") -> psycopg.Error:
    """Runs statements.

    Returns the error of the last one, after asserting that it does not show the canary.
    """
    with world.connect(user) as connection:
        for text in texts[:-1]:
            connection.execute(text.encode())
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(texts[-1].encode())
    diag = raised.value.diag
    text_shown = f"{diag.message_primary} {diag.message_detail} {diag.message_hint} {diag.context}"
    assert str(CANARY) not in text_shown, texts[-1]
    assert raised.value.sqlstate == sqlstate, (texts[-1], text_shown)
    return raised.value
