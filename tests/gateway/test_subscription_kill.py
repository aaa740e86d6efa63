"""Kills gateways at random and inside ACKNOWLEDGE: a consumer that stores rows with their time loses nothing.

It also receives nothing twice.
"""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tailgate.lake.catalog import Subscription
from tailgate.lake.readers import subscriptions
from tests.following import Subscriber
from tests.gateway.test_kill import Life, Writer, writer  # noqa: F401  # a fixture

pytestmark = pytest.mark.long

LIVES = 12
POINTS = ("subscription.acknowledge", "subscription.acknowledged")


def consume(consumer: Subscriber, dsn: str, upto: int | None) -> None:
    """Fetches until everything up to this time is stored, or until the gateway is gone."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while upto is None or consumer.saved < upto:
            consumer.fetch(connection)


def test_nothing_is_lost_or_doubled(writer: Writer, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    chance, consumer, model = random.Random(seed), Subscriber("feed"), writer.model
    with writer.lock:
        item = Subscription(
            model.writer.catalog.next_id, "feed", depends=(writer.v.id,), retention_ms=3_600_000, snapshot=True, progress=True
        )
        subscriptions.begin(model.lake, item, model.writer.newest.n, model.writer.newest.time)
        model.put(item)
    for life in range(LIVES):
        if life % 2:
            monkeypatch.setenv("TAILGATE_CRASH", f"{chance.choice(POINTS)}:{chance.randrange(1, 6)}")
        gateway = Life(tmp_path / "lake")
        monkeypatch.delenv("TAILGATE_CRASH", raising=False)
        threading.Timer(chance.uniform(0.05, 1.5), gateway.child.kill).start()
        with suppress(psycopg.OperationalError):
            consume(consumer, gateway.dsn, None)
        gateway.child.kill()
    writer.ended.set()
    writer.join()
    gateway = Life(tmp_path / "lake")
    consume(consumer, gateway.dsn, writer.last)
    gateway.child.kill()
    assert consumer.rows == dict.fromkeys(writer.rows.values(), 1)
