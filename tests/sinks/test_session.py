"""Sessions with a real broker: transactions, fencing, and where a sink continues."""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from tailgate.embedded.kafka import Kafka
from tailgate.lake.errors import ConnectionFailure, TailgateError
from tailgate.sinks import progress, topics
from tailgate.sinks import session as session_module
from tailgate.sinks.envelope import Event
from tailgate.sinks.failures import Fenced, Replaced
from tailgate.sinks.progress import Progress
from tailgate.sinks.session import Session
from tailgate.sinks.settings import Settings
from tests.chaos.forgetting import forgetting
from tests.sinks.feed import records, until

SINK = 16400
SESSIONS_MAX = 3
SHORT = timedelta(seconds=0.5)  # for a timeout that passes in a test


def unstopped() -> bool:
    return False


def settings(address: str, topic: str, **options: Any) -> Settings:
    return Settings(brokers=address, topic=topic, registry="", envelope="debezium", **options)


def sees(kafka: Kafka, topic: str, expected: list[tuple[bytes | None, bytes | None]]) -> None:
    """Waits until a read_committed consumer reads the expected records.

    The broker writes the marker of a transaction shortly after the commit.
    """
    until(lambda: len(records(kafka.address, topic)) >= len(expected), 10)
    assert records(kafka.address, topic) == expected


@pytest.fixture
def lake_id() -> str:
    return uuid.uuid4().hex[:12]


def opened(kafka: Kafka, lake_id: str, sink: int = SINK) -> Session:
    session = Session(settings(kafka.address, f"out-{lake_id}"), lake_id, sink, unstopped)
    session.open()
    return session


def test_events_and_progress_are_one_transaction(kafka: Kafka, lake_id: str) -> None:
    session = opened(kafka, lake_id)
    assert session.progress is None
    reached = Progress(3, 1000, 0, True, "a")
    session.commit([Event(None, b"1"), Event(b"k", b"2"), Event(b"k", None)], reached)
    session.close()
    sees(kafka, f"out-{lake_id}", [(None, b"1"), (b"k", b"2"), (b"k", None)])
    again = opened(kafka, lake_id)
    assert again.progress == reached
    again.commit([], None)
    again.close()
    last = opened(kafka, lake_id)
    assert last.progress is None
    last.close()


def test_progress_behind_another_sinks_open_transaction_is_not_overlooked(kafka: Kafka, lake_id: str) -> None:
    other = opened(kafka, lake_id, SINK + 1)
    assert other._producer is not None
    other._producer.begin_transaction()
    other._producer.produce(progress.topic(lake_id), b"{}", progress.key(SINK + 1), partition=0)
    other._producer.flush(5)
    session = opened_in_background = []
    mine = Session(settings(kafka.address, f"out-{lake_id}"), lake_id, SINK, unstopped)
    assert mine is not None
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"tailgate-{lake_id}-{SINK}"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(progress.topic(lake_id), progress.value(Progress(9, 9, 0, True, "z")), progress.key(SINK), partition=0)
    producer.commit_transaction(10)
    thread = threading.Thread(target=lambda: (mine.open(), opened_in_background.append(mine.progress)))
    thread.start()
    time.sleep(1)
    assert session == [], "it must wait until the other's transaction is decided"
    other._producer.abort_transaction(10)
    thread.join(20)
    assert session == [Progress(9, 9, 0, True, "z")]
    mine.close()
    other.close()


def test_a_newer_session_fences_the_older(kafka: Kafka, lake_id: str) -> None:
    older = opened(kafka, lake_id)
    older.commit([Event(None, b"1")], Progress(1, 1, 0, True, "older"))
    newer = opened(kafka, lake_id)
    assert newer.progress is not None
    newer.commit([], Progress(1, 1, 0, True, "newer"))
    with pytest.raises(Fenced):
        older.commit([Event(None, b"2")], Progress(2, 2, 0, True, "older"))
    with pytest.raises(Replaced):
        older.fenced()
    newer.commit([Event(None, b"2")], Progress(2, 2, 0, True, "newer"))
    sees(kafka, f"out-{lake_id}", [(None, b"1"), (None, b"2")])
    older.close()
    newer.close()


def test_an_uncommitted_transaction_is_not_visible(kafka: Kafka, lake_id: str) -> None:
    session = opened(kafka, lake_id)

    def dies() -> None:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        session.commit([Event(None, b"1")], Progress(1, 1, 0, True, "a"), dies)
    session.close()
    again = opened(kafka, lake_id)
    assert again.progress is None
    again.commit([Event(None, b"1")], Progress(1, 1, 0, True, "b"))
    sees(kafka, f"out-{lake_id}", [(None, b"1")])
    again.close()


