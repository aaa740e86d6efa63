"""Prepared statements, portals and cursors: what a session keeps between messages. A cursor is a portal of the same name.

Statement text ──Parse──► Prepared ──Bind──► Portal ──Execute, FETCH──► rows, some at a time
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from gateway.catalog import CatalogQuery, Described
from gateway.parsed import Known
from gateway.scrolling import moved
from gateway.serving.prepared import PLAN_FACTOR
from lake.errors import FeatureNotSupported
from lake.types import Field, Type

if TYPE_CHECKING:
    from gateway import serving
    from lake.catalog import Catalog


BOUND_BYTES = 1 << 10  # of a statement besides its text and plan
PORTAL_BYTES = 16 << 10  # of a portal, rows that are too few to be charged among it
VALUE_FACTOR = 4  # bytes of a value for each byte that was sent of it


class Rows(Protocol):
    """The rows of a statement that was begun. `fetch` waits for at least one, or gives none when `ended`; at most `limit`."""

    @property
    def columns(self) -> Sequence[Field]: ...

    @property
    def ended(self) -> bool: ...

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table: ...

    async def close(self) -> None: ...


class TableRows:
    """Rows that are all there. `step`: how many at most are given at once when no limit is set, to bound what is encoded in one go.

    `at`: the row that was given last, from 1; 0 before the first, one more than there are behind the last.
    """

    def __init__(self, columns: Sequence[Field], table: pa.Table, step: int = 65_536) -> None:
        self.columns = columns
        self._table = table
        self._step = step
        self.at = 0
        self.ended = False

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        return self.scroll("forward", self._step if limit is None else min(limit, self._step))

    def scroll(self, way: str, count: int | None) -> pa.Table:
        """The rows that FETCH gives in this direction; `ended` tells of the way forward."""
        size = self._table.num_rows
        first, number, self.at = moved(self.at, size, way, count)
        self.ended = self.at >= size
        return self._table.slice(first, number) if number > 0 else self._table.take(pa.array(np.arange(first, first + number, -1)))

    @property
    def nbytes(self) -> int:
        return int(self._table.nbytes)

    async def close(self) -> None:
        self.ended = True


class Tagged:
    """Rows whose tag is not SELECT's; `counted`: it says how many rows there were."""

    def __init__(self, rows: Rows, word: str, *, counted: bool = True) -> None:
        self.columns = rows.columns
        self.word = word
        self.counted = counted
        self._rows = rows

    @property
    def ended(self) -> bool:
        return self._rows.ended

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        return await self._rows.fetch(limit, timeout)

    async def close(self) -> None:
        await self._rows.close()


def tag(rows: Rows, count: int) -> str:
    if isinstance(rows, Tagged):
        return f"{rows.word} {count}" if rows.counted else rows.word
    return f"SELECT {count}"


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement after names and types were looked up.

    `columns`: of its result, None if it has none. `parameters`: types of $1, $2, …. `prepared`: what serving made of a query.
    `catalog`: what the names were looked up in; another one means to look again. `body`: what its kind needs besides.
    """

    statement: Known
    text: str
    position: int = 0
    columns: tuple[Field, ...] | None = None
    parameters: tuple[Type, ...] = ()
    prepared: serving.Prepared | None = None
    is_catalog: bool = False
    catalog: Catalog | None = field(default=None, compare=False, repr=False)
    body: Any = None  # the bound statement inside COPY and DECLARE; of a catalog query, a CatalogBound; the item of a TAIL

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        if self.prepared is not None:
            return len(self.text) + self.prepared.size
        return BOUND_BYTES + len(self.text) + (self.body.size if hasattr(self.body, "size") else len(self.text) * PLAN_FACTOR)


@dataclass(frozen=True, slots=True)
class CatalogBound:
    """A query of the system catalog, and its columns."""

    query: CatalogQuery
    told: Described

    @property
    def size(self) -> int:
        return self.query.size


def check_result(described: Bound, bound: Bound) -> None:
    """Raises 0A000 if a statement would return other columns than those that it was described with."""
    if _result(described) != _result(bound):
        raise FeatureNotSupported("cached plan must not change result type")


def _result(bound: Bound) -> list[tuple[str, Type]] | None:
    return None if bound.columns is None else [(c.name, c.type) for c in bound.columns]


@dataclass(slots=True)
class Statement:
    """A prepared statement. `raw`: its text as sent, a key of caches. `oids`: as Parse gave them."""

    name: str
    raw: bytes
    oids: tuple[int, ...]
    bound: Bound
    from_sql: bool = False

    @property
    def size(self) -> int:
        return BOUND_BYTES + len(self.raw) + self.bound.size


@dataclass(slots=True)
class Portal:
    """`rows` is None until it is begun, `done` once a command was run. `key`: of the cache of ready bytes, if it may be there."""

    name: str
    bound: Bound
    values: Sequence[object] = ()
    formats: tuple[int, ...] = ()
    key: Hashable = None
    rows: Rows | None = None
    done: bool = False
    is_cursor: bool = False
    at: int | None = None  # of a TAIL: the time at which it was declared
    scroll: bool = True  # not NO SCROLL
    hold: bool = False  # WITH HOLD
    held: bool = False  # its block was committed: it stays until it is closed
    given: int = 0  # bytes of its values as they were sent

    @property
    def size(self) -> int:
        """Without rows, which are charged by themselves where they are many."""
        return PORTAL_BYTES + VALUE_FACTOR * self.given


async def close(portal: Portal) -> None:
    portal.done = True
    if portal.rows is not None:
        await portal.rows.close()
