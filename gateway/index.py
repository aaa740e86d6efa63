"""Rows of a relation by some of its columns, in memory, as new as a time.

    by its key             key → row
    by other columns       value of the columns → {what tells rows apart → row, how often}

Fed with a relation's changes like any follower: a tick costs its changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gateway.encode import raw
from gateway.keys import Way
from lake.types import Field

Row = tuple[Any, ...]  # of raw values
ROW_BYTES = 300  # of a row besides its values
PIECE_ROWS = 5_000  # of a large batch that are put at once: some 10 ms of the event loop


class Index:
    def __init__(self, fields: Sequence[Field], way: Way) -> None:
        self.time = -1
        self.hits = 0
        self.count = 0  # rows
        self.bytes = 0  # about
        self.moved = asyncio.Event()
        self._types = [f.type for f in fields]
        self._by = way.columns
        self._key = way.key
        self._rows: dict[Row, Row] = {}
        self._groups: dict[Row, dict[Row, list[Any]]] = {}
        self._identity: Callable[[Row], Row] = _identity(fields, way.key)

    @property
    def unique(self) -> bool:
        return self._by == self._key

    def find(self, key: Row, most: int) -> Sequence[Row]:
        """The rows with these values, at most so many."""
        if self.unique:
            row = self._rows.get(key)
            return () if row is None else (row,)
        found: list[Row] = []
        for row, times in self._groups.get(key, {}).values():
            found += [row] * min(times, most - len(found))
            if len(found) >= most:
                break
        return found

    def apply(self, time: int, changes: pa.Table | None) -> Iterator[None]:
        """Net changes, with weights. Between pieces others may run, and `time` is -1: nothing can be told."""
        if changes is not None and changes.num_rows:
            weights = changes.column(changes.num_columns - 1)
            for coming in (False, True):  # what goes before what comes: a key may do both
                part = changes.filter((pc.greater if coming else pc.less)(weights, 0))
                self.bytes += (part.nbytes + ROW_BYTES * part.num_rows) * (1 if coming else -1)
                for start in range(0, part.num_rows, PIECE_ROWS):
                    self._put(part.slice(start, PIECE_ROWS))
                    if changes.num_rows > PIECE_ROWS:
                        self.time = -1
                        yield
        self.time = time
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()

    def _put(self, changes: pa.Table) -> None:
        columns = [raw.values(raw.stored(changes.column(i), t), t) for i, t in enumerate(self._types)]
        put = self._put_row if self.unique else self._put_in_group
        for row, weight in zip(zip(*columns, strict=True), changes.column(changes.num_columns - 1).to_pylist(), strict=True):
            put(tuple([row[i] for i in self._by]), row, weight)

    def _put_row(self, key: Row, row: Row, weight: int) -> None:
        if weight > 0:
            self._rows[key] = row
        else:
            self._rows.pop(key, None)
        self.count = len(self._rows)

    def _put_in_group(self, key: Row, row: Row, weight: int) -> None:
        if None in key:
            return  # nothing equals NULL
        group = self._groups.setdefault(key, {})
        identity = self._identity(row)
        known = group.get(identity)
        times = weight + (known[1] if known is not None else 0)
        if times:
            group[identity] = [row, times]
        else:
            del group[identity]
            if not group:
                del self._groups[key]
        self.count += weight


def _identity(fields: Sequence[Field], key: tuple[int, ...] | None) -> Callable[[Row], Row]:
    """What tells a row from others: its key, or all of it, in a form that is equal where its bytes are."""
    if key is not None:
        return lambda row: tuple([row[i] for i in key])
    if not any(f.type.is_array or f.type.name in ("float4", "float8", "record") for f in fields):
        return lambda row: row
    return _frozen


def _frozen(value: Any) -> Any:
    """Floats by their bits, for NaN does not equal itself and -0 equals 0; arrays as tuples, which have a hash."""
    if isinstance(value, float):
        return value.hex()
    return tuple(map(_frozen, value)) if isinstance(value, (tuple, list)) else value
