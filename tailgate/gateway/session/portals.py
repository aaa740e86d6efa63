"""Prepared statements, portals and cursors, which a session keeps between messages. A cursor is a portal with its name.

Statement text ──Parse──► Prepared ──Bind──► Portal ──Execute, FETCH──► rows, some at a time
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from tailgate.gateway.catalog.catalog_query import CatalogQuery, Described
from tailgate.gateway.results.scrolling import moved
from tailgate.gateway.serving.prepared import PLAN_FACTOR
from tailgate.gateway.session.statement_cache import Known
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field, Type

if TYPE_CHECKING:
    from tailgate.gateway.serving.prepared import Prepared
    from tailgate.lake.catalog import Catalog


BOUND_BYTES = 1 << 10  # memory of a statement without its text and plan
PORTAL_BYTES = 16 << 10  # memory of a portal, including a small number of rows, which are not charged
VALUE_FACTOR = 4  # memory of a value per byte of the message


class Rows(Protocol):
    """The rows of a running statement.

    `fetch` waits for at least one row and returns at most `limit`. It returns none after the last row, when `ended` is true.
    """

    @property
    def columns(self) -> Sequence[Field]: ...

    @property
    def ended(self) -> bool: ...

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table: ...

    async def close(self) -> None: ...


class TableRows:
    """The rows of a complete result, which is in memory.

    `step`: the maximal number of rows per fetch, which bounds the work of encoding. `at`: the cursor's position: the number of the
    last fetched row, counted from 1; 0 before the first row, and the number of rows plus 1 after the last.
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
        """Moves the cursor and returns the rows. `way` and `count`: as in `moved`. `ended` refers to the forward direction."""
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
    """Rows with a command tag other than SELECT. `counted`: the tag contains the number of rows."""

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
    """Returns the command tag for `count` rows."""
    if isinstance(rows, Tagged):
        return f"{rows.word} {count}" if rows.counted else rows.word
    return f"SELECT {count}"


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement with resolved names and types.

    `columns`: those of the result, None if it has no rows. `parameters`: the types of $1, $2, …. `prepared`: the prepared query.
    `catalog`: the one in which the names were resolved; with a newer catalog the statement is bound again. `body`: further data
    that depends on the kind of statement.
    """

    statement: Known
    text: str
    position: int = 0
    columns: tuple[Field, ...] | None = None
    parameters: tuple[Type, ...] = ()
    prepared: Prepared | None = None
    is_catalog: bool = False
    catalog: Catalog | None = field(default=None, compare=False, repr=False)
    body: Any = None  # the inner Bound of COPY and DECLARE, the CatalogBound of a catalog query, the tail.Target of a TAIL

    @property
    def size(self) -> int:
        """The approximate memory of the statement, in bytes."""
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
    """Raises 0A000 if a statement returns other columns than those that Describe has returned."""
    if _result(described) != _result(bound):
        raise FeatureNotSupported("cached plan must not change result type")


def _result(bound: Bound) -> list[tuple[str, Type]] | None:
    return None if bound.columns is None else [(c.name, c.type) for c in bound.columns]


@dataclass(slots=True)
class Statement:
    """A prepared statement. `raw`: its text as received, a key of caches. `oids`: the parameter types in Parse."""

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
    """A portal or cursor.

    `rows`: None until it is run. `done`: its command was run, or its rows were sent. `key`: of the cache of polls, None if its result
    cannot be cached.
    """

    name: str
    bound: Bound
    values: Sequence[object] = ()
    formats: tuple[int, ...] = ()
    key: Hashable = None
    rows: Rows | None = None
    done: bool = False
    is_cursor: bool = False
    at: int | None = None  # for a TAIL, the time of DECLARE
    scroll: bool = True  # False for NO SCROLL
    hold: bool = False  # WITH HOLD
    held: bool = False  # its block was committed: it remains until it is closed
    given: int = 0  # bytes of its values in the message

    @property
    def size(self) -> int:
        """The approximate memory in bytes, without rows: a large number of rows is charged separately."""
        return PORTAL_BYTES + VALUE_FACTOR * self.given


async def close(portal: Portal) -> None:
    portal.done = True
    if portal.rows is not None:
        await portal.rows.close()
