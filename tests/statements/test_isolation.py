"""A defect in an operator stops only the views that depend on it.

They stay readable as of their last tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.readers.failed import failure
from tailgate.lake.tables import checkpoints
from testing.engine_process import until
from tests.engine.runtime.mutating import mutated
from tests.statements.conftest import World

pytestmark = pytest.mark.spark

# TopK throws an exception when it receives a row with this word.
OLD = "  @Override public void run(Tick tick, byte[] partition, Map<Bytes, Long> changes) {"
NEW = f"""{OLD}
    for (Bytes place : changes.keySet())
      if (new String(place.bytes, java.nio.charset.StandardCharsets.ISO_8859_1).contains("poison"))
        throw new IllegalStateException("a defect");"""


@contextmanager
def broken(world: World, folder: Path) -> Iterator[None]:
    with mutated(world.engine, folder, "TopK", OLD, NEW):
        yield


def shown(connection: psycopg.Connection, *names: str) -> dict[str, tuple[str, str]]:
    rows = connection.execute("SHOW MATERIALIZED VIEWS").fetchall()
    return {row[0]: (row[1], row[2]) for row in rows if row[0] in names}


def rows_and_notices(connection: psycopg.Connection, query: str) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Returns the rows of a query, and the notices that came with them."""
    messages: list[str] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        messages.append(f"{notice.severity}: {notice.message_primary}")

    connection.add_notice_handler(note)
    try:
        return connection.execute(query).fetchall(), messages
    finally:
        connection.remove_notice_handler(note)


FAILED = 'materialized view "{}" has failed: java.lang.IllegalStateException: a defect'


def test_a_defect_stops_the_views_that_depend_on_it(world: World, sql: psycopg.Connection, tmp_path: Path) -> None:
    sql.execute("CREATE TABLE items (k int PRIMARY KEY, v text)")
    sql.execute("INSERT INTO items VALUES (1, 'a'), (2, 'b')")
    sql.execute("CREATE MATERIALIZED VIEW newest AS SELECT k, v FROM items ORDER BY k DESC LIMIT 2")
    sql.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(k) AS s FROM newest")
    sql.execute("CREATE MATERIALIZED VIEW harmless AS SELECT k, v FROM items WHERE v <> 'poison' ORDER BY k DESC LIMIT 2")
    sql.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM items")
    with broken(world, tmp_path), world.connect() as other:
        tail = other.cursor()
        tail.execute("BEGIN")
        tail.execute("DECLARE c CURSOR FOR TAIL newest")
        assert len(tail.execute("FETCH 2 c").fetchall()) == 2
        sql.execute("INSERT INTO items VALUES (3, 'poison')")  # returns when its tick is committed
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="a defect"):
            tail.execute("FETCH ALL c WITH (timeout = '60s')")
    failed = {"newest": ("failed", FAILED.format("newest")), "sums": ("failed", FAILED.format("sums"))}
    assert shown(sql, "newest", "sums", "harmless", "counted") == {**failed, "harmless": ("running", None), "counted": ("running", None)}
    sql.execute("INSERT INTO items VALUES (4, 'd')")
    assert sql.execute("SELECT n FROM counted").fetchall() == [(4,)]
    assert sql.execute("SELECT k FROM harmless ORDER BY k").fetchall() == [(2,), (4,)]

    # Failed views are readable as of the last tick. All relations of a statement or transaction are
    # read at one time.
    rows, messages = rows_and_notices(sql, "SELECT k FROM newest ORDER BY k")
    assert (rows, messages) == ([(1,), (2,)], ["WARNING: " + FAILED.format("newest")])
    assert rows_and_notices(sql, "SELECT s FROM sums")[0] == [(3,)]
    assert sql.execute("SELECT n, s FROM counted, sums").fetchall() == [(2, 3)]
    assert sql.execute("SELECT k FROM newest WHERE k = %s", [2], prepare=True).fetchall() == [(2,)]
    with sql.transaction():
        assert sql.execute("SELECT k FROM newest ORDER BY k").fetchall() == [(1,), (2,)]
        assert sql.execute("SELECT n FROM counted").fetchall() == [(2,)]
    sql.execute("BEGIN")
    assert sql.execute("SELECT n FROM counted").fetchall() == [(4,)]
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="a defect"):
        sql.execute("SELECT k FROM newest")
    sql.execute("ROLLBACK")
    why = failure(world.lake.catalog().relation("newest"))
    assert why is not None
    assert sql.execute(f"SELECT k FROM newest ORDER BY k AS OF {why.time}").fetchall() == [(1,), (2,)]
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="a defect"):
        sql.execute("CREATE MATERIALIZED VIEW another AS SELECT * FROM newest")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="a defect"):
        sql.execute("TAIL newest")

    # The same holds after a restart.
    world.engine.kill(jvm=True)
    world.engine.start()
    sql.execute("INSERT INTO items VALUES (5, 'e')")
    assert shown(sql, "newest", "sums", "counted") == {**failed, "counted": ("running", None)}
    assert rows_and_notices(sql, "SELECT k FROM newest ORDER BY k")[0] == [(1,), (2,)]
    assert sql.execute("SELECT n FROM counted").fetchall() == [(5,)]

    # A replacement runs again, with all rows of its inputs.
    sql.execute("CREATE OR REPLACE MATERIALIZED VIEW newest AS SELECT k, v FROM items ORDER BY k DESC LIMIT 2")
    assert rows_and_notices(sql, "SELECT k FROM newest ORDER BY k") == ([(4,), (5,)], [])
    assert rows_and_notices(sql, "SELECT s FROM sums") == ([(9,)], [])
    assert shown(sql, "newest", "sums") == {"newest": ("running", None), "sums": ("running", None)}
    sql.execute("DELETE FROM items WHERE k > 3")
    assert sql.execute("SELECT v FROM newest ORDER BY k").fetchall() == [("b",), ("poison",)]


