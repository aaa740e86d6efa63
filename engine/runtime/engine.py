"""The engine: one Spark query whose batches are the ticks, and what changes it while it runs.

    statements ──┐                         ┌── tick (foreachBatch): circuit ──► log entry
    fills ───────┼── boundary (one lock) ──┤
    stop ────────┘                         └── restart of the query when readers join, leave or fail

`boundary` is held by a tick from start to end and by whoever appends an entry or changes the circuit, so all of that happens
between two ticks. A tick that fails before its entry is in the log has left nothing: state that no entry names is garbage, and the
query starts again from the log's newest entry. If anything fails after that, memory and log no longer agree: the engine ends
(`committed_change`), and the next one starts from the log.
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

from engine.ddl.registry import ANSWERS, Registry
from engine.plan.explain import Figures
from engine.plan.graph import Graph
from engine.plan.sharing import Sum
from engine.runtime import kafka, transactions
from engine.runtime import readers as inputs
from engine.runtime import session as spark
from engine.runtime.batches import Batches
from engine.runtime.circuits import Circuits
from engine.runtime.failing import Failing
from engine.runtime.pacing import Pacing
from engine.runtime.readers import Ends, Reader, ends, reader_name, readers, veiled
from engine.runtime.ticked import Ticked, ticked
from engine.runtime.writes import written
from lake import Lake, crash, files
from lake.catalog import Catalog, Change, Item
from lake.entry import Header
from lake.errors import CrashShutdown, ObjectNotInPrerequisiteState, Replaced, TailgateError, Uncertain
from lake.inbox import TABLE, Inbox, Record
from lake.secrets import Settings, Vault, settings
from lake.writing import Writer

log = logging.getLogger("tailgate.engine")

Changes = Sequence[tuple[int, bytes | memoryview | pa.Table]]

DURATIONS = 200
RESULTS = "results"  # folder below the state's: changes too large to be sent to the driver
RETRY_S = 2.0  # how often a stalled source is tried again
STATE = "state"  # the folder of the lake with Spark's state
NEVER = (1 << 63) - 1  # ms
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
FAILURES_MAX = 5  # ticks in a row that may fail without a source to blame; then the engine ends with the error


@dataclass
class Stall:
    """A reader or a source that is left out until what it needs answers again."""

    error: str
    lasting: bool = False  # until RESUME SOURCE: trying again does not help
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
        self._source = jvm.tailgate.InboxSource  # the inbox's reading end
        self._source.advance(str(self.inbox.folder), self.inbox.newest)
        self._transacted = jvm.tailgate.TransactedKafka
        self.pacing = Pacing(jvm.tailgate.Snapshots)
        self.circuits = Circuits(session)
        self._registry = Registry(self.vault)
        self.stalls: dict[str, Stall] = {}
        self.counters: dict[int, dict[str, int]] = {}
        self.ticks = 0
        self.durations: deque[float] = deque(maxlen=DURATIONS)  # of the newest ticks, in ms, from the batch's start to the durable entry
        self.sums: dict[tuple[int, int], Sum | None] = {}  # by operator and partition, what its input adds up to (engine.plan.sharing)
        self.failing = Failing(lake, self.catalog)
        self.failure: BaseException | None = None
        self._fatal: BaseException | None = None
        self.rebuild: Callable[[], None] | None = None  # makes lost state again, while no tick runs
        self.isolate: Callable[[int, int, str], bool] | None = None  # stops what depends on an operator or relation that failed
        self._circuit: Any = None
        self._sources: tuple[Item, ...] = ()
        self._readers: tuple[Reader, ...] = ()
        self._identities: dict[str, kafka.Identities] = {}  # by reader
        self._running = False  # a tick of the current query may run
        self._wake = threading.Event()
        self._stopping = False
        self._due = NEVER  # when the newest tick wants the next one, by the clock
        self._failures = 0
        self._suspect = (0, 0)  # the operator and the relation that failed in the last tick
        self._starts = 0

    # ---- what is run -----------------------------------------------------------------------------------------------------

    def install(
        self,
        graph: Graph,
        sources: tuple[Item, ...],
        forgotten: tuple[int, ...] = (),
        change: Change | None = None,
        joining: Mapping[str, kafka.Offsets] | None = None,
        changes: Callable[[], Changes] = tuple,
        state: tuple[str, str] | None = None,
        anew: bool = False,
    ) -> Header:
        """From the next tick on this graph runs, fed by these sources; with `change`, in one step with its entry of the log.

        `joining`: where topics begin to be read that no reader has read. `forgotten`: operators whose state is to be removed.
        `changes`: asked inside the boundary for what that entry changes in relations. `state`: folder and ids of state that was made again.
        `anew`: the readers begin again, at the offsets of the entry.
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
        """Old records, [begin, end) of each partition, decoded for a channel of the circuit that runs: tailgate.History."""
        jvm: Any = self.session._jvm
        return jvm.tailgate.History(self._circuit, channel, brokers, topic, begin, end, veiled(self.session, said))

    # ---- how Kafka is reached ----------------------------------------------------------------------------------------------

    def place(self, source: Item) -> tuple[str, str, dict[str, str]]:
        """Brokers, topic, and how they are reached (`lake.clients`). Raises 55000 for secrets that cannot be opened."""
        return source.options["brokers"], source.options["topic"], self.opened(source.options.get("kafka", {}))

    def opened(self, said: Mapping[str, Any], catalog: Catalog | None = None) -> dict[str, str]:
        """Settings of an item, in clear."""
        return self.vault.opened(settings(said, catalog or self.catalog))

    def change(self, change: Change) -> None:
        """A change of the catalog before the first circuit runs."""
        with self.boundary:
            self.append(kind="catalog", catalog=change)
            with self.committed_change():
                self.catalog = self.catalog.apply(change)

    def append(self, changes: Changes = (), **fields: Any) -> Header:
        """The next entry; call it inside the boundary."""
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
        """For all that follows an entry of the log and brings memory to it. If any of it fails, the engine ends."""
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
        """Adds an entry to the inbox and starts a tick; the entry's number."""
        try:
            number = self.inbox.write(records)
        except (Replaced, Uncertain) as error:
            self.end(error)
            raise
        self._source.advance(str(self.inbox.folder), number)
        return number

    def wait_inbox(self, number: int, alive: Callable[[], bool]) -> None:
        """Until the tick that read this entry of the inbox is in the log."""
        with self.committed:
            while self.newest.inbox < number and alive() and not self.stopping:
                self.committed.wait(1.0)

    def wait_newer(self, n: int, timeout: float) -> Header:
        with self.committed:
            self.committed.wait_for(lambda: self.newest.n > n or self.stopping, timeout)
            return self.newest

    def figures(self) -> Figures:
        """What the operators have done lately, and hold."""
        return self.circuits.figures(self._state_path())

    def _state_path(self) -> str:
        return str(self.lake.path / STATE / self.newest.extra.get("state", ""))

    # ---- a tick ----------------------------------------------------------------------------------------------------------

    def _tick(self, batch: Any, start: int) -> None:
        """One batch. Never raises: `run` handles a failure."""
        self.pacing.wait(lambda: self._stopping or not self._running)
        with self.boundary:
            if not self._running or start != self._starts:
                return  # the query is to end; the log does not know this batch, so the next query reads it again
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
            except Exception as e:  # noqa: BLE001  # told to `run`, which looks for the source to blame
                self._running = False
                self.failure = e
                self._wake.set()

    def _check_topics(self, at: Ends) -> None:
        """What the tick has read is of the topics that the sources were made of: asked after it was read, so none can have come between.

        A name may mean another topic from one moment to the next, and its offsets look like those of the old one when there are enough.
        """
        for reader in self._readers:
            before = self.newest.offsets.get(reader.name, {})
            read = [t for t in reader.topics if at.offsets[reader.name].get(t) != before.get(t)]
            now = self._identities[reader.name].of(read) if read else {}
            for topic, id in now.items():
                if (error := kafka.other(topic, id, self._topic_id(reader, topic))) is not None:
                    raise ObjectNotInPrerequisiteState(error)

    def _commit(self, began: int, time_ms: int, at: Ends, changes: list[tuple[int, Any]], result: Ticked, number: int) -> None:
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
        """What follows a tick's entry."""
        self.sums.update(result.sums)
        self.pacing.lineage = result.lineage
        for reader in self._readers:
            if reader.transactions and (warning := self._transacted.warning(reader.name)) is not None:
                log.warning("%s: %s", reader.name, warning)
        for _, given in changes:
            if isinstance(given, Path):
                files.discard(given)  # the entry has a name of its own for it
        if result.due != self._due:
            self._due = result.due
            self._source.due(str(self.inbox.folder), result.due)
        self.inbox.remove(before, at.inbox)
        for name, count in result.counters.items():
            node, what = name.split(".")
            counts = self.counters.setdefault(int(node), {})
            counts[what] = max(counts.get(what, 0), count) if what == "last_message" else counts.get(what, 0) + count

    # ---- the query -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs the query until `stop`; raises what the engine cannot go on after."""
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
                if self.rebuild is not None and _is(self.failure, "tailgate.StateLost"):
                    log.warning("state that the log names is missing or damaged: %s", self.failure)
                    self._until_rebuilt(self.rebuild)
                else:
                    self._blame(self.failure)
                self.failure = None

    def _until_rebuilt(self, rebuild: Callable[[], None]) -> None:
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
        """The engine cannot go on: `run` raises the error, and nothing is committed any more."""
        if self._fatal is None:
            self._fatal = error
        self._running = False
        self._wake.set()
        with self.committed:
            self.committed.notify_all()

    def stop(self) -> None:
        """At the next boundary."""
        with self.boundary:
            self._stopping = True
            self._running = False
        self._wake.set()
        with self.committed:
            self.committed.notify_all()

    @property
    def stopping(self) -> bool:
        """Whether it was stopped, or ends because of an error."""
        return self._stopping or self._fatal is not None

    def _live(self, sources: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(s for s in sources if self.stall(s) is None and not s.options.get("paused"))

    def stall(self, source: Item) -> Stall | None:
        """Why a source is not read: what it needs itself, or what one of those does with whose transactions its own are kept whole."""
        reader = reader_name(source)
        if (own := self.stalls.get(source.options["channel"]) or self.stalls.get(reader)) is not None or transactions.group(source) is None:
            return own
        together = [s for s in self._sources if reader_name(s) == reader and not s.options.get("paused")]
        found = (self.stalls.get(f"{reader}/{t}") for s in together for t in transactions.topics(s))
        return next((s for s in found if s is not None), None)

    def resume(self, channels: Iterable[str]) -> None:
        """What had failed for good is tried again."""
        for channel in channels:
            self.stalls.pop(channel, None)

    def _start(self) -> Any:
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
        files.discard_folder(self.lake.path / STATE / self.newest.extra.get("state", "") / RESULTS)  # of ticks that failed
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
        """Where a reader goes on: the log's offsets; partitions that the log does not know begin at their first record."""
        there = self._look(reader)
        return {
            topic: {p: self._known(reader, topic, found).get(p, low) for p, (low, _) in found.bounds.items()}
            for topic, found in there.items()
            if f"{reader.name}/{topic}" not in self.stalls
        }

    def _known(self, reader: Reader, topic: str, found: kafka.Topic) -> Mapping[str, int]:
        """The log's offsets of a topic. What a transaction topic has lost is not needed."""
        known: Mapping[str, int] = self.newest.offsets.get(reader.name, {}).get(topic, {})
        if topic != transactions.topic(reader.transactions):
            return known
        return {p: max(at, found.bounds.get(p, (0, 0))[0]) for p, at in known.items()}

    def _look(self, reader: Reader) -> dict[str, kafka.Topic]:
        """A reader's topics; one that cannot be read on is stalled, alone. Raises 08006 if the broker does not answer."""
        there = kafka.look(reader.brokers, list(reader.topics), self.vault.opened(reader.settings))
        for topic in reader.topics:
            error = self._fault(reader, topic, there.get(topic))
            if error is not None:
                self._stall(f"{reader.name}/{topic}", error)
        return there

    def _fault(self, reader: Reader, topic: str, found: kafka.Topic | None) -> str | None:
        return kafka.fault(topic, found, self._topic_id(reader, topic), {} if found is None else self._known(reader, topic, found))

    def _topic_id(self, reader: Reader, topic: str) -> str | None:
        """Of the topic that the sources of a reader were made of; of the topic of their transactions as well."""
        of = [s for s in self._sources if reader_name(s) == reader.name]
        if topic == transactions.topic(reader.transactions):
            return next((said["topic_id"] for s in of if (said := transactions.of(s)) is not None), None)
        return next((s.options.get("topic_id") for s in of if s.options["topic"] == topic), None)

    def _watch(self, query: Any, batches: Batches, start: int) -> None:
        try:
            query.awaitTermination()
        except Exception as e:  # noqa: BLE001  # whatever ended the query
            if start == self._starts and self._running:
                self.failure = e
        batches.end()
        if start == self._starts:
            self._wake.set()

    def _end(self, query: Any) -> None:
        with self.boundary:
            self._running = False
        try:
            query.stop()
        except Exception as e:  # noqa: BLE001  # it is gone either way
            log.warning("stopping the query: %s", e)

    # ---- who stalls ------------------------------------------------------------------------------------------------------

    def _stall(self, name: str, error: str, *, lasting: bool = False) -> None:
        if name not in self.stalls:
            log.warning("%s is stalled: %s", name, error)
        self.stalls[name] = Stall(error, lasting)

    def _blame(self, failure: BaseException) -> None:
        """Marks what made a tick fail as stalled; raises the failure if nothing is to blame too often."""
        if _disk_full(failure):
            log.error("a tick failed because the disk is full; it is tried again every %.0f s", RETRY_S, exc_info=failure)
            self._wake.clear()
            self._wake.wait(RETRY_S)
            return
        thrown = _caused(failure, "tailgate.SourceStalled")
        if thrown is not None:
            self._stall(str(thrown.channel()), str(thrown.getMessage()), lasting=bool(thrown.lasting()))
            return
        if (thrown := _caused(failure, "tailgate.OperatorFailed")) is not None and self._isolated(thrown, failure):
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
        """Whether the failure of an operator was dealt with. The first time the tick runs once more, in case the machine was to blame."""
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

    def stall_source(self, source: Item, error: str) -> None:
        """Leaves a source out until RESUME SOURCE."""
        self._stall(source.options["channel"], error, lasting=True)

    def _answers_again(self) -> bool:
        """Whether something stalled can go on; it is then no longer stalled."""
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
                            self._registry.latest(url, ANSWERS, said)
                    except TailgateError as e:
                        stall.error = e.message
                        continue
                    del self.stalls[name]
                    return True
        return False


def _is(failure: BaseException, java: str) -> bool:
    """Whether a class of the Java library was thrown."""
    thrown = getattr(failure, "java_exception", None)
    return thrown is not None and thrown.getClass().getName() == java


def _caused(failure: BaseException, java: str) -> Any:
    """What a class of the Java library threw, if that is at the bottom of a failure."""
    thrown = getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)
    while thrown is not None and thrown.getClass().getName() != java:
        thrown = thrown.getCause()
    return thrown


def _disk_full(failure: BaseException) -> bool:
    """Whether there was no space for a file, of ours or of Spark's."""
    if isinstance(failure, OSError):
        return failure.errno in DISK_FULL
    thrown = getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)
    while thrown is not None:
        if any(os.strerror(number) in str(thrown.getMessage()) for number in DISK_FULL):
            return True
        thrown = thrown.getCause()
    return False


def _registries(sources: Iterable[Item], catalog: Catalog) -> set[tuple[str, Settings]]:
    formats: list[Mapping[str, Any]] = []
    for s in sources:
        formats += [*(s.options.get(part) or {} for part in ("key_format", "value_format")), *transactions.formats(s)]
    return {(str(f["registry"]), settings(f.get("access", {}), catalog)) for f in formats if f.get("registry")}


def merged(old: Mapping[str, kafka.Offsets], new: Mapping[str, kafka.Offsets]) -> dict[str, kafka.Offsets]:
    """Offsets by reader and topic: the new ones where there are any. A topic that is left out while it is stalled keeps its own."""
    return {r: {**old.get(r, {}), **new.get(r, {})} for r in {*old, *new}}
