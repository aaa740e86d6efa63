"""Stops the views that depend on a defective operator, and no others (ADR 0007).

    operator throws ──► the tick fails, nothing is committed ──► retry ──► it throws again
        ──► one entry: the views below it have failed; the circuit continues without their operators
    a table finds impossible rows (a negative weight) ──► the same; the entry also returns the
        relation to its last consistent rows

A view that is still being filled is dropped, and the statement that waits for it gets the error. If
no statement waits, as after a restart of the engine, the view stays and is marked as failed. If the
operator keeps the rows of a source, the source is stalled until RESUME SOURCE.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.affected import reached_relations, stopped_views
from tailgate.engine.plan.views.replacements import group
from tailgate.engine.runtime.backfill.installation import Installation, being_filled
from tailgate.lake.catalog import Change, DeadLetters, Item, MaterializedView, Source
from tailgate.lake.catalog.dropping import dropping
from tailgate.lake.catalog.formats import Failure
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.log.entry import stream
from tailgate.lake.readers.failed import SQLSTATE, error_change, failed, failure
from tailgate.lake.tables.weights import negated, total

log = logging.getLogger("tailgate.engine")


class Isolation:
    """Removes failed views from the circuit. Thread safe."""

    def __init__(self, installation: Installation) -> None:
        self._installation, self._engine = installation, installation.engine
        self._engine.runner.isolate = self.operator

    def operator(self, node: int, relation: int, message: str) -> bool:
        """Stops the views that depend on an operator, or on a relation that cannot be written.

        `node` is 0 if `relation` is meant. Returns whether anything was stopped.
        """
        with self._installation.lock:
            engine = self._engine
            item = engine.catalog.items.get(nodes.owner(node)) if node else None
            if isinstance(item, Source | DeadLetters):
                source = item if isinstance(item, Source) else engine.catalog.expect(Source, item.depends[0])
                engine.stall_source(source, message)
                return True
            relations = reached_relations(engine.graph, node) if node else {relation}
            return self._stop(stopped_views(relations, engine.catalog), message)

    def relation(self, relation: int, n: int, message: str) -> bool:
        """Stops a view whose rows or errors are wrong after entry n, and the views that read it.

        The relation returns to its rows at entry n. Returns whether anything was stopped.
        """
        with self._installation.lock:
            return self._stop(stopped_views({relation}, self._engine.catalog), message, {relation: n})

    def _stop(self, items: tuple[MaterializedView, ...], message: str, consistent: dict[int, int] | None = None) -> bool:
        """Marks items as failed; drops unready ones that a statement waits for."""
        installation, engine = self._installation, self._engine
        consistent = consistent or {}
        with engine.boundary:  # the time of the failure is that of the last tick
            running = [i for i in items if i.ready]
            going = self._going([i for i in items if not i.ready])
            unready_kept = [i for i in items if not i.ready and i.id not in going]
            waiting = [
                engine.catalog.expect(MaterializedView, i.replaces)
                for i in going.values()
                if isinstance(i, MaterializedView) and i.replaces
            ]
            stale = [i for i in waiting if nodes.is_stale(i) and i.id not in {r.id for r in running}]
            change = Change(
                put=tuple(self._marked(i, message, consistent) for i in (*running, *unready_kept, *stale)),
                drop=tuple(sorted({g.id for g in dropping(engine.catalog, list(going.values()), cascade=True).items})),
            )
            if change == Change():
                return False
            for item in (*change.put, *going.values()):
                log.error('%s "%s" has failed: %s', item.kind, item.name, message)
            for item in unready_kept:
                if (fill := installation.fills.pop(item.id, None)) is not None:
                    fill.end()
            for id in going:
                if id in installation.awaited:
                    text = f'{going[id].kind} "{going[id].name}" cannot be filled: {message}'
                    installation.failures[id] = ObjectNotInPrerequisiteState(text, hint="This is a defect of Tailgate; please report it.")
            installation.install(change, changes=lambda: self._changes(change.put, consistent))
        return True

    def _going(self, unready: Iterable[Item]) -> dict[int, Item]:
        """Returns the unready views to drop, by id.

        They are the views that a statement waits for, and all replacements in the groups of
        `unready`.
        """
        catalog = self._engine.catalog
        groups = {group(i) for i in unready if i.replaces}
        replacements = {i.id: i for i in catalog.items.values() if i.replaces and group(i) in groups}
        return replacements | {i.id: i for i in unready if i.id in self._installation.awaited}

    def _marked(self, item: MaterializedView, message: str, consistent: dict[int, int]) -> MaterializedView:
        """Returns the item marked as failed."""
        entry = consistent.get(item.id, consistent.get(item.errors))
        time = self._engine.newest.time if entry is None else self._engine.lake.log.header(entry).time
        text = f'{item.kind} "{item.name}" has failed: {message}'.replace("\0", "")
        return failed(replace(item, stale=None), Failure(nodes.stale_since(item) or time, text))

    def _changes(self, put: tuple[Item, ...], consistent: dict[int, int]) -> list[tuple[int, bytes]]:
        """Returns the changes of relations in the entry.

        They add the failures to the errors of the views, and return inconsistent relations to their
        last consistent rows.
        """
        parts: dict[int, list[pa.Table]] = {}
        for item in put:
            why = failure(item)
            assert why is not None
            rows = [error_change(why.message, 1)]
            if self._engine.failing.has(item, (SQLSTATE, being_filled(item))):
                rows.append(error_change(being_filled(item), -1))
            parts[item.errors] = rows
        for relation, n in consistent.items():
            entries = self._engine.lake.log.after(n, self._engine.newest.n)
            back = [negated(rows_of_entry) for entry in entries if (rows_of_entry := entry.changes(relation)) is not None]
            parts[relation] = parts.get(relation, []) + back
        nets = {relation: total(of, of[0].schema) for relation, of in parts.items() if of}
        return [(relation, stream(net)) for relation, net in nets.items() if net.num_rows]
