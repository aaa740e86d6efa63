"""Database transactions through Kafka and the engine: no tick shows a part of one.

This also holds after kills and duplicates. The test plays the connector: accounts in two
partitions, transfers between them in another topic, BEGIN and END in a third, with a random delay
for each partition. After a crash it sends the last transactions again, like a standalone Kafka
Connect. Messages are JSON, or Avro with Debezium's schemas.
"""

from __future__ import annotations

import base64
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.folder import Lake
from tailgate.lake.readers.reading import changes
from tailgate.lake.types import WEIGHT
from testing.engine_process import EngineProcess, rows, until
from tests.engine.ddl.topics import Topic, field

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long, pytest.mark.usefixtures("seed")]

ACCOUNTS, START = 6, 100
TRANSACTIONS, KILLS = 30, (11, 20)
FEW = 9  # transactions, in tests without a kill
SLOW_S = 180.0
COLUMNS = {"accounts": ("id", "balance", "moved"), "transfers": ("id",)}
Message = tuple[str, int, Any, Any]  # topic, partition, key, value
Written = Callable[[str, Any, Any], tuple[bytes, bytes]]  # encodes key and value of a message for a topic


class Database:
    """A model of a database: each transaction moves money between two accounts.

    It inserts a transfer, and increments the number of transfers of both accounts.
    """

    def __init__(self) -> None:
        self.accounts = dict.fromkeys(range(ACCOUNTS), (START, 0))
        self.transfers = 0
        self.lsn = 100

    def snapshot(self) -> list[Message]:
        return [self._account(a, "r", None) for a in self.accounts]

    def transaction(self) -> list[Message]:
        self.transfers += 1
        one, other, amount = *random.sample(range(ACCOUNTS), 2), random.randrange(1, 20)
        for account, sign in ((one, -1), (other, 1)):
            balance, moved = self.accounts[account]
            self.accounts[account] = (balance + sign * amount, moved + 1)
        xid = 7000 + self.transfers
        events = [
            self._account(one, "u", (xid, 1, 1)),
            ("bank.transfers", 0, {"id": self.transfers}, self._event("c", {"id": self.transfers}, "transfers", (xid, 2, 1))),
            self._account(other, "u", (xid, 3, 2)),
        ]
        counts = [("public.accounts", 2), ("public.transfers", 1), ("public.audit", 5)]  # no source reads the last one
        collections = [{"data_collection": name, "event_count": n} for name, n in counts]
        begin = {"status": "BEGIN", "id": f"{xid}:{self.lsn}", "event_count": None, "data_collections": None, "ts_ms": 1}
        end = {"status": "END", "id": f"{xid}:{self.lsn + 1}", "event_count": 8, "data_collections": collections, "ts_ms": 2}
        return [("bank.transaction", 0, {"id": begin["id"]}, begin), *events, ("bank.transaction", 0, {"id": end["id"]}, end)]

    def _account(self, account: int, op: str, place: tuple[int, int, int] | None) -> Message:
        balance, moved = self.accounts[account]
        row = {"id": account, "balance": balance, "moved": moved}
        return "bank.accounts", account % 2, {"id": account}, self._event(op, row, "accounts", place)

    def _event(self, op: str, row: Any, table: str, place: tuple[int, int, int] | None) -> Any:
        self.lsn += 1
        snapshot = "true" if op == "r" else "false"
        source = {"connector": "postgresql", "name": "bank", "db": "bank", "schema": "public", "table": table, "snapshot": snapshot}
        source |= {"ts_ms": 1_700_000_000_000 + self.lsn, "lsn": self.lsn if op != "r" else 50}
        block = place and {"id": f"{place[0]}:{self.lsn}", "total_order": place[1], "data_collection_order": place[2]}
        return {"before": None, "after": row, "source": source, "transaction": block, "op": op}


def in_json(topic: str, key: Any, value: Any) -> tuple[bytes, bytes]:
    return json.dumps(key).encode(), json.dumps(value).encode()


