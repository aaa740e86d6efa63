"""Compares Tailgate's answers with PostgreSQL 15's recorded ones, byte for byte.

The differences must be exactly those that docs/differences.md lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.tables.world import World
from tests.wire.conversations import CONVERSATIONS, SETUP
from tests.wire.record import RECORDED, path
from tests.wire.recording import MASKS, converse, different, masked, read, written

DIFFERENCES = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
BLOCK = re.compile(r"^```wire ([^\n]+), (\d+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = {(name, int(number)): tuple(lines.splitlines()) for name, number, lines in BLOCK.findall(DIFFERENCES)}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("recorded") / "lake")
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        for text in SETUP.split(";"):
            connection.execute(text)  # type: ignore[arg-type]
    yield world
    world.close()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_we_answer_so(name: str, world: World) -> None:
    steps = CONVERSATIONS[name]
    sent, theirs = read(path(name).read_text())
    assert sent == [step.data for step in steps], "record it again: python -m tests.wire.record"
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("delete from w")
    ours = converse("127.0.0.1", world.gateways[0].port, steps, theirs)
    expected = {number: lines for (where, number), lines in NAMED.items() if where == name}
    assert different(theirs, ours) == expected


@pytest.mark.long
def test_postgresql_answers_so(postgres: str) -> None:
    where = psycopg.conninfo.conninfo_to_dict(postgres)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("drop database if exists wire")
        connection.execute("create database wire lc_collate 'C' lc_ctype 'C' template template0")
        connection.execute("alter database wire set timezone = 'UTC'")
    with psycopg.connect(postgres, dbname="wire", autocommit=True) as connection:
        connection.execute(SETUP)  # type: ignore[arg-type]
        for name, steps in CONVERSATIONS.items():
            connection.execute("delete from w")
            _, theirs = read(path(name).read_text())
            assert not different(theirs, converse("127.0.0.1", int(str(where["port"])), steps, theirs)), name
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("drop database wire with (force)")


def test_documented_and_recorded_conversations_exist() -> None:
    assert {name for name, _ in NAMED} <= set(CONVERSATIONS)
    assert {p.name for p in RECORDED.glob("*.wire")} == {path(name).name for name in CONVERSATIONS}


@pytest.mark.parametrize("mask", MASKS)
def test_masked_differences_are_documented(mask: str) -> None:
    recorded = [m for name in CONVERSATIONS for messages in read(path(name).read_text())[1] for m in messages]
    assert any(masked(m) != masked(m, without=mask) for m in recorded)
    assert f"`{mask}`" in DIFFERENCES


def test_recorded_conversations_are_read_unchanged() -> None:
    text = path("copy in").read_text()
    assert written(CONVERSATIONS["copy in"], read(text)[1]) == text
