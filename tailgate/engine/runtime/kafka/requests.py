"""Direct requests to Kafka, without Spark's reader: metadata of topics, offsets, old records.

A broker that does not answer raises 08006, which is retriable. A missing topic raises 42704.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic, sleep, time_ns
from typing import Any, cast

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # exported, not declared

from tailgate.engine.ddl.kafka.source import TOPIC
from tailgate.engine.ddl.kafka.start import StartOffsets, StartTime
from tailgate.lake.clients import librdkafka
from tailgate.lake.errors import ConnectionFailure, UndefinedObject
from tailgate.lake.writer.inbox import Record

ANSWER_S = 3.0  # longest wait for one answer of a broker: a source counts as stalled within 5 s
RESULT_S = 2 * ANSWER_S  # longest wait for a result: a client reports an error if no answer comes within ANSWER_S
LEADER_LOOK_S = 0.05  # time between two requests to a partition without a leader
NO_LEADER = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION)
# a topic that does not exist, which the client may not read, whose name is not valid, or which is being created
MISSING = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.LEADER_NOT_AVAILABLE,
)
# longest wait for a batch of old records: the client waits for as many as were requested
PIECE_S = 0.1
IDLE_S = 10.0  # if no old records arrive for this time, the broker is considered lost

# the answers to `topic` in a block of `each_topic_once`
_answers: ContextVar[dict[tuple[object, ...], Topic] | None] = ContextVar("answers", default=None)

Offsets = dict[str, dict[str, int]]  # topic → partition as text → offset, as in Spark's JSON


class _Heard:
    """The last error of a connection.

    The responses themselves say only that there was no answer.
    """

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.text = error.str()


def consumer(brokers: str, settings: Mapping[str, str], on_error: Callable[[KafkaError], None] | None = None) -> Consumer:
    """Returns a consumer. `settings` are those of the client (`lake.clients`)."""
    return Consumer(
        {
            **({} if on_error is None else {"error_cb": on_error}),
            "bootstrap.servers": brokers,
            "group.id": "tailgate",  # never joined: partitions are assigned, nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "queued.max.messages.kbytes": 16384,
            "log_level": 2,
            **librdkafka(settings),
        }
    )


def _silent(brokers: str, error: KafkaException, last_error: _Heard | None = None) -> ConnectionFailure:
    """Returns the error for a broker that does not answer, with the connection's last error."""
    met = f": {last_error.text}" if last_error is not None and last_error.text else ""
    return ConnectionFailure(f"Kafka at {brokers} does not answer: {error.args[0].str()}{met}")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as its broker describes it.

    `id` is never that of another topic, even of the same name. `bounds` has, for each partition,
    its first offset and the offset after its last one.
    """

    id: str
    bounds: dict[str, tuple[int, int]]


def admin(brokers: str, options: Mapping[str, str], **more: Any) -> AdminClient:
    """Returns a client for administration. `more`: settings of librdkafka."""
    return AdminClient({"bootstrap.servers": brokers, "log_level": 2, **more, **librdkafka(options)})


def look(brokers: str, topics: list[str], options: Mapping[str, str]) -> dict[str, Topic]:
    """Returns those of the topics that exist.

    The first request is one for administration: `list_topics` of a new client waits for 50 ms, because it does not notice that the
    connection is made.
    """
    last_error = _Heard()
    client = admin(brokers, options, error_cb=last_error)
    try:
        names = [topic for topic in topics if TOPIC.fullmatch(topic)]
        described = _described(client, names, MISSING)
        partitions = {topic: sorted(p.id for p in answer.partitions) for topic, answer in described.items()}
        bounds = _bounds(client, [TopicPartition(topic, p) for topic, ids in partitions.items() for p in ids])
        return {topic: Topic(str(described[topic].topic_id), {str(p): bounds[topic, p] for p in ids}) for topic, ids in partitions.items()}
    except KafkaException as e:
        client.poll(0)  # updates `last_error`
        raise _silent(brokers, e, last_error) from e


def result(answer: concurrent.futures.Future[Any], wait: float | None = None) -> Any:
    """Returns the result of a request, which arrives within RESULT_S or `wait` seconds.

    Raises KafkaException also if it does not, because this process gets no CPU: without this it is an internal error, or ends the engine.
    """
    try:
        return answer.result(RESULT_S if wait is None else wait)
    except concurrent.futures.TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer in time")) from None


def _described(client: AdminClient, topics: Collection[str], missing: Collection[int]) -> dict[str, Any]:
    """Returns the descriptions of those of the topics that exist. `missing`: errors of a topic that does not."""
    described = {}
    for topic, answer in client.describe_topics(TopicCollection(list(topics)), request_timeout=ANSWER_S).items():
        try:
            described[topic] = result(answer)
        except KafkaException as e:
            if e.args[0].code() not in missing:
                raise
    return described


def _bounds(client: AdminClient, partitions: list[TopicPartition]) -> dict[tuple[str, int], tuple[int, int]]:
    """Returns the first offset of each partition and the offset after its last one. Waits for the leaders of new partitions."""
    deadline = monotonic() + ANSWER_S
    while partitions:
        answers = [
            client.list_offsets(dict.fromkeys(partitions, of), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=ANSWER_S)
            for of in (OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]  # not annotated
        ]
        try:
            low, high = ({(p.topic, p.partition): result(of).offset for p, of in futures.items()} for futures in answers)
            return {partition: (low[partition], high[partition]) for partition in low}
        except KafkaException as e:
            if e.args[0].code() not in NO_LEADER or monotonic() > deadline:
                raise
            sleep(LEADER_LOOK_S)
    return {}


class Identities:
    """Looks up the current ids of topics, over one connection that is kept open."""

    def __init__(self, brokers: str, settings: Mapping[str, str]) -> None:
        self._brokers, self._heard = brokers, _Heard()
        self._admin = admin(brokers, settings, error_cb=self._heard)

    def of(self, topics: Collection[str]) -> dict[str, str | None]:
        """Returns the ids by topic name, None for a missing topic. A broker answers in 1 ms."""
        try:
            described = _described(self._admin, topics, (KafkaError.UNKNOWN_TOPIC_OR_PART,))
        except KafkaException as e:
            self._admin.poll(0)  # updates `_heard`
            raise _silent(self._brokers, e, self._heard) from e
        return {topic: str(described[topic].topic_id) if topic in described else None for topic in topics}


def listed(brokers: str, options: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Returns name, partitions and replicas of every topic that is not internal to Kafka."""
    last_error = _Heard()
    client = consumer(brokers, options, last_error)
    try:
        all_topics = client.list_topics(timeout=ANSWER_S).topics
        return [
            (name, len(t.partitions), max((len(p.replicas) for p in t.partitions.values()), default=0))
            for name, t in sorted(all_topics.items())
            if not name.startswith("__")
        ]
    except KafkaException as e:
        client.poll(0)  # updates `last_error`
        raise _silent(brokers, e, last_error) from e
    finally:
        client.close()


