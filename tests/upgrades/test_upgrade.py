"""The upgrade from the previous release while clients read and write: no reader gets an error, and nothing is lost or repeated."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.cli import main
from tailgate.embedded.children import Child, free_port
from tailgate.embedded.kafka import Kafka
from tailgate.lake.folder import Lake
from testing.engine_process import rows, until
from tests.sinks.feed import records
from tests.tables.writers import TABLES, Writer, checked
from tests.upgrades.previous_release import PreviousRelease

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

READY = timedelta(seconds=240)
VIEWS = (
    "CREATE TABLE names (writer int PRIMARY KEY, name text)",
    "INSERT INTO names VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "CREATE MATERIALIZED VIEW counts AS SELECT writer, count(*) AS n FROM keyed GROUP BY writer",
    "CREATE MATERIALIZED VIEW named AS SELECT name, count(*) AS n FROM keyed JOIN names USING (writer) GROUP BY name",
    "CREATE MATERIALIZED VIEW doubled AS SELECT name, n * 2 AS n FROM named",
)


class Reader(threading.Thread):
    """Polls the views. `error`: the first error of a poll."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        super().__init__(daemon=True)
        self.connection = connect()
        self.reads, self.going = 0, True
        self.error: Exception | None = None

    def run(self) -> None:
        before: dict[str, int] = {}
        while self.going:
            try:
                named = dict(self.connection.execute("SELECT name, n FROM named").fetchall())
                self.connection.execute("SELECT sum(d.n + c.n) FROM doubled d, counts c").fetchall()
                assert all(named[name] >= n for name, n in before.items()), "a view returned to an earlier state"
            except Exception as error:  # noqa: BLE001
                self.error = error
                return
            before = named
            self.reads += 1

    def moves(self) -> None:
        before = self.reads
        until(lambda: self.error is not None or self.reads > before + 2)
        assert self.error is None

    def stop(self) -> None:
        self.going = False
        self.join(60)
        self.connection.close()
        assert self.error is None


class Follower(threading.Thread):
    """Follows a view. `rows`: the sum of the changes."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        super().__init__(daemon=True)
        self.connection = connect()
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for _, diff, *row in self.connection.cursor().stream("TAIL named"):
                self.rows[tuple(row)] += diff
        except psycopg.errors.QueryCanceled:
            pass
        except Exception as error:  # noqa: BLE001
            self.error = error

    def stop(self) -> None:
        self.connection.cancel()
        self.join(60)
        self.connection.close()
        assert self.error is None


class Processes:
    """The processes of one lake, and clients of its gateways."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = str(folder / "lake")
        self.running: list[Child] = []

    def present(self, *words: str) -> Child:
        """Starts a command of this release and waits until it is ready."""
        command = [sys.executable, "-m", "tailgate", *words]
        return self.ready(Child(words[0], command, log=self.folder / f"{words[0]}.log", announces="ready "))

    def ready(self, child: Child) -> Child:
        self.running.append(child)
        child.wait_ready(child.announced, READY)
        return child

    def stop(self) -> None:
        for child in reversed(self.running):
            child.stop()


def connects(port: int) -> Callable[[], psycopg.Connection[Any]]:
    return lambda: psycopg.connect(f"host=127.0.0.1 port={port} user=ann dbname=tailgate", autocommit=True)


def newest(kafka: Kafka, topic: str) -> dict[str, int]:
    """Returns the newest value of each key in a sink's topic."""
    return {json.loads(key)["name"]: json.loads(value)["n"] for key, value in records(kafka.address, topic) if key and value}


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    yield processes
    processes.stop()


def test_live_with_a_changed_plan(processes: Processes, kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    previous, data = PreviousRelease(tmp_path / "previous", other_plans=True), processes.data
    processes.ready(previous.command("engine", "--data", data))
    old_port, port = free_port(), free_port()
    old_gateway = processes.ready(previous.command("gateway", "--data", data, "--listen", f"127.0.0.1:{old_port}"))
    old_sinks = processes.ready(previous.command("sinks", "--data", data))
    with connects(old_port)() as c:
        for statement in (*TABLES, *VIEWS):
            c.execute(statement)
        into = f"INTO KAFKA BROKER '{kafka.address}' TOPIC 'named'"
        c.execute(f"CREATE SINK named_out FROM named {into} KEY (name) FORMAT JSON ENVELOPE UPSERT")
    writers = [Writer(connects(old_port), 1)]
    old_clients: list[Reader | Follower] = [Reader(connects(old_port)), Follower(connects(old_port))]
    for thread in (*writers, *old_clients):
        thread.start()
    assert writers[0].moves()

    processes.present("gateway", "--data", data, "--listen", f"127.0.0.1:{port}")
    writers.append(Writer(connects(port), 2))
    reader, follower = Reader(connects(port)), Follower(connects(port))
    for client in (writers[1], reader, follower):
        client.start()
    assert writers[1].moves()
    reader.moves()
    writers[0].stop()
    for old in old_clients:
        old.stop()
    old_gateway.stop()
    processes.present("sinks", "--data", data)
    assert old_sinks.wait(timedelta(seconds=60)) is not None

    assert main(["check", "--data", data]) == 1
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()[:-1]] == ["public.named", "public.doubled"]
    processes.present("engine", "--data", data, "--hand-over")
    assert processes.running[0].wait(timedelta(seconds=60)) == 0
    assert writers[1].moves()
    reader.moves()
    lake = Lake(tmp_path / "lake")
    until(lambda: not lake.catalog().replacements() and lake.catalog().relation("named").stale is None, 120)
    reader.moves()
    assert main(["check", "--data", data]) == 0

    writers[1].moves()
    keyed = checked(lake, writers)
    counts = Counter(writer for _, writer in keyed)
    expected = {({1: "a", 2: "b"}[writer], n): 1 for writer, n in counts.items()}
    until(lambda: rows(lake, "named") == expected and +follower.rows == expected)
    assert rows(lake, "doubled") == {(name, 2 * n): 1 for name, n in expected}
    reader.stop()
    follower.stop()
    until(lambda: newest(kafka, "named") == dict(expected.keys()))
