"""All clients of a soak test: the shop's load, writers, followers and random DDL."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

from tailgate.examples.shop.demo import VIEW, statements
from tailgate.examples.shop.load import Load
from tests.following import Subscriber, Tail
from tests.soak import writing
from tests.soak.changing import SCHEMA, Changer
from tests.soak.writing import AGAIN_S, Connect, Writer, described

WRITERS, WRITES = 3, 3.0  # writers, and blocks per second of each
# Keeps the load's messages unique and in order, however long the broker is down.
PRODUCER = {"enable.idempotence": True, "message.timeout.ms": 0, "reconnect.backoff.max.ms": 1000}
VIEWS = {
    "ledger_totals": "SELECT writer, count(*) AS n, sum(amount) AS total, max(id) AS newest FROM ledger GROUP BY writer",
    "journal_counts": "SELECT writer, count(*) AS n FROM journal GROUP BY writer",
    "balance": "SELECT l.writer, l.n, l.total, j.n AS entries, c.n AS counted FROM ledger_totals l"
    " JOIN journal_counts j ON j.writer = l.writer JOIN counters c ON c.writer = l.writer",
    "largest": "SELECT id, writer, amount FROM ledger ORDER BY amount DESC, id LIMIT 10",
    "late": "SELECT writer, count(*) AS n FROM ledger WHERE mz_now() >= at + interval '20 seconds' GROUP BY writer",
    "vips": "SELECT is_vip, count(*) AS n, max(id) AS newest FROM users GROUP BY is_vip",
}
SINKS = (
    "CREATE SINK totals_out FROM ledger_totals INTO KAFKA BROKER '{kafka}' TOPIC 'soak-totals' KEY (writer) FORMAT JSON ENVELOPE UPSERT",
    "CREATE SINK largest_out FROM largest INTO KAFKA BROKER '{kafka}' TOPIC 'soak-largest' {avro}",
)
AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{}'"
FOLLOWED = (VIEW, "ledger_totals", "largest")
SUBSCRIBED = (VIEW, "balance")
STOPPED = "was stopped"  # in the error of a subscription that was stopped


class Follower(threading.Thread):
    """A thread that runs a Tail or a Subscriber and reconnects after each error.

    It ends when it has reached the time `upto`.
    """

    def __init__(self, connect: Connect, what: Tail | Subscriber) -> None:
        self.relation = what.relation if isinstance(what, Tail) else what.name.removeprefix("follows_")
        self.kind = "TAIL" if isinstance(what, Tail) else "subscription"
        super().__init__(name=f"{self.kind} of {self.relation}", daemon=True)
        self._connect = connect
        self.what = what
        self.upto: int | None = None
        self.connections = 0
        self.errors: Counter[str] = Counter()
        self.restarts = 0  # of a Tail, from a snapshot, because the missed changes are no longer retained
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._done():
                try:
                    with self._connect() as connection:
                        self.connections += 1
                        self._follow(connection)
                except psycopg.errors.InvalidParameterValue:
                    if not isinstance(self.what, Tail):
                        raise
                    self.what.begin()
                    self.restarts += 1
                except (psycopg.Error, OSError) as error:
                    self.errors[described(error)] += 1
                    if STOPPED in str(error):
                        raise
                    time.sleep(AGAIN_S)
        except BaseException as error:  # noqa: BLE001  # reported at the end
            self.error = error

    def _follow(self, connection: psycopg.Connection[Any]) -> None:
        if isinstance(self.what, Tail):
            with connection.transaction():
                self.what.open(connection)
                while not self._done():
                    self.what.fetch(connection)
        else:
            while not self._done():
                self.what.fetch(connection)

    def _done(self) -> bool:
        position = self.what.seen if isinstance(self.what, Tail) else self.what.saved
        return self.upto is not None and position is not None and position >= self.upto


class Crowd:
    """All clients of a run.

    `make` creates their objects, `start` starts them, `stops` stops the writers.
    """

    def __init__(self, connect: Connect, kafka: str, registry: str, rate: float, seed: int) -> None:
        self._connect = connect
        self._places = {"kafka": kafka, "registry": registry}
        self.load = Load(kafka, registry, rate, settings=PRODUCER)
        self.writers = [Writer(connect, number, WRITES, seed) for number in range(WRITERS)]
        followers = [*map(Tail, FOLLOWED), *(Subscriber(f"follows_{name}") for name in SUBSCRIBED)]
        self.followers = [Follower(connect, what) for what in followers]
        self.changer = Changer(connect, kafka, registry, seed)

    def make(self) -> None:
        self.load.prepare()
        self.load.start()
        with self._connect() as connection:
            for statement in statements(self._places["kafka"], self._places["registry"]):
                connection.execute(statement)  # type: ignore[call-overload]
            writing.begin(connection, WRITERS)
            for name, query in VIEWS.items():
                connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")  # type: ignore[call-overload]
            for text in SINKS:
                connection.execute(text.format(kafka=self._places["kafka"], avro=AVRO.format(self._places["registry"])))  # type: ignore[call-overload]
            for name in SUBSCRIBED:
                connection.execute(f"CREATE SUBSCRIPTION follows_{name} FROM {name} WITH (PROGRESS)")  # type: ignore[call-overload]
            connection.execute(f"CREATE SCHEMA {SCHEMA}")

    def start(self) -> None:
        for thread in (*self.writers, *self.followers, self.changer):
            thread.start()

    def stops(self) -> list[tuple[str, Callable[[], None]]]:
        """Returns functions that stop all writers, with their names.

        Each waits until its writer has ended.
        """
        self.changer.end()
        return [(w.name, w.stop) for w in self.writers] + [(self.changer.name, self.changer.stop), ("the load", self._stop_load)]

    def _stop_load(self) -> None:
        self.load.stop()
        if self.load.error is not None:
            raise self.load.error

    @property
    def errors(self) -> Counter[str]:
        """Returns the errors that clients received, with their counts."""
        return sum((each.errors for each in (*self.writers, *self.followers, self.changer)), Counter())

    @property
    def acknowledged(self) -> int:
        return sum(w.acknowledged for w in self.writers)

    @property
    def changes(self) -> int:
        return sum(self.changer.counts.values())

    def __str__(self) -> str:
        refused, unanswered = sum(w.refused for w in self.writers), sum(w.unanswered for w in self.writers)
        return (
            f"{self.load.events} messages, {self.acknowledged} writes acknowledged, {refused} refused, {unanswered} without an answer,"
            f" {self.changes} changes of the catalog"
        )
