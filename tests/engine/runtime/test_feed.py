"""The feed of Kafka records: its ranges repeat exactly, have only committed records, and are bounded."""

from __future__ import annotations

import json
import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JJavaError

from tailgate.embedded.kafka import Kafka
from testing.engine_process import until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

RECORDS_MAX = 50_000  # of a tick
BACKLOG = 40_000  # records
SINGLE_MAX = 200  # waiting records, up to which each has its tick
TICKS_MAX = 400  # ticks of one record that may run at once
PAUSE_S = 0.031  # between two polls at an ordinary rate
BYTES_MAX = 32 << 20  # of a tick
VALUE, OFFSET = 1, 4  # columns
INTERVAL_S = 0.05  # of ticks; on a busy machine a record is fetched some 10 ms after it was sent
SAMPLES = 40  # ticks


class Feed:
    """A feed of one topic with one partition, used as the tick loop uses it. `others`: empty topics that it reads, too."""

    def __init__(self, session: Any, kafka: Kafka, topic: str, start: int = 0, others: Sequence[str] = ()) -> None:
        self._jvm, self._topic = session._jvm, topic
        reader = self._jvm.tailgate.sources.KafkaReader("r", kafka.address, [topic, *others], {})
        self._stream = reader.stream(f"/nowhere/{topic}", True)
        self._start = self._stream.deserializeOffset(json.dumps({topic: {"0": start}, **{other: {"0": 0} for other in others}}))

    def end(self) -> Any:
        """Returns the position after the records that a tick would read now."""
        return self._stream.latestOffset(self._start, self._stream.getDefaultReadLimit())

    def next(self, end: Any) -> int:
        return int(json.loads(end.json())[self._topic]["0"])

    def until(self, next: int) -> Any:
        """Returns the end of a tick when it has reached this offset."""
        until(lambda: self.next(self.end()) >= next)
        return self.end()

    def rows(self, end: Any) -> list[tuple[int, bytes]]:
        """Returns offset and value of the records up to `end`, which a tick reads."""
        rows = []
        for part in self._stream.planInputPartitions(self._start, end):
            reader = self._stream.createReaderFactory().createReader(part)
            while reader.next():
                row = reader.get()
                rows.append((row.getLong(OFFSET), bytes(row.getBinary(VALUE))))
        return rows

    def single(self, streams: set[str], tables: set[str]) -> None:
        """Sets the topics of which a tick reads one record while few wait."""
        self._stream.single(streams, tables)

    def ticked(self) -> None:
        """Counts a tick of a single record of another feed."""
        self._stream.ticked()

    def commit(self, end: Any) -> None:
        self._stream.commit(end)
        self._start = end

    def waiting(self) -> int:
        return int(self._stream.waiting())

    def stop(self) -> None:
        self._stream.stop()


@pytest.fixture
def feed(session: Any, kafka: Kafka, request: pytest.FixtureRequest) -> Iterator[Feed]:
    """Returns a feed of the topic "x-<name of the test>"."""
    kafka.create_topic(topic(request))
    running = Feed(session, kafka, topic(request))
    yield running
    running.stop()
    until(lambda: feeds(session) == 0)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return topic(request)


def topic(request: pytest.FixtureRequest) -> str:
    return f"x-{request.node.name}"


def feeds(session: Any) -> int:
    """Returns the number of threads of feeds."""
    return sum(t.getName() == "tailgate-feed" for t in session._jvm.java.lang.Thread.getAllStackTraces().keySet())


def batches(feed: Feed) -> list[list[bytes]]:
    """Returns the values of the records of each tick until there are none."""
    all = []
    while rows := feed.rows(end := feed.end()):
        all.append([value for _, value in rows])
        feed.commit(end)
    return all


def produce(kafka: Kafka, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.address, "message.max.bytes": 2 << 20, "queue.buffering.max.messages": 1_000_000})
    for value in values:
        producer.produce(topic, value)
    producer.flush()


def test_a_repeated_tick_reads_what_its_first_attempt_has_read(feed: Feed, kafka: Kafka, name: str) -> None:
    produce(kafka, name, b"1", b"2")
    end = feed.until(2)
    assert feed.rows(end) == [(0, b"1"), (1, b"2")]
    produce(kafka, name, b"3")
    feed.until(3)
    assert feed.rows(end) == [(0, b"1"), (1, b"2")]
    feed.commit(end)
    end = feed.until(3)
    assert feed.rows(end) == [(2, b"3")]
    feed.commit(end)
    assert feed.rows(feed.end()) == []