def in_avro(registry: Registry) -> Written:
    """Registers the schemas of Debezium's converter, without the parts that the test does not read.

    Returns a function that encodes messages.
    """
    topics = {name: Topic(registry, f"bank.{name}") for name in (*COLUMNS, "transaction")}
    block = [field("id", "string"), field("total_order", "long"), field("data_collection_order", "long")]
    source = [field(name, "string") for name in ("connector", "name", "db", "schema", "table", "snapshot")]
    source += [field("ts_ms", "long"), field("lsn", ["null", "long"], default=None)]
    values = {}
    for name, columns in COLUMNS.items():
        row = {"type": "record", "name": "Value", "namespace": f"bank.{name}", "fields": [field(column, "int") for column in columns]}
        envelope = [
            field("before", ["null", row], default=None),
            field("after", ["null", f"bank.{name}.Value"], default=None),
            field("source", {"type": "record", "name": "Source", "namespace": "io.debezium.connector.postgresql", "fields": source}),
            field("transaction", ["null", {"type": "record", "name": "block", "namespace": "event", "fields": block}], default=None),
            field("op", "string"),
        ]
        values[name] = topics[name].register_schema(
            {"type": "record", "name": "Envelope", "namespace": f"bank.{name}", "fields": envelope, "connect.name": f"bank.{name}.Envelope"}
        )
        topics[name].register_key(field("id", "int"))
    counts = [field("data_collection", "string"), field("event_count", "long")]
    count = {"type": "record", "name": "collection", "namespace": "event", "fields": counts}
    end = [
        field("status", "string"),
        field("id", "string"),
        field("event_count", ["null", "long"], default=None),
        field("data_collections", ["null", {"type": "array", "items": ["null", count]}], default=None),
        field("ts_ms", "long"),
    ]
    values["transaction"] = topics["transaction"].register_schema(
        {"type": "record", "name": "TransactionMetadataValue", "namespace": "io.debezium.connector.common", "fields": end}
    )
    topics["transaction"].register_key(field("id", "string"))

    def written(topic: str, key: Any, value: Any) -> tuple[bytes, bytes]:
        name = topic.removeprefix("bank.")
        if name not in topics:
            return in_json(topic, key, value)
        message = topics[name].message(values[name], key=key, **value)
        return base64.b64decode(message["key_b64"]), base64.b64decode(message["value_b64"])

    return written


class Connector:
    """A producer that keeps the order within each partition, and mixes partitions at random."""

    def __init__(self, address: str, written: Written = in_json) -> None:
        self._written = written
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 2})

    def send(self, messages: list[Message]) -> None:
        queues: dict[tuple[str, int], list[Message]] = {}
        for m in messages:
            queues.setdefault(m[:2], []).append(m)
        while queues:
            place = random.choice(list(queues))
            topic, partition, key, value = queues[place].pop(0)
            if not queues[place]:
                del queues[place]
            key_bytes, value_bytes = self._written(topic, key, value)
            self._producer.produce(topic, value_bytes, key_bytes, partition)
            self._producer.flush()
            time.sleep(random.random() * 0.01)


@pytest.fixture
def engine(tmp_path: Path, own_kafka: Kafka) -> Iterator[EngineProcess]:
    own_kafka.create_topic("bank.accounts", partitions=2)
    for topic in ("bank.transfers", "bank.transaction", "other"):
        own_kafka.create_topic(topic)
    engine = EngineProcess(tmp_path / "lake")
    engine.start()
    yield engine
    engine.stop()


def make(engine: EngineProcess, kafka: str, registry: str = "") -> Lake:
    """Creates the sources, in Avro if a registry is given."""
    at = f"FROM KAFKA BROKER '{kafka}' TOPIC"
    format = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry}'" if registry else "FORMAT JSON"
    engine.execute(f"CREATE SOURCE transactions {at} 'bank.transaction' {format}")
    for name, columns in COLUMNS.items():
        envelope = f"ENVELOPE DEBEZIUM (TRANSACTION METADATA (SOURCE transactions, COLLECTION 'public.{name}'))"
        declared = "" if registry else f"({', '.join(f'{c} int' for c in columns)}, PRIMARY KEY (id) NOT ENFORCED)"
        engine.execute(f"CREATE SOURCE {name} {declared} {at} 'bank.{name}' {format} {envelope}")
    engine.execute(f"CREATE MATERIALIZED SOURCE other {at} 'other' FORMAT TEXT")
    return Lake(engine.data)


