"""Verification of a lake: everything that the log names exists and can be read, and the tables equal the log.

    log:     every entry from the oldest to the newest is there, and its sections have the rows that its header states
    tables:  oldest checkpoint + changes of the log = newest checkpoint
             newest checkpoint + changes of the log: no weight is negative, each key occurs once

Works beside a running engine. Needs memory for the largest relation, twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from tailgate.lake.errors import Gone, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.tables import checkpoints
from tailgate.lake.tables.checkpoints import Checkpoint
from tailgate.lake.tables.stored_relations import Stored, relations
from tailgate.lake.tables.weights import flattened, negated, negative, total
from tailgate.lake.types import WEIGHT

ATTEMPTS = 5  # per relation: files that are read may be removed by the running engine


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `problem`: a description, or None."""

    checked: str
    problem: str | None


def findings(lake: Lake) -> Iterator[Finding]:
    """Yields the result of each check. Raises 55000 if the lake has no log."""
    newest = lake.log.newest()
    if newest is None:
        raise Gone("the log is empty", hint="The engine writes its first entry when it starts.")
    yield _log(lake, newest.n)
    for stored in relations(lake.catalog()).values():
        yield Finding(f"the table of {stored.name}", _table(lake, stored))


def _log(lake: Lake, newest: int) -> Finding:
    """Reads every entry with its catalog change and its sections."""
    first = n = lake.log.first()
    entries = 0
    while n <= newest:
        try:
            entry = lake.log.read(n)
            if entry.header.n != n:
                return Finding("the log", f"entry {n} has the number {entry.header.n}")
            for section in entry.header.relations:
                rows = entry.read(section).num_rows
                if rows != section.rows:
                    return Finding(
                        "the log", f"entry {n} has {rows} rows of relation {section.relation}, and its header states {section.rows}"
                    )
        except Gone:
            if n >= lake.log.first():
                return Finding("the log", f"entry {n} or a file that it names is missing")
            n = lake.log.first()  # the engine has removed the oldest entries meanwhile
            continue
        except (TailgateError, pa.ArrowException, OSError, ValueError, KeyError) as error:
            return Finding("the log", f"entry {n} cannot be read: {error}")
        entries, n = entries + 1, n + 1
    return Finding(f"the log: {entries} entries from {first} to {newest}", None)


def _table(lake: Lake, stored: Stored) -> str | None:
    for attempt in range(ATTEMPTS):
        try:
            all = [c for c in checkpoints.listed(lake) if c.position >= lake.log.first() - 1]
            with_table = [c for c in all if stored.id in c.versions]
            return _differences(lake, stored, with_table[0], with_table[-1]) if with_table else None
        except (Gone, DeltaError, pa.ArrowException, OSError) as error:
            if attempt == ATTEMPTS - 1:
                return f"a file that the log or the list of checkpoints names cannot be read: {error}"
            lake.cache.pop(checkpoints.NAME, None)
    raise AssertionError("not reached")


def _differences(lake: Lake, stored: Stored, oldest: Checkpoint, newest: Checkpoint) -> str | None:
    """Compares the tables of both checkpoints with the changes between them, and checks the rows after all changes of the log."""
    version, position = newest.versions[stored.id], newest.positions.get(stored.id, newest.n)
    table = reading.read_table(lake, stored, version)
    differing = total([table, negated(reading.rows_at(lake, stored, oldest, position))], stored.changes).num_rows
    if differing:
        return f"{differing} rows differ between the table at version {version} and the log up to entry {position}"
    last = lake.log.newest()
    assert last is not None
    rows = reading.rows_at(lake, stored, newest, last.n)
    if (removed := negative(rows).num_rows) > 0:
        return f"{removed} rows are removed more often than they were added, up to entry {last.n}"
    if stored.key is not None and (repeated := _repeated(rows, stored)) > 0:
        return f"{repeated} keys occur more than once, up to entry {last.n}"
    return None


def _repeated(rows: pa.Table, stored: Stored) -> int:
    """Returns the number of keys with more than one row."""
    if not stored.key_names:
        return int(rows.num_rows > 1)
    keys = flattened(rows.select(stored.key_names))
    counts = keys.append_column(WEIGHT, rows[WEIGHT]).group_by(keys.column_names, use_threads=False).aggregate([(WEIGHT, "sum")])
    return int(pc.sum(pc.greater(counts[WEIGHT + "_sum"], 1)).as_py() or 0)
