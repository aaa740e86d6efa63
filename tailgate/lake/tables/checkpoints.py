"""Checkpoints: which version of every table belongs to one time. tables/checkpoints, itself a Delta table, lists them.

    n, time, age (ms)     the entry that all tables had reached, with its time and age
    relation, name        one row for each stored relation
    version, position     of its table, and the entry up to which that version holds it: n, or less during a backfill

Every round writes the whole list again in one commit. Older checkpoints are thinned out: a reader
that starts from an older one reads a few more entries, and the list of an hour is a few dozen
checkpoints in one small file.

The files of a version are durable before the version is listed. A power loss may remove or truncate
the newest commit of the list; then the previous commit is used (`_intact`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from tailgate.lake.folder import Lake
from tailgate.lake.store import Store
from tailgate.lake.tables import delta
from tailgate.lake.tables.stored_relations import table_name

log = logging.getLogger("tailgate.checkpoints")

NAME = "checkpoints"
TABLE = table_name(NAME)

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("relation", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("version", pa.int64()),
        pa.field("position", pa.int64()),
        pa.field("age", pa.int64()),
    ]
)

RECENT_MS = 10_000  # all younger checkpoints are kept: with twenty views a round writes 40 rows for each of them
SPACING_MS = 60_000  # older ones: one per minute
SPARSE_AFTER_MS = 2 * 3_600_000
SPARSE_MS = 600_000  # older than SPARSE_AFTER_MS: one per ten minutes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A time that all tables had reached. `versions`, `positions` and (informative) `names` by relation; `age` of the entry."""

    n: int
    time: int
    age: int
    versions: Mapping[int, int]
    positions: Mapping[int, int]
    names: Mapping[int, str]

    @property
    def position(self) -> int:
        """Returns the oldest entry after which a reader of some relation has to read the log."""
        return min(self.positions.values(), default=self.n)


@dataclass(frozen=True, slots=True)
class _Known:
    """The list that this process has read, and its version. The process that writes the list looks for no other: `table` is None."""

    checkpoints: list[Checkpoint]
    table: DeltaTable | None = None
    version: int = -1


def listed(lake: Lake) -> list[Checkpoint]:
    """Returns all readable checkpoints, oldest first."""
    with lake.lock:
        last_list: _Known | None = lake.cache.get(NAME)
        if last_list is None:
            found_table = opened(lake.store)
            if found_table is None:
                return []
            table = found_table
        elif last_list.table is None:
            return last_list.checkpoints
        else:
            table = last_list.table
            try:
                table.update_incremental()
                if table.version() == last_list.version or not _intact(lake.store, table):
                    return last_list.checkpoints
            except (DeltaError, pa.ArrowException, OSError, ValueError):
                # The list is opened again: a commit is truncated until the engine rolls it back, or the credentials have been replaced.
                with contextlib.suppress(OSError):
                    lake.cache[NAME] = _Known(last_list.checkpoints, opened(lake.store) or table)
                return last_list.checkpoints
        checkpoints = decoded(table)
        lake.cache[NAME] = _Known(checkpoints, table, table.version())
        return checkpoints


def opened(store: Store) -> DeltaTable | None:
    """Returns the list at its newest intact version; None if there is none."""
    for version in reversed(delta.commits(delta.log_files(store, TABLE))):
        try:
            table = delta.table(store, TABLE, version)
            if _intact(store, table):
                return table
        except Exception:  # noqa: BLE001  # delta-rs and its Parquet parser raise exceptions of any class
            log.warning("version %d of the list of checkpoints cannot be read", version)
    return None


def _intact(store: Store, table: DeltaTable) -> bool:
    """Returns whether the newest commit is complete. Its transaction, written last, has the newest checkpoint's entry as version."""
    version = table.version()
    return version == 0 or delta.committed_number(store, TABLE, version, NAME) == max((c.n for c in decoded(table)), default=None)


def decoded(table: DeltaTable) -> list[Checkpoint]:
    """Returns the checkpoints of the list, oldest first."""
    return _decode(table.to_pyarrow_table().to_pylist())


def newest(lake: Lake, at: int | None = None) -> Checkpoint | None:
    """Returns the newest checkpoint with a time of at most `at`, or None."""
    return next((c for c in reversed(listed(lake)) if at is None or c.time <= at), None)


def _decode(rows: Iterable[Mapping[str, Any]]) -> list[Checkpoint]:
    checkpoints: dict[int, Checkpoint] = {}
    for row in rows:
        at = checkpoints.setdefault(row["n"], Checkpoint(row["n"], row["time"], row.get("age") or 0, {}, {}, {}))
        if row["relation"]:
            for values, value in ((at.versions, "version"), (at.positions, "position"), (at.names, "name")):
                values[row["relation"]] = row[value]  # type: ignore[index]  # these are dicts, created in the call above
    return [checkpoints[n] for n in sorted(checkpoints)]


def thinned(all: list[Checkpoint], age: int, since: int) -> list[Checkpoint]:
    """Returns the checkpoints to keep: the newest not later than `since`, the newest of all, and some between, by the spacings above."""
    oldest = max((i for i, c in enumerate(all) if c.time <= since), default=0)
    remaining: list[Checkpoint] = []
    for i, checkpoint in enumerate(all[oldest:]):
        old = age - checkpoint.age
        spacing = 0 if old < RECENT_MS else SPACING_MS if old < SPARSE_AFTER_MS else SPARSE_MS
        if i == 0 or oldest + i == len(all) - 1 or checkpoint.age // max(spacing, 1) != remaining[-1].age // max(spacing, 1):
            remaining.append(checkpoint)
    return remaining


def create(lake: Lake) -> DeltaTable:
    """Returns the list, and creates it if it does not exist."""
    table = opened(lake.store)
    if table is not None:
        return table
    return delta.create(lake.store, TABLE, SCHEMA, NAME, configuration=delta.CONFIGURATION)


def sync(lake: Lake) -> None:
    """Makes the current list durable, with all commits that it is read from."""
    lake.store.sync(delta.everything(lake.store, TABLE))


def write(lake: Lake, table: DeltaTable, all: list[Checkpoint], epoch: int) -> None:
    """Replaces the list durably, on top of the version of `table`. The transaction has the number of the newest checkpoint.

    From then on, `listed` returns this list in this process, until a write fails: then the list is read again.
    """
    with lake.lock:
        lake.cache.pop(NAME, None)
    rows = [
        {
            "n": c.n,
            "time": c.time,
            "age": c.age,
            "relation": r,
            "name": c.names.get(r, ""),
            "version": v,
            "position": c.positions.get(r, c.n),
        }
        for c in all
        for r, v in (c.versions or {0: 0}).items()  # a checkpoint without relations needs a row, too
    ]
    before = table.version()
    delta.committing(
        table,
        lambda: write_deltalake(
            table,
            pa.Table.from_pylist(rows, schema=SCHEMA),
            mode="overwrite",
            schema_mode="overwrite" if len(table.schema().fields) != len(SCHEMA) else None,  # in a lake of an earlier version
            commit_properties=delta.commit(epoch, NAME, all[-1].n),
            post_commithook_properties=delta.NO_HOOKS,
        ),
    )
    lake.store.sync(delta.written_by(lake.store, TABLE, before, table.version()))
    with lake.lock:
        lake.cache[NAME] = _Known(all)
