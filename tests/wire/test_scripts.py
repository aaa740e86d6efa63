"""Replays each `.pgt` script: PostgreSQL and Tailgate must both give the recorded answers."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest

from tests.wire.live import ROWS, Live
from tests.wire.wire import Client, play

SCRIPTS = sorted(Path(__file__).parent.glob("*.pgt"))
RECORD = bool(os.environ.get("TAILGATE_RECORD"))


@pytest.fixture(scope="module")
def reference(postgres: str):
    """Creates a database with the relation that the scripts read."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("drop database if exists wire")
        connection.execute("create database wire")
    where = psycopg.conninfo.conninfo_to_dict(postgres)
    with psycopg.connect(postgres, dbname="wire", autocommit=True) as connection:
        connection.execute("create table v (id bigint primary key, name text, amount double precision)")
        connection.cursor().executemany("insert into v values (%s, %s, %s)", ROWS)
        connection.execute("alter database wire set timezone = 'UTC'")
    yield str(where["host"]), int(where["port"]), str(where["user"])
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("drop database wire with (force)")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_postgresql_answers_so(script: Path, reference: tuple[str, int, str]) -> None:
    host, port, user = reference
    client = Client.connect(host, port, user, "wire")
    transcript = play(script.read_text(), client)
    client.close()
    if RECORD:
        script.write_text(transcript)
    assert transcript == script.read_text()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_we_answer_so(script: Path, live: Live) -> None:
    client = Client.connect(live.host, live.port, "postgres", "wire")
    transcript = play(script.read_text(), client)
    client.close()
    assert transcript == script.read_text()
