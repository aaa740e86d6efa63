"""One scenario with one database and one kind of worker, in a separate schema of Tailgate.

database ──Debezium in a worker──► topics ──► sources ──► views ──► sinks
   └────────────── the same queries ──────────────┴─────────┘  must return the same rows
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import psycopg
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient

from tailgate.examples.shop.recompute import Topics
from testing.engine_process import until
from tests.cdc.databases import SCHEMA, SERVERS, Row, plain
from tests.cdc.folding import Misfit, counted, fold, spelt
from tests.cdc.scenarios import SCENARIOS, Table, View
from tests.cdc.worker import Mode, Worker
from tests.cdc.writing import MARK, Pageviews, Writer, alter, begin, mark

SESSIONS = 2  # concurrent writers
RATE = 10.0  # transactions per second of each writer
ARRIVES_S = 900.0  # for the last row of a table: 10 s measured on an idle machine, 150 s under eight times the sustainable load
SINK_S = 120.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Words:
    """The parameters of a case, written as `scenario:database:mode`."""

    scenario: str
    database: str
    mode: Mode

    @staticmethod
    def of(text: str) -> Words:
        scenario, database, mode = text.split(":")
        if scenario not in SCENARIOS or database not in SERVERS or mode not in get_args(Mode):
            raise ValueError(f"{text} is not {'|'.join(SCENARIOS)}:{'|'.join(SERVERS)}:{'|'.join(get_args(Mode))}")
        return Words(scenario, database, cast("Mode", mode))


class Case:
    """A run of one case: `start`, `write`, wait, `settle`, `await_last`, `checks`, `stop`."""

    def __init__(self, words: Words, folder: Path, kafka: str, registry: str, dsn: str, seed: int) -> None:
        self.name = f"{words.scenario}_{words.database}"
        self.scenario = SCENARIOS[words.scenario]
        self._mode = words.mode
        self._folder = folder
        self._kafka = kafka
        self._registry = registry
        self._dsn = dsn
        self._seed = f"{seed} {self.name}"
        self._topics = Topics(kafka, registry)
        self.server = SERVERS[words.database]()
        self.worker: Worker | None = None
        self.pageviews: Pageviews | None = None
        self.writers: list[Writer] = []
        self.glances = 0
        self._awaited = self.scenario.refreshed
        # page views are not stored, so views of them cannot be recomputed
        matches = [re.fullmatch(r"CREATE MATERIALIZED VIEW (\w+) AS\n(.*)", s, re.DOTALL) for s in self.scenario.statements()]
        self._queries = {view[1]: view[2].rstrip(";") for view in matches if view is not None and "pageviews" not in view[2]}

    # ---- setup ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the database with the first rows, the worker, and the sources, views and sinks."""
        self.server.start()
        begin(self.server, self.scenario, self._seed)
        tables = [table.name for table in self.scenario.tables]
        connector = {
            **self.server.capture(tables),
            "topic.prefix": self.name,
            "skipped.operations": "none",
            "schema.history.internal.kafka.bootstrap.servers": self._kafka,
            "schema.history.internal.kafka.topic": f"{self.name}.schema-history",
        }
        if "transaction" in self.scenario.topics:
            connector["provide.transaction.metadata"] = "true"
        admin = AdminClient({"bootstrap.servers": self._kafka, "log_level": 2})
        for topic in self.scenario.topics:
            admin.create_topics([NewTopic(f"{self.name}.{topic}", 1, 1)])[f"{self.name}.{topic}"].result(30)
        if "pageviews" in self.scenario.topics:
            self.pageviews = Pageviews(self._kafka, f"{self.name}.pageviews", self._seed)
        registry = self._registry if self.scenario.avro else None
        self.worker = Worker(self._folder / self.name, self.name, self._mode, self._kafka, self.server.name, connector, registry)
        # A worker may lose its offsets only if a second snapshot is harmless. Without keys its rows
        # would be duplicates, and its rows belong to no transaction.
        snapshots = all(table.keyed for table in self.scenario.tables) and self.scenario.transaction is None
        self.worker.forgetful = self._mode == "standalone" and snapshots
        self.worker.make()
        expected = {f"{self.name}.{SCHEMA}.{table}" for table in tables}
        until(lambda: expected <= set(admin.list_topics(timeout=10).topics), 60)
        if self.scenario.avro and "transaction" in self.scenario.topics:  # CREATE SOURCE needs the registered schema
            until(self._captured, 60)
        with psycopg.connect(self._dsn, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {self.name}")  # type: ignore[call-overload]
            db.execute(f"SET search_path = {self.name}")  # type: ignore[call-overload]
            for statement in self.scenario.statements():
                db.execute(self._here(statement))  # type: ignore[call-overload]

    def _captured(self) -> bool:
        """Runs a transaction in the database.

        Returns whether the transaction topic's schema is registered.

        Debezium registers it with the first transaction after the snapshot.
        """
        assert self.scenario.transaction is not None
        session = self.server.session()
        session.transaction(self.scenario.transaction(random.Random()))
        session.close()
        time.sleep(1)  # time to capture it
        with SchemaRegistryClient({"url": self._registry}) as registry:
            return f"{self.name}.transaction-value" in registry.get_subjects()

    def _here(self, statement: str) -> str:
        for placeholder, here in (("kafka:9092", self._kafka), ("http://schema-registry:8081", self._registry), ("{prefix}", self.name)):
            statement = statement.replace(placeholder, here)
        return statement

    def write(self) -> None:
        for number in range(SESSIONS):
            visits = self.pageviews.send if self.pageviews is not None and number == 0 else None
            self.writers.append(Writer(self.server, self.scenario, f"{self._seed} {number}", RATE, visits))
            self.writers[-1].start()

    @property
    def transactions(self) -> int:
        return sum(writer.transactions for writer in self.writers)

    def alter(self) -> None:
        """Alters the database's tables."""
        alter(self.server, self.scenario)

    def refresh(self) -> bool:
        """Refreshes the schema of the source whose table has a new column.

        Returns whether it has the column.

        Debezium registers the new schema with the first change after the ALTER TABLE.
        """
        if self._awaited is not None:
            source, column = self._awaited
            try:
                with self._connect() as db:
                    db.execute("SET real_time_recency = off")
                    db.execute(f"ALTER SOURCE {source} REFRESH SCHEMA")  # type: ignore[call-overload]
                    columns = db.execute(f"SELECT * FROM {source} LIMIT 0").description  # type: ignore[call-overload]
            except psycopg.OperationalError:
                return False  # the engine is restarting
            self._awaited = None if column in [c.name for c in columns or ()] else self._awaited
        return self._awaited is None

    def check_writers(self) -> None:
        for writer in self.writers:
            writer.check()

    def settle(self, watch: Callable[[], None]) -> None:
        """Stops the writers and adds a last row to every table. Calls `watch` while it waits."""
        until(lambda: (watch(), self.refresh())[1], ARRIVES_S)
        for writer in self.writers:
            writer.stop()
        if self.pageviews is not None:
            self.pageviews.flush()
            session = self.server.session()
            self.pageviews.into(session)
            session.close()
        mark(self.server, self.scenario)

    def await_last(self, watch: Callable[[], None]) -> None:
        """Waits until Tailgate has the last row of every table. Calls `watch` meanwhile."""
        until(lambda: (watch(), self._arrived())[1], ARRIVES_S)

    def _arrived(self) -> bool:
        assert self.worker is not None
        self.worker.running()  # restarts a failed task
        try:
            with self._connect() as db:
                counts = [db.execute(f"SELECT count(*) FROM {t.name} WHERE id = {MARK}").fetchone() for t in self.scenario.tables]  # type: ignore[call-overload]
        except psycopg.Error as error:
            raise OSError(str(error)) from error
        return all(count == (1,) for count in counts)

    def _connect(self) -> psycopg.Connection[Any]:
        db = psycopg.connect(self._dsn, autocommit=True)
        db.execute(f"SET search_path = {self.name}")  # type: ignore[call-overload]
        db.execute("SET real_time_recency = on")
        db.execute("SET real_time_recency_timeout = '60s'")
        return db

    # ---- comparisons ----------------------------------------------------------------------------

    def checks(self, report: Callable[[str, str | None], None]) -> None:
        """Compares sources, views and sinks with the database.

        Calls `report` with each check and its error, or None.
        """
        session = self.server.session()
        held: dict[str, Counter[Row]] = {}
        with self._connect() as db, db.transaction():  # reads everything at one time
            for table in self.scenario.tables:
                ours = Counter(tuple(map(plain, row)) for row in db.execute(self._rows(table)))  # type: ignore[call-overload]
                theirs = Counter(session.query(self._rows(table)))
                report(f"source {table.name} is its table: {theirs.total()} rows", difference(ours, theirs))
            for view in self.scenario.views:
                ours = Counter(tuple(map(plain, row)) for row in db.execute(view.ours))  # type: ignore[call-overload]
                theirs = Counter(session.query(view.theirs))
                report(f"view {view.name} is its query: {theirs.total()} rows", difference(ours, theirs))
                held[view.name] = Counter(spelt(row) for row in db.execute(f"SELECT * FROM {view.name}"))  # type: ignore[call-overload]
            if self.scenario.refreshed is not None:
                source, column = self.scenario.refreshed
                last = f"SELECT {column} FROM {source} WHERE id = {MARK}"  # earlier rows have NULL
                ours = Counter(tuple(map(plain, row)) for row in db.execute(last))  # type: ignore[call-overload]
                report(f"source {source} has got column {column}", difference(ours, Counter(session.query(last))))
        session.close()
        for view in self.scenario.views:
            self._check_sink(view, held[view.name], report)
        self._check_sources(report)

    def _rows(self, table: Table) -> str:
        columns = re.findall(r"(?:^|, )(\w+) ", table.columns)
        shown = table.shown or {}
        return f"SELECT id, {', '.join(shown.get(column, column) for column in columns)} FROM {table.name}"

    def _check_sink(self, view: View, expected: Counter[Row], report: Callable[[str, str | None], None]) -> None:
        topic = f"{self.name}.sink.{view.name}"
        events, wrong = 0, "nothing was read"
        deadline = time.monotonic() + SINK_S
        while wrong and time.monotonic() < deadline:
            try:
                rows, events = fold(self._topics, topic, view.sink)
                wrong = difference(rows, expected) or ""
            except Misfit as misfit:
                wrong = str(misfit)
                break
        report(
            f"sink of {view.name}: {events} events fold to the view", wrong or ("there was something" if view.never and events else None)
        )
        if f"{view.name}-consistency" in " ".join(self.scenario.statements()):
            try:
                count = counted(self._topics, f"{topic}-consistency")
                report(
                    f"sink of {view.name}: its consistency topic counts them", None if count == events else f"it counts {count} of {events}"
                )
            except Misfit as misfit:
                report(f"sink of {view.name}: its consistency topic counts them", str(misfit))

    def _check_sources(self, report: Callable[[str, str | None], None]) -> None:
        with self._connect() as db:
            for name in [*(table.name for table in self.scenario.tables), *(["raw_pageviews"] if self.pageviews else [])]:
                row = db.execute("SELECT status, error FROM tailgate.sources WHERE name = %s AND schema = %s", (name, self.name)).fetchone()
                letters = db.execute(f"SELECT count(*) FROM {name}_dead_letters").fetchone()  # type: ignore[call-overload]
                good = row is not None and row[0] == "running" and letters == (0,)
                report(f"source {name} runs and has no dead letters", None if good else f"{row}, {letters}")

    def amount(self) -> str:
        """Returns the number of changes in the topics and how many of them are duplicates."""
        changes: Counter[tuple[Any, ...]] = Counter()
        for table in self.scenario.tables:
            for message in self._topics.messages(f"{self.name}.{SCHEMA}.{table.name}"):
                if message.value() is not None:
                    event = self._topics.decode(message.value()) if self.scenario.avro else json.loads(message.value())
                    source = event["source"]
                    position = [source.get(part) for part in ("file", "pos", "row", "lsn")]
                    if event["op"] == "r" and message.key() is None:
                        position.append(message.offset())  # the rows of a snapshot share a position
                    changes[(table.name, message.key(), event["op"], *position)] += 1
        return f"{changes.total()} changes, {changes.total() - len(changes)} of them copies"

    def glance(self) -> str | None:
        """Compares each view with its query at the same time, while writes continue.

        Returns an error, or None.
        """
        with self._connect() as db:
            db.execute("SET real_time_recency = off")
            for name, query in self._queries.items():
                both = f"(TABLE {name} EXCEPT ALL ({query})) UNION ALL (({query}) EXCEPT ALL TABLE {name})"
                try:
                    rows = db.execute(f"SELECT count(*) FROM ({both}) AS different").fetchone()  # type: ignore[call-overload]
                except psycopg.OperationalError:
                    continue  # the engine is restarting
                self.glances += 1
                if rows != (0,):
                    return f"{name} is not its query: {rows}"
        return None

    def stop(self) -> None:
        for writer in self.writers:
            writer.end()
        if self.worker is not None:
            self.worker.stop()
        self.server.stop()


def difference(ours: Counter[Row], theirs: Counter[Row]) -> str | None:
    """Describes surplus and missing rows, with a few examples; None if there are none."""
    more, less = ours - theirs, theirs - ours
    if not more and not less:
        return None
    few = [f"{sign} {row}" for sign, rows in (("+", more), ("-", less)) for row in list(rows.elements())[:4]]
    return f"{more.total()} too much, {less.total()} missing: {'; '.join(few)}"
