"""The engine: one Spark streaming query whose batches are the ticks.

    statements ──┐                         ┌── tick (foreachBatch): circuit ──► log entry
    fills ───────┼── boundary (one lock) ──┤
    stop ────────┘                         └── restart of the query when readers join, leave or fail

A tick holds the lock `boundary` from start to end. Code that appends a log entry or changes the
circuit holds it as well, so such changes happen between two ticks.

A tick that fails before its log entry is written has no effect: no entry names its state, and the
query restarts from the newest log entry. After an error behind that point, memory and log no longer
agree. The engine then ends (`committed_change`), and the next engine starts from the log.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tailgate.engine.ddl.kafka.registry import PROBE_SUBJECT, Registry
from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.explain import Statistics
from tailgate.engine.plan.views.sharing import Sum
from tailgate.engine.runtime import kafka, transactions
from tailgate.engine.runtime import readers as inputs
from tailgate.engine.runtime import session as spark
from tailgate.engine.runtime.batches import Batches
from tailgate.engine.runtime.circuits import Circuits
from tailgate.engine.runtime.failing import Failing
from tailgate.engine.runtime.pacing import Pacing
from tailgate.engine.runtime.readers import Ends, Reader, ends, reader_name, readers, veiled
from tailgate.engine.runtime.ticked import Ticked, ticked
from tailgate.engine.runtime.writes import written
from tailgate.lake.catalog import Catalog, Change, Source
from tailgate.lake.catalog.formats import Avro, ConnectionSettings
from tailgate.lake.catalog.secrets import Settings, Vault, settings
from tailgate.lake.errors import CrashShutdown, ObjectNotInPrerequisiteState, Replaced, TailgateError, Uncertain
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash, files
from tailgate.lake.log.entry import Header
from tailgate.lake.writer.inbox import TABLE, Inbox, Record
from tailgate.lake.writer.log_writer import Writer

log = logging.getLogger("tailgate.engine")

Changes = Sequence[tuple[int, bytes | memoryview | pa.Table]]

DURATIONS = 200  # ticks whose duration is kept
# folder below the state folder: changes that are too large to send to the driver
RESULTS = "results"
RETRY_S = 2.0  # between two attempts to reach a stalled source
STATE = "state"  # folder of the lake that holds Spark's state
NEVER = (1 << 63) - 1  # ms
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# consecutive ticks that may fail without a source to blame; then the engine ends with the error
FAILURES_MAX = 5


@dataclass
class Stall:
    """A reader or source that is not read until the system it needs answers again."""

    error: str
    lasting: bool = False  # stalled until RESUME SOURCE: a retry does not help
    since: float = field(default_factory=time.time)


class Engine:
    """The state of the running engine; `run` drives the query until `stop`."""

    def __init__(self, lake: Lake, session: SparkSession, writer: Writer, parallelism: int, vault: Vault | None = None) -> None:
        self.lake = lake
        self.vault = vault or Vault()
        self.session = session
        self._ticking = spark.for_ticks(session)
        self.writer = writer
        self.parallelism = parallelism
        self.boundary = threading.RLock()
        self.committed = threading.Condition()
        self.newest: Header = writer.newest
        self.catalog: Catalog = lake.catalog()
        self.graph = Graph()
        self.inbox = Inbox(lake, writer.epoch, self.newest.inbox)
        jvm: Any = session._jvm
        self._source = jvm.tailgate.sources.InboxSource  # reads the inbox
        self._source.advance(str(self.inbox.folder), self.inbox.newest)
        self._transacted = jvm.tailgate.sources.TransactedKafka
        self.pacing = Pacing(jvm.tailgate.state.Snapshots)
        self.circuits = Circuits(session)
        self._registry = Registry(self.vault)
        self.stalls: dict[str, Stall] = {}
        self.counters: dict[int, dict[str, int]] = {}
        self.ticks = 0
        # of the newest ticks, in ms, from the start of the batch to the durable entry
        self.durations: deque[float] = deque(maxlen=DURATIONS)
        # the sum of the input, by operator and partition (engine.plan.views.sharing)
        self.sums: dict[tuple[int, int], Sum | None] = {}
        self.failing = Failing(lake, self.catalog)
        self.failure: BaseException | None = None
        self._fatal: BaseException | None = None
        self.rebuild: Callable[[], None] | None = None  # restores lost state while no tick runs
        # stops the views that depend on a failed operator or relation
        self.isolate: Callable[[int, int, str], bool] | None = None
        self._circuit: Any = None
        self._sources: tuple[Source, ...] = ()
        self._readers: tuple[Reader, ...] = ()
        self._identities: dict[str, kafka.Identities] = {}  # by reader name
        self._running = False  # whether a tick of the current query may run
        self._wake = threading.Event()
        self._stopping = False
        self._due = NEVER  # the time in ms at which the newest tick wants the next one
        self._failures = 0
        self._suspect = (0, 0)  # the operator and the relation that failed in the last tick
        self._starts = 0

    # ---- the circuit -----------------------------------------------------------------------------

    def install(
        self,
        graph: Graph,
        sources: tuple[Source, ...],
        forgotten: tuple[int, ...] = (),
        change: Change | None = None,
        joining: Mapping[str, kafka.Offsets] | None = None,
        changes: Callable[[], Changes] = tuple,
        state: tuple[str, str] | None = None,
        anew: bool = False,
    ) -> Header:
        """Runs this graph from the next tick on, fed by these sources. Returns the newest entry.

        With `change`, the change of the catalog is appended to the log in the same step.

        `forgotten`: operators whose state will be removed. `joining`: start offsets of topics that
        no reader has read yet. `changes`: called while the boundary is held; returns the changes of
        relations in the entry. `state`: folder and ids of restored state. `anew`: restart the
        readers at the offsets of the entry.
        """
        after = self.catalog if change is None else self.catalog.apply(change)
        circuit = self.circuits.build(graph, forgotten, lambda said: self.opened(said, after))
        with self.boundary:
            header = self.newest
            if change is not None:
                wanted = {(reader_name(s), t) for s in sources for t in transactions.topics(s)}
                kept = {r: {t: at for t, at in topics.items() if (r, t) in wanted} for r, topics in header.offsets.items()}
                offsets = {r: topics for r, topics in merged(kept, joining or {}).items() if topics}
                extra = {**header.extra, "forgotten": list(forgotten)}
                fields: dict[str, Any] = {"offsets": offsets}
                if state is not None:
                    extra["state"], fields["state"] = state
                header = self.append(changes(), kind="catalog", catalog=change, extra=extra, **fields)
            with self.committed_change():
                self.catalog = after
                moved = anew or readers(self._live(sources), self.catalog) != self._readers
                self.graph, self._circuit, self._sources = graph, circuit, sources
                running = {o.node for o in graph.operators}
                self.sums = {key: sum for key, sum in self.sums.items() if key[0] in running}
                self._source.tables(str(self.inbox.folder), [s.channel for s in graph.sources if s.channel.startswith(TABLE)])
                if moved:
                    self._running = False
        if moved:
            self._wake.set()
        return header

    def history(
        self, channel: str, brokers: str, topic: str, said: Mapping[str, str], begin: Mapping[str, int], end: Mapping[str, int]
    ) -> Any:
        """Returns a tailgate.sources.TopicBackfill: the old records [begin, end) of each partition of a topic.

        They are decoded for a channel of the running circuit.
        """
        jvm: Any = self.session._jvm
        return jvm.tailgate.sources.TopicBackfill(self._circuit, channel, brokers, topic, begin, end, veiled(self.session, said))

    # ---- access to Kafka -------------------------------------------------------------------------

    def place(self, source: Source) -> tuple[str, str, dict[str, str]]:
        """Returns the brokers and topic of a source and its client settings (`lake.clients`).

        Raises 55000 if a secret cannot be decrypted.
        """
        return source.brokers, source.topic, self.opened(source.kafka)

    def opened(self, said: ConnectionSettings, catalog: Catalog | None = None) -> dict[str, str]:
        """Returns the settings of an item with its secrets decrypted."""
        return self.vault.opened(settings(said, catalog or self.catalog))

    def change(self, change: Change) -> None:
        """Changes the catalog before the first circuit runs."""
        with self.boundary:
            self.append(kind="catalog", catalog=change)
            with self.committed_change():
                self.catalog = self.catalog.apply(change)

    def append(self, changes: Changes = (), **fields: Any) -> Header:
        """Appends the next log entry and wakes the threads that wait for it.

        The caller holds the boundary.
        """
        fields.setdefault("time", max(time.time_ns() // 1_000_000, self.newest.time + 1))
        try:
            header = self.writer.append(changes=changes, **fields)
        except (Replaced, Uncertain) as error:
            self.end(error)
            raise
        with self.committed_change():
            if header.catalog is not None:
                self.failing.watch(header.catalog.put)
            self.failing.add(changes)
            with self.committed:
                self.newest = header
                self.committed.notify_all()
        return header

    @contextmanager
    def committed_change(self) -> Iterator[None]:
        """Guards code that updates memory after a log entry: any error in it ends the engine."""
        try:
            yield
        except Exception as error:
            self.end(error)
            raise CrashShutdown(
                "the engine ends because its memory no longer agrees with the log",
                detail=f"The statement was carried out. Then this failed: {error}",
                hint="The engine starts again from the log.",
            ) from error

    def enter(self, records: Iterable[Record]) -> int:
        """Writes records to the inbox, starts a tick and returns the number of the inbox entry."""
        try:
            number = self.inbox.write(records)
        except (Replaced, Uncertain) as error:
            self.end(error)
            raise
        self._source.advance(str(self.inbox.folder), number)
        return number

    def wait_inbox(self, number: int, alive: Callable[[], bool]) -> None:
        """Waits until the tick that read this inbox entry is in the log.

        Returns early if `alive` becomes false or the engine stops.
        """
        with self.committed:
            while self.newest.inbox < number and alive() and not self.stopping:
                self.committed.wait(1.0)

    def wait_newer(self, n: int, timeout: float) -> Header:
        """Waits for a log entry after `n`, at most `timeout` seconds. Returns the newest entry."""
        with self.committed:
            self.committed.wait_for(lambda: self.newest.n > n or self.stopping, timeout)
            return self.newest

    def figures(self) -> Statistics:
        """Returns the statistics of the operators: recent work, and rows of state."""
        return self.circuits.figures(self._state_path())

    def _state_path(self) -> str:
        """Returns the folder of the current state."""
        return str(self.lake.path / STATE / self.newest.extra.get("state", ""))

    # ---- a tick ----------------------------------------------------------------------------------

    def _tick(self, batch: Any, start: int) -> None:
        """Runs one batch. Never raises: `run` handles a failure."""
        self.pacing.wait(lambda: self._stopping or not self._running)
        with self.boundary:
            if not self._running or start != self._starts:
                # The query is about to end. The log does not know this batch, so the next query
                # reads it again.
                return
            try:
                began = time.time_ns() // 1_000_000
                number = batch.number()
                at = ends(self._checkpoint, number, self._readers, self.newest.offsets)
                crash.point("tick.begin")
                time_ms = max(began, self.newest.time + 1)
                result = ticked(batch.ticked(self._circuit, self._state_path(), time_ms, self.newest.state or "", self.parallelism))
                crash.point("state.committed")
                self._check_topics(at)
                changes: list[tuple[int, Any]] = [*result.changes]
                changes += written(self.inbox, self.newest.inbox, at.inbox, self.catalog)
                self._commit(began, time_ms, at, changes, result, number)
                self._failures, self._suspect = 0, (0, 0)
                crash.point("tick.end")
            except Exception as e:  # noqa: BLE001  # `run` looks for the source to blame
                self._running = False
                self.failure = e
                self._wake.set()

    def _check_topics(self, at: Ends) -> None:
        """Raises 55000 if a topic that the tick has read was deleted and created again.

        The check comes after the read, so no replacement can go unnoticed. The offsets alone do not
        show it: those of a new topic of the same name may be in the same range.
        """
        for reader in self._readers:
            before = self.newest.offsets.get(reader.name, {})
            read = [t for t in reader.topics if at.offsets[reader.name].get(t) != before.get(t)]
            now = self._identities[reader.name].of(read) if read else {}
            for topic, id in now.items():
                if (error := kafka.other(topic, id, self._topic_id(reader, topic))) is not None:
                    raise ObjectNotInPrerequisiteState(error)

    def _commit(self, began: int, time_ms: int, at: Ends, changes: list[tuple[int, Any]], result: Ticked, number: int) -> None:
        """Appends the log entry of a tick and updates memory."""
        before = self.newest.inbox
        gone = set(result.forgotten)
        extra = {**self.newest.extra, "parallelism": self.parallelism}
        extra["forgotten"] = [n for n in extra.get("forgotten", ()) if n not in gone]
        offsets = merged(self.newest.offsets, at.offsets)
        fields = {"offsets": offsets, "inbox": at.inbox, "state": result.state, "checkpoint": self._checkpoint.name, "batch": number}
        self.append(changes, kind="tick", time=time_ms, extra=extra, **fields)
        crash.point("entry.committed")
        with self.committed_change():
            self._committed(before, at, changes, result)
        self.ticks += 1
        self.durations.append(time.time_ns() / 1e6 - began)

    def _committed(self, before: int, at: Ends, changes: list[tuple[int, Any]], result: Ticked) -> None:
        """Updates memory and removes files after the log entry of a tick is durable."""
        self.sums.update(result.sums)
        self.pacing.lineage = result.lineage
        for reader in self._readers:
            if reader.transactions and (warning := self._transacted.warning(reader.name)) is not None:
                log.warning("%s: %s", reader.name, warning)
        for _, given in changes:
            if isinstance(given, Path):
                files.discard(given)  # the log has its own link to this file
        if result.due != self._due:
            self._due = result.due
            self._source.due(str(self.inbox.folder), result.due)
        self.inbox.remove(before, at.inbox)
        for name, count in result.counters.items():
            node, what = name.split(".")
            counts = self.counters.setdefault(int(node), {})
            counts[what] = max(counts.get(what, 0), count) if what == "last_message" else counts.get(what, 0) + count

    # ---- the query -------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs the query until `stop`.

        Restarts it after a recoverable failure and raises any other.
        """
        while not self._stopping:
            self._wake.clear()
            query = self._start()
            self._wake.wait(timeout=RETRY_S if self.stalls else None)
            while not self._wake.is_set():
                if self._answers_again():
                    break
                self._wake.wait(timeout=RETRY_S)
            self._end(query)
            if self._fatal is not None:
                raise self._fatal
            if self.failure is not None and not self._stopping:
                if self.rebuild is not None and _is(self.failure, "tailgate.state.StateLost"):
                    log.warning("state that the log names is missing or damaged: %s", self.failure)
                    self._until_rebuilt(self.rebuild)
                else:
                    self._blame(self.failure)
                self.failure = None

    def _until_rebuilt(self, rebuild: Callable[[], None]) -> None:
        """Calls `rebuild` until it succeeds or the engine stops."""
        while not self._stopping:
            try:
                rebuild()
                return
            except TailgateError as e:
                if self._fatal is not None:
                    raise
                log.warning("the state cannot be made again yet: %s", e.message)
                self._wake.clear()
                self._wake.wait(RETRY_S)

    def end(self, error: BaseException) -> None:
        """Ends the engine: `run` raises the error, and nothing more is committed."""
        if self._fatal is None:
            self._fatal = error
        self._running = False
        self._wake.set()
        with self.committed:
            self.committed.notify_all()

    def stop(self) -> None:
        """Stops the engine at the next boundary."""
        with self.boundary:
            self._stopping = True
            self._running = False
        self._wake.set()
        with self.committed:
            self.committed.notify_all()

    @property
    def stopping(self) -> bool:
        """Whether the engine was stopped or ends because of an error."""
        return self._stopping or self._fatal is not None

    def _live(self, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """Returns the sources that are neither stalled nor paused."""
        return tuple(s for s in sources if self.stall(s) is None and not s.paused)

    def stall(self, source: Source) -> Stall | None:
        """Returns why a source is not read, or None if it is read.

        A source with a transaction topic is also stalled while another topic of its reader is.
        """
        reader = reader_name(source)
        if (own := self.stalls.get(source.channel) or self.stalls.get(reader)) is not None or transactions.group(source) is None:
            return own
        together = [s for s in self._sources if reader_name(s) == reader and not s.paused]
        found = (self.stalls.get(f"{reader}/{t}") for s in together for t in transactions.topics(s))
        return next((s for s in found if s is not None), None)

    def resume(self, channels: Iterable[str]) -> None:
        """Ends the stalls of these channels, also those for which a retry alone does not help."""
        for channel in channels:
            self.stalls.pop(channel, None)

    def _start(self) -> Any:
        """Starts the streaming query. Readers that cannot be reached are stalled."""
        with self.boundary:
            self.writer.check()
            self._starts += 1
            start = self._starts
            wanted = readers(self._live(self._sources), self.catalog)
            offsets: dict[str, kafka.Offsets] = {}
            clients: dict[str, dict[str, str]] = {}
            self._identities = {}
            for reader in wanted:
                try:
                    said = self.vault.opened(reader.settings)
                    clients[reader.name] = veiled(self.session, said)
                    self._identities[reader.name] = kafka.Identities(reader.brokers, said)
                    offsets[reader.name] = self._begin(reader)
                except TailgateError as e:
                    self._stall(reader.name, e.message)
            wanted = tuple(replace(r, topics=tuple(t for t in r.topics if t in offsets[r.name])) for r in wanted if r.name in offsets)
            self._readers = tuple(r for r in wanted if r.topics and (not r.transactions or len(r.topics) == len(offsets[r.name])))
            self._checkpoint = self.lake.path / "checkpoint" / f"{self.writer.epoch}.{start}"
            keep = partial(self.circuits.access, opened=self.opened)
            frame = inputs.stream(self._ticking, self.inbox.folder, self.newest.inbox, self._readers, offsets, clients, keep)
            with self.committed:
                self.newest = self.newest.with_offsets(merged(self.newest.offsets, offsets))
            self._running = True
        # left by failed ticks
        files.discard_folder(self.lake.path / STATE / self.newest.extra.get("state", "") / RESULTS)
        for old in self._checkpoint.parent.glob("*.*"):
            epoch, _, earlier = old.name.partition(".")
            if (int(epoch), int(earlier)) < (self.writer.epoch, start):
                files.discard_folder(old)
        writer = frame.writeStream.option("checkpointLocation", str(self._checkpoint))
        batches = Batches(self.session, writer, lambda batch: self._tick(batch, start))
        try:
            query = writer.start()
        except BaseException:
            batches.end()
            raise
        threading.Thread(target=self._watch, args=(query, batches, start), name="query", daemon=True).start()
        return query

    def _begin(self, reader: Reader) -> kafka.Offsets:
        """Returns the offsets at which a reader begins.

        They are those of the log. A partition that the log does not know begins at its first
        record.
        """
        there = self._look(reader)
        return {
            topic: {p: self._known(reader, topic, found).get(p, low) for p, (low, _) in found.bounds.items()}
            for topic, found in there.items()
            if f"{reader.name}/{topic}" not in self.stalls
        }

    def _known(self, reader: Reader, topic: str, found: kafka.Topic) -> Mapping[str, int]:
        """Returns the log's offsets of a topic.

        For a transaction topic they are moved to the first record that still exists: lost records
        of that topic are not needed.
        """
        known: Mapping[str, int] = self.newest.offsets.get(reader.name, {}).get(topic, {})
        if topic != transactions.topic(reader.transactions):
            return known
        return {p: max(at, found.bounds.get(p, (0, 0))[0]) for p, at in known.items()}

    def _look(self, reader: Reader) -> dict[str, kafka.Topic]:
        """Returns the topics of a reader and stalls each topic that cannot be read any further.

        Raises 08006 if the broker does not answer.
        """
        there = kafka.look(reader.brokers, list(reader.topics), self.vault.opened(reader.settings))
        for topic in reader.topics:
            error = self._fault(reader, topic, there.get(topic))
            if error is not None:
                self._stall(f"{reader.name}/{topic}", error)
        return there

    def _fault(self, reader: Reader, topic: str, found: kafka.Topic | None) -> str | None:
        """Returns why the reader cannot continue with a topic, or None if it can."""
        return kafka.fault(topic, found, self._topic_id(reader, topic), {} if found is None else self._known(reader, topic, found))

    def _topic_id(self, reader: Reader, topic: str) -> str | None:
        """Returns Kafka's id of a topic as recorded when its sources were created, if known.

        Also handles the transaction topic of the reader.
        """
        of = [s for s in self._sources if reader_name(s) == reader.name]
        if topic == transactions.topic(reader.transactions):
            return next((s.transactions.topic_id for s in of if s.transactions is not None), None)
        return next((s.topic_id for s in of if s.topic == topic), None)

    def _watch(self, query: Any, batches: Batches, start: int) -> None:
        """Waits for the end of a query and wakes `run`."""
        try:
            query.awaitTermination()
        except Exception as e:  # noqa: BLE001  # any error that ended the query
            if start == self._starts and self._running:
                self.failure = e
        batches.end()
        if start == self._starts:
            self._wake.set()

    def _end(self, query: Any) -> None:
        """Stops a query. No tick runs afterwards."""
        with self.boundary:
            self._running = False
        try:
            query.stop()
        except Exception as e:  # noqa: BLE001  # the query is gone in any case
            log.warning("stopping the query: %s", e)

    # ---- stalls and failures ---------------------------------------------------------------------

    def _stall(self, name: str, error: str, *, lasting: bool = False) -> None:
        """Stalls a reader or channel, or updates the error of its stall."""
        if name not in self.stalls:
            log.warning("%s is stalled: %s", name, error)
        self.stalls[name] = Stall(error, lasting)

    def _blame(self, failure: BaseException) -> None:
        """Stalls the source that made a tick fail, or stops the views of an operator that failed.

        Raises the failure if nothing can be blamed for FAILURES_MAX consecutive ticks. Waits while
        the disk is full.
        """
        if _disk_full(failure):
            log.error("a tick failed because the disk is full; it is tried again every %.0f s", RETRY_S, exc_info=failure)
            self._wake.clear()
            self._wake.wait(RETRY_S)
            return
        thrown = _caused(failure, "tailgate.sources.SourceStalled")
        if thrown is not None:
            self._stall(str(thrown.channel()), str(thrown.getMessage()), lasting=bool(thrown.lasting()))
            return
        if (thrown := _caused(failure, "tailgate.circuit.OperatorFailed")) is not None and self._isolated(thrown, failure):
            return
        stalled = set(self.stalls)
        for reader in self._readers:
            try:
                self._look(reader)
            except TailgateError as e:
                self._stall(reader.name, e.message)
        if set(self.stalls) != stalled:
            return
        self._failures += 1
        log.error("a tick failed", exc_info=failure)
        if self._failures >= FAILURES_MAX:
            raise failure

    def _isolated(self, thrown: Any, failure: BaseException) -> bool:
        """Handles the failure of an operator. Returns whether the query can be started again.

        The first time, the tick is only repeated, in case the cause was a fault of the machine. The
        second time, the views that depend on the operator are stopped.
        """
        failed = int(thrown.node()), int(thrown.relation())
        if failed != self._suspect:
            log.error("operator %d failed; the tick runs once more", failed[0], exc_info=failure)
            self._suspect = failed
            return True
        try:
            return self.isolate is not None and self.isolate(*failed, str(thrown.getMessage()))
        except TailgateError as e:
            if self._fatal is not None:
                raise
            log.warning("the views that depend on operator %d cannot be stopped yet: %s", failed[0], e.message)
            return False

    def stall_source(self, source: Source, error: str) -> None:
        """Stalls a source until RESUME SOURCE."""
        self._stall(source.channel, error, lasting=True)

    def _answers_again(self) -> bool:
        """Ends the stall of one reader or topic that works again. Returns whether there was one."""
        for name, stall in list(self.stalls.items()):
            if stall.lasting:
                continue
            for reader in readers(self._sources, self.catalog):
                if name == reader.name or name.startswith(reader.name + "/"):
                    try:
                        there = kafka.look(reader.brokers, list(reader.topics), self.vault.opened(reader.settings))
                        topic = name[len(reader.name) + 1 :]
                        if topic and (error := self._fault(reader, topic, there.get(topic))) is not None:
                            stall.error = error
                            continue
                        of = (s for s in self._sources if reader_name(s) == reader.name and topic in transactions.topics(s))
                        for url, said in _registries(of, self.catalog):
                            self._registry.latest(url, PROBE_SUBJECT, said)
                    except TailgateError as e:
                        stall.error = e.message
                        continue
                    del self.stalls[name]
                    return True
        return False


def _is(failure: BaseException, java: str) -> bool:
    """Returns whether a failure is an exception of this Java class."""
    thrown = getattr(failure, "java_exception", None)
    return thrown is not None and thrown.getClass().getName() == java


def _caused(failure: BaseException, java: str) -> Any:
    """Returns the exception of this Java class among the causes of a failure, or None."""
    thrown = getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)
    while thrown is not None and thrown.getClass().getName() != java:
        thrown = thrown.getCause()
    return thrown


def _disk_full(failure: BaseException) -> bool:
    """Returns whether there was no space for a file, written by Python or by Spark."""
    if isinstance(failure, OSError):
        return failure.errno in DISK_FULL
    thrown = getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)
    while thrown is not None:
        if any(os.strerror(number) in str(thrown.getMessage()) for number in DISK_FULL):
            return True
        thrown = thrown.getCause()
    return False


def _registries(sources: Iterable[Source], catalog: Catalog) -> set[tuple[str, Settings]]:
    """Returns the URL and access settings of the schema registries that these sources use."""
    formats = [f for s in sources for f in (s.key_format, s.value_format, *transactions.formats(s))]
    return {(f.registry, settings(f.access, catalog)) for f in formats if isinstance(f, Avro) and f.registry}


def merged(old: Mapping[str, kafka.Offsets], new: Mapping[str, kafka.Offsets]) -> dict[str, kafka.Offsets]:
    """Merges offsets by reader and topic; the new ones win.

    A topic that is absent from `new`, because it is stalled, keeps its old offsets.
    """
    return {r: {**old.get(r, {}), **new.get(r, {})} for r in {*old, *new}}
