"""The shop's load: page views as JSON, and users as Debezium's MySQL connector writes them.

    topic pageviews          {"user_id", "url", "channel", "received_at" (s), "sent_at" (ms)}
    topic mysql.shop.users   key {id}; value {before, after, source, op, …} in Avro, with updates, deletes and tombstones

Users and page views are determined by the seed; times are those of the clock.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tailgate.examples.shop.debezium import Table

PAGEVIEWS, USERS = "pageviews", "mysql.shop.users"
CHANNELS = ("organic search", "paid search", "referral", "social", "display")
USER_COUNT = 1_000
CHANGES_PER_VIEW = 0.02  # changes of users per page view
BATCH_S = 0.005  # seconds between two batches; short, so that events arrive evenly
QUEUE_MAX = 100_000  # limit of messages that wait for the broker; beyond it the generator waits


class Load:
    """The generator. `prepare` creates topics and users, `start` begins to send, `stop` flushes.

    `events` counts messages.
    """

    def __init__(
        self, kafka: str, registry: str, rate: float, seed: int = 7, users: int = USER_COUNT, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Connects the producer, for which `settings` has further settings."""
        self.rate = rate
        self.events = 0
        self.error: Exception | None = None  # the error that ended the generator
        self._kafka = kafka
        self._random = random.Random(seed)
        self._producer = Producer(
            {"bootstrap.servers": kafka, "linger.ms": 2, "queue.buffering.max.messages": 2 * QUEUE_MAX, "log_level": 2}
            | dict(settings or {})
        )
        self._table = Table(registry, "users")
        self._user_count = users
        self._users: dict[int, dict[str, Any]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, name="load", daemon=True)

    def prepare(self) -> None:
        """Creates the topics and sends all users, as a connector's first snapshot does."""
        admin = AdminClient({"bootstrap.servers": self._kafka, "log_level": 2})
        existing = admin.list_topics(timeout=10).topics
        missing = [NewTopic(t, num_partitions=1, replication_factor=1) for t in (PAGEVIEWS, USERS) if t not in existing]
        for future in (admin.create_topics(missing) if missing else {}).values():
            future.result(30)
        for id in range(1, self._user_count + 1):
            self._users[id] = self._new_user(id)
            self._send_user(id, "r", None, self._users[id], snapshot="true")
        self._producer.flush(30)

    def adopt(self) -> None:
        """Takes over the users that another load has sent."""
        self._users = {id: self._new_user(id) for id in range(1, self._user_count + 1)}

    def start(self) -> None:
        self._thread.start()

    def sending(self) -> bool:
        """Returns whether the generator is sending page views."""
        return self._thread.is_alive() and not self._ended.is_set()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._producer.flush(30)

    def _send(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001  # stored for the thread that started this one
            self.error = error

    def _run(self) -> None:
        began, sent, changed = time.monotonic(), 0, 0.0
        while not self._ended.wait(BATCH_S):
            due = int((time.monotonic() - began) * self.rate)
            for _ in range(due - sent):
                self._view()
                changed += CHANGES_PER_VIEW
                if changed >= 1:
                    changed -= 1
                    self._change()
            sent = due
            self._producer.poll(0)
            while len(self._producer) > QUEUE_MAX:
                self._producer.poll(0.1)

    def _view(self) -> None:
        now = time.time()
        view = {
            "user_id": self._random.randint(1, self._user_count + self._user_count // 50),  # some users do not exist
            "url": f"/{self._random.choice(('products', 'profiles'))}/{self._random.randint(1, 50)}",
            "channel": self._random.choice(CHANNELS),
            "received_at": int(now),
            "sent_at": int(now * 1000),
        }
        self._producer.produce(PAGEVIEWS, value=json.dumps(view).encode())
        self.events += 1

    def _change(self) -> None:
        id = self._random.randint(1, self._user_count)
        before = self._users.get(id)
        if before is None:
            self._users[id] = self._new_user(id)
            self._send_user(id, "c", None, self._users[id])
        elif self._random.random() < 0.1:
            del self._users[id]
            self._send_user(id, "d", before, None)
            self._producer.produce(USERS, key=self._table.key(id), value=None)
            self.events += 1
        else:
            self._users[id] = {**before, "is_vip": 1 - before["is_vip"], "updated_at": _now()}
            self._send_user(id, "u", before, self._users[id])

    def _new_user(self, id: int) -> dict[str, Any]:
        return {
            "id": id,
            "email": f"user{id}@example.com",
            "is_vip": int(self._random.random() < 0.2),
            "created_at": _now(),
            "updated_at": None,
        }

    def _send_user(self, id: int, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, snapshot: str = "false") -> None:
        key, value = self._table.change(op, before, after, snapshot, self._random.randint(200, 400))
        self._producer.produce(USERS, key=key, value=value)
        self.events += 1


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
