"""A small engine over a temporary lake, which loads and compiles what every engine needs.

An engine that stands by runs it, so that its first ticks are as fast as later ones. `make setup` runs
it to record the classes that the JVM loads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.statements import Statements
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.folder import Lake
from tailgate.lake.writer.log_writer import open_epoch

STATEMENTS = (
    "CREATE TABLE t (a int PRIMARY KEY, b text)",
    "CREATE TABLE u (a int, c numeric)",
    "CREATE MATERIALIZED VIEW v AS SELECT b, count(*), sum(c), max(u.a) FROM t JOIN u ON t.a = u.a WHERE c > 0 GROUP BY b",
)


@contextmanager
def small_engine(session: SparkSession, folder: Path) -> Iterator[None]:
    """Runs an engine with two tables and a view over a new lake, until the block ends."""
    lake = Lake.open(folder, create=True)
    writer = open_epoch(lake, take_over=False)
    engine = Engine(lake, session, writer, 1)
    installation = Installation(engine)
    statements = Statements(engine, installation)
    installation.recover()
    running = threading.Thread(target=engine.run, name="small-engine")
    running.start()
    try:
        for statement in STATEMENTS:
            statements.execute_own(statement)
        yield
    finally:
        engine.stop()
        running.join()
        writer.close()
