"""A backup of a running engine: restored with its state, its views continue where the backup ends."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from tailgate.cli import main
from tailgate.lake.folder import Lake
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.writer.restored_state import restore
from testing.engine_process import EngineProcess, rows
from tests.statements.conftest import World
from tests.tables.world import Served

WRITERS = 2
LOST_STATE = ("state that the log names is missing", "all state is made again", "is filled again", "cannot be downloaded")


@pytest.mark.parametrize("restored", ["folder", pytest.param("bucket", marks=pytest.mark.long)])
def test_restored_views_continue(
    world: World, sql: psycopg.Connection, tmp_path: Path, restored: str, request: pytest.FixtureRequest
) -> None:
    sql.execute("CREATE TABLE paid (id int PRIMARY KEY, account int, amount int)")
    sql.execute("CREATE MATERIALIZED VIEW paid_by AS SELECT account, count(*) AS n, sum(amount) AS amount FROM paid GROUP BY account")
    ending, acknowledged = threading.Event(), [0] * WRITERS

    def write(writer: int) -> None:
        with world.connect() as connection:
            while not ending.is_set():
                number = acknowledged[writer] * WRITERS + writer
                connection.execute("INSERT INTO paid VALUES (%s, %s, %s)", (number, number % 7, number))
                acknowledged[writer] += 1

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    target = tmp_path / "backups"
    try:
        for _ in range(2):
            before = sum(acknowledged)
            while sum(acknowledged) < before + 20:
                ending.wait(0.01)
            before = sum(acknowledged)
            assert main(["backup", "--data", str(world.lake.path), "--to", str(target)]) == 0
    finally:
        ending.set()
        for thread in threads:
            thread.join()

    location: Path | str = tmp_path / "lake"
    if restored == "bucket":
        bucket: BucketStore = request.getfixturevalue("bucket")
        location = bucket.location("")
    restore(target, location)
    lake = Lake(location, tmp_path / "work-of-the-gateway")
    engine = EngineProcess(location, work_dir=None if restored == "folder" else tmp_path / "work")
    engine.start()
    served = Served(lake)
    try:
        with psycopg.connect(served.dsn, autocommit=True) as connection:
            connection.execute("INSERT INTO paid VALUES (-1, 3, 1000), (-2, 99, 5)")
            connection.execute("DELETE FROM paid WHERE id = 0")
            ids = {id for (id,) in connection.execute("SELECT id FROM paid").fetchall()} - {-1, -2} | {0}
            assert before <= len(ids) <= sum(acknowledged)
            for writer in range(WRITERS):  # its rows are the first ones that it wrote
                own = {id for id in ids if id % WRITERS == writer}
                assert own == set(range(writer, WRITERS * len(own), WRITERS))
            expected = connection.execute("SELECT account, count(*), sum(amount) FROM paid GROUP BY account ORDER BY account").fetchall()
            assert connection.execute("SELECT account, n, amount FROM paid_by ORDER BY account").fetchall() == expected
        assert sum(rows(lake, "paid").values()) == len(ids) + 1
        log = (tmp_path / "engine.log").read_text()
        assert not [words for words in LOST_STATE if words in log]
    finally:
        served.close()
        engine.stop()
