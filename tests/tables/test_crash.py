"""A tables-only engine is killed at each step of a write.

No acknowledged write is lost or duplicated, and no transaction is applied in part. Takes seconds;
`test_kill` with Spark takes minutes.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.folder import Lake
from tests.tables.world import Served, engine_process
from tests.tables.writers import TABLES, Writer, checked

STEPS = (
    "write.begin:3",  # admitted, nothing written
    "inbox.entry:3",  # the file does not exist yet
    "inbox.link:3",  # linked, the folder is not synced
    "inbox.taken:1",  # while the next engine takes over the inbox
    "inbox.linked:3",  # durable, not acknowledged
    "entry.half:3",  # halfway through writing the log entry
    "entry.link:3",  # before its link
    "entry.linked:3",  # after its link
    "entry.committed:3",  # in the log, and still in the inbox
)


def test_killed_between_inbox_and_log(tmp_path: Path) -> None:
    """The short form, for every test run."""
    killed(tmp_path, ("inbox.linked:3", "entry.linked:3"))


@pytest.mark.long
def test_killed_at_every_step(tmp_path: Path) -> None:
    killed(tmp_path, STEPS)


def killed(tmp_path: Path, steps: tuple[str, ...]) -> None:
    lake = Lake.create(tmp_path / "lake")
    child = engine_process(lake.path)
    child.wait_ready(child.announced, timedelta(seconds=60))
    served = Served(lake)

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(served.dsn, autocommit=True)

    with connect() as c:
        for statement in TABLES:
            c.execute(statement)
    writers = [Writer(connect, number) for number in range(3)]
    try:
        for writer in writers:
            writer.start()
        for step in steps:
            assert all(writer.moves() for writer in writers)
            child.stop(timedelta(seconds=1))
            child = engine_process(lake.path, step)
            assert child.wait(timedelta(seconds=120)) is not None, step
            child = engine_process(lake.path)
            child.wait_ready(child.announced, timedelta(seconds=60))
        assert all(writer.moves() for writer in writers)
        assert len(checked(lake, writers)) > 3 * len(steps)
    finally:
        for writer in writers:
            writer.going = False
        served.close()
        child.stop(timedelta(seconds=1))
