"""The lake: the contract between the processes. The log is the database; the Delta tables follow it.

One tick, from the engine to its readers:

1. `writing`: an engine locks the lake (`engines`) and appends an entry with its new epoch, then one entry per tick.
2. `entry`: an entry is a header (`Header`: the state of the engine) and a section of net changes per changed relation.
3. `files`: the entry is written to a temporary file, synced, linked to its name only if that is free, and its folder synced.
4. `log`: readers poll for the next name, or are woken; `Log.after` returns the new entries.
5. `catalogs`: an entry that changes the `catalog` is followed by a copy of the whole catalog.
6. `tables`: about once a second, a round brings each relation's (`stored`) Delta table to the newest entry with the
   net changes (`weights`), in one commit per table (`merging`), and `checkpoints` lists the version of each.
7. `reading`: a relation at a time is its table at a checkpoint's version plus the log's later changes.
8. `segments`, `retention`, `readers`: older entries are rolled into segments and removed when tables, readers and
   `since` have passed them.
9. `tending`: maintenance of the tables' logs and files, between rounds.

All packages share `errors` and `types`. `crash` kills a process at a named point for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailgate.lake.folder import Lake

__all__ = ["Lake"]


def __getattr__(name: str) -> Any:
    """Imports `Lake` when it is first used: the engine's JVM starts before the libraries that it needs are imported."""
    if name == "Lake":
        from tailgate.lake.folder import Lake

        return Lake
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
