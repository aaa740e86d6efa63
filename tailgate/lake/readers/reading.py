"""Reading a relation at a time (R1-R4).

    checkpoint c ≤ t ──► its table at that version ─┐
    entries (c, t]   ──► its changes ───────────────┴─► sum ──► rows with weights above zero

If files of a checkpoint or entries are removed during a read, the read starts again from a newer
checkpoint. It raises `Gone` if the time can no longer be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from deltalake.exceptions import DeltaError

from tailgate.lake.catalog import HistoryItem, Item
from tailgate.lake.errors import CannotConnectNow, Gone, TailgateError, UndefinedTable, of
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Entry, Header
from tailgate.lake.readers import holds
from tailgate.lake.readers.failed import error_change, failure, owner
from tailgate.lake.tables import checkpoints, delta
from tailgate.lake.tables.checkpoints import Checkpoint
from tailgate.lake.tables.delta_forms import from_delta
from tailgate.lake.tables.first_rows import first_rows
from tailgate.lake.tables.stored_relations import COUNT, Stored, begun, relations, table_name
from tailgate.lake.tables.weights import formed, negated, negative, positive, total
from tailgate.lake.types import WEIGHT

RETAIN_HISTORY_MS = 3_600_000  # age of `since` if no relation asks for more; see `retain_history`

ATTEMPTS = 3


def retain_history(ms: int) -> None:
    """Sets how long past states stay readable in this process, the engine."""
    global RETAIN_HISTORY_MS
    RETAIN_HISTORY_MS = ms


def since_wanted(lake: Lake, first: int | None = None, held: Iterable[holds.Hold] | None = None) -> int:
    """Returns the largest permitted `since`: the requested history and the holds of all readers stay readable.

    `first`, `held`: the oldest entry and the holds, if the caller knows them.
    """
    histories = (item.retain_history_ms for item in lake.catalog().items.values() if isinstance(item, HistoryItem))
    old = lake.log.aged(max([RETAIN_HISTORY_MS, *histories]), first)
    all_holds = holds.holds(lake) if held is None else held
    return min([old.time if old else 0, *(hold.since for hold in all_holds if hold.stopped is None and hold.since is not None)])


def since(lake: Lake) -> int:
    """Returns the oldest time that can be read; 0 before the first entry."""
    first = lake.log.first()
    if first <= 1:
        return lake.log.header(1).time if first else 0
    readable = [c.time for c in checkpoints.listed(lake) if c.position >= first]
    assert readable, f"the log begins with entry {first} and no checkpoint reaches it"
    return readable[0]


def readable_since(lake: Lake, relations_read: Iterable[int]) -> int:
    """Returns the oldest time at which all of these relations can be read: `since`, or later if one became readable later."""
    return max([since(lake), *(_began(lake, relation) for relation in relations_read)])


def _began(lake: Lake, relation: int) -> int:
    """Returns the time from which a relation is stored and ready; 0 if that is older than the log or has not happened yet."""
    times: dict[int, int] = lake.cache.setdefault(f"{__name__}.began", {})
    if relation not in times:
        newest = lake.log.newest()
        low, high = lake.log.first(), newest.n if newest else 0
        if not _filled(lake, relation, high) or _filled(lake, relation, low):
            return 0
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if _filled(lake, relation, middle) else (middle, high)
        times[relation] = lake.log.header(high).time
    return times[relation]


def _filled(lake: Lake, relation: int, n: int) -> bool:
    stored = relations(lake.catalog_at(n)).get(relation)
    return stored is not None and stored.ready


def snapshot(lake: Lake, relation: int, at: int | None = None, first: int | None = None) -> pa.Table:
    """Returns the rows of a relation at a time, by default the newest (R1). Each distinct row comes once, with `__weight` above zero.

    `first`: so many rows suffice, any of them; others may be missing.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _snapshot(lake, relation, at, first)
        except (Gone, FileNotFoundError):
            if attempt == ATTEMPTS - 1:
                raise
            lake.cache.pop(checkpoints.NAME, None)
        except (DeltaError, pa.ArrowException, OSError) as error:
            raise CannotConnectNow("the tables are not readable yet", hint="The engine repairs them when it has started.") from error
    raise AssertionError("not reached")


def _snapshot(lake: Lake, relation: int, at: int | None, first: int | None = None) -> pa.Table:
    if at is not None and (item := owner(lake.catalog(), relation)) is not None:
        why = failure(item)
        if why is not None and why.time <= at < since(lake):  # since the failure, only one row of its errors has changed
            rows = _snapshot(lake, relation, None)
            return rows if relation == item.id else positive(total([rows, error_change(why.message, -1)], rows.schema))
    upto, checkpoint = base(lake, at)
    stored = relations(lake.catalog_at(upto.n)).get(relation)
    if stored is None:
        current = relations(lake.catalog()).get(relation)
        raise UndefinedTable(f'relation "{current.name}" does not exist at time {upto.time}' if current else "the relation does not exist")
    return positive(rows_at(lake, stored, checkpoint, upto.n, first))


