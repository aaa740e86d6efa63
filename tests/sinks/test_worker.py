"""One sink over a real lake, broker and registry: it writes each change once, in order."""

from __future__ import annotations

import contextlib
import errno
import json
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.catalog import Change
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.errors import ConnectionFailure
from tailgate.lake.folder import Lake
from tailgate.lake.log import segments
from tailgate.lake.readers import reading
from tailgate.lake.readers.backups import back_up
from tailgate.lake.tables import checkpoints
from tailgate.lake.writer import maintenance, retention
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.restored_state import restore
from tailgate.lake.writer.rounds import Follower
from tailgate.sinks.session import Session
from tailgate.sinks.status import Copy
from tests.lake.relations import sweep
from tests.sinks.feed import FIRST_SINK, VIEW, Feed, copy, events, fold, messages, records, until
from tests.sinks.running import Running, reached


def test_snapshot_then_changes_as_before_and_after(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.tick({k: (k, f"v{k}", Decimal("1.50")) for k in range(5)})
    feed.create_sink(kafka.address, registry.url, topic)
    feed.tick({1: (1, "new", Decimal("-0.01")), 2: None, 9: (9, None, None)})
    for _ in range(20):
        feed.random_tick()
    until(lambda: reached(feed))
    got = events(kafka.address, topic)
    assert got == feed.expected
    assert fold(got) == feed.rows
    with SchemaRegistryClient({"url": registry.url}) as client:
        assert f"{topic}-value" in client.get_subjects()
        decode = AvroDeserializer(client)
        decoded: Any = [decode(value, SerializationContext(topic, MessageField.VALUE)) for _, value in records(kafka.address, topic)]
    assert decoded[:1] == [{"before": None, "after": {"k": 0, "v": "v0", "amount": Decimal("1.50")}}]
    assert {"before": decoded[1]["after"], "after": {"k": 1, "v": "new", "amount": Decimal("-0.01")}} in decoded


def test_a_snapshot_keeps_the_history_that_it_reads(
    feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker is unavailable until the sink's creation is older than the retained history."""
    for module, name, value in (
        (reading, "RETAIN_HISTORY_MS", 0),
        (segments, "ENTRIES", 3),
        (retention, "ENTRIES", 3),
        (retention, "AGE_MIN_MS", 0),
        (maintenance, "GRACE_S", 0.0),
        (checkpoints, "RECENT_MS", 0),
        (checkpoints, "SPACING_MS", 0),
    ):
        monkeypatch.setattr(module, name, value)
    follower = Follower(feed.lake, feed.writer.epoch)

    def pass_time(ticks: int) -> None:
        for _ in range(ticks):
            feed.random_tick()
            follower.round()
            until(lambda: running.sinks.n == feed.writer.newest.n, every=0.01)  # no sink holds the log for the process that follows it
            sweep(feed.writer)

    with monkeypatch.context() as away:
        away.setattr(Session, "open", _refuse)
        pass_time(10)
        feed.create_sink(kafka.address, registry.url, topic)
        created = feed.writer.newest.time
        until(lambda: "no broker" in copy(feed.lake).get("error", ""))
        pass_time(20)
        assert feed.lake.log.first() > 1
        assert reading.since(feed.lake) <= created
    until(lambda: reached(feed))
    assert copy(feed.lake)["status"] == "running"
    assert events(kafka.address, topic) == feed.expected
    pass_time(10)
    until(lambda: reached(feed))
    pass_time(2)
    assert reading.since(feed.lake) > created


def _refuse(session: Session) -> None:
    raise ConnectionFailure("no broker")


def test_every_message_has_headers(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.tick({1: (1, "a", None)})
    feed.create_sink(kafka.address, registry.url, topic, constant_headers=(("origin", "shöp"), ("origin", "")))
    feed.tick({1: (1, "b", None), 2: (2, "c", None)})
    until(lambda: reached(feed))
    assert [m.headers() for m in messages(kafka.address, topic)] == [[("origin", "shöp".encode()), ("origin", b"")]] * 3


def test_without_a_known_key_an_update_is_two_events(tmp_path: Path, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed = Feed(tmp_path / "lake", keyed=False)
    running = Running(feed.lake)
    feed.tick({k: (k, f"v{k}", None) for k in range(5)})
    feed.create_sink(kafka.address, registry.url, topic)
    for _ in range(20):
        feed.random_tick()
    until(lambda: reached(feed))
    running.stop()
    assert events(kafka.address, topic) == feed.expected


def test_protobuf(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    """The schemas are registered, and messages begin with their schema's id.

    Each value has its field number.
    """
    feed.tick({1: (1, "a", None), 2: (2, "b", None)})
    format = SinkFormat(type="protobuf", registry=registry.url)
    feed.create_sink(kafka.address, registry.url, topic, envelope="upsert", message_key=(0,), value_format=format)
    feed.tick({1: (1, None, Decimal("1.50")), 2: None})
    until(lambda: reached(feed))
    with SchemaRegistryClient({"url": registry.url}) as client:
        value, key = (client.get_latest_version(f"{topic}-{part}") for part in ("value", "key"))
    assert value.schema.schema_type == key.schema.schema_type == "PROTOBUF"
    lines = ["int32 k = 1;", "optional string v = 2;", "optional string amount = 3;"]
    assert [line.strip() for line in value.schema.schema_str.splitlines()[2:-1]] == lines
    of_key, of_value = (b"\0" + schema.schema_id.to_bytes(4, "big") + b"\0" for schema in (key, value))
    assert records(kafka.address, topic) == [
        (of_key + b"\x08\1", of_value + b"\x08\1\x12\1a"),
        (of_key + b"\x08\2", of_value + b"\x08\2\x12\1b"),
        (of_key + b"\x08\1", of_value + b"\x08\1\x1a\x041.50"),
        (of_key + b"\x08\2", None),
    ]


def test_upsert_has_keys_rows_and_tombstones(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.tick({1: (1, "a", None), 2: (2, "b", None)})
    feed.create_sink(kafka.address, registry.url, topic, envelope="upsert", message_key=(0,))
    feed.tick({1: (1, "c", None), 2: None})
    until(lambda: reached(feed))
    in_key, in_value = (SerializationContext(topic, field) for field in (MessageField.KEY, MessageField.VALUE))
    with SchemaRegistryClient({"url": registry.url}) as client:
        decode = AvroDeserializer(client)
        got: Any = [
            (decode(key, in_key), None if value is None else decode(value, in_value)) for key, value in records(kafka.address, topic)
        ]
    assert got == [
        ({"k": 1}, {"k": 1, "v": "a", "amount": None}),
        ({"k": 2}, {"k": 2, "v": "b", "amount": None}),
        ({"k": 1}, {"k": 1, "v": "c", "amount": None}),
        ({"k": 2}, None),
    ]


def test_without_a_snapshot_only_later_changes_are_sent(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.tick({1: (1, "a", None)})
    feed.create_sink(kafka.address, registry.url, topic, snapshot=False)
    feed.tick({1: (1, "b", None)})
    until(lambda: reached(feed))
    assert events(kafka.address, topic) == feed.expected == [((1, "a", None), (1, "b", None))]


def test_it_continues_at_its_position_after_a_stop(feed: Feed, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed.create_sink(kafka.address, registry.url, topic)
    for _ in range(4):
        running = Running(feed.lake)
        for _ in range(10):
            feed.random_tick()
            time.sleep(0.01)
        running.stop()
        assert copy(feed.lake)["status"] == "stopped"
        assert copy(feed.lake)["error"] == ""
    feed.random_tick()
    running = Running(feed.lake)
    until(lambda: reached(feed))
    running.stop()
    assert events(kafka.address, topic) == feed.expected


def test_while_its_view_has_errors_a_sink_waits(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.create_sink(kafka.address, registry.url, topic)
    feed.tick({1: (1, "a", None), 2: (2, "a", None)})
    until(lambda: reached(feed))
    before = feed.lake.log.newest()
    feed.tick({1: (1, "hidden", None), 3: (3, "new", None)}, [("22012", "division by zero", 1)], shown=False)
    feed.tick({3: None, 2: None}, shown=False)
    until(lambda: "division by zero" in copy(feed.lake)["error"])
    assert before is not None
    assert copy(feed.lake)["n"] == before.n
    assert copy(feed.lake)["status"] == "retrying"
    time.sleep(0.5)
    assert events(kafka.address, topic) == feed.expected
    feed.tick({1: (1, "right", None)}, [("22012", "division by zero", -1)], shown=False)
    until(lambda: reached(feed))
    assert copy(feed.lake)["status"] == "running"
    assert copy(feed.lake)["error"] == ""
    expected = [*feed.expected, ((1, "a", None), (1, "right", None)), ((2, "a", None), None)]
    assert events(kafka.address, topic) == expected


def test_a_view_that_is_backfilled_again_sends_the_difference(
    feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running
) -> None:
    feed.tick({k: (k, f"v{k}", None) for k in range(3)})
    feed.create_sink(kafka.address, registry.url, topic)
    feed.tick({3: (3, "v3", None)})
    until(lambda: reached(feed))
    view = feed.lake.catalog()[VIEW]
    feed.writer.append(kind="catalog", catalog=Change(put=(replace(view, ready=False),)))
    old, feed.rows = feed.rows, {}
    feed.tick({0: (0, "v0", None), 1: (1, "new", None)}, shown=False)
    feed.tick({7: (7, "v7", None)}, shown=False)
    feed.writer.append(kind="catalog", catalog=Change(put=(view,)))
    until(lambda: reached(feed))
    got = events(kafka.address, topic)[len(feed.expected) :]
    assert sorted(got, key=repr) == sorted(
        [((1, "v1", None), (1, "new", None)), (old[2], None), (old[3], None), (None, (7, "v7", None))], key=repr
    )
    feed.tick({7: None})
    until(lambda: reached(feed))
    assert fold(events(kafka.address, topic)) == feed.rows


def test_a_sink_of_a_view_with_errors_begins_when_they_are_gone(feed: Feed, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed.tick({1: (1, "a", None)}, [("22012", "division by zero", 1)])
    feed.create_sink(kafka.address, registry.url, topic)
    running = Running(feed.lake)
    until(lambda: "division by zero" in copy(feed.lake).get("error", ""))
    running.stop()
    running = Running(feed.lake)
    feed.tick({2: (2, "b", None)}, [("22012", "division by zero", -1)])
    feed.tick({2: None})
    until(lambda: reached(feed))
    running.stop()
    rows = [(1, "a", None), (2, "b", None)]
    assert events(kafka.address, topic) == [(None, rows[0]), (None, rows[1]), (rows[1], None)]


def test_a_dropped_sink_writes_the_last_changes_and_lets_the_log_go(feed: Feed, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed.create_sink(kafka.address, registry.url, topic)
    running = Running(feed.lake)
    until(lambda: reached(feed))
    feed.tick({1: (1, "last", None)})
    feed.drop(FIRST_SINK)
    until(lambda: copy(feed.lake) == {})
    expected = list(feed.expected)
    feed.tick({1: (1, "unseen", None)})
    feed.create_sink(kafka.address, registry.url, topic + "-2", id=FIRST_SINK + 5)
    until(lambda: reached(feed, FIRST_SINK + 5))
    feed.drop(FIRST_SINK + 5)
    running.stop()
    assert events(kafka.address, topic) == expected
    later = Running(feed.lake)
    until(lambda: copy(feed.lake, FIRST_SINK + 5) == {})
    later.stop()


def test_an_absent_registry_delays_its_sink_alone(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.create_sink(kafka.address, "http://127.0.0.1:1", topic + "-absent")
    feed.create_sink("127.0.0.1:1", registry.url, topic + "-broker", id=FIRST_SINK + 1)
    feed.create_sink(kafka.address, registry.url, topic, id=FIRST_SINK + 2)
    feed.random_tick()
    until(lambda: reached(feed, FIRST_SINK + 2))
    assert events(kafka.address, topic) == feed.expected
    until(lambda: copy(feed.lake, FIRST_SINK + 1).get("error"))
    for sink, reason in ((FIRST_SINK, "registry http://127.0.0.1:1"), (FIRST_SINK + 1, "brokers 127.0.0.1:1")):
        assert copy(feed.lake, sink)["status"] == "retrying"
        assert reason in copy(feed.lake, sink)["error"]
        assert copy(feed.lake, sink)["n"] <= 4, "the log is kept for it"


def test_an_impossible_sink_reports_the_reason(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.create_sink(kafka.address, registry.url, topic, value_format=SinkFormat(type="csv", registry=""))
    until(lambda: copy(feed.lake).get("status") == "stopped")
    assert copy(feed.lake)["error"] == "0A000: sinks of format CSV are not supported"
    feed.drop(FIRST_SINK)
    until(lambda: copy(feed.lake) == {})


def test_a_second_process_takes_a_sink_over_and_the_first_stays_away(feed: Feed, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed.create_sink(kafka.address, registry.url, topic)
    first = Running(feed.lake)
    feed.random_tick()
    until(lambda: reached(feed))
    second = Running(feed.lake)
    worker = first.sinks._workers[FIRST_SINK]

    def first_has_ended() -> bool:
        feed.random_tick()  # the first process learns that it has been replaced when it writes
        return not worker.is_alive()

    until(first_has_ended, every=0.03)
    until(lambda: reached(feed))
    assert copy(feed.lake)["status"] == "running"
    first.stop()
    assert copy(feed.lake)["status"] == "running"
    second.stop()
    assert events(kafka.address, topic) == feed.expected


def test_a_lake_from_an_older_backup_does_not_write_to_the_same_topic(feed: Feed, kafka: Kafka, topic: str, tmp_path: Path) -> None:
    """Its changes would follow those that were made after the backup and that it does not have."""
    feed.tick({1: (1, "v", None)})
    feed.create_sink(kafka.address, "", topic, value_format=SinkFormat(type="json"))
    running = Running(feed.lake)
    until(lambda: reached(feed))
    back_up(feed.lake, tmp_path / "backups")
    feed.tick({2: (2, "after the backup", None)})
    until(lambda: reached(feed))
    running.stop()
    written = records(kafka.address, topic)
    restore(tmp_path / "backups", tmp_path / "restored")
    restored = Feed.__new__(Feed)
    restored.lake = Lake(tmp_path / "restored")
    with contextlib.closing(open_epoch(restored.lake)) as writer:
        for _ in range(5):  # the restored log has an entry of the number that the sink has reached
            writer.append()
        running = Running(restored.lake)
        until(lambda: copy(restored.lake).get("status") == "stopped")
        running.stop()
    assert "does not have" in copy(restored.lake)["error"]
    assert records(kafka.address, topic) == written


def test_json_with_a_consistency_topic(feed: Feed, kafka: Kafka, topic: str, running: Running) -> None:
    """The sink also sets topic settings, compression and partitions.

    The consistency topic counts the events of each time.
    """
    feed.tick({k: (k, "v", Decimal("1.50")) for k in range(3)})
    options = {"consistency_topic": f"{topic}-marks", "topic.cleanup.policy": "compact", "compression_type": "lz4", "partition_count": 1}
    feed.create_sink(kafka.address, "", topic, value_format=SinkFormat(type="json"), message_key=(0,), settings=options)
    feed.tick({1: (1, "new", None), 2: None})
    until(lambda: reached(feed))
    got = records(kafka.address, topic)
    assert [k for k, _ in got] == [b'{"k":0}', b'{"k":1}', b'{"k":2}', b'{"k":1}', b'{"k":2}']
    assert [json.loads(v or b"null") for _, v in got[3:]] == [
        {"before": {"k": 1, "v": "v", "amount": "1.50"}, "after": {"k": 1, "v": "new", "amount": None}},
        {"before": {"k": 2, "v": "v", "amount": "1.50"}, "after": None},
    ]
    marks = [json.loads(v or b"null") for _, v in records(kafka.address, f"{topic}-marks")]
    assert [(m["status"], m["event_count"]) for m in marks] == [("BEGIN", None), ("END", 3), ("BEGIN", None), ("END", 2)]
    assert marks[2]["id"] == marks[3]["id"] > marks[0]["id"]
    assert marks[3]["data_collections"] == [{"data_collection": topic, "event_count": 2}]
    admin = AdminClient({"bootstrap.servers": kafka.address})
    (described,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    assert described.result(10)["cleanup.policy"].value == "compact"


def test_a_compatibility_level_is_set_with_the_schemas(feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running) -> None:
    feed.tick({1: (1, "v", None)})
    feed.create_sink(kafka.address, registry.url, topic, settings={"compatibility_level": "full"})
    until(lambda: reached(feed) and records(kafka.address, topic))
    with SchemaRegistryClient({"url": registry.url}) as client:
        assert client.get_compatibility(f"{topic}-value") == "FULL"


def test_a_full_disk_stops_no_sink(
    feed: Feed, kafka: Kafka, registry: Registry, topic: str, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status cannot be written for a while.

    This once ended the sink's thread for good, while its process continued.
    """
    feed.create_sink(kafka.address, registry.url, topic)
    feed.random_tick()
    until(lambda: reached(feed))
    refused: list[Copy] = []

    def full(self: Copy, data: dict[str, Any]) -> None:
        refused.append(self)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Copy, "_write", full)
        for _ in range(5):
            feed.random_tick()
        until(lambda: len(refused) > 2)
    until(lambda: reached(feed))
    assert copy(feed.lake)["status"] == "running"
    assert events(kafka.address, topic) == feed.expected
