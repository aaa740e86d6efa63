"""A statement that changes no row, in a block with one that does, and what earlier versions wrote for it."""

from __future__ import annotations

import psycopg
import pytest

from tailgate.lake.writer.inbox import TABLE, Record
from tests.tables.world import World


@pytest.mark.parametrize(
    "nothing",
    [
        "INSERT INTO other SELECT * FROM other WHERE false",
        "INSERT INTO other VALUES (1, 'b') ON CONFLICT DO NOTHING",
        "UPDATE other SET name = name WHERE id = 1",
        "DELETE FROM other WHERE id = 7",
    ],
)
def test_a_table_that_a_block_does_not_change(world: World, nothing: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE one (id int PRIMARY KEY)")
        connection.execute("CREATE TABLE other (id int PRIMARY KEY, name text)")
        connection.execute("INSERT INTO other VALUES (1, 'a')")
        with connection.transaction():
            connection.execute("INSERT INTO one VALUES (1)")
            connection.execute(nothing)
        connection.execute("INSERT INTO one VALUES (2)")
        assert connection.execute("SELECT array_agg(id ORDER BY id) FROM one").fetchone() == ([1, 2],)
        assert connection.execute("SELECT id, name FROM other").fetchall() == [(1, "a")]


def test_an_empty_record_of_an_earlier_version(world: World) -> None:
    """Earlier versions wrote an empty record for such a table; a tick that reads it succeeds."""
    with psycopg.connect(world.dsn, autocommit=True, options="-c statement_timeout=30s") as connection:
        connection.execute("CREATE TABLE one (id int PRIMARY KEY)")
        connection.execute("CREATE TABLE other (id int PRIMARY KEY)")
        other = next(i for i in world.engine.writer.catalog.visible if i.name == "other")
        world.engine.inbox.write([Record(f"{TABLE}{other.id}", b"", b"")])
        connection.execute("INSERT INTO one VALUES (1)")
        assert connection.execute("SELECT id FROM one").fetchall() == [(1,)]
        assert connection.execute("SELECT id FROM other").fetchall() == []