def test_a_fence_without_a_claim_releases_the_sink(kafka: Kafka, lake_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fence is released after a pause in which the broker aborted the session's transaction."""
    monkeypatch.setattr(session_module, "CLAIM_TIMEOUT", SHORT)
    session = opened(kafka, lake_id)
    session.commit([], Progress(1, 1, 0, True, "a"))
    stranger = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"tailgate-{lake_id}-{SINK}"})
    stranger.init_transactions(10)
    with pytest.raises(Fenced):
        session.commit([Event(None, b"1")], Progress(2, 2, 0, True, "a"))
    session.fenced()
    session.close()


def test_a_session_that_is_fenced_before_its_claim_does_not_take_its_predecessor_for_a_successor(
    kafka: Kafka, lake_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "CLAIM_TIMEOUT", SHORT)
    older = opened(kafka, lake_id)
    older.commit([], Progress(1, 1, 0, True, "older"))
    newer = opened(kafka, lake_id)
    stranger = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"tailgate-{lake_id}-{SINK}"})
    stranger.init_transactions(10)
    with pytest.raises(Fenced):
        newer.commit([], Progress(1, 1, 0, True, "newer"))
    newer.fenced()
    newer.close()
    older.close()


def test_an_absent_broker_is_named(lake_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "CALL_TIMEOUT", SHORT)
    session = Session(settings("127.0.0.1:1", "t"), lake_id, SINK, unstopped)
    started = time.monotonic()
    with pytest.raises(TailgateError, match=r"brokers 127\.0\.0\.1:1.*refused") as caught:
        session.open()
    assert caught.value.retriable
    assert time.monotonic() - started < 7
    session.close()


def test_a_broker_that_does_not_know_a_new_leader_yet(kafka: Kafka, lake_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy broker may answer about a new topic that the client has a newer epoch of its leader."""
    errors, ends = [KafkaException(KafkaError(KafkaError.UNKNOWN_LEADER_EPOCH))], topics.ends

    def answer(*arguments: Any) -> Any:
        if errors:
            raise errors.pop()
        return ends(*arguments)

    monkeypatch.setattr(topics, "ends", answer)
    opened(kafka, lake_id).close()
    assert not errors


def test_a_topic_is_made_with_its_partitions(kafka: Kafka, lake_id: str) -> None:
    options = settings(kafka.address, f"made-{lake_id}", partitions=3, replication=1, topic_config={"retention.ms": "60000"})
    session = Session(options, lake_id, SINK, unstopped)
    session.open()
    metadata = session._admin.list_topics(topic=f"made-{lake_id}", timeout=5)
    assert len(metadata.topics[f"made-{lake_id}"].partitions) == 3
    session.close()


def test_undecided_records_are_followed_by_an_aborted_transaction(kafka: Kafka, lake_id: str) -> None:
    """The coordinator of a broker that was killed may have lost the sink's transaction; an aborted one over the partitions ends it."""
    topic, reached = f"out-{lake_id}", Progress(3, 1000, 0, True, "a")
    first = opened(kafka, lake_id)
    first.commit([Event(b"k", b"1")], reached)
    first.close()
    other = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"other-{lake_id}"})
    other.init_transactions(10)
    other.begin_transaction()
    other.produce(topic, b"unfinished", b"o", partition=0)
    assert other.flush(10) == 0
    second = opened(kafka, lake_id)
    assert second.progress == reached
    assert (None, b"") in records(kafka.address, topic, committed=False)
    second.commit([Event(b"k", b"2")], Progress(4, 1001, 0, True, "b"))
    other.abort_transaction(10)
    sees(kafka, topic, [(b"k", b"1"), (b"k", b"2")])
    second.close()


def test_a_transaction_that_a_killed_broker_has_forgotten(tmp_path: Path, lake_id: str) -> None:
    """The coordinator's last records are lost, and those of the transaction are not. No timeout ends it, but a session does."""
    kafka = Kafka(tmp_path / "kafka")
    kafka.start()
    topic, reached = f"out-{lake_id}", Progress(3, 1000, 0, True, "a")

    def dies() -> None:
        raise RuntimeError("killed")

    try:
        first = opened(kafka, lake_id)
        first.commit([Event(b"k", b"1")], reached)
        sees(kafka, topic, [(b"k", b"1")])
        with forgetting(kafka), pytest.raises(RuntimeError):
            first.commit([Event(b"k", b"2")], Progress(4, 1001, 0, True, "a"), dies)
        for _ in range(SESSIONS_MAX):  # the broker may refuse the sequence numbers of the next session, which a worker replaces
            session = opened(kafka, lake_id)
            assert session.progress == reached
            with suppress(ConnectionFailure):
                session.commit([Event(b"k", b"2")], Progress(4, 1001, 0, True, "b"))
                break
            session.close()
        sees(kafka, topic, [(b"k", b"1"), (b"k", b"2")])
        session.close()
        first.close()
    finally:
        kafka.stop()