def test_only_committed_records_are_read_and_the_position_passes_the_others(feed: Feed, kafka: Kafka, name: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": name, "log_level": 2})
    producer.init_transactions()

    def transaction(*values: bytes) -> None:
        producer.begin_transaction()
        for value in values:
            producer.produce(name, value)
        producer.flush()

    transaction(b"1", b"2")
    producer.commit_transaction()  # offset 2 is its marker
    transaction(b"aborted")
    producer.abort_transaction()  # offset 4
    end = feed.until(5)
    assert feed.rows(end) == [(0, b"1"), (1, b"2")]
    feed.commit(end)
    transaction(b"aborted")
    producer.abort_transaction()  # offset 6; nothing else comes
    end = feed.until(7)
    assert feed.rows(end) == []
    feed.commit(end)
    transaction(b"open")
    produce(kafka, name, b"behind an open transaction")
    assert feed.next(feed.end()) == 7
    producer.commit_transaction()  # offset 9
    end = feed.until(10)
    assert feed.rows(end) == [(7, b"open"), (8, b"behind an open transaction")]


def test_few_records_have_ticks_of_their_own(feed: Feed, kafka: Kafka, name: str) -> None:
    feed.single({name}, set())
    values = [str(n).encode() for n in range(SINGLE_MAX)]
    produce(kafka, name, *values)
    until(lambda: feed.waiting() == SINGLE_MAX)
    assert batches(feed) == [[value] for value in values]


def test_many_records_share_a_tick(feed: Feed, kafka: Kafka, name: str) -> None:
    feed.single({name}, set())
    values = [str(n).encode() for n in range(SINGLE_MAX + 1)]
    produce(kafka, name, *values)
    until(lambda: feed.waiting() == SINGLE_MAX + 1)
    assert batches(feed) == [values]


def test_constant_ticks_of_one_record_are_limited(feed: Feed, kafka: Kafka, name: str) -> None:
    """Otherwise a source at a constant rate would cost a tick for each record."""
    feed.single({name}, set())
    sizes = []
    for _ in range(5):
        produce(kafka, name, *(b"v" for _ in range(SINGLE_MAX)))
        until(lambda: feed.waiting() == SINGLE_MAX)
        sizes += [len(batch) for batch in batches(feed)]
    assert sum(sizes) == 5 * SINGLE_MAX
    assert max(sizes) > 1


def test_records_that_share_a_tick_count_for_the_limit(feed: Feed, kafka: Kafka, name: str) -> None:
    """Otherwise some records of a fast source would have ticks, and the others not."""
    feed.single({name}, set())
    for size in (TICKS_MAX + SINGLE_MAX, 3):
        produce(kafka, name, *(b"v" for _ in range(size)))
        until(lambda: feed.waiting() == size)  # noqa: B023  # called at once
        assert [len(batch) for batch in batches(feed)] == [size]


def test_feeds_share_the_limit_of_ticks_of_one_record(feed: Feed, kafka: Kafka, name: str) -> None:
    feed.single({name}, set())
    for _ in range(TICKS_MAX + SINGLE_MAX):
        feed.ticked()
    produce(kafka, name, b"1", b"2", b"3")
    until(lambda: feed.waiting() == 3)
    assert batches(feed) == [[b"1", b"2", b"3"]]


def test_records_that_have_waited_long_share_a_tick(session: Any, kafka: Kafka, name: str) -> None:
    """Otherwise those behind them wait for slow ticks: of a busy machine, or of a log in a bucket."""
    topics = (name, "waiting-others")
    for topic in topics:
        kafka.create_topic(topic)
    feed = Feed(session, kafka, name, others=topics[1:])

    def size() -> int:
        """Returns the number of records that a tick would read now."""
        return len(feed.rows(feed.end()))

    try:
        feed.single({name}, set())
        for topic in topics:
            produce(kafka, topic, b"1", b"2")
        until(lambda: feed.waiting() == 4)
        until(lambda: size() == 4)  # a record of another topic has waited for 2 seconds
        feed.single(set(topics), set())
        assert size() == 1
        until(lambda: size() == 4)
    finally:
        feed.stop()
        until(lambda: feeds(session) == 0)


def test_many_records_are_not_fetched_one_by_one(feed: Feed, kafka: Kafka, name: str, session: Any) -> None:
    clock, inbox = session._jvm.java.lang.System, session._jvm.tailgate.sources.InboxSource
    feed.single({"others"}, set())
    produce(kafka, name, *(b"v" for _ in range(SINGLE_MAX + 1)))
    until(lambda: feed.waiting() > SINGLE_MAX)
    feed.end()
    inbox.nextTick(f"/nowhere/{name}", clock.nanoTime() + round(60e9))
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0})
    sizes = set()
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < SAMPLES * PAUSE_S:
        producer.produce(name, b"v")
        producer.poll(0)
        sizes.add(feed.waiting())
        time.sleep(0.001)
    producer.flush()
    assert len(sizes) <= elapsed / PAUSE_S + 2