def topic(brokers: str, name: str, options: Mapping[str, str]) -> Topic:
    """Returns the topic. Raises 42704 if it does not exist.

    In a block of `each_topic_once`, a second call returns the first answer.
    """
    answers = _answers.get()
    key = brokers, name, tuple(sorted(options.items()))
    if answers is not None and key in answers:
        return answers[key]
    found = look(brokers, [name], options).get(name)
    if found is None:
        raise UndefinedObject(
            f'topic "{name}" does not exist on {brokers}',
            hint="Create the topic first, or check its name with SHOW TOPICS.",
        )
    if answers is not None:
        answers[key] = found
    return found


@contextmanager
def each_topic_once() -> Iterator[None]:
    """Makes `topic` ask the broker about each topic once while the block runs.

    A statement needs a topic's id and offsets in several places, which should be of one moment.
    """
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def fault(name: str, current: Topic | None, id: str | None, next: Mapping[str, int]) -> str | None:
    """Returns why a topic cannot be read from the `next` offset of each partition, or None.

    `id` is that of the topic that was read before.
    """
    if (error := other(name, None if current is None else current.id, id)) is not None or current is None:
        return error
    for p, at in next.items():
        low, high = current.bounds.get(p, (0, 0))
        if not low <= at <= high:
            return f"topic {name}, partition {p} holds offsets {low} to {high}, but {at} is next: records were deleted"
    return None


