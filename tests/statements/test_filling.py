"""A long backfill reports progress, and ends without a trace if it is canceled or times out."""

from __future__ import annotations

import re
import threading
import time

import psycopg
import pytest

from tailgate.lake.folder import Lake
from testing.engine_process import until
from tests.statements.conftest import World

pytestmark = pytest.mark.spark

LONG = "CREATE MATERIALIZED VIEW long AS SELECT a.id, b.id AS other FROM numbers a JOIN numbers b ON a.g = b.g"


@pytest.fixture(scope="module")
def numbers(world: World):  # type: ignore[no-untyped-def]
    with world.connect() as connection:
        connection.execute("CREATE TABLE numbers (id int PRIMARY KEY, g int)")
        connection.execute("INSERT INTO numbers SELECT i, i % 2000 FROM generate_series(1, 80000) AS s(i)")
        yield connection
        connection.execute("DROP TABLE numbers CASCADE")


@pytest.mark.long
def test_progress_is_reported(numbers: psycopg.Connection, world: World) -> None:
    notices: list[str] = []
    shown: list[tuple[object, ...]] = []
    with world.connect() as connection, world.connect() as other:
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        thread = threading.Thread(target=connection.execute, args=(LONG,))
        thread.start()
        while thread.is_alive():
            shown += [row for row in other.execute("SHOW MATERIALIZED VIEWS").fetchall() if row[0] == "long" and row[1] == "filling"]
            time.sleep(0.1)
        assert notices
        assert all(re.fullmatch(r"filling materialized view long: \d+ %, \d+ rows", line) for line in notices)
        percents = [row[4] for row in shown if row[4] is not None]
        assert percents == sorted(percents)
        assert percents[-1] > percents[0]
        assert other.execute("SELECT count(*) FROM long").fetchone() == (2000 * 40 * 40,)
        other.execute("DROP MATERIALIZED VIEW long")


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_cancelled_it_leaves_nothing(numbers: psycopg.Connection, world: World, how: str) -> None:
    with world.connect() as connection:
        if how == "timeout":
            connection.execute("SET statement_timeout = '400ms'")
        else:
            # `cancel` would block the interpreter, and with it the gateway
            threading.Timer(0.4, connection.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(LONG)
        left = Lake(world.lake.path).catalog()  # `world.lake` may receive the entry after the answer
        assert left.find("long") is None
        assert left.find("long_errors") is None
        connection.execute("SET statement_timeout = 0")
        connection.execute("CREATE MATERIALIZED VIEW long AS SELECT count(*) AS n FROM numbers")
        assert connection.execute("SELECT n FROM long").fetchone() == (80000,)
        connection.execute("DROP MATERIALIZED VIEW long")
        assert not (set(world.engine.get("/status")["views"]) & {"long"})


def test_cancel_backfill_drops_a_new_view(numbers: psycopg.Connection, world: World) -> None:
    """The statement that waits for it fails."""
    with world.connect() as connection, world.connect() as other:
        waiting = Failing(connection, LONG)
        until(lambda: world.lake.catalog().find("long") is not None)
        assert other.execute("CANCEL BACKFILL long").statusmessage == "CANCEL BACKFILL"
        waiting.join(30)
        assert waiting.sqlstates == ["57014"]
        assert Lake(world.lake.path).catalog().find("long") is None
        with pytest.raises(psycopg.errors.UndefinedObject):
            other.execute("CANCEL BACKFILL long")


def test_cancel_backfill_keeps_a_view_that_is_being_replaced(numbers: psycopg.Connection, world: World) -> None:
    with world.connect() as connection, world.connect() as other:
        connection.execute(f"{LONG} WHERE a.id < 3")  # type: ignore[call-overload]
        connection.execute("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM long")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='"long" is not being filled'):
            other.execute("CANCEL BACKFILL long")
        waiting = Failing(connection, LONG.replace("CREATE", "CREATE OR REPLACE"))
        until(lambda: world.lake.catalog().replacements() or waiting.sqlstates)
        other.execute("CANCEL BACKFILL above")  # it is replaced together with the view below it
        waiting.join(30)
        assert waiting.sqlstates == ["57014"]
        assert not world.lake.catalog().replacements()
        assert other.execute("SELECT id, count(*) FROM long GROUP BY id ORDER BY id").fetchall() == [(1, 40), (2, 40)]
        numbers.execute("INSERT INTO numbers VALUES (-1, 0)")
        assert other.execute("SELECT n FROM above").fetchall() == [(80 + 41,)]
        other.execute("DROP MATERIALIZED VIEW long CASCADE")


class Failing(threading.Thread):
    """A statement that runs on another thread. `sqlstates`: of its error."""

    def __init__(self, connection: psycopg.Connection, statement: str) -> None:
        super().__init__()
        self._connection, self._statement = connection, statement
        self.sqlstates: list[str | None] = []
        self.start()

    def run(self) -> None:
        try:
            self._connection.execute(self._statement)  # type: ignore[call-overload]
        except psycopg.Error as error:
            self.sqlstates.append(error.sqlstate)
