"""DataRows of rows that are asked for again and again.

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

    # By the row's identity, which is its own as long as it is here; with the encoding that made the bytes, the last one that was asked.
    _known: ClassVar[dict[int, tuple[tuple[Any, ...], Encoding, bytes]]] = {}

    def __init__(self, columns: Sequence[int], encoders: Sequence[Callable[[Any], bytes]]) -> None:
        self._columns = columns
        self._encoders = encoders

    def row(self, row: tuple[Any, ...]) -> bytes:
        """A DataRow."""
        known = self._known.get(id(row))
        if known is not None and known[1] is self:
            return known[2]
        values = [None if row[i] is None else encode(row[i]) for i, encode in zip(self._columns, self._encoders, strict=True)]
        data = backend.data_row(values)
        if len(data) <= BYTES_MAX:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[id(row)] = (row, self, data)
        return data