def test_single_records_have_the_order_of_their_times_and_tables_come_first(session: Any, kafka: Kafka, name: str) -> None:
    for topic in (name, "a-table", "others"):
        kafka.create_topic(topic)
    producer = Producer({"bootstrap.servers": kafka.address})
    for topic, value, at in ((name, b"s1", 20), (name, b"s2", 10), (name, b"s3", 30), ("a-table", b"t1", 10), ("a-table", b"t2", 30)):
        producer.produce(topic, value, timestamp=at)
    producer.produce("others", b"o1", timestamp=5)
    producer.produce("others", b"o2", timestamp=40)
    producer.flush()
    feed = Feed(session, kafka, name, others=["a-table", "others"])
    try:
        feed.single({name}, {"a-table"})
        until(lambda: feed.waiting() == 7)
        assert [sorted(batch) for batch in batches(feed)] == [[b"o1", b"t1"], [b"s1"], [b"s2"], [b"t2"], [b"s3"], [b"o2"]]
    finally:
        feed.stop()
        until(lambda: feeds(session) == 0)


def test_a_tick_has_a_limit_of_records(feed: Feed, kafka: Kafka, name: str) -> None:
    total = 2 * RECORDS_MAX + 5_000
    produce(kafka, name, *(b"x" for _ in range(total)))
    read = 0
    while read < total:
        end = feed.until(min(read + RECORDS_MAX, total))
        assert feed.next(end) == min(read + RECORDS_MAX, total)
        read = feed.next(end)
        feed.commit(end)


def test_a_tick_has_a_limit_of_bytes(feed: Feed, kafka: Kafka, name: str) -> None:
    size, total = 900_000, 80
    produce(kafka, name, *(bytes(size) for _ in range(total)))
    read = 0
    while read < total:
        end = feed.until(min(read + BYTES_MAX // size - 1, total))
        assert read < feed.next(end) <= read + BYTES_MAX // size + 1
        read = feed.next(end)
        feed.commit(end)


def test_the_queue_is_bounded(feed: Feed, kafka: Kafka, name: str, session: Any) -> None:
    produce(kafka, name, *(bytes(900_000) for _ in range(150)))
    feed.until(BYTES_MAX // 900_000 - 1)
    held = session._jvm.tailgate.sources.KafkaFeed.queuedBytes
    until(lambda: held() >= 2 * BYTES_MAX)
    assert held() < 2 * BYTES_MAX + (20 << 20), "two ticks and one poll"


def test_an_empty_topic_does_not_delay_another_one(session: Any, kafka: Kafka, name: str) -> None:
    """The broker waits for records of the empty topic only if a request asks for nothing else."""
    kafka.create_topic(name)
    kafka.create_topic("empty")
    produce(kafka, name, *(b"v" * 500 for _ in range(BACKLOG)))  # 20 requests of 1 MB
    began = time.monotonic()
    feed = Feed(session, kafka, name, others=["empty"])
    try:
        feed.until(BACKLOG)
        assert time.monotonic() - began < 5.0  # with a wait for each request: 10 s
    finally:
        feed.stop()
        until(lambda: feeds(session) == 0)


def test_deleted_records_fail_the_feed(session: Any, kafka: Kafka, name: str) -> None:
    kafka.create_topic(name)
    produce(kafka, name, b"1", b"2", b"3")
    admin = AdminClient({"bootstrap.servers": kafka.address})
    (deleted,) = admin.delete_records([TopicPartition(name, 0, 2)]).values()
    deleted.result(10)
    feed = Feed(session, kafka, name, start=1)

    def failure() -> str:
        try:
            feed.end()
        except Py4JJavaError as e:
            return str(e.java_exception.toString())
        return ""

    until(lambda: "OffsetOutOfRange" in failure())
    until(lambda: feeds(session) == 0)
    feed.stop()


def test_a_tick_has_the_newest_records_of_a_steady_stream(feed: Feed, kafka: Kafka, name: str, session: Any) -> None:
    """A tick that lacks the records of the time since the last one has a newest record as old as that."""
    clock, inbox = session._jvm.java.lang.System, session._jvm.tailgate.sources.InboxSource
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 1})
    ages: deque[float] = deque(maxlen=SAMPLES)
    sent: list[float] = []  # when, by offset
    read = 0  # records

    def ticked() -> bool:
        """Runs a tick, and returns whether most of the last ones had new records. Does not read the rows: py4j would take longer."""
        nonlocal read
        began = time.monotonic()
        inbox.nextTick(f"/nowhere/{name}", clock.nanoTime() + round(INTERVAL_S * 1e9))
        while time.monotonic() < began + INTERVAL_S:
            sent.append(time.monotonic())
            producer.produce(name, b"v")
            producer.poll(0)
            time.sleep(0.001)
        end, now = feed.end(), time.monotonic()
        if (next := feed.next(end)) > read:
            ages.append(now - sent[next - 1])
        read = next
        feed.commit(end)
        return len(ages) == SAMPLES and statistics.median(ages) < INTERVAL_S / 2

    until(ticked)
