"""The processing log of ksqlDB: a topic with the records that could not be decoded or written, and the expressions that failed.

    tick ──committed──► failures ──queue──► a message for each query and row ──► topic ◄── stream KSQL_PROCESSING_LOG
    sink ──status──► its error ──► a message for each new error of a query's sink ────┘

As in ksqlDB, messages are written after the fact and without a transaction: failures that wait while the engine ends,
or while the broker does not answer, are lost. Dead letters are not (`engine.runtime.backfill.letters`).

Source: ksqlDB 0.29, documentation, "Processing log".
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.views.nodes import owner
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.tick_result import KEY, RELATION, VALUE, Failure
from tailgate.lake import clients
from tailgate.lake.catalog import Catalog, DeadLetters, Item, MaterializedView, Sink, Source, ksqldb_of
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds

log = logging.getLogger("tailgate.engine")

STREAM = "KSQL_PROCESSING_LOG"
TOPIC = "default_ksql_processing_log"  # of ksqlDB's default service id
DECODING = "KsqlTopic.Source.deserializer"  # the end of the name of a logger, as in ksqlDB
CREATE = f"""CREATE STREAM IF NOT EXISTS {STREAM} (logger VARCHAR, level VARCHAR, `TIME` BIGINT, message STRUCT<
  `TYPE` INT,
  deserializationError STRUCT<target VARCHAR, errorMessage VARCHAR, recordB64 VARCHAR, cause ARRAY<VARCHAR>, `TOPIC` VARCHAR>,
  recordProcessingError STRUCT<errorMessage VARCHAR, record VARCHAR, cause ARRAY<VARCHAR>>,
  productionError STRUCT<errorMessage VARCHAR>,
  serializationError STRUCT<target VARCHAR, errorMessage VARCHAR, record VARCHAR, cause ARRAY<VARCHAR>, `TOPIC` VARCHAR>,
  kafkaStreamsThreadError STRUCT<errorMessage VARCHAR, threadName VARCHAR, cause ARRAY<VARCHAR>>>)
  WITH (kafka_topic = '{TOPIC}', partitions = 1, value_format = 'json')"""
DESERIALIZATION, PROCESSING, PRODUCTION = 0, 1, 2  # values of the field TYPE
KINDS = ("deserializationError", "recordProcessingError", "productionError", "serializationError", "kafkaStreamsThreadError")

TICKS_MAX = 1000  # ticks whose failures wait
MESSAGES_MAX = 1000  # of one tick
BUFFERED_MAX = 10_000  # messages that the broker has not acknowledged
ACKNOWLEDGED_MS = 10_000  # the age at which such a message is dropped
LOOK_S = 1.0  # between two checks whether the engine stops
LOOKS = 20  # between two looks at the status of sinks: a second, at least so many times `Store.look_s`: 10 s in a bucket
RETRY_S = 5.0  # between two attempts to create the stream


@dataclass(frozen=True, slots=True)
class Logged:
    """The failures of a tick. `time`: of the tick, in ms."""

    time: int
    failures: Sequence[Failure]
    catalog: Catalog
    graph: Graph


class ProcessingLog(threading.Thread):
    """A thread that creates the stream, and writes its messages until the engine stops. `create` executes a statement."""

    def __init__(self, engine: Engine, brokers: str, create: Callable[[str], None]) -> None:
        super().__init__(name="processing-log", daemon=True)
        self._engine, self._create = engine, create
        self._waiting: queue.Queue[Logged] = queue.Queue(TICKS_MAX)
        self._errors: dict[str, str] = {}  # of sinks, by query
        self._producer = Producer(
            {
                "bootstrap.servers": brokers,
                "queue.buffering.max.messages": BUFFERED_MAX,
                "message.timeout.ms": ACKNOWLEDGED_MS,
                "log_level": 2,
                **clients.librdkafka({}),
            }
        )

    def note(self, failures: Sequence[Failure]) -> None:
        """Takes the failures of the tick that has just been committed. Does not wait: if too many ticks wait, drops them."""
        try:
            self._waiting.put_nowait(Logged(self._engine.newest.time, failures, self._engine.catalog, self._engine.graph))
        except queue.Full:
            log.warning("the processing log is behind: failures of a tick are not logged")

    def run(self) -> None:
        while not self._engine.stopping and not self._is_created():
            self._engine.ended.wait(RETRY_S)
        looked, look_s = time.monotonic(), max(LOOK_S, LOOKS * self._engine.lake.store.look_s)
        while not self._engine.stopping:
            try:
                self._write(messages(self._waiting.get(timeout=LOOK_S)))
            except queue.Empty:
                self._producer.poll(0)
            except Exception:
                log.exception("failures of a tick are not logged")
            if time.monotonic() - looked >= look_s:
                self._look_at_sinks()
                looked = time.monotonic()

    def _look_at_sinks(self) -> None:
        """Writes a message for each new error of a sink."""
        engine = self._engine
        try:
            errors = dict(production_errors(engine.catalog, engine.lake))
            new = {query: error for query, error in errors.items() if self._errors.get(query) != error}
            self._errors = errors
            self._write(of_production(query, error, engine.newest.time) for query, error in new.items())
        except Exception:
            log.warning("errors of sinks are not logged", exc_info=True)

    def _is_created(self) -> bool:
        """Creates the stream and its topic. Returns False if it has to be tried again."""
        try:
            self._create(CREATE)
        except TailgateError as error:
            log.warning("stream %s cannot be created yet: %s", STREAM, error.message)
            return False
        except Exception:
            if not self._engine.stopping:  # otherwise its parts have ended as they should
                log.exception("stream %s cannot be created yet", STREAM)
            return False
        return True

    def _write(self, messages: Iterable[Mapping[str, Any]]) -> None:
        try:
            for message in messages:
                self._producer.produce(TOPIC, json.dumps(message))
                self._producer.poll(0)
        except BufferError:
            log.warning("Kafka does not answer: failures are not logged")


def messages(logged: Logged) -> Iterator[dict[str, Any]]:
    """Yields the messages of the failures of a tick, at most MESSAGES_MAX."""
    left = MESSAGES_MAX
    for query, failure, rows in _by_query(logged):
        if left == 0:
            return
        message = _message(query, failure, logged)
        for _ in range(min(rows, left)):
            yield message
        left -= min(rows, left)


def _by_query(logged: Logged) -> Iterator[tuple[MaterializedView, Failure, int]]:
    """Yields the number of rows of each failure by the view of its query, without those of the views that the query reads.

    The steps of a stream belong to the steps of each stream that reads it. Queries that read the log are left out:
    their own messages would fail again.
    """
    rows: Counter[tuple[int, int, str]] = Counter()
    failures: dict[tuple[int, int, str], Failure] = {}
    for failure in logged.failures:
        for view in _views(failure, logged.catalog, logged.graph):
            kind = min(failure.port, RELATION + 1)
            place = view.id, failure.port if kind < RELATION else RELATION, failure.message
            rows[place] += failure.rows
            failures[place] = failure
    for (id, port, message), count in rows.items():
        view = logged.catalog.expect(MaterializedView, id)
        if port == RELATION:
            count -= sum(rows[other, port, message] for other in view.depends)
        if count > 0 and not _reads_log(view, logged.catalog):
            yield view, failures[id, port, message], count


def _views(failure: Failure, catalog: Catalog, graph: Graph) -> Iterable[MaterializedView]:
    """Returns the views of ksqlDB's queries to which a failure belongs."""
    if failure.port in (KEY, VALUE):
        source, item = _source(failure, catalog, graph), catalog.items.get(owner(failure.node))
        readers = (
            [item] if isinstance(item, MaterializedView) else [i for i in catalog.visible if source is not None and source.id in i.depends]
        )
    elif failure.port == RELATION:
        readers = [item] if (item := catalog.items.get(failure.node)) is not None else []
    else:
        readers = [i for i in catalog.each(MaterializedView) if failure.node in {node for _, node in i.nodes}]
    return [view for view in readers if isinstance(view, MaterializedView) and view.ksqldb is not None and view.ksqldb.query]


