"""A dead letter enters each view at most once, with any concurrent RETRY and for any view.

Dead letters can be deleted, and they expire.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.formats import registry as schemas
from tailgate.lake.catalog import DEAD_LETTERS, DEAD_LETTERS_FIRST, Change
from tailgate.lake.errors import TailgateError
from tailgate.lake.writer.log_writer import open_epoch
from testing.engine_process import until
from tests.engine.runtime.test_topics import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

FIRST: dict[str, Any] = {"type": "record", "name": "V", "fields": [{"name": "n", "type": "int"}]}
SECOND = {**FIRST, "doc": "the same under another id"}


def encoded(id: int, n: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(dict(FIRST)), {"n": n})
    return struct.pack(">bI", 0, id) + out.getvalue()


class Letters(World):
    """Avro sources whose registry knows one schema or both."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        super().__init__(folder, kafka)
        self.registry = Registry(folder / "registry")
        self.registry.start()
        self.first = schemas.register(self.registry.url, {}, "first-value", FIRST)
        self.second = schemas.register(self.registry.url, {}, "second-value", SECOND)

    def avro(self, name: str) -> None:
        """Creates a source whose topic's subject has the first schema."""
        schemas.register(self.registry.url, {}, f"{name}-value", FIRST)
        self.kafka.create_topic(name)
        self.engine.execute(
            f"CREATE SOURCE {name} FROM KAFKA BROKER '{self.kafka.address}' TOPIC '{name}' "
            f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{self.registry.url}'"
        )

    def produce(self, topic: str, *messages: bytes) -> None:
        for message in messages:
            self.producer.produce(topic, message)
        self.producer.flush()

    def view(self, source: str, name: str) -> None:
        self.engine.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT n, count(*) AS copies FROM {source} GROUP BY n")

    def knows(self, *registered: dict[str, Any]) -> None:
        """Restarts the engine and a registry that has only these schemas."""
        self.engine.stop()
        self.registry.stop()
        shutil.rmtree(self.registry.data)
        self.registry.start()
        for i, schema in enumerate(registered):
            assert schemas.register(self.registry.url, {}, f"again-{i}-value", schema) == i + 1
        self.engine.start()

    def letters(self, source: str) -> int:
        return len(self.rows(f"{source}_dead_letters"))


@pytest.fixture(scope="module")
def world(module_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Letters]:
    letters = Letters(tmp_path_factory.mktemp("letters"), module_kafka)
    yield letters
    letters.engine.stop()
    letters.registry.stop()


def test_a_letter_enters_each_view_once(world: Letters) -> None:
    world.avro("shared")
    world.produce("shared", encoded(world.first, 1), encoded(world.second, 2), b"never")
    world.knows(FIRST)
    world.view("shared", "before")
    until(lambda: world.letters("shared") == 2)
    world.knows(FIRST, SECOND)
    # it could decode the record now, but the record is a dead letter, which RETRY delivers
    world.view("shared", "since")
    assert world.rows("since") == world.rows("before") == [(1, 1)]
    with ThreadPoolExecutor(4) as threads:
        tags = list(threads.map(lambda _: world.engine.execute("RETRY DEAD LETTERS OF shared")["tag"], range(4)))
    assert sorted(tags) == ["RETRY 1", "RETRY 1", "RETRY 1", "RETRY 2"]
    world.view("shared", "later")
    for name in ("before", "since", "later"):
        assert world.rows(name) == [(1, 1), (2, 1)], name
    ((*_, value, _, attempts, since, backfill),) = world.rows("shared_dead_letters")
    assert (value, attempts) == (b"never", 5)
    assert (since is not None, backfill) == (True, True)  # found by a backfill


def test_a_record_that_only_one_view_lacks(world: Letters) -> None:
    """The registry has lost a schema, so later views cannot decode one of the records."""
    world.avro("partly")
    world.produce("partly", encoded(world.first, 1), encoded(world.second, 2))
    world.view("partly", "whole")
    assert world.rows("whole") == [(1, 1), (2, 1)]
    world.knows(FIRST)
    world.view("partly", "lacking")
    world.view("partly", "lacking_too")
    assert world.letters("partly") == 1
    assert [world.rows(v) for v in ("whole", "lacking", "lacking_too")] == [[(1, 1), (2, 1)], [(1, 1)], [(1, 1)]]
    assert world.engine.execute("RETRY DEAD LETTERS OF partly")["tag"] == "RETRY 1"
    assert world.letters("partly") == 1
    world.knows(FIRST, SECOND)
    world.view("partly", "late")
    assert world.rows("late") == [(1, 1)]
    assert world.engine.execute("RETRY DEAD LETTERS OF partly")["tag"] == "RETRY 1"
    for name in ("whole", "lacking", "lacking_too", "late"):
        assert world.rows(name) == [(1, 1), (2, 1)], name
    assert world.letters("partly") == 0