@pytest.mark.long
def test_a_defect_while_a_view_is_filled_ends_its_statement(world: World, sql: psycopg.Connection, tmp_path: Path) -> None:
    sql.execute("CREATE TABLE stock (k int PRIMARY KEY, v text)")
    sql.execute("INSERT INTO stock VALUES (1, 'poison')")
    sql.execute("CREATE MATERIALIZED VIEW held AS SELECT count(*) AS n FROM stock")
    with broken(world, tmp_path):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='view "first" cannot be filled'):
            sql.execute("CREATE MATERIALIZED VIEW first AS SELECT * FROM stock ORDER BY k LIMIT 1")
        assert world.lake.catalog().find("first") is None
        sql.execute("INSERT INTO stock VALUES (2, 'more')")
        assert sql.execute("SELECT n FROM held").fetchall() == [(2,)]
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='view "held" cannot be filled'):
            sql.execute(
                "CREATE OR REPLACE MATERIALIZED VIEW held AS SELECT count(*) AS n FROM (SELECT * FROM stock ORDER BY k LIMIT 5) AS s"
            )
        assert sql.execute("SELECT n FROM held").fetchall() == [(2,)]
        assert shown(sql, "held") == {"held": ("running", None)}


@pytest.mark.long
def test_a_relation_that_cannot_be_written_stops_alone(world: World, sql: psycopg.Connection, tmp_path: Path) -> None:
    sql.execute("CREATE TABLE words (k int PRIMARY KEY, v text)")
    sql.execute("CREATE MATERIALIZED VIEW copied AS SELECT v FROM words")
    sql.execute("CREATE MATERIALIZED VIEW numbered AS SELECT k FROM words")
    old = "  Sent sent(int relation, String results) {"
    new = f'{old}\n    if (schema.length() == 1 && schema.apply(0).name().equals("v")) throw new IllegalStateException("a defect");'
    with mutated(world.engine, tmp_path, "Net", old, new):
        sql.execute("INSERT INTO words VALUES (1, 'one')")
    assert sql.execute("SELECT k FROM numbered").fetchall() == [(1,)]
    assert {name: status for name, (status, _) in shown(sql, "copied", "numbered").items()} == {"copied": "failed", "numbered": "running"}
    assert rows_and_notices(sql, "SELECT v FROM copied")[0] == []


def test_inconsistent_rows_stop_their_view(world: World, sql: psycopg.Connection, tmp_path: Path) -> None:
    """A defect deletes each row twice, which makes its weight negative.

    The view goes back to its last consistent rows, and every Delta table advances.
    """
    sql.execute("CREATE TABLE coins (k int PRIMARY KEY, v int)")
    sql.execute("CREATE MATERIALIZED VIEW doubled AS SELECT v FROM coins ORDER BY k LIMIT 100")
    sql.execute("CREATE MATERIALIZED VIEW coined AS SELECT count(*) AS n FROM coins")
    sql.execute("INSERT INTO coins VALUES (1, 5), (2, 7)")
    doubled, coined = (world.lake.catalog().relation(name) for name in ("doubled", "coined"))
    until(lambda: (checkpoint := checkpoints.newest(world.lake)) is not None and checkpoint.n >= world.lake.log.newest().n)  # type: ignore[union-attr]
    old = "if (n != 0) tick.emit(this, row(place.bytes), n);"
    with mutated(world.engine, tmp_path, "TopK", old, "if (n != 0) tick.emit(this, row(place.bytes), n < 0 ? 2 * n : n);"):
        sql.execute("DELETE FROM coins WHERE k = 1")
    until(lambda: shown(sql, "doubled")["doubled"][0] == "failed")
    assert "negative count" in shown(sql, "doubled")["doubled"][1]
    assert sorted(rows_and_notices(sql, "SELECT v FROM doubled")[0]) == [(5,), (7,)]
    sql.execute("DELETE FROM coins WHERE k = 2")
    assert sql.execute("SELECT n FROM coined").fetchall() == [(0,)]
    newest = world.lake.log.newest()
    assert newest is not None

    def followed() -> bool:
        checkpoint = checkpoints.newest(world.lake)
        return checkpoint is not None and all(checkpoint.positions[id] >= newest.n for id in (doubled.id, coined.id))

    until(followed)
    assert sorted(rows_and_notices(sql, "SELECT v FROM doubled")[0]) == [(5,), (7,)]
