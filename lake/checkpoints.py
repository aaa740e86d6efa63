"""Checkpoints: which version of every table belongs to one time. tables/checkpoints, itself a Delta table, lists them.

    n, time (ms)          the entry and time which all tables had reached
    relation, name        one row for each stored relation
    version, position     of its table, and the entry up to which that version holds it: n, or less while it is being filled

Every round writes the whole list anew in one commit, thinned: a reader that starts from an older checkpoint has a few more
entries to read, and a list of an hour is a few dozen checkpoints in one small file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from lake.stored import table_path

if TYPE_CHECKING:
    from lake.folder import Lake

NAME = "checkpoints"

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("relation", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("version", pa.int64()),
        pa.field("position", pa.int64()),
    ]
)

RECENT_MS = 10_000  # younger checkpoints are all kept: with twenty views a round writes 40 rows for each that is,
SPACING_MS = 60_000  # of older ones one a minute,
SPARSE_AFTER_MS = 2 * 3_600_000  # and of those older than two hours
SPARSE_MS = 600_000  # one in ten minutes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A time which all tables had reached: `versions` and `positions` by relation, `names` for people."""

    n: int
    time: int
    versions: Mapping[int, int]
    positions: Mapping[int, int]
    names: Mapping[int, str]

    @property
    def position(self) -> int:
        """The entry after which a reader of any relation may have to read the log."""
        return min(self.positions.values(), default=self.n)


def listed(lake: Lake) -> list[Checkpoint]:
    """All checkpoints that can be read from, oldest first."""
    with lake.lock:
        known: tuple[DeltaTable, int, list[Checkpoint]] | None = lake.cache.get(NAME)
        if known is None:
            try:
                table = DeltaTable(str(table_path(lake, NAME)))
            except TableNotFoundError:
                return []
        else:
            table = known[0]
            table.update_incremental()
            if table.version() == known[1]:
                return known[2]
        found = _decode(table.to_pyarrow_table().to_pylist())
        lake.cache[NAME] = (table, table.version(), found)
        return found


def newest(lake: Lake, at: int | None = None) -> Checkpoint | None:
    """The newest one whose time is not later than `at`."""
    return next((c for c in reversed(listed(lake)) if at is None or c.time <= at), None)


def _decode(rows: Iterable[Mapping[str, Any]]) -> list[Checkpoint]:
    found: dict[int, Checkpoint] = {}
    for row in rows:
        at = found.setdefault(row["n"], Checkpoint(row["n"], row["time"], {}, {}, {}))
        if row["relation"]:
            for values, value in ((at.versions, "version"), (at.positions, "position"), (at.names, "name")):
                values[row["relation"]] = row[value]  # type: ignore[index]  # made four lines above
    return [found[n] for n in sorted(found)]


def thinned(all: list[Checkpoint], now: int, since: int) -> list[Checkpoint]:
    """The ones to keep: the newest not later than `since`, the newest of all, and between them as the spacings above say."""
    oldest = max((i for i, c in enumerate(all) if c.time <= since), default=0)
    kept: list[Checkpoint] = []
    for i, checkpoint in enumerate(all[oldest:]):
        age = now - checkpoint.time
        spacing = 0 if age < RECENT_MS else SPACING_MS if age < SPARSE_AFTER_MS else SPARSE_MS
        if i == 0 or oldest + i == len(all) - 1 or checkpoint.time // max(spacing, 1) != kept[-1].time // max(spacing, 1):
            kept.append(checkpoint)
    return kept


def write(lake: Lake, all: list[Checkpoint], table: DeltaTable | None) -> DeltaTable:
    """Makes this the list; `table` is what an earlier call gave. The transaction has the number of the newest checkpoint."""
    path = str(table_path(lake, NAME))
    if table is None:
        table = DeltaTable.create(path, SCHEMA, mode="ignore", name=NAME, configuration=CONFIGURATION)
    table.update_incremental()
    rows = [
        {"n": c.n, "time": c.time, "relation": r, "name": c.names.get(r, ""), "version": v, "position": c.positions.get(r, c.n)}
        for c in all
        for r, v in (c.versions or {0: 0}).items()  # a checkpoint without relations is one too
    ]
    write_deltalake(
        table,
        pa.Table.from_pylist(rows, schema=SCHEMA),
        mode="overwrite",
        commit_properties=commit(NAME, all[-1].n),
        post_commithook_properties=NO_HOOKS,
    )
    return table


# ---- how every table is written ------------------------------------------------------------------------------------------

# No deletion vectors and no column mapping: both writers and all readers know the rest. Logs and removed files are tended by
# `lake.tending` by the checkpoints listed here; the durations are for what others run on the table.
CONFIGURATION: dict[str, str | None] = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}

NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def commit(application: str, n: int) -> CommitProperties:
    """W5: the transaction that says up to which entry a table holds its relation.

    A commit is not tried again on top of another's: what it was computed from is no longer there.
    """
    return CommitProperties(app_transactions=[Transaction(application, n)], max_commit_retries=0)