def steps(lake: Lake) -> Iterator[tuple[int, int, int]]:
    """Yields totals after each log entry.

    These are the sum of the balances, the sum of the accounts' counts, and the number of transfers.
    """
    catalog = lake.catalog()
    sections = [(h.n, name, t) for name in ("accounts", "transfers") for h, t in changes(lake, catalog.relation(name).id, 0)]
    held: dict[str, Counter[Any]] = {"accounts": Counter(), "transfers": Counter()}
    sections.sort(key=lambda s: s[0])
    for i, (n, name, table) in enumerate(sections):
        for row in table.to_pylist():
            weight = row.pop(WEIGHT)
            held[name][tuple(row.values())] += weight
        if i + 1 == len(sections) or sections[i + 1][0] != n:
            accounts = +held["accounts"]
            yield sum(a[1] for a in accounts), sum(a[2] for a in accounts), (+held["transfers"]).total()


def check_steps(lake: Lake, count: int) -> None:
    """Checks that each log entry shows whole transactions."""
    totals = [s for s in steps(lake) if s[2]]
    assert len(totals) > count / 3, "the transactions came in too few ticks for the test to show anything"
    assert all(s == (ACCOUNTS * START, 2 * s[2], s[2]) for s in totals)


def pending_ms(engine: EngineProcess, name: str) -> int | None:
    """Returns the age of the oldest record of a source that no tick has read; None if all are read."""
    answer = engine.get("/freshness?after=0&version=0")
    oldest, reason = answer["inputs"][str(Lake(engine.data).catalog().relation(name).id)]
    assert reason is None
    return None if oldest is None else time.time_ns() // 1_000_000 - oldest


def check_open(engine: EngineProcess, database: Database, connector: Connector) -> None:
    """Checks that a transaction is shown only after its last change and its END, and that its records age until then."""
    lake = Lake(engine.data)
    until(lambda: pending_ms(engine, "accounts") is None)
    before, start = database.transfers, time.monotonic()
    open_ = database.transaction()
    connector.send(open_[:-2])
    until(lambda: pending_ms(engine, "accounts") is not None)
    for n in (1, 2):  # ticks that could have shown it
        connector.send([("other", 0, None, "goes on")])
        until(lambda n=n: rows(lake, "other").total() == n)
    assert rows(lake, "transfers").total() == before, "a transaction that has not ended is not shown"
    age, most = pending_ms(engine, "accounts"), (time.monotonic() - start) * 1000
    assert age is not None and 0 < age <= most + 1
    connector.send(open_[-2:])
    until(lambda: rows(lake, "transfers").total() == before + 1)
    until(lambda: pending_ms(engine, "accounts") is None)
    accounts = str(lake.catalog().relation("accounts").id)
    assert engine.get("/freshness?after=0&version=0")["ticks"][-1][4].keys() >= {accounts}


def test_no_tick_shows_half_a_transaction(engine: EngineProcess, own_kafka: Kafka) -> None:
    lake, database, connector = make(engine, own_kafka.address), Database(), Connector(own_kafka.address)
    connector.send(database.snapshot())
    until(lambda: rows(lake, "accounts").total() == ACCOUNTS)
    sent: list[list[Message]] = []
    for i in range(TRANSACTIONS):
        sent.append(database.transaction())
        if i in KILLS:
            # the connector stops; later it resends some earlier transactions
            connector.send(sent[-1][: random.randrange(5)])
            engine.kill(jvm=True)
            for again in sent[-random.randrange(2, 6) : -1]:
                connector.send(again)
            engine.start()
        connector.send(sent[-1])
        if i % 3 == 0:
            until(lambda: rows(lake, "transfers").total() == database.transfers, timeout=SLOW_S)
    until(lambda: rows(lake, "transfers").total() == TRANSACTIONS, timeout=SLOW_S)
    assert {r[0]: r[1:] for r in rows(lake, "accounts")} == database.accounts
    check_steps(lake, TRANSACTIONS)
    check_open(engine, database, connector)
    assert not any(s["error"] for s in engine.get("/status")["sources"].values())


def test_in_avro(engine: EngineProcess, own_kafka: Kafka, registry: Registry) -> None:
    """The engine is not killed here, because tick boundaries are decided as for JSON."""
    connector, database = Connector(own_kafka.address, in_avro(registry)), Database()
    lake = make(engine, own_kafka.address, registry.url)
    connector.send(database.snapshot())
    until(lambda: rows(lake, "accounts").total() == ACCOUNTS)
    for i in range(FEW):
        connector.send(database.transaction())
        if i % 2 == 0:
            until(lambda: rows(lake, "transfers").total() == database.transfers)
    until(lambda: rows(lake, "transfers").total() == FEW)
    check_steps(lake, FEW)
    check_open(engine, database, connector)
    assert not any(s["error"] for s in engine.get("/status")["sources"].values())