def other(name: str, now: str | None, id: str | None) -> str | None:
    """Returns why a name no longer means the topic with this id, or None if it does.

    `now` is the id of the topic that currently has the name, None if there is none.
    """
    if now is None:
        return f'topic "{name}" does not exist'
    if id is not None and now != id:
        return f'topic "{name}" was deleted and recreated: drop the source and create it again to read the new topic'
    return None


def start(
    brokers: str, name: str, options: Mapping[str, str], bounds: Mapping[str, tuple[int, int]], start_option: StartOffsets | StartTime
) -> dict[str, int]:
    """Returns the offset at which each partition begins, within its bounds.

    `start_option`: that of the statement. A partition without records from that time on begins at its end.
    """
    if isinstance(start_option, StartOffsets):
        offsets = {p: start_option.offsets[int(p)] if int(p) < len(start_option.offsets) else 0 for p in bounds}
        return {p: min(max(offsets[p], low), high) for p, (low, high) in bounds.items()}
    time = start_option.time if start_option.time >= 0 else time_ns() // 1_000_000 + start_option.time
    client = consumer(brokers, options)
    try:
        requests = [TopicPartition(name, int(p), time) for p in bounds]
        offsets_by_partition = {str(t.partition): t.offset for t in client.offsets_for_times(requests, timeout=ANSWER_S)}
        return {p: offsets_by_partition[p] if low <= offsets_by_partition.get(p, -1) <= high else high for p, (low, high) in bounds.items()}
    except KafkaException as e:
        raise _silent(brokers, e) from e
    finally:
        client.close()


def record(topic: str, message: Message) -> Record:
    """Returns the record of a message."""
    headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
    partition, offset = cast(int, message.partition()), cast(int, message.offset())
    return Record(topic, message.key(), message.value(), partition, offset, message.timestamp()[1], tuple(headers))


def history(brokers: str, topic: str, begin: Mapping[str, int], end: Mapping[str, int], options: Mapping[str, str]) -> Iterator[Record]:
    """Yields the committed records of a topic in [begin, end) of each partition, by offset."""
    open_ = {int(p): end[p] for p in end if begin.get(p, 0) < end[p]}
    if not open_:
        return
    client = consumer(brokers, options)
    try:
        client.assign([TopicPartition(topic, p, begin.get(str(p), 0)) for p in open_])
        last_message = monotonic()
        while open_:
            messages = client.consume(1000, timeout=PIECE_S)
            if not messages and monotonic() - last_message > IDLE_S:
                raise ConnectionFailure(f"Kafka at {brokers} sent nothing for {IDLE_S:.0f} s while topic {topic} was read")
            for message in messages:
                error, partition, offset = message.error(), cast(int, message.partition()), cast(int, message.offset())
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise ConnectionFailure(f"Kafka at {brokers}, topic {topic}: {error.str()}")
                    # the remaining offsets before `end` are transaction markers, not records
                    open_.pop(partition, None)
                elif partition in open_:
                    if offset < open_[partition]:
                        yield record(topic, message)
                    if offset + 1 >= open_[partition]:
                        del open_[partition]
            if messages:
                # taken after the yields, since the caller may take long to process the records
                last_message = monotonic()
    except KafkaException as e:
        raise _silent(brokers, e) from e
    finally:
        client.close()
