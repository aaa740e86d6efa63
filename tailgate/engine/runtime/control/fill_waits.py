"""Waits for the fills of new items, for the statement that created them, and cancels fills."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tailgate.engine.plan.views.digest import is_paused
from tailgate.engine.plan.views.nodes import is_stale
from tailgate.engine.plan.views.replacements import group
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.control import Client, notice
from tailgate.engine.runtime.control.turns import named
from tailgate.engine.runtime.ticks.repeated_writes import undone
from tailgate.lake.catalog import Change, Item, MaterializedView, ksqldb_of
from tailgate.lake.catalog.dropping import dropping
from tailgate.lake.errors import AdminShutdown, ObjectNotInPrerequisiteState, QueryCanceled, TailgateError, UndefinedTable
from tailgate.lake.readers.failed import failure

WAIT_S = 0.25  # between two checks whether the client of a waiting statement is still connected
TELL_S = 1.0  # between two progress messages of a fill
REPLACED_S = 60.0  # wait for views that are filled again; it continues afterwards


def await_fills(installation: Installation, items: tuple[Item, ...], client: Client) -> None:
    """Waits until the items are filled and sends progress notices to the client.

    If the fill fails or the client disconnects, drops the items and raises the error.
    """
    engine = installation.engine
    last_report = time.monotonic()
    while True:
        with installation.settled:
            current = [engine.catalog.items.get(i.id) for i in items]
            error = next((installation.failures.pop(i.id) for i in items if i.id in installation.failures), None) or _error(current)
            if error is None and all(i is None or i.ready for i in current):
                break
            if error is None:
                installation.settled.wait(WAIT_S)
        if engine.stopping:
            raise AdminShutdown("the engine is stopping", hint="The view is filled when it runs again.")
        if error is None and client.gone():
            error = QueryCanceled("canceling statement due to user request")
        if error is not None:
            _leave(installation, items, client.attempt.id)
            raise error
        if time.monotonic() - last_report >= TELL_S:
            last_report = time.monotonic()
            for item in items:
                if (fill := installation.fills.get(item.id)) is not None and fill.rows:
                    client.tell(notice(f"filling {item.kind} {item.name}: {fill.percent:.0f} %, {fill.rows} rows"))
    for item in items:
        if item.id not in engine.catalog.items and item.id not in installation.switched:
            raise UndefinedTable(f'{item.kind} "{item.name}" was dropped while it was filled')


def await_replacements(installation: Installation, views: Iterable[MaterializedView], client: Client) -> None:
    """Waits until views are filled again, so that the next statement can read them with their new columns.

    Waits for `REPLACED_S` at most, and not for a fill that has failed, which the next engine repeats.
    """
    ids, end = {view.id for view in views}, time.monotonic() + REPLACED_S
    while not installation.engine.stopping and not client.gone() and time.monotonic() < end:
        with installation.settled:
            replacements = installation.engine.catalog.replacements()
            if all(replacements[id].id in installation.failures for id in ids & replacements.keys()):
                return
            installation.settled.wait(WAIT_S)


def _error(items: Iterable[Item | None]) -> TailgateError | None:
    """Returns the error of a view that failed before the statement waited for it, in an earlier engine or after the start of this one."""
    why = next((why for item in items if item is not None and not item.ready and (why := failure(item)) is not None), None)
    return None if why is None else ObjectNotInPrerequisiteState(why.message, hint="This is a defect of Tailgate; please report it.")


def cancel(installation: Installation, view: MaterializedView) -> None:
    """Cancels the fill of a new view, which is dropped, or of the replacement of a view, which stays as it is.

    A statement that waits for the fill fails with 57014. Raises 55000 if it has none, or could not be read without it.
    The caller holds the lock of the catalog.
    """
    catalog = installation.engine.catalog
    coming = catalog.replacements()
    if view.id not in coming and view.ready:
        raise ObjectNotInPrerequisiteState(f'materialized view "{view.name}" is not being filled')
    ended: list[Item] = [view]
    if view.id in coming:
        ended = [i for i in coming.values() if group(i) == group(coming[view.id])]
    needed = [old for i in ended if i.replaces and (is_stale(old := catalog[i.replaces]) or is_paused(old))]
    if needed or ksqldb_of(view) is not None:
        name = needed[0].name if needed else view.name
        hint = "Its rows are not kept up to date without it. Drop the view, or replace it."
        raise ObjectNotInPrerequisiteState(f'filling materialized view "{name}" cannot be canceled', hint=hint)
    dropped = sorted(i.id for i in dropping(catalog, ended, cascade=True).items)
    for id in installation.awaited.intersection(dropped):
        installation.failures[id] = QueryCanceled("canceling statement due to CANCEL BACKFILL")
    installation.install(Change(drop=tuple(dropped)))


def _leave(installation: Installation, items: tuple[Item, ...], statement: str) -> None:
    """Drops those of the items that still exist, with their dependents. `statement`: the id of the statement that is undone."""
    with installation.lock, named(installation, undone(statement) if statement else ""):
        catalog = installation.engine.catalog
        existing = [catalog[i.id] for i in items if i.id in catalog.items]
        going = {g.id for g in dropping(catalog, existing, cascade=True).items}
        if going:
            installation.install(Change(drop=tuple(sorted(going))))
