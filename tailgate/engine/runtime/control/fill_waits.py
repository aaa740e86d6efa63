"""Waits for the fills of new items, for the statement that created them."""

from __future__ import annotations

import time

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.control import Client, notice
from tailgate.lake.catalog import Change, Item
from tailgate.lake.catalog.dropping import dropping
from tailgate.lake.errors import AdminShutdown, QueryCanceled, UndefinedTable

WAIT_S = 0.25  # between two checks whether the client of a waiting statement is still connected
TELL_S = 1.0  # between two progress messages of a fill


def await_fills(installation: Installation, items: tuple[Item, ...], client: Client) -> None:
    """Waits until the items are filled and sends progress notices to the client.

    If the fill fails or the client disconnects, drops the items and raises the error.
    """
    engine = installation.engine
    last_report = time.monotonic()
    while True:
        with installation.settled:
            error = next((installation.failures.pop(i.id) for i in items if i.id in installation.failures), None)
            current = [engine.catalog.items.get(i.id) for i in items]
            if error is None and all(i is None or i.ready for i in current):
                break
            if error is None:
                installation.settled.wait(WAIT_S)
        if engine.stopping:
            raise AdminShutdown("the engine is stopping", hint="The view is filled when it runs again.")
        if error is None and client.gone():
            error = QueryCanceled("canceling statement due to user request")
        if error is not None:
            _leave(installation, items)
            raise error
        if time.monotonic() - last_report >= TELL_S:
            last_report = time.monotonic()
            for item in items:
                if (fill := installation.fills.get(item.id)) is not None and fill.rows:
                    client.tell(notice(f"filling {item.kind} {item.name}: {fill.percent:.0f} %, {fill.rows} rows"))
    for item in items:
        if item.id not in engine.catalog.items and item.id not in installation.switched:
            raise UndefinedTable(f'{item.kind} "{item.name}" was dropped while it was filled')


def _leave(installation: Installation, items: tuple[Item, ...]) -> None:
    """Drops those of the items that still exist, with their dependents."""
    with installation.lock:
        catalog = installation.engine.catalog
        existing = [catalog[i.id] for i in items if i.id in catalog.items]
        going = {g.id for g in dropping(catalog, existing, cascade=True).items}
        if going:
            installation.install(Change(drop=tuple(sorted(going))))
