"""Answers a statement that a gateway sends again, because an earlier engine ended before it answered.

no entry of the log has the statement's id ──► it is executed
an entry has it                            ──► its views are filled ──► answer
"""

from __future__ import annotations

from typing import Any

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.blocks.installing import Installed
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.ticks.repeated_writes import find_change
from tailgate.lake.catalog import Change, Item
from tailgate.lake.log.entry import Header


def answer_again(installation: Installation, tag: str, client: Client) -> dict[str, Any] | None:
    """Returns the answer to a statement that an earlier engine has carried out, with this command tag, or None if none has.

    Waits for the fills of its views. If the client cancels the statement meanwhile, drops them and raises 57014.
    """
    if not client.attempt.again:
        return None
    with installation.lock:
        entries = find_change(installation.engine.lake, client.attempt)
        if not entries:
            return None
        fill = _filled(entries[0].catalog)
        installation.awaited.update(item.id for item in fill)
        installation.switched.update(item.id for item in fill if any(_switches(entry, item) for entry in entries))
    return Installed(installation, entries[0], fill, []).answer(tag, client)


def _filled(change: Change | None) -> tuple[Item, ...]:
    """Returns the items whose fill the statement of a change waits for. It does not wait for replacements of views that it makes stale."""
    assert change is not None
    stale = {item.id for item in change.put}
    return tuple(item for item in change.put if not item.ready and item.replaces not in stale)


def _switches(entry: Header, coming: Item) -> bool:
    """Returns whether an item takes the place of the one that it replaces in this entry."""
    change = entry.catalog
    return change is not None and coming.id in change.drop and any(item.id == coming.replaces for item in change.put)
