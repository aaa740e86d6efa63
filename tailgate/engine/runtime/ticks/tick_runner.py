"""Runs the ticks, and recovers from those that fail.

reason ──► boundary: job ──► log entry ──► next
                      └─ fails: nothing is committed; stall a source, stop a view, restore state,
                         or wait; then the tick runs again from the newest entry
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tailgate.engine.plan.circuit.single_records import SingleRecords
from tailgate.engine.plan.views.nodes import source_node
from tailgate.engine.plan.views.sharing import Sum
from tailgate.engine.runtime.kafka.readers import merged
from tailgate.engine.runtime.state.files import changelogs
from tailgate.engine.runtime.ticks.ages import TickAge, now_ms
from tailgate.engine.runtime.ticks.engine_log import EngineLog
from tailgate.engine.runtime.ticks.failures import caused, disk_full, state_lost
from tailgate.engine.runtime.ticks.inputs import RETRY_S, Inputs
from tailgate.engine.runtime.ticks.pacing import Pacing
from tailgate.engine.runtime.ticks.source_health import SourceHealth
from tailgate.engine.runtime.ticks.table_writes import PendingEntry, without
from tailgate.engine.runtime.ticks.tick_figures import TickFigures
from tailgate.engine.runtime.ticks.tick_loop import Ends, LoopEnded, TickLoop
from tailgate.engine.runtime.ticks.tick_result import Failure, Ticked
from tailgate.engine.runtime.ticks.writes import written
from tailgate.lake.catalog import Item
from tailgate.lake.errors import TailgateError
from tailgate.lake.host import crash
from tailgate.lake.log.uploaded_state import UPLOADED
from tailgate.lake.writer.inbox import Inbox

log = logging.getLogger("tailgate.engine")

DURATIONS = 200  # ticks whose duration is kept
# folder below the state folder: changes that are too large to send to the driver
RESULTS = "results"
NEVER = (1 << 63) - 1  # ms
# consecutive ticks that may fail without a source to blame; then the engine ends with the error
FAILURES_MAX = 5
PAUSE_S = 1.0  # after a tick that failed without a known cause


class TickRunner:
    """Runs one tick after the other in the thread that calls `run`.

    `circuit` is the circuit of the next tick; it changes between two ticks. `isolate` stops the
    views that depend on a failed operator or relation. `rebuild` restores lost state while no tick
    runs. `on_failures` gets the failures of a tick after it is committed. `pending` is a change of the
    catalog that is committed with a tick. `sums` is the sum of the input of each operator and
    partition (engine.plan.views.sharing).
    """

    def __init__(
        self, engine_log: EngineLog, inputs: Inputs, health: SourceHealth, inbox: Inbox, session: SparkSession, parallelism: int
    ) -> None:
        self._log, self._inputs, self._health, self._inbox, self._session = engine_log, inputs, health, inbox, session
        self._parallelism = parallelism
        jvm: Any = session._jvm
        self._source = jvm.tailgate.sources.InboxSource  # reads the inbox
        self._transacted = jvm.tailgate.sources.TransactedKafka
        self.pacing = Pacing(jvm.tailgate.state.Snapshots)
        self.circuit: Any = None
        self.pending: PendingEntry | None = None
        self.isolate: Callable[[int, int, str], bool] | None = None
        self.rebuild: Callable[[], None] | None = None
        self.on_failures: Callable[[Sequence[Failure]], None] | None = None
        self.sums: dict[tuple[int, int], Sum | None] = {}
        self.counters: dict[int, dict[str, int]] = {}
        self.ticks = 0
        self.figures = TickFigures()
        self.trace: Callable[[TickAge, Ticked], None] | None = None  # of each committed tick, with --otlp
        self.loop: TickLoop | None = None  # while `run` runs
        self._single = SingleRecords()
        # of the newest ticks, in ms, from the start to the durable entry
        self.durations: deque[float] = deque(maxlen=DURATIONS)
        self._due = NEVER  # the time in ms at which the newest tick wants the next one
        self._failures = 0
        self._suspect = (0, 0)  # the operator and the relation that failed in the last tick

    def run(self) -> None:
        """Runs ticks until the engine stops. Raises the error that ends the engine."""
        with self._log.boundary:
            self._log.writer.check()
            self._discard_results()
            loop = self.loop = TickLoop(self._session, self._inbox.location, self._log.newest.inbox)
            loop.single(self._single)
        self._log.on_end(loop.wake)
        self._inputs.start(loop)
        try:
            while not self._log.stopping:
                for reader, error in loop.wait().items():
                    self._inputs.failed(reader, error)
                self._log.ages.due()
                self.pacing.wait(lambda: self._log.stopping)
                failure = self._tick(loop)
                if failure is not None and not self._log.stopping:
                    self._recover(failure)
        except LoopEnded:
            if not self._log.stopping:
                raise
        finally:
            self._log.finish()
            loop.close()
        self._log.raise_failure()

    def single(self, of: SingleRecords) -> None:
        """Sets the channels of which a tick reads one record while few wait. The caller holds the boundary."""
        changed, self._single = of != self._single, of
        if changed and self.loop is not None:
            self.loop.single(of)

    def wake(self) -> None:
        """Runs a tick without another reason."""
        if self.loop is not None:
            self.loop.wake()

    # ---- a tick ----------------------------------------------------------------------------------

    def _tick(self, loop: TickLoop) -> Exception | None:
        """Runs a tick. Returns the error if it fails."""
        engine_log = self._log
        with engine_log.boundary:
            if engine_log.stopping:
                return None
            try:
                began, start = time.time_ns() // 1_000_000, time.monotonic()
                self.figures.began(start)
                crash.point("tick.begin")
                time_ms = max(began, engine_log.newest.time + 1)
                ends, result = loop.tick(self.circuit, engine_log.state_path, time_ms, engine_log.newest.state or "", self._parallelism)
                crash.point("state.committed")
                self._inputs.check_topics(ends)
                crash.point("topics.checked")
                computed, computed_ms = time.monotonic(), now_ms()
                pending = self.pending if self.pending is not None and ends.inbox >= self.pending.number else None
                self._commit(began, time_ms, ends, result, pending)
                age = engine_log.ages.committed(engine_log.newest.n, (began, computed_ms), ends.inbox, ends.oldest)
                loop.committed()  # after that, so that a record always counts as read or as unread
                if pending is not None:
                    with engine_log.committed_change():
                        pending.commit(engine_log.newest)
                    self.pending = None
                self.figures.committed(start, computed, result)
                if self.trace is not None:
                    self.trace(age, result)
                self._failures, self._suspect = 0, (0, 0)
                crash.point("tick.end")
            except Exception as e:  # noqa: BLE001  # `run` looks for the source to blame
                self._withdraw(e)
                loop.wake()  # the tick runs again without another reason
                return e
        return None

    def _commit(self, began: int, time_ms: int, ends: Ends, result: Ticked, pending: PendingEntry | None) -> None:
        """Appends the log entry of a tick and updates memory. `pending`: the change of the catalog that is committed with it."""
        newest, catalog = self._log.newest, self._log.catalog
        removed = set(result.forgotten)
        extra = {**newest.extra, "parallelism": self._parallelism}
        extra["forgotten"] = [n for n in extra.get("forgotten", ()) if n not in removed]
        changes: list[tuple[int, Any]] = [*result.changes]
        fields: dict[str, Any] = {"kind": "tick", "extra": extra, "offsets": merged(newest.offsets, ends.offsets)}
        if pending is None:
            of_tables, writes = written(self._inbox, newest.inbox, ends.inbox, catalog)
        else:
            fields = pending.fields(fields["offsets"], extra, changes)
            catalog = catalog.apply(fields["catalog"])
            changes = [*without(changes, fields["catalog"].drop), *fields.pop("changes")]
            of_tables, writes = written(self._inbox, newest.inbox, ends.inbox, catalog, pending.number, pending.rows)
        changes += of_tables
        files = changelogs(self._log.lake, newest, result.state)
        fields |= {"state": result.state, "files": files, "writes": writes, "released": result.released}
        fields |= {"single": ends.single, "repeated": result.repeated}
        if self._log.uploaded is not None:
            fields["extra"] = {**fields["extra"], UPLOADED: self._log.uploaded}
        self._log.append(changes, time=time_ms, inbox=ends.inbox, checkpoint="", batch=-1, **fields)
        crash.point("entry.committed")
        with self._log.committed_change():
            self._committed(changes, result)
        self.ticks += 1
        self.durations.append(time.time_ns() / 1e6 - began)

    def _committed(self, changes: list[tuple[int, Any]], result: Ticked) -> None:
        """Updates memory and removes files after the log entry of a tick is durable."""
        self.sums.update(result.sums)
        self._log.lacks_state |= self.pacing.committed(result.lineage)  # later changelogs begin with the snapshot
        for reader in self._inputs.readers:
            if reader.transactions and (warning := self._transacted.warning(reader.name)) is not None:
                log.warning("%s: %s", reader.name, warning)
        for _, data in changes:
            if isinstance(data, Path):
                with suppress(OSError):
                    data.unlink()  # the log has its own link to this file, or a copy
        if result.due != self._due:
            self._due = result.due
            self._source.due(self._inbox.location, result.due)
        if result.failures and self.on_failures is not None:
            self.on_failures(result.failures)
        for name, count in result.counters.items():
            node, what = name.split(".")
            counts = self.counters.setdefault(int(node), {})
            counts[what] = max(counts.get(what, 0), count) if what == "last_message" else counts.get(what, 0) + count

    def dropped(self, items: Collection[Item]) -> None:
        """Forgets the figures of items that do not exist any more. The caller holds the boundary."""
        self.figures.dropped(item.id for item in items)
        for item in items:
            self.counters.pop(source_node(item), None)

    # ---- failures --------------------------------------------------------------------------------

    def _withdraw(self, failure: Exception) -> None:
        """Removes the change of the catalog that waits for a tick, after a tick has failed without committing it."""
        pending = self.pending
        if pending is None or self._log.stopping:
            return
        if self._log.newest.inbox >= pending.number:
            self._log.end(failure)  # it is committed, and memory does not agree with the log
            return
        try:
            self._inbox.empty(pending.number)
        except OSError as error:
            self._log.end(error)  # the next engine empties it
            return
        self.pending = None
        pending.fail(failure)

    def _recover(self, failure: Exception) -> None:
        """Removes the cause of a failed tick, or waits.

        Raises the failure if nothing can be blamed for FAILURES_MAX consecutive ticks.
        """
        if isinstance(failure, LoopEnded):
            raise failure
        self.figures.failed()
        self._discard_results()
        if self.rebuild is not None and state_lost(failure):
            log.warning("state that the log names is missing or damaged: %s", failure)
            self._until_rebuilt(self.rebuild)
            return
        if disk_full(failure):
            log.error("a tick failed because the disk is full; it is tried again every %.0f s", RETRY_S, exc_info=failure)
            self._log.ended.wait(RETRY_S)
            return
        if (thrown := caused(failure, "tailgate.sources.SourceStalled")) is not None:
            self._health.stall(str(thrown.channel()), str(thrown.getMessage()), lasting=bool(thrown.lasting()))
            with self._log.boundary:
                self._inputs.update()
            return
        if (thrown := caused(failure, "tailgate.circuit.OperatorFailed")) is not None and self._isolated(thrown, failure):
            return
        if self._inputs.blame():
            return
        self._failures += 1
        log.error("a tick failed", exc_info=failure)
        if self._failures >= FAILURES_MAX:
            raise failure
        self._log.ended.wait(PAUSE_S)
        self._inputs.restart()

    def _isolated(self, thrown: Any, failure: BaseException) -> bool:
        """Handles the failure of an operator. Returns whether the tick can run again.

        The first time, the tick is only repeated, in case the cause was a fault of the machine. The
        second time, the views that depend on the operator are stopped.
        """
        operator = int(thrown.node()), int(thrown.relation())
        if operator != self._suspect:
            log.error("operator %d failed; the tick runs once more", operator[0], exc_info=failure)
            self._suspect = operator
            return True
        try:
            return self.isolate is not None and self.isolate(*operator, str(thrown.getMessage()))
        except TailgateError as e:
            self._log.raise_failure()
            log.warning("the views that depend on operator %d cannot be stopped yet: %s", operator[0], e.message)
            return False

    def _until_rebuilt(self, rebuild: Callable[[], None]) -> None:
        """Calls `rebuild` until it succeeds or the engine stops."""
        while not self._log.stopping:
            try:
                rebuild()
                return
            except TailgateError as e:
                self._log.raise_failure()
                log.warning("the state cannot be made again yet: %s", e.message)
                self._log.ended.wait(RETRY_S)

    def _discard_results(self) -> None:
        """Removes files with changes that failed ticks have left."""
        self._log.lake.local.discard_folder(f"{self._log.state_folder}/{RESULTS}")
