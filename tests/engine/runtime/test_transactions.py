"""Transactions of a database through Kafka and the engine: no tick shows half of one, whatever is killed and sent again.

The connector is played: accounts in two partitions, transfers between them in another topic, BEGIN and END in a third, each partition's
messages at times of their own. After a crash it sends the last transactions again, as a standalone Kafka Connect does.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from embedded.kafka import Kafka
from lake import Lake
from lake.reading import changes
from lake.types import WEIGHT
from tests.engine.runtime.parts import EngineProcess, rows, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

ACCOUNTS, START = 6, 100
TRANSACTIONS, KILLS = 30, (11, 20)
SLOW_S = 180.0
Message = tuple[str, int, Any, Any]  # topic, partition, key, value


class Database:
    """Moves money between accounts, one transaction each: a transfer, and two accounts whose count of transfers goes up."""

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
        counts = [("public.accounts", 2), ("public.transfers", 1), ("public.audit", 5)]  # nobody reads the last
        collections = [{"data_collection": name, "event_count": n} for name, n in counts]
        begin = {"status": "BEGIN", "id": f"{xid}:{self.lsn}", "event_count": None, "data_collections": None}
        end = {"status": "END", "id": f"{xid}:{self.lsn + 1}", "event_count": 8, "data_collections": collections}
        return [("bank.transaction", 0, None, begin), *events, ("bank.transaction", 0, None, end)]

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


class Connector:
    """Sends messages; what waits for one partition holds up no other."""

    def __init__(self, address: str) -> None:
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
            self._producer.produce(topic, json.dumps(value), json.dumps(key), partition)
            self._producer.flush()
            time.sleep(random.random() * 0.01)


@pytest.fixture
def engine(tmp_path: Path, own_kafka: Kafka) -> Iterator[EngineProcess]:
    own_kafka.create_topic("bank.accounts", partitions=2)
    for topic in ("bank.transfers", "bank.transaction", "other"):
        own_kafka.create_topic(topic)
    engine = EngineProcess(tmp_path / "lake")
    engine.start()
    at = f"FROM KAFKA BROKER '{own_kafka.address}' TOPIC"
    engine.execute(f"CREATE SOURCE transactions {at} 'bank.transaction' FORMAT JSON")
    for name, columns in (("accounts", "id int, balance int, moved int"), ("transfers", "id int")):
        kept = f"ENVELOPE DEBEZIUM (TRANSACTION METADATA (SOURCE transactions, COLLECTION 'public.{name}'))"
        engine.execute(f"CREATE SOURCE {name} ({columns}, PRIMARY KEY (id) NOT ENFORCED) {at} 'bank.{name}' FORMAT JSON {kept}")
    engine.execute(f"CREATE MATERIALIZED SOURCE other {at} 'other' FORMAT TEXT")
    yield engine
    engine.stop()


def steps(lake: Lake) -> Iterator[tuple[int, int, int]]:
    """Sum of the balances, of the accounts' counts, and how many transfers, after each entry."""
    catalog = lake.catalog()
    told = [(h.n, name, t) for name in ("accounts", "transfers") for h, t in changes(lake, catalog.relation(name).id, 0)]
    held: dict[str, Counter[Any]] = {"accounts": Counter(), "transfers": Counter()}
    told.sort(key=lambda s: s[0])
    for i, (n, name, table) in enumerate(told):
        for row in table.to_pylist():
            weight = row.pop(WEIGHT)
            held[name][tuple(row.values())] += weight
        if i + 1 == len(told) or told[i + 1][0] != n:
            accounts = +held["accounts"]
            yield sum(a[1] for a in accounts), sum(a[2] for a in accounts), (+held["transfers"]).total()


def test_no_tick_shows_half_a_transaction(engine: EngineProcess, own_kafka: Kafka) -> None:
    random.seed(7)
    lake, database, connector = Lake(engine.data), Database(), Connector(own_kafka.address)
    connector.send(database.snapshot())
    until(lambda: rows(lake, "accounts").total() == ACCOUNTS)
    sent: list[list[Message]] = []
    for i in range(TRANSACTIONS):
        sent.append(database.transaction())
        if i in KILLS:
            connector.send(sent[-1][: random.randrange(5)])  # the connector dies, and begins some transactions before
            engine.kill(jvm=True)
            for again in sent[-random.randrange(2, 6) : -1]:
                connector.send(again)
            engine.start()
        connector.send(sent[-1])
        if i % 3 == 0:
            until(lambda: rows(lake, "transfers").total() == database.transfers, timeout=SLOW_S)
    until(lambda: rows(lake, "transfers").total() == TRANSACTIONS, timeout=SLOW_S)
    assert {r[0]: r[1:] for r in rows(lake, "accounts")} == database.accounts
    seen = [s for s in steps(lake) if s[2]]
    assert len(seen) > TRANSACTIONS / 3, "the transactions came in too few ticks for the test to show anything"
    assert all(s == (ACCOUNTS * START, 2 * s[2], s[2]) for s in seen)
    open_ = database.transaction()
    connector.send(open_[:-2])
    for n in (1, 2):  # ticks that could have shown it
        connector.send([("other", 0, None, "goes on")])
        until(lambda n=n: rows(lake, "other").total() == n)
    assert rows(lake, "transfers").total() == TRANSACTIONS, "a transaction that has not ended is not shown"
    connector.send(open_[-2:])
    until(lambda: rows(lake, "transfers").total() == TRANSACTIONS + 1)
    assert not any(s["error"] for s in engine.get("/status")["sources"].values())
