"""Rolls all Delta tables back to the versions that the list of checkpoints names."""

from __future__ import annotations

from tailgate.lake.store import Store
from tailgate.lake.tables import checkpoints, delta
from tailgate.lake.tables.stored_relations import FOLDER, table_name


def roll_back(store: Store) -> None:
    """Makes the newest listed version of each table the newest one. Removes tables that are not listed: the log has all their rows."""
    newest = checkpoints.opened(store)
    if newest is not None:
        delta.roll_back(store, checkpoints.TABLE, newest.version())
    else:
        store.discard_folder(checkpoints.TABLE)
    versions: dict[int, int] = {}
    for checkpoint in checkpoints.decoded(newest) if newest is not None else ():
        versions |= checkpoint.versions
    for id in store.numbers(FOLDER):
        if id in versions:
            delta.roll_back(store, table_name(id), versions[id])
        else:  # created after the newest checkpoint
            store.discard_folder(table_name(id))
