"""The lake: the contract between the processes. The log is the database; the Delta tables follow it.

One tick, from the engine to whoever reads it:

1. `writing`: an engine locks the lake (`engines`), appends an entry with its new epoch, and from then on one entry a tick.
2. `entry`: an entry is a header (`Header`: where the engine is) and per changed relation a section of net changes.
3. `files`: it is written aside, synced, linked to its name only if that is free, and its folder synced.
4. `log`: readers look for the next name, or are woken; `Log.after` gives what came, each entry whole.
5. `catalogs`: an entry that changes the `catalog` is followed by a copy of all of it.
6. `tables`: about once a second a round brings every relation's (`stored`) Delta table to the newest entry by the net of what
   came (`weights`), one commit each (`merging`), and `checkpoints` notes the version of each.
7. `reading`: a relation at a time is its table at a checkpoint's version plus the log's changes since.
8. `segments`, `retention`, `readers`: older entries are rolled together and go when tables, readers and `since` have
   passed them.
9. `tending`: the tables' own logs and files are kept small beside the rounds.

`errors` and `types` are the words all packages share; `crash` ends a process at a named point for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lake.folder import Lake

__all__ = ["Lake"]


def __getattr__(name: str) -> Any:
    """Imports `Lake` when it is first used: the engine's JVM starts before the libraries that it needs are imported."""
    if name == "Lake":
        from lake.folder import Lake

        return Lake
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
