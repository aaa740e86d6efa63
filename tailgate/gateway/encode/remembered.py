"""Cached DataRows of rows that are requested repeatedly.

An index gives the same object for a row until it changes, so the object tells whether its bytes are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tailgate.gateway.protocol import backend

REMEMBERED_MAX = 10_000  # rows of all look-ups together, after which all are forgotten
BYTES_MAX = 2_000  # of a row that is remembered


class Encoding:
    """Some columns of rows in raw form, each by its encoder."""

    __slots__ = ("_columns", "_encoders")

    # By the identity of the row, which stays unique while the row is in the cache: the row, its last encoding and the bytes.
    _cached: ClassVar[dict[int, tuple[tuple[Any, ...], Encoding, bytes]]] = {}

    def __init__(self, columns: Sequence[int], encoders: Sequence[Callable[[Any], bytes]]) -> None:
        self._columns = columns
        self._encoders = encoders

    def row(self, row: tuple[Any, ...]) -> bytes:
        """Returns the DataRow of a row."""
        entry = self._cached.get(id(row))
        if entry is not None and entry[1] is self:
            return entry[2]
        values = [None if row[i] is None else encode(row[i]) for i, encode in zip(self._columns, self._encoders, strict=True)]
        data = backend.data_row(values)
        if len(data) <= BYTES_MAX:
            if len(self._cached) >= REMEMBERED_MAX:
                self._cached.clear()
            self._cached[id(row)] = (row, self, data)
        return data
