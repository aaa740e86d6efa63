"""The engine: a circuit of operators, the inputs of its ticks, and the log that the ticks write.

statements ──┐
fills ───────┼── boundary (one lock) ── TickRunner: one tick after the other ──► log entry
inputs ──────┘
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.circuit.single_records import single_records
from tailgate.engine.plan.explain import Statistics
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka import transactions
from tailgate.engine.runtime.kafka.readers import merged, reader_name, veiled
from tailgate.engine.runtime.spark.circuits import Circuits
from tailgate.engine.runtime.spark.session import is_local
from tailgate.engine.runtime.state.files import in_bucket
from tailgate.engine.runtime.ticks.engine_log import Changes, EngineLog
from tailgate.engine.runtime.ticks.inputs import Inputs
from tailgate.engine.runtime.ticks.source_health import SourceHealth
from tailgate.engine.runtime.ticks.table_writes import PendingEntry, TableWrites
from tailgate.engine.runtime.ticks.tick_runner import TickRunner
from tailgate.lake.catalog import Catalog, Change, Sink, Source
from tailgate.lake.catalog.formats import ConnectionSettings
from tailgate.lake.catalog.secrets import Vault, settings
from tailgate.lake.errors import Replaced, TailgateError, Uncertain
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.log.entry import Header
from tailgate.lake.log.state_files import STATE
from tailgate.lake.writer.inbox import TABLE, UNCOMMITTED, Inbox, Record
from tailgate.lake.writer.log_writer import Writer

log = logging.getLogger("tailgate.engine")

CONFIRM_S = 5.0  # that an entry of the inbox waits for its tick in a bucket; then the log is looked at
IDLE_S = 60.0  # limit of a wait for an entry of the log


@dataclass(frozen=True)
class CatalogEntry:
    """The log entry of a change of the catalog, with which a new graph takes effect.

    `joining`: start offsets of topics that no reader has read yet. `changes`: called while the boundary
    is held, with the changes of the tick that the entry commits, if any; returns the changes of
    relations in the entry. `state`: folder and ids of restored state. `restart`: names of readers that
    continue at the offsets of the entry. `check`: called just before the entry is appended; if it
    raises, nothing changes. `written`: rows of existing tables, which a tick reads.
    """

    change: Change
    joining: Mapping[str, kafka.Offsets]
    changes: Callable[[Changes], Changes]
    state: tuple[str, str] | None = None
    restart: Collection[str] = ()
    check: Callable[[], None] = lambda: None
    written: TableWrites | None = None


class Engine(EngineLog):
    """The state of the running engine; `run` runs ticks until `stop`."""

    def __init__(
        self,
        lake: Lake,
        session: SparkSession,
        writer: Writer,
        parallelism: int,
        vault: Vault | None = None,
        circuits: Circuits | None = None,
    ) -> None:
        """Creates an engine that runs nothing yet. `circuits`: of an engine that stood by, with its compiled catalog."""
        super().__init__(lake, writer)
        self.vault = vault or Vault()
        self.session = session
        self.parallelism = parallelism
        self.is_local = is_local(session)
        self.graph = Graph()
        self.inbox = Inbox(lake, writer.epoch, self.newest.inbox)
        jvm: Any = session._jvm
        self._source = jvm.tailgate.sources.InboxSource  # reads the inbox
        self._source.advance(self.inbox.location, self.inbox.newest)
        self.circuits = circuits or Circuits(session)
        self.health = SourceHealth(self, self.vault)
        self.inputs = Inputs(self, self.health, session, self.vault, self.circuits, self.opened)
        self.runner = TickRunner(self, self.inputs, self.health, self.inbox, session, parallelism)

    def run(self) -> None:
        """Runs ticks until `stop`. Raises the error that ends the engine."""
        self.lake.local.discard_folder("checkpoint")  # written by earlier versions
        self.lake.local.discard_unfinished(STATE)  # an engine was killed while it wrote a snapshot, which has hundreds of MB
        threading.Thread(target=self._follow_log, name="follow-log", daemon=True).start()
        self.runner.run()

    # ---- the circuit -----------------------------------------------------------------------------

    def install(
        self,
        graph: Graph,
        sources: tuple[Source, ...],
        forgotten: tuple[int, ...] = (),
        entry: CatalogEntry | None = None,
    ) -> Header:
        """Runs this graph from the next tick on, fed by these sources. Returns the newest entry.

        `forgotten`: operators whose state will be removed. `entry` is appended to the log in the same
        step.
        """
        after = self.catalog if entry is None else self.catalog.apply(entry.change)
        running = self.runner.circuit if entry is None or entry.state is None else None
        circuit = self.circuits.build(graph, forgotten, lambda access: self.opened(access, after), running)
        self.circuits.warm(circuit, self.parallelism)

        def switch() -> None:
            if entry is not None:
                self.runner.dropped([self.catalog[id] for id in entry.change.drop if id in self.catalog.items])
            self.catalog = after
            self.graph, self.runner.circuit, self.health.sources = graph, circuit, sources
            running = {o.node for o in graph.operators}
            self.runner.sums = {key: sum for key, sum in self.runner.sums.items() if key[0] in running}
            self._source.tables(self.inbox.location, [s.channel for s in graph.sources if s.channel.startswith(TABLE)])
            if self.is_local and self.parallelism == 1:  # otherwise each tick is a job
                self.runner.single(single_records(graph))
            self.inputs.update(() if entry is None else entry.restart)

        with self.boundary:
            if entry is not None:
                entry.check()
                if entry.written is not None:
                    pending = self._pend(entry, entry.written, partial(_fields, entry, sources, forgotten), switch)
                else:
                    header = self.newest
                    fields = _fields(entry, sources, forgotten, header.offsets, header.extra, ())
                    self.append(fields.pop("changes"), **fields)
            if entry is None or entry.written is None:
                with self.committed_change():
                    switch()
                return self.newest
        return pending.wait(self)

    def _pend(
        self,
        entry: CatalogEntry,
        written: TableWrites,
        fields: Callable[[Mapping[str, Any], Mapping[str, Any], Changes], dict[str, Any]],
        switch: Callable[[], None],
    ) -> PendingEntry:
        """Puts rows into the inbox, for the next tick to commit them with the change of the catalog. The caller holds the boundary."""

        def durable(number: int) -> None:
            written.entered(number)
            self.runner.pending = PendingEntry(number, written.rows, fields, switch)

        self.enter([Record(UNCOMMITTED, b"", None), *written.records], durable)
        crash.point("block.entered")
        assert self.runner.pending is not None
        return self.runner.pending

    def history(
        self, channel: str, brokers: str, topic: str, access: Mapping[str, str], begin: Mapping[str, int], end: Mapping[str, int]
    ) -> Any:
        """Returns a tailgate.circuit.TopicBackfill: the old records [begin, end) of each partition of a topic.

        They are decoded for a channel of the running circuit: here if all tasks run in this JVM, otherwise by tasks.
        """
        jvm: Any = self.session._jvm
        clients = veiled(self.session, access)
        return jvm.tailgate.circuit.TopicBackfill(self.runner.circuit, channel, brokers, topic, begin, end, clients, self.is_local)

    # ---- access to Kafka -------------------------------------------------------------------------

    def place(self, item: Source | Sink) -> tuple[str, str, dict[str, str]]:
        """Returns the brokers and topic of a source or sink and its client settings (`lake.clients`).

        Raises 55000 if a secret cannot be decrypted.
        """
        return item.brokers, item.topic, self.opened(item.kafka)

    def opened(self, access: ConnectionSettings, catalog: Catalog | None = None) -> dict[str, str]:
        """Returns the settings of an item with its secrets decrypted."""
        return self.vault.opened(settings(access, catalog or self.catalog))

    # ---- the inbox -------------------------------------------------------------------------------

    def enter(self, records: Iterable[Record], durable: Callable[[int], None] = lambda number: None) -> int:
        """Writes records to the inbox, starts a tick and returns the number of the inbox entry.

        Calls `durable` with the number before anything can fail after the write, and before a tick can
        read the entry or another one that follows it. If the tick cannot be started, the engine ends: the
        next engine reads the entry.
        """

        def guarded(number: int) -> None:
            with self.committed_change():
                durable(number)

        try:
            number = self.inbox.write(records, guarded)
        except (Replaced, Uncertain) as error:
            self.end(error)
            raise
        except TailgateError:
            self._advance(self.inbox.newest)  # the write may have left an entry without records
            raise
        self._advance(number)
        return number

    def _follow_log(self) -> None:
        """Removes entries of the inbox after their ticks, and writes the copy of the catalog after its changes, until the engine stops.

        No tick and no statement waits for this work: on a busy disk, or in a bucket, it takes long.
        """
        n, removed, copied = self.newest.n, self.inbox.consumed, self.newest.catalog_version
        while not self.stopping:
            newest = self.wait_newer(n, IDLE_S)
            self.inbox.remove(removed, newest.inbox)
            if newest.catalog_version != copied:
                self.writer.keep_catalog()  # a sweep repeats it if it fails
            n, removed, copied = newest.n, newest.inbox, newest.catalog_version

    def confirm(self, number: int) -> None:
        """Returns when no later engine can miss an entry of the inbox: its tick is in the log, or the log has no later epoch.

        In a bucket, a look at the log is two requests, so the tick is awaited first. Raises `Replaced` if another engine has begun.
        """
        deadline = time.monotonic() + (CONFIRM_S if in_bucket(self.lake) else 0.0)
        self.wait_inbox(number, lambda: time.monotonic() < deadline)
        if self.newest.inbox >= number:
            return
        try:
            self.inbox.check()
        except OSError as error:
            self.end(failure := Uncertain(f"could not read the log: {error.strerror}"))
            raise failure from error
        except Replaced as error:
            self.end(error)
            raise

    def _advance(self, number: int) -> None:
        """Lets ticks read the inbox up to an entry."""
        with self.committed_change():
            try:
                self._source.advance(self.inbox.location, number)
            except Exception:
                if not self.stopping:  # otherwise the JVM has ended as it should, and the next engine reads the entry
                    raise

    # ---- sources and statistics ------------------------------------------------------------------

    def figures(self) -> Statistics:
        """Returns the statistics of the operators: recent work, and rows of state."""
        return self.circuits.figures(self.state_path, list(self.runner.durations), self.parallelism)

    def stall_source(self, source: Source, error: str) -> None:
        """Stalls a source until RESUME SOURCE."""
        self.health.stall(source.channel, error, lasting=True)
        with self.boundary:
            self.inputs.update()


def _fields(
    entry: CatalogEntry,
    sources: tuple[Source, ...],
    forgotten: tuple[int, ...],
    offsets: Mapping[str, Any],
    extra: Mapping[str, Any],
    ticked: Changes,
) -> dict[str, Any]:
    """Returns the fields of the log entry, and its changes.

    `offsets`, `extra`: those that it follows. `ticked`: changes of the tick that it commits.
    """
    topics_in_use = {(reader_name(s), t) for s in sources for t in transactions.topics(s)}
    remaining = {r: {t: at for t, at in topics.items() if (r, t) in topics_in_use} for r, topics in offsets.items()}
    after = {r: topics for r, topics in merged(remaining, entry.joining).items() if topics}
    values: dict[str, Any] = {**extra, "forgotten": list(forgotten)}
    state: dict[str, Any] = {}
    if entry.state is not None:
        values["state"], state["state"] = entry.state
    return {"kind": "catalog", "catalog": entry.change, "changes": entry.changes(ticked), "offsets": after, "extra": values, **state}