def _source(failure: Failure, catalog: Catalog, graph: Graph) -> Source | None:
    """Returns the source whose records could not be decoded."""
    letters = next((owner(edge.to) for edge in graph.dead_letter_edges if edge.source == failure.node), 0)
    item = catalog.items.get(letters)
    return catalog.expect(Source, item.depends[0]) if isinstance(item, DeadLetters) else None


def _reads_log(view: Item, catalog: Catalog) -> bool:
    """Returns whether a view, or one below it, reads the topic of the log."""
    below = (catalog[id] for id in catalog.below(view))
    return any(isinstance(item, Source) and item.ksqldb is not None and item.ksqldb.topic == TOPIC for item in below)


def _message(view: MaterializedView, failure: Failure, logged: Logged) -> dict[str, Any]:
    """Returns the message of one row. The row itself is never logged, as by default in ksqlDB."""
    assert view.ksqldb is not None
    logger = f"processing.{view.ksqldb.query}"
    error: dict[str, Any] = {"errorMessage": failure.message, "cause": []}
    if failure.port in (KEY, VALUE):
        source = _source(failure, logged.catalog, logged.graph)
        error |= {"target": "key" if failure.port == KEY else "value", "recordB64": None, "topic": None if source is None else source.topic}
        logger, kind = f"{logger}.{DECODING}", DESERIALIZATION
    else:
        error["record"], kind = None, PROCESSING
    return _of_kind(kind, error, logger, logged.time)


def production_errors(catalog: Catalog, lake: Lake) -> Iterator[tuple[str, str]]:
    """Yields the queries whose sinks fail, with the errors that the sinks have recorded (`sinks.status`)."""
    for sink in catalog.each(Sink):
        view = next((catalog[id] for id in sink.depends if sink.of_view and isinstance(catalog[id], MaterializedView)), None)
        ksqldb = ksqldb_of(view)
        if view is None or ksqldb is None or not ksqldb.query or _reads_log(view, catalog):
            continue
        if error := (holds.read(lake, holds.sink(sink.id)) or {}).get("error"):
            yield ksqldb.query, error


def of_production(query: str, error: str, time: int) -> dict[str, Any]:
    """Returns the message of a sink's error: it cannot write the messages of a query, or not encode them."""
    return _of_kind(PRODUCTION, {"errorMessage": error}, f"processing.{query}", time)


def _of_kind(kind: int, error: Mapping[str, Any], logger: str, time: int) -> dict[str, Any]:
    of_kind = {name: error if number == kind else None for number, name in enumerate(KINDS)}
    return {"logger": logger, "level": "ERROR", "time": time, "message": {"type": kind, **of_kind}}
