"""Installs changes of the catalog in the running engine, fills new views and makes them ready.

    install(change) ──► graph ──► Engine.install(graph, entry) ──► fills ──► settle

The new graph takes effect with the log entry of the change. `settle` makes a filled view ready once
all that it reads is ready. `recover` replaces the views whose state cannot be used
(engine.plan.views.replacements).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tailgate.engine.ddl.kafka.dead_letters import with_all_columns
from tailgate.engine.plan.views import catalog_graph, nodes
from tailgate.engine.plan.views.affected import inputs_of
from tailgate.engine.plan.views.errors import UndeterminedErrors, errors_to_backfill
from tailgate.engine.plan.views.inserts import maintained_above, needed, united
from tailgate.engine.plan.views.replacements import group, switch, unusable
from tailgate.engine.plan.views.sharing import Sharing, equal_sums
from tailgate.engine.plan.views.sharing import total as total_sums
from tailgate.engine.plan.views.streams import Streams, depends_on_order
from tailgate.engine.runtime.backfill.differences import Addition, differences, sums
from tailgate.engine.runtime.backfill.fills import Fill, History
from tailgate.engine.runtime.backfill.letters import Letters
from tailgate.engine.runtime.backfill.preparation import first_offsets, prepared, replacements_of, sources_to_read
from tailgate.engine.runtime.backfill.restoring import remove_lost, restored
from tailgate.engine.runtime.backfill.resuming import with_readers
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka.readers import merged, reader_name
from tailgate.engine.runtime.ticks.engine import CatalogEntry, Engine
from tailgate.engine.runtime.ticks.engine_log import Changes
from tailgate.engine.runtime.ticks.table_writes import TableWrites
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Sink, Source, Subscription, is_transient, ready, skips
from tailgate.lake.errors import CrashShutdown, ObjectNotInPrerequisiteState, TailgateError, Uncertain
from tailgate.lake.log.entry import Header, stream
from tailgate.lake.readers import holds, subscriptions
from tailgate.lake.readers.failed import error_change, failure
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL

log = logging.getLogger("tailgate.engine")

# restarts of one fill: a topic that loses records faster than they are read cannot fill a view
BEGINNINGS_MAX = 5


class Installation:
    """The running catalog: its changes, and the fills of new views.

    A caller holds `lock` from reading the catalog to the change. `settled` is notified when an item
    becomes ready or fails.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.RLock()
        self.settled = threading.Condition()
        self.fills: dict[int, Fill] = {}
        # errors of fills, by item, for the statements that wait
        self.failures: dict[int, Exception] = {}
        self.awaited: set[int] = set()  # items whose fills statements wait for
        self.switched: set[int] = set()  # replacements that have taken their places
        self.letters = Letters(engine)
        self._filled: set[int] = set()
        self._beginnings: Counter[int] = Counter()  # number of restarts of each item's fill
        engine.runner.rebuild = lambda: self.recover(lost=True)

    # ---- starting --------------------------------------------------------------------------------

    def recover(self, *, lost: bool = False) -> None:
        """Runs the log's catalog. Interrupted fills restart.

        Views whose state cannot be used (with `lost`, all), and all views that read them, are filled again
        into replacements. Until those are ready, lost views report 55000, and views that this version plans
        differently keep their rows. The views of push queries are dropped.
        """
        with self.lock:
            self._recover(lost)
            if transient := tuple(i.id for i in self.engine.catalog.items.values() if is_transient(i)):
                self.install(Change(drop=transient))

    def _recover(self, lost: bool) -> None:
        """Runs the log's catalog, with the views of push queries. The caller holds the lock."""
        engine, catalog = self.engine, self.engine.catalog
        for fill in self.fills.values():
            fill.end()
        self.fills.clear()
        self._filled.clear()
        if (columns := with_all_columns(catalog)) != Change():
            engine.change(columns)
            catalog = engine.catalog
        broken = unusable(catalog, lost=lost)
        coming = catalog.replacements()
        stale = [nodes.with_stale_since(i, engine.newest.time) for i in broken if not nodes.is_stale(i)]
        new = replacements_of((i for i in broken if i.id not in coming), catalog)
        unready = [*new, *(i for i in catalog.items.values() if not i.ready and failure(i) is None)]
        if not unready and not lost:
            engine.install(catalog_graph.compile_catalog(catalog, Streams(catalog)), sources_to_read(catalog), self._forgotten(()))
            return
        for item in stale:
            why = "its state is lost" if lost else "this version plans it differently"
            log.warning('%s "%s" is filled again: %s', item.kind, item.name, why)
        unready = prepared(self.engine, unready, catalog.apply(Change(put=tuple(stale))))
        state = None
        if lost:
            log.warning("all state is made again from what the lake holds")
            stored_only = replace(
                catalog, items={i.id: i for i in catalog.items.values() if i.stored and not isinstance(i, MaterializedView)}
            )
            state = restored(engine, catalog_graph.compile_catalog(stored_only, Streams(stored_only)), catalog)
        errors = [(i.errors, stream(error_change(being_filled(i), 1))) for i in stale if lost]
        self.install(Change(put=(*stale, *unready)), fill=tuple(unready), changes=lambda: errors, state=state)
        if state is not None:
            remove_lost(engine.lake, state[0])

    def planned_anew(
        self,
        change: Change,
        changes: Callable[[], Changes] = tuple,
        check: Callable[[], None] = lambda: None,
        above: Iterable[MaterializedView] = (),
    ) -> list[MaterializedView]:
        """Installs a change after which views may have new plans (a column becomes nullable).

        Returns those views; they are filled again, and so are views `above` a relation to which `changes` adds rows, or in which the
        change itself changes values. The caller holds the lock. `changes`, `check`: as in `install`.
        """
        after = self.engine.catalog.apply(change)
        broken = unusable(after)
        ids = {i.id for i in broken}
        broken = sorted(
            [*broken, *(after.expect(MaterializedView, i.id) for i in above if i.id not in ids)], key=lambda i: len(after.below(i))
        )
        stale = {i.id: nodes.with_stale_since(i, self.engine.newest.time) for i in broken}
        put = {i.id: i for i in change.put} | stale
        coming = prepared(self.engine, replacements_of(broken, after), after.apply(Change(put=tuple(stale.values()))))
        errors = [(i.errors, stream(error_change(being_filled(i), 1))) for i in broken]
        self.install(replace(change, put=(*put.values(), *coming)), fill=tuple(coming), changes=lambda: [*changes(), *errors], check=check)
        return broken

    # ---- changing --------------------------------------------------------------------------------

    def install(
        self,
        change: Change,
        fill: tuple[Item, ...] = (),
        changes: Callable[[], Changes] = tuple,
        state: tuple[str, str] | None = None,
        offsets: Mapping[str, kafka.Offsets] | None = None,
        check: Callable[[], None] = lambda: None,
        written: TableWrites | None = None,
    ) -> Header:
        """Changes the catalog and the circuit in one step, then starts the fills of `fill`.

        The caller holds the lock. `changes` returns changes of relations in the same entry.
        `state`: folder and ids of restored state. `offsets`: new positions in topics, in place of
        the current ones. `check` is called just before the entry is appended; if it raises, nothing
        changes. `written`: rows of existing tables; a tick commits them with the change.
        """
        engine = self.engine
        after = engine.catalog.apply(change)
        streams = Streams(after)
        graph = catalog_graph.compile_catalog(after, streams)
        live = sources_to_read(after)
        joining = merged(first_offsets(engine, live), offsets or {})
        forgotten = () if state is not None else self._forgotten(catalog_graph.removed_operators(engine.graph, graph), graph)
        views = tuple(after.expect(MaterializedView, i.id) for i in fill if isinstance(i, MaterializedView))
        error_parts = {i.errors: self._errors(i, streams, after, graph, change) for i in views}
        with self._held(change):
            entry = CatalogEntry(
                change,
                joining,
                lambda ticked: [*changes(), *sums(engine, error_parts, ticked)],
                state,
                restart=offsets or (),
                check=check,
                written=written,
            )
            header = engine.install(graph, live, forgotten, entry)
        with engine.committed_change():
            for id in change.drop:
                if (dropped_fill := self.fills.pop(id, None)) is not None:
                    dropped_fill.end()
                self._filled.discard(id)
                self._beginnings.pop(id, None)
            for item in fill:
                self._begin_fill(after[item.id], header, streams)
            self._tell()
        return header

    @contextmanager
    def _held(self, change: Change) -> Iterator[None]:
        """Retains the snapshots and log entries that new sinks and subscriptions will read.

        It does so before the items are visible. If the block fails, they are released.
        """
        lake, at = self.engine.lake, self.engine.newest
        held: list[str] = []
        try:
            for item in change.put:
                if item.id not in self.engine.catalog.items:
                    if isinstance(item, Sink):
                        held.append(f"sink-{item.id}")
                        holds.hold(lake, held[-1], at.n, at.time if item.snapshot else None)
                    elif isinstance(item, Subscription):
                        held.append(subscriptions.reader(item.id))
                        subscriptions.begin(lake, item, at.n, at.time)
            yield
        except (CrashShutdown, Uncertain):
            raise  # the entry is in the log, or may be
        except BaseException:
            for reader in held:
                holds.release(lake, reader)
            raise

    def numbered(self, change: Change) -> Change:
        """Returns a change with new items; the views among them are prepared for their fill.

        The caller holds the lock.
        """
        catalog = self.engine.catalog.apply(Change(put=change.put, put_schemas=change.put_schemas))
        unready = {i.id: i for i in prepared(self.engine, [i for i in change.put if not i.ready], catalog)}
        return replace(change, put=tuple(unready.get(i.id, i) for i in change.put))

    def _errors(self, view: MaterializedView, streams: Streams, after: Catalog, graph: Any, change: Change) -> dict[int, int]:
        """Returns the sums that a new view's errors begin with (`errors_to_fill`).

        Relations that are filled from the same entry on are omitted: they are empty. Raises 55000
        if other views have errors that cannot be told apart.
        """
        if skips(view):
            return {}
        beginning = {i.errors for i in change.put if not i.ready}
        try:
            parts = errors_to_backfill(view, streams(view), after, graph)
        except UndeterminedErrors as e:
            failing = [
                i for i in after.items.values() if i.errors in e.args[0] and i.errors not in beginning and self.engine.failing.error(i)
            ]
            if failing:
                raise ObjectNotInPrerequisiteState(
                    f'the errors of {failing[0].kind} "{failing[0].name}" cannot be told apart from those of other views',
                    hint="Create the view when they are gone: SHOW ERRORS.",
                ) from None
            return {}
        return {relation: n for relation, n in parts.items() if relation not in beginning}

    def _forgotten(self, dropped: tuple[int, ...], graph: Any = None) -> tuple[int, ...]:
        """Returns the operators whose state is still to be removed, `dropped` included."""
        live = {o.node for o in graph.operators} if graph is not None else set()
        return tuple(sorted({*self.engine.newest.extra.get("forgotten", ()), *dropped} - live))

    # ---- filling ---------------------------------------------------------------------------------

    def _begin_fill(self, item: Item, header: Header, streams: Streams) -> None:
        """Starts the fill of an item; `header` is the entry in which it begins."""
        catalog = self.engine.catalog
        histories = []
        inputs = catalog_graph.backfill_inputs(item, streams(item)) if isinstance(item, MaterializedView) else ()
        for input in inputs:
            assert isinstance(item, MaterializedView)
            if input.kind == "unit":
                histories.append(History(input.channel))
                continue
            source = catalog[input.item]
            if input.kind == "topic":
                assert isinstance(source, Source)
                end = header.offsets[reader_name(source)][source.topic]
                begin = item.starts[source.id]
                at = {"n": header.n, "time": header.time}
                histories.append(History(input.channel, source=source, begin=tuple(begin.items()), end=tuple(end.items()), **at))
            elif source.ready:
                after = item.starts.get(source.id, {}).get(ARRIVAL)
                histories.append(History(input.channel, relation=source.id, time=header.time, after=after))
        fill = self.fills[item.id] = Fill(self.engine, item, tuple(histories), self, self.letters)
        fill.start()

    def filled(self, fill: Fill) -> None:
        """Records that a fill is complete."""
        with self.lock:
            if self.fills.get(fill.item.id) is fill:
                self._filled.add(fill.item.id)
                self.settle()

    def failed(self, fill: Fill, error: Exception) -> None:
        """Reports a failed fill to the statement that waits.

        Without such a statement, the fill restarts when the engine does.
        """
        with self.lock:
            if self.fills.get(fill.item.id) is fill:
                self.failures[fill.item.id] = error
                self._tell()

    def awaits(self, fill: Fill) -> bool:
        """Returns whether a statement waits for the fill."""
        return fill.item.id in self.awaited

    def begin_again(self, fill: Fill, why: str) -> None:
        """Restarts the fill of a view, and those of all views that are being filled from it."""
        with self.lock:
            id = fill.item.id
            if self.fills.get(id) is not fill:
                return
            self._beginnings[id] += 1
            if self._beginnings[id] > BEGINNINGS_MAX:
                self.failed(fill, ObjectNotInPrerequisiteState(why, detail=f"The view was begun {BEGINNINGS_MAX} times."))
                return
            log.warning("filling %s begins again: %s", fill.item.name, why)
            catalog = self.engine.catalog
            again, unready = {id}, {i.id: i for i in catalog.items.values() if not i.ready}
            while more := {i for i in unready.keys() - again if not again.isdisjoint(inputs_of(unready[i], catalog))}:
                again |= more
            try:
                items = tuple(prepared(self.engine, [unready[i] for i in sorted(again)], catalog))
            except TailgateError as e:
                self.failed(fill, e)
                return
            before = [self.fills[i] for i in again if i in self.fills]
            self.install(Change(put=items), fill=items)
            for other in before:
                other.end()
            self._filled -= again

    def settle(self) -> None:
        """Makes filled views ready when all that they read is ready. The caller holds the lock.

        Replacements take their places when their whole group is filled.
        """
        while True:
            catalog = self.engine.catalog
            groups: dict[int, list[Item]] = {}
            for item in catalog.replacements().values():
                groups.setdefault(group(item), []).append(item)
            replacements = next((g for g in groups.values() if all(i.id in self._filled for i in g)), None)
            if replacements is not None:
                self._switch(replacements)
                continue
            unready = [catalog[i] for i in sorted(self._filled) if i in catalog.items and not catalog[i].replaces]
            coming = catalog.replacements()
            alone = next((i for i in unready if all(catalog[b].ready and b not in coming for b in needed(i, catalog))), None)
            if alone is None:
                return
            assert isinstance(alone, MaterializedView)
            self._end_fill(self._sharing()(self.letters.noted(ready(alone)), catalog), catalog)
            self._ready(alone.id)
            if depends_on_order(alone, self.engine.catalog):
                self.engine.runner.wake()  # changes waited for the end of the fill

    def _end_fill(self, view: MaterializedView, catalog: Catalog) -> None:
        """Makes a view ready. A stream that it inserts into gets its rows in the same entry; views above it are filled again."""
        target = united(view, catalog)
        if target is None:
            self.install(Change(put=(view,)))
            return
        changes = Addition(self.engine, target, view).now
        self.planned_anew(Change(put=(view, target)), changes, above=maintained_above(target, catalog))

    def _sharing(self) -> Sharing:
        """Returns the rewrite that makes views share equal operators, by the newest tick's sums."""
        with self.engine.boundary:  # so that all sums are of the same tick
            return Sharing(self.engine.graph, equal_sums(total_sums(self.engine.runner.sums, self.engine.parallelism)))

    def _ready(self, id: int) -> None:
        """Forgets the fill of an item that has become ready."""
        self._filled.discard(id)
        self.fills.pop(id, None)

    def _switch(self, coming: list[Item]) -> None:
        """Gives the replaced items the definitions and rows of their replacements.

        Readers see the difference between old and new rows.
        """
        catalog = self.engine.catalog
        coming = [self.letters.noted(i) for i in coming]
        change, above = with_readers(self.engine, switch(coming, catalog, self._sharing()))
        pairs = [(catalog[i.replaces], i) for i in coming if isinstance(i, MaterializedView) and not i.has_new_columns]
        pending_differences = [d for old, new in pairs for d in differences(self.engine, old, new)]
        self.switched.update(i.id for i in coming)
        self.install(change, above, changes=lambda: [rows for d in pending_differences if (rows := d.now()) is not None])
        for item in coming:
            self._ready(item.id)
            log.info('%s "%s" was replaced', item.kind, catalog[item.replaces].name)

    def _tell(self) -> None:
        """Wakes the statements that wait for fills."""
        with self.settled:
            self.settled.notify_all()


def being_filled(item: Item) -> str:
    """Returns the error that a view reports while it is not kept up to date."""
    return f'{item.kind} "{item.name}" is being filled again'
