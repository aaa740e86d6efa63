"""An engine with Spark is killed at each step of the COMMIT of a block with definitions and rows: all of the block is there, or nothing.

`tests/tables/test_blocks.py` has the same for an engine of tables only. Here a materialized view reads the table before the block,
and the block creates one over that view, its table and a new one.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, until
from tests.tables.world import Served

pytestmark = pytest.mark.spark

ENTERED = "block.entered"  # the rows are in the inbox, and not committed
STEPS = (
    ENTERED,
    f"{ENTERED},tick.begin",  # the tick that reads them has not begun
    f"{ENTERED},state.committed",  # the state has the rows, the log does not
    f"{ENTERED},topics.checked",
    f"{ENTERED},entry.half",  # halfway through writing the log entry
    f"{ENTERED},entry.link",  # before its link
)
# After these the block is committed.
COMMITTED = (
    f"{ENTERED},entry.linked",  # the folder is not synced
    f"{ENTERED},catalog.entry:1",  # memory has the old catalog
    f"{ENTERED},entry.committed",  # memory has the old rows
    f"{ENTERED},tick.end",  # the new views are not filled
    f"{ENTERED},fill.piece:1",  # the first view is filled in part
    f"{ENTERED},catalog.entry:2",  # the first view is filled
)


class Shop:
    """An engine, which is killed at a step, and a gateway over one lake with a table of orders and a view of them."""

    def __init__(self, folder: Path, crash: str) -> None:
        self.engine = EngineProcess(folder / "lake")
        self.start(crash)
        self.lake = Lake(folder / "lake")
        self.served = Served(self.lake)
        with self.connect() as c:
            c.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
            c.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 100) g")
            c.execute("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(amount)::int AS amount FROM orders")

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.served.dsn, autocommit=True)

    def start(self, crash: str) -> None:
        """Starts an engine that is killed at this step of a COMMIT. Returns when it answers."""
        self.engine.start(crash)
        until(self.engine._answers, 120)

    def commit(self, number: int) -> None:
        """Runs a block, whose COMMIT fails because the engine is killed."""
        with self.connect() as c:
            c.execute("BEGIN")
            c.execute("INSERT INTO orders VALUES (%s, 7)", (1000 + number,))
            c.execute(f"CREATE TABLE copy{number} AS SELECT * FROM orders")
            c.execute(f"CREATE MATERIALIZED VIEW joined{number} AS SELECT o.id, c.amount FROM orders o JOIN copy{number} c USING (id)")
            c.execute(f"CREATE MATERIALIZED VIEW both{number} AS SELECT t.n, count(*) AS m FROM total t, joined{number} GROUP BY t.n")
            with pytest.raises((psycopg.OperationalError, psycopg.errors.SystemError)):
                c.execute("COMMIT")

    def check(self, number: int, *, committed: bool) -> None:
        """Checks that each part of the block is there, or none."""
        with self.connect() as c:
            c.execute("INSERT INTO orders VALUES (%s, 7)", (2000 + number,))  # also waits for the new engine's entries
            count, is_there = c.execute("SELECT count(*), count(*) FILTER (WHERE id = %s) FROM orders", (1000 + number,)).fetchone() or ()
            assert is_there == committed
            new = c.execute("SELECT relname FROM pg_class WHERE relname ~ %s ORDER BY 1", (f"^(copy|joined|both){number}$",)).fetchall()
            assert new == ([(f"{name}{number}",) for name in ("both", "copy", "joined")] if committed else [])
            assert c.execute("SELECT n FROM total").fetchone() == (count,)
            if committed:
                assert c.execute(f"SELECT count(*) FROM copy{number}").fetchone() == (count - 1,)
                until(lambda: self.is_filled(number))
                assert (
                    c.execute(f"SELECT count(*), sum(amount)::int FROM joined{number}").fetchone()
                    == c.execute(f"SELECT count(*), sum(amount)::int FROM copy{number}").fetchone()
                )
                assert c.execute(f"SELECT * FROM both{number}").fetchall() == [(count, count - 1)]

    def is_filled(self, number: int) -> bool:
        catalog = self.lake.catalog()
        return all(catalog.relation(f"{name}{number}").ready for name in ("joined", "both"))

    def end(self) -> None:
        self.served.close()
        self.engine.stop()


def test_killed_before_and_after_the_entry_of_a_commit(tmp_path: Path) -> None:
    """The short form, for every test run."""
    killed(tmp_path, (f"{ENTERED},state.committed", f"{ENTERED},entry.linked"))


@pytest.mark.long
def test_killed_at_every_step_of_a_commit(tmp_path: Path) -> None:
    killed(tmp_path, (*STEPS, *COMMITTED))


def killed(folder: Path, steps: tuple[str, ...]) -> None:
    shop = Shop(folder, steps[0])
    try:
        for number, (step, following) in enumerate(zip(steps, (*steps[1:], "never"), strict=True)):
            shop.commit(number)
            shop.engine.died()
            shop.start(following)
            shop.check(number, committed=step in COMMITTED)
    finally:
        shop.end()