def test_a_live_record_that_a_later_view_lacks(world: Letters) -> None:
    world.avro("lively")
    world.view("lively", "live")
    world.produce("lively", encoded(world.first, 1), encoded(world.second, 2))
    until(lambda: world.rows("live") == [(1, 1), (2, 1)])
    world.knows(FIRST)
    world.view("lively", "lacking_live")
    assert world.rows("lacking_live") == [(1, 1)]
    assert [row[-1] for row in world.rows("lively_dead_letters")] == [True]
    world.knows(FIRST, SECOND)
    assert world.engine.execute("RETRY DEAD LETTERS OF lively")["tag"] == "RETRY 1"
    for name in ("live", "lacking_live"):
        assert world.rows(name) == [(1, 1), (2, 1)], name


def test_letters_of_a_lake_from_before_they_had_all_columns(world: Letters) -> None:
    world.avro("older")
    world.view("older", "older_v")
    world.engine.stop()
    writer = open_epoch(world.lake)
    letters = world.lake.catalog().relation("older_dead_letters")
    writer.append([], kind="catalog", catalog=Change(put=(replace(letters, columns=DEAD_LETTERS[:DEAD_LETTERS_FIRST]),)))
    writer.close()
    world.engine.start()
    assert world.lake.catalog().relation("older_dead_letters").columns == DEAD_LETTERS
    world.produce("older", b"never")
    until(lambda: world.letters("older") == 1)
    (row,) = world.rows("older_dead_letters")
    assert (row[5], row[7], row[8] is not None, row[9]) == (b"never", 1, True, False)  # found in a live record


def test_an_engine_that_ends_while_letters_are_retried(world: Letters) -> None:
    """The engine is killed when the letters are in the inbox, before their tick.

    RETRY is sent again.
    """
    world.avro("killed")
    world.produce("killed", encoded(world.first, 1), encoded(world.second, 2))
    world.knows(FIRST)
    world.view("killed", "killed_before")
    until(lambda: world.letters("killed") == 1)
    world.knows(FIRST, SECOND)
    inbox = world.lake.path / "inbox"
    os.kill(world.engine.jvm, signal.SIGSTOP)

    def retry() -> None:
        with pytest.raises(ConnectionError):
            world.engine.execute("RETRY DEAD LETTERS OF killed")

    thread = threading.Thread(target=retry)
    thread.start()
    until(lambda: any(f.name.isdigit() and b"$retry/" in f.read_bytes() for f in inbox.glob("*/*")))
    world.engine.kill(jvm=True)
    thread.join()
    world.engine.start()
    assert world.engine.execute("RETRY DEAD LETTERS OF killed")["tag"] in ("RETRY 0", "RETRY 1")
    until(lambda: world.letters("killed") == 0)
    world.view("killed", "killed_after")
    assert world.rows("killed_before") == world.rows("killed_after") == [(1, 1), (2, 1)]


def test_letters_are_deleted(world: Letters) -> None:
    world.avro("deleted")
    world.produce("deleted", encoded(world.first, 1), *(b"letter %d" % n for n in range(5)))
    world.view("deleted", "deleted_from")
    until(lambda: world.letters("deleted") == 5)
    for where, problem in (
        ("no_such_column = 1", 'column "no_such_column" does not exist'),
        ('"offset" IN (SELECT n FROM deleted_from)', "that reads another relation is not supported"),
        ('"offset" / 0 = 1', "division by zero"),
    ):
        with pytest.raises(TailgateError, match=problem):
            world.engine.execute(f"DELETE DEAD LETTERS OF deleted WHERE {where}")
    assert world.engine.execute("DELETE DEAD LETTERS OF deleted WHERE value = 'letter 3' OR \"offset\" < 3 -- two")["tag"] == "DELETE 3"
    assert sorted(row[2] for row in world.rows("deleted_dead_letters")) == [3, 5]
    world.engine.execute("DROP MATERIALIZED VIEW deleted_from")
    assert world.engine.execute("DELETE DEAD LETTERS OF deleted")["tag"] == "DELETE 2"
    assert world.letters("deleted") == 0
    assert world.engine.execute("DELETE DEAD LETTERS OF deleted")["tag"] == "DELETE 0"
    world.produce("deleted", b"letter")
    world.view("deleted", "deleted_again")
    until(lambda: world.letters("deleted") == 6)  # the new view has read the whole topic


@pytest.mark.parametrize(("retention", "left"), [("DEAD LETTER RETENTION = '2 seconds'", 0), ("DEAD LETTER RETENTION BYTES = 2500", 2)])
def test_letters_are_removed_by_age_and_by_size(world: Letters, retention: str, left: int) -> None:
    name = "aged" if left == 0 else "sized"
    world.kafka.create_topic(name)
    world.source(name, name, "FORMAT JSON", f"WITH ({retention})")
    for n in range(10):
        world.producer.produce(name, b"{" * 900 + b"%d" % n)
    world.producer.flush()
    until(lambda: world.status(name)["dead_letters"] == 10)
    until(lambda: world.letters(name) == left)
    assert all(row[2] >= 10 - left for row in world.rows(f"{name}_dead_letters"))
