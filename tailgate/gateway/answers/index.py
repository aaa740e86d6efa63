"""An in-memory index of a relation's rows at one time.

    by its key             key → row, or its position among the first rows until it is looked up
    by other columns       values of the columns → {identity of a row → row, number of copies}

It is kept up to date with the relation's changes, so the cost of a tick is proportional to its changes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.serving.lookup_plans import AccessPath
from tailgate.lake.types import Field
from tailgate.values import raw

Row = tuple[Any, ...]  # of raw values
ROW_BYTES = 300  # memory of a row without its values
PIECE_ROWS = 2000  # rows of a batch that are applied at once, in about 4 ms: look-ups wait until the index has all rows of a tick
FIRST_PIECE_ROWS = 250  # of the first batch, for which no look-up waits: DuckDB answers meanwhile
FIRST_PIECE_KEYS = 2000  # the same, of which only the key is read


class NetChanges:
    """Net changes of a relation, with the weight in the last column. `bytes`: by how much they enlarge an index, approximately."""

    def __init__(self, changes: pa.Table | None) -> None:
        self.rows = 0 if changes is None else changes.num_rows
        self.parts: tuple[pa.Table, ...] = ()
        self.bytes = 0
        if changes is not None and changes.num_rows:
            weights = changes.column(changes.num_columns - 1)
            deleted, inserted = (changes.filter(compared(weights, 0)) for compared in (pc.less, pc.greater))
            self.parts = (deleted, inserted)  # in this order: a key may have both
            self.bytes = _bytes(inserted) - _bytes(deleted)


def _bytes(rows: pa.Table) -> int:
    size: int = rows.nbytes + ROW_BYTES * rows.num_rows
    return size


class Index:
    """An index of a relation by the columns of `path`.

    `n`, `time`: the entry whose rows it has, and its time, -1 before the first. While `apply` runs they are the earlier ones, some rows are
    newer, and `is_partial`.
    """

    def __init__(self, fields: Sequence[Field], path: AccessPath) -> None:
        self.n, self.time = 0, -1
        self.is_partial = False
        self.hits = 0
        self.bytes = 0  # approximate
        self._moved: asyncio.Future[None] | None = None
        self._types = [f.type for f in fields]
        self._by = path.columns
        self._key = path.key
        self._rows: dict[Row, Row | int] = {}
        self._first: list[pa.RecordBatch] = []  # the rows of the first batch; a row is converted when it is looked up
        self._starts: list[int] = []  # the position of the first row of each
        self._groups: dict[Row, dict[Row, list[Any]]] = {}
        self._identity: Callable[[Row], Row] = _identity(fields, path.key)

    @property
    def unique(self) -> bool:
        return self._by == self._key

    def moved(self) -> asyncio.Future[None]:
        """Returns a future, the same for all callers, that is done when the index reaches a new time."""
        if self._moved is None:
            self._moved = asyncio.get_running_loop().create_future()
        return self._moved

    def find(self, key: Row, most: int) -> Sequence[Row]:
        """Returns at most `most` rows with these values."""
        if self.unique:
            row = self._rows.get(key)
            if isinstance(row, int):
                row = self._rows[key] = self._first_row(row)
            return () if row is None else (row,)
        rows: list[Row] = []
        for row, times in self._groups.get(key, {}).values():
            rows += [row] * min(times, most - len(rows))
            if len(rows) >= most:
                break
        return rows

    def apply(self, n: int, time: int, changes: NetChanges) -> Iterator[None]:
        """Applies the net changes up to an entry and its time.

        Yields after each piece of a large batch, so that other tasks can run. Until the last one the index has its earlier time, at which
        it is not current.
        """
        self.is_partial = True
        self.bytes += changes.bytes
        if self.unique and self.time < 0:
            yield from self._put_first(changes)
        else:
            yield from self._put_all(changes, FIRST_PIECE_ROWS if self.time < 0 else PIECE_ROWS)
        self.n, self.time, self.is_partial = n, time, False
        if self._moved is not None:
            self._moved.set_result(None)
            self._moved = None

    def _put_first(self, changes: NetChanges) -> Iterator[None]:
        """Puts the keys of the first batch, which has no deletions. A key takes a tenth of the time of a row."""
        for batch in (batch for part in changes.parts for batch in part.to_batches()):
            first = self._starts[-1] + self._first[-1].num_rows if self._first else 0
            self._first.append(batch)
            self._starts.append(first)
            for start in range(0, batch.num_rows, FIRST_PIECE_KEYS):
                self._rows.update(zip(self._rows_of(batch.slice(start, FIRST_PIECE_KEYS), self._by), count(first + start)))
                if changes.rows > PIECE_ROWS:
                    yield

    def _first_row(self, position: int) -> Row:
        number = bisect_right(self._starts, position) - 1
        return next(self._rows_of(self._first[number].slice(position - self._starts[number], 1), range(len(self._types))))

    def _put_all(self, changes: NetChanges, piece: int) -> Iterator[None]:
        for number, part in enumerate(changes.parts):
            for start in range(0, part.num_rows, piece):
                self._put(part.slice(start, piece), deleted=number == 0)
                if changes.rows > PIECE_ROWS:
                    yield

    def _put(self, changes: pa.Table, *, deleted: bool) -> None:
        if self.unique and deleted:
            for key in self._rows_of(changes, self._by):
                self._rows.pop(key, None)
        elif self.unique:
            keys = self._rows_of(changes, self._by)
            self._rows.update(zip(keys, self._rows_of(changes, range(len(self._types))), strict=True))
        else:
            rows = self._rows_of(changes, range(len(self._types)))
            for row, weight in zip(rows, changes.column(changes.num_columns - 1).to_pylist(), strict=True):
                self._put_in_group(tuple([row[i] for i in self._by]), row, weight)

    def _rows_of(self, changes: pa.Table | pa.RecordBatch, columns: Iterable[int]) -> Iterator[Row]:
        """Returns these columns of changes, row by row."""
        return zip(*(raw.values(raw.stored(changes.column(i), self._types[i]), self._types[i]) for i in columns), strict=True)

    def _put_in_group(self, key: Row, row: Row, weight: int) -> None:
        if None in key:
            return  # nothing equals NULL
        group = self._groups.setdefault(key, {})
        identity = self._identity(row)
        entry = group.get(identity)
        times = weight + (entry[1] if entry is not None else 0)
        if times:
            group[identity] = [row, times]
        else:
            del group[identity]
            if not group:
                del self._groups[key]


def _identity(fields: Sequence[Field], key: tuple[int, ...] | None) -> Callable[[Row], Row]:
    """Returns the function that computes a row's identity: its key, or all its values, compared by their bytes."""
    if key is not None:
        return lambda row: tuple([row[i] for i in key])
    if not any(f.type.is_array or f.type.name in ("float4", "float8", "record") for f in fields):
        return lambda row: row
    return _frozen


def _frozen(value: Any) -> Any:
    """Converts a value for comparison: floats by their bits, because NaN ≠ NaN and -0 = 0, and arrays to hashable tuples."""
    if isinstance(value, float):
        return value.hex()
    return tuple(map(_frozen, value)) if isinstance(value, (tuple, list)) else value
