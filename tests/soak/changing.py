"""Random DDL: creates, replaces, renames and drops views, indexes and sinks while processes are killed.

At the end the catalog must match the acknowledged statements. After a statement without an answer,
DROP IF EXISTS is repeated until it is answered.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import psycopg

from tests.soak.writing import AGAIN_S, Connect, described

SCHEMA = "scratch"
VIEWS_MAX = 6
GAP_S = (1.0, 6.0)
QUERIES = (
    "SELECT writer, count(*) AS n, sum(amount) AS total FROM public.ledger GROUP BY writer",
    "SELECT id % 7 AS k, count(*) AS n, max(amount) AS total FROM public.ledger GROUP BY 1",
    "SELECT l.writer, count(*) AS n, sum(l.amount) AS total FROM public.ledger l JOIN public.journal j ON j.id = l.id GROUP BY 1",
    "SELECT DISTINCT amount % 50 AS k, 0 AS n, 1 AS total FROM public.ledger",
    "SELECT writer AS k, amount AS n, id AS total FROM public.ledger ORDER BY amount DESC, id LIMIT 20",
    "SELECT is_vip AS k, count(*) AS n, max(id) AS total FROM public.users GROUP BY 1",
    "SELECT channel AS k, count(*) AS n, sum(pageview_count) AS total FROM public.pageviews_by_user_segment GROUP BY 1",
)


class Changer(threading.Thread):
    """A thread that runs random DDL. `views` are the queries of the existing views, by name."""

    def __init__(self, connect: Connect, kafka: str, registry: str, seed: int) -> None:
        super().__init__(name="changer", daemon=True)
        self._connect = connect
        self._into = f"INTO KAFKA BROKER '{kafka}' TOPIC 'soak-{{}}' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry}'"
        self._random = random.Random(f"{seed} ddl")
        self._ended = threading.Event()
        self._number = 0
        self.views: dict[str, str] = {}
        self.sinks: dict[str, str] = {}  # topics, by sink
        self._of: dict[str, str] = {}  # views, by sink
        self._unsure: list[str] = []  # DROP statements for objects that may exist
        self.counts: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        try:
            while not self._ended.wait(self._random.uniform(*GAP_S)):
                try:
                    connection = connection or self._connect()
                    while self._unsure:
                        connection.execute(self._unsure[0])  # type: ignore[call-overload]
                        self._unsure.pop(0)
                    self._one(connection)
                except (psycopg.Error, OSError) as error:
                    self.errors[described(error)] += 1
                    self._ended.wait(AGAIN_S)
                if connection is not None and connection.closed:
                    connection = None
            self._settle()
        except BaseException as error:  # noqa: BLE001  # raised by stop()
            self.error = error
        if connection is not None:
            connection.close()

    def end(self) -> None:
        """Requests the end; `stop` also waits for it."""
        self._ended.set()

    def stop(self) -> None:
        self.end()
        self.join(300)
        assert not self.is_alive(), "a statement that changes the catalog waits for ever"
        if self.error is not None:
            raise self.error

    def _settle(self) -> None:
        """Drops the objects that may exist."""
        for _ in range(600):
            try:
                with self._connect() as connection:
                    while self._unsure:
                        connection.execute(self._unsure[0])  # type: ignore[call-overload]
                        self._unsure.pop(0)
                return
            except (psycopg.Error, OSError):
                threading.Event().wait(AGAIN_S)
        raise AssertionError(f"no answer to {self._unsure[0]}")

    def _one(self, connection: psycopg.Connection[Any]) -> None:
        kinds = {"create": 4, "drop": 2, "replace": 2, "index": 1, "rename": 1, "sink": 1, "drop sink": 1}
        kind = self._random.choices(list(kinds), list(kinds.values()))[0]
        if kind == "create" or not self.views:
            kind = "create" if len(self.views) < VIEWS_MAX else "drop"
        name = self._random.choice(list(self.views)) if self.views else ""
        if kind == "drop sink" and not self.sinks:
            kind = "sink"
        match kind:
            case "create":
                self._create(connection)
            case "drop":
                self._drop(connection, name)
            case "replace":
                self._replace(connection, name)
            case "rename":
                self._rename(connection, name)
            case "index":
                connection.execute(f"CREATE INDEX ON {SCHEMA}.{name} (n)")  # type: ignore[call-overload]
            case "sink":
                self._sink(connection, name)
            case "drop sink":
                self._drop_sink(connection, self._random.choice(list(self.sinks)))
        self.counts[kind] += 1

    def _fresh(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _create(self, connection: psycopg.Connection[Any]) -> None:
        name, query = self._fresh("v"), self._random.choice(QUERIES)
        self._unsure.append(f"DROP MATERIALIZED VIEW IF EXISTS {SCHEMA}.{name} CASCADE")
        connection.execute(f"CREATE MATERIALIZED VIEW {SCHEMA}.{name} AS {query}")  # type: ignore[call-overload]
        self._unsure.pop()
        self.views[name] = query

    def _drop(self, connection: psycopg.Connection[Any], name: str) -> None:
        del self.views[name]
        for sink in [sink for sink, view in self._of.items() if view == name]:
            self._forget(sink)
        self._unsure.append(f"DROP MATERIALIZED VIEW IF EXISTS {SCHEMA}.{name} CASCADE")
        connection.execute(f"DROP MATERIALIZED VIEW {SCHEMA}.{name} CASCADE")  # type: ignore[call-overload]
        self._unsure.pop()

    def _replace(self, connection: psycopg.Connection[Any], name: str) -> None:
        """Replaces a view by its query with one more filter.

        Its columns, and therefore its indexes, stay.
        """
        query = f"SELECT * FROM ({self.views[name]}) AS q WHERE n <> {self._random.randrange(10**6)}"
        if name in self._of.values() or query.count("SELECT") > 4:
            return
        old = self.views.pop(name)
        self._unsure.append(f"DROP MATERIALIZED VIEW IF EXISTS {SCHEMA}.{name} CASCADE")
        try:
            connection.execute(f"CREATE OR REPLACE MATERIALIZED VIEW {SCHEMA}.{name} AS {query}")  # type: ignore[call-overload]
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.InvalidTableDefinition):
            self.views[name] = old  # refused: the view is unchanged
            self._unsure.pop()
            return
        self._unsure.pop()
        self.views[name] = query

    def _rename(self, connection: psycopg.Connection[Any], name: str) -> None:
        if name in self._of.values():
            return
        new, query = self._fresh("v"), self.views.pop(name)
        self._unsure += [f"DROP MATERIALIZED VIEW IF EXISTS {SCHEMA}.{each} CASCADE" for each in (name, new)]
        connection.execute(f"ALTER MATERIALIZED VIEW {SCHEMA}.{name} RENAME TO {new}")  # type: ignore[call-overload]
        del self._unsure[-2:]
        self.views[new] = query

    def _sink(self, connection: psycopg.Connection[Any], name: str) -> None:
        sink = self._fresh("s")
        self._unsure.append(f"DROP SINK IF EXISTS {SCHEMA}.{sink}")
        connection.execute(f"CREATE SINK {SCHEMA}.{sink} FROM {SCHEMA}.{name} {self._into.format(sink)}")  # type: ignore[call-overload]
        self._unsure.pop()
        self.sinks[sink], self._of[sink] = f"soak-{sink}", name

    def _drop_sink(self, connection: psycopg.Connection[Any], sink: str) -> None:
        self._forget(sink)
        self._unsure.append(f"DROP SINK IF EXISTS {SCHEMA}.{sink}")
        connection.execute(f"DROP SINK {SCHEMA}.{sink}")  # type: ignore[call-overload]
        self._unsure.pop()

    def _forget(self, sink: str) -> None:
        del self.sinks[sink], self._of[sink]

    def view_of(self, sink: str) -> str:
        return self._of[sink]