def rows_at(lake: Lake, stored: Stored, checkpoint: Checkpoint | None, upto: int, first: int | None = None) -> pa.Table:
    """Returns the sum of a relation's table at a checkpoint and the log's changes up to an entry, with `__weight`.

    `first`: so many rows with weights above zero suffice. Then rows may be missing, and those that have left may have weights below zero.
    """
    version, position = table_at(checkpoint, stored.id)
    parts: list[pa.Table] = []
    for entry in lake.log.after(position, upto):
        if stored.id in begun(entry.header.catalog):
            version, parts = None, []
        if (changes := entry.changes(stored.id)) is not None:
            parts.append(changes)
    if first is not None and parts:  # the changes may remove as many rows
        parts = [total(parts, stored.changes)]
        first += negative(parts[0]).num_rows
    rows = stored.changes.empty_table() if version is None else read_table(lake, stored, version, first)
    return total([rows, *parts], stored.changes) if parts else rows


def base(lake: Lake, at: int | None) -> tuple[Header, Checkpoint | None]:
    """Returns the entry to read up to, and the checkpoint to start from. Raises `Gone` if `at` is below `since` (R3)."""
    newest = lake.log.newest()
    if newest is None:
        raise Gone("the log is empty")
    checkpoint = checkpoints.newest(lake, newest.time if at is None else at)  # the tables may be ahead of an entry that was newest
    upto = newest if at is None else lake.log.find(at)
    oldest = since(lake)
    if upto is None or upto.time < oldest or (at is not None and at < oldest):
        raise Gone(f"time {at} is no longer kept", hint=f"The oldest time that can be read is {oldest}.")
    return upto, checkpoint


def table_at(checkpoint: Checkpoint | None, relation: int) -> tuple[int | None, int]:
    """Returns the version of a relation's table at a checkpoint, and the entry after which the log's changes apply.

    The version is None if the relation was created after the checkpoint.
    """
    if checkpoint is None:
        return None, 0
    return checkpoint.versions.get(relation), checkpoint.positions.get(relation, checkpoint.n)


def read_table(lake: Lake, stored: Stored, version: int, first: int | None = None) -> pa.Table:
    """Returns the rows of a table at a version, by default all, with `__weight`."""
    name = table_name(stored.id)
    table = delta.table(lake.store, name, version)
    rows = delta.rows(lake.store, name, table) if first is None else first_rows(lake.store, name, table, first)
    rows = from_delta(rows, stored.changes)
    if stored.key is None:  # columns that were added later follow the count
        return formed(rows.select([*(name for name in rows.column_names if name != COUNT), COUNT]), stored.changes)
    return formed(rows.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)), stored.changes)


def changes(lake: Lake, relation: int, after: int, upto: int | None = None) -> Iterator[tuple[Header, pa.Table]]:
    """Yields the changes of a relation with times in (`after`, `upto`], entry by entry (R4)."""
    begin, end = lake.log.find(after), lake.log.newest() if upto is None else lake.log.find(upto)
    if begin is None and lake.log.first() > 1:
        raise Gone(f"changes since time {after} are no longer kept", hint=f"The oldest time that can be read is {since(lake)}.")
    if end is not None:
        for entry in lake.log.after(begin.n if begin else 0, end.n):
            if (table := entry.changes(relation)) is not None:
                yield entry.header, table


def net(lake: Lake, entry: Entry, relation: int) -> pa.Table | None:
    """Returns an entry's changes of a relation. If the entry empties the relation, the changes include the removal of its rows."""
    entry_changes, n = entry.changes(relation), entry.header.n
    if relation not in begun(entry.header.catalog) or n == 1 or relation not in relations(lake.catalog_at(n - 1)):
        return entry_changes
    before = snapshot(lake, relation, lake.log.header(n - 1).time)
    return total([negated(before), *([] if entry_changes is None else [entry_changes])], before.schema)


def error(lake: Lake, item: Item, at: int | None = None) -> TailgateError | None:
    """Returns the error with which reading an item at a time must fail, or None: one of its errors that sum above zero."""
    if not item.errors:
        return None
    active = sorted((row["sqlstate"], row["message"]) for row in snapshot(lake, item.errors, at).to_pylist())
    return of(*active[0]) if active else None
