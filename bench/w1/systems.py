"""The interface of a system under test, and its implementation for Tailgate."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg

from bench.w1.orders import CUSTOMERS, ORDERS, QUERY, VIEW
from bench.w1.readers import Output
from tailgate.embedded.children import Child, free_port
from testing.s3 import BUCKET, S3

READY = timedelta(seconds=120)
SOURCES = (
    f"""CREATE SOURCE {ORDERS} (id bigint, customer_id int, item text, amount numeric(10,2))
        FROM KAFKA BROKER '{{kafka}}' TOPIC '{ORDERS}' FORMAT JSON""",
    f"""CREATE SOURCE {CUSTOMERS} (id int, segment text)
        FROM KAFKA BROKER '{{kafka}}' TOPIC '{CUSTOMERS}' KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS key ENVELOPE UPSERT""",
)
STEPS = "SELECT kafka_ms, wait_ms, tick_ms, commit_ms, mirror_ms FROM tailgate.freshness WHERE name = %s"
STATEMENTS = (*SOURCES, f"CREATE MATERIALIZED VIEW {VIEW} AS {QUERY}")
SECOND_VIEW = "second"
SECOND_QUERY = QUERY.replace("GROUP BY", "WHERE o.amount > 0 GROUP BY")  # the same rows by another circuit


class System(ABC):
    """A system that maintains the view from the workload's topics, with processes and files below `folder`.

    A system is started once. Before that, its topics exist, with all customers and at least one
    order.
    """

    name: str
    version: str
    settings: str  # changed settings, and defaults that matter for latency
    guarantee: str  # the consistency of the rows that a reader sees
    sql: bool  # whether readers can query the view in SQL
    topics: tuple[str, ...] = ()  # further topics that the system needs

    def __init__(self, folder: Path, brokers: str) -> None:
        self.folder, self.brokers = folder, brokers
        self.children: list[Child] = []

    @abstractmethod
    def start(self) -> None:
        """Starts the processes and defines the view.

        Returns when `output` can be read, with or without rows.
        """

    @property
    @abstractmethod
    def output(self) -> Output:
        """Returns where the view is read. Only valid after `start`."""

    def stop(self) -> None:
        for child in reversed(self.children):
            child.stop()

    def check(self) -> None:
        """Raises RuntimeError if a process of the system has ended."""
        for child in self.children:
            if not child.running():
                raise RuntimeError(f"{child.name} ended with {child.returncode()}:\n{child.last_lines()}")

    def steps(self) -> dict[str, float]:
        """Returns where the time of the newest rows went: milliseconds by step, if the system knows them."""
        return {}


class Tailgate(System):
    """An engine and a gateway. `reader` says how the view is read.

    `bucket`: the lake is in a bucket whose requests have these delays in ms, of a PUT and of a GET. `collector`: gets traces of ticks.
    """

    name = "Tailgate"
    settings = "as shipped"
    guarantee = "exactly once, up to the SQL reader; each answer is the view at one time"
    sql = True

    def __init__(
        self, folder: Path, brokers: str, reader: str = "tail", bucket: tuple[float, float] | None = None, collector: str | None = None
    ) -> None:
        super().__init__(folder, brokers)
        self.port = free_port()
        self._reader, self._bucket = reader, bucket
        self._traces = () if collector is None else ("--otlp", collector)
        self._s3: S3 | None = None
        self._observer: psycopg.Connection | None = None  # reads `steps`

    @property
    def version(self) -> str:
        from bench.w1.report import commit

        return commit()

    @property
    def dsn(self) -> str:
        return f"postgresql://bench@127.0.0.1:{self.port}/tailgate"

    @property
    def output(self) -> Output:
        return Output("tail" if self._reader == "tail" else "select", self.dsn)

    def start(self) -> None:
        lake, environment = ["--data", str(self.folder / "lake")], dict[str, str]()
        if self._bucket is not None:
            self._s3 = S3(self.folder)
            self._s3.set(put_ms=self._bucket[0], get_ms=self._bucket[1])
            lake, environment = ["--data", f"s3://{BUCKET}/lake", "--work-dir", str(self.folder / "work")], self._s3.environment
        for name, arguments in (("engine", self._traces), ("gateway", ("--listen", f"127.0.0.1:{self.port}"))):
            command = [sys.executable, "-m", "tailgate", name, *lake, *arguments]
            child = Child(name, command, log=self.folder / f"{name}.log", environment=environment, announces="ready ")
            self.children.append(child)
            child.wait_ready(child.announced, READY)
        with psycopg.connect(self.dsn, autocommit=True) as db:
            for statement in STATEMENTS:
                db.execute(statement.format(kafka=self.brokers))

    def second_view(self) -> Output:
        """Creates another view with the same rows. Returns where it is read, with or without rows."""
        with psycopg.connect(self.dsn, autocommit=True) as db:
            db.execute(f"CREATE MATERIALIZED VIEW {SECOND_VIEW} AS {SECOND_QUERY}".encode())
        return replace(self.output, name=SECOND_VIEW)

    def steps(self) -> dict[str, float]:
        if self._observer is None:
            self._observer = psycopg.connect(self.dsn, autocommit=True)
        row = self._observer.execute(STEPS, (VIEW,)).fetchone()
        names = ("kafka", "wait", "tick", "commit", "mirror")
        return {} if row is None or None in row else {name: float(ms) for name, ms in zip(names, row, strict=True)}

    def stop(self) -> None:
        if self._observer is not None:
            self._observer.close()
        super().stop()
        if self._s3 is not None:
            self._s3.stop()
