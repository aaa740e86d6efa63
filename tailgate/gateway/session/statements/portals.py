"""Prepared statements, portals and cursors, which a session keeps between messages. A cursor is a portal with its name.

Statement text ──Parse──► Prepared ──Bind──► Portal ──Execute, FETCH──► rows, some at a time
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tailgate.gateway.catalog.catalog_query import CatalogQuery, Described
from tailgate.gateway.resources.background import Background
from tailgate.gateway.resources.budgets import ChargedDict
from tailgate.gateway.results.rows import Rows
from tailgate.gateway.serving.prepared import PLAN_FACTOR, Prepared
from tailgate.gateway.session.statements.parsing import ParsedStatement
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import FeatureNotSupported, InvalidCursorName, InvalidSqlStatementName, ObjectInUse, ProgramLimitExceeded
from tailgate.lake.types import TEXT, UNKNOWN, Field, Type

STATEMENTS_MAX = 10_000  # prepared statements per session: a client that never closes them would fill memory

BOUND_BYTES = 1 << 10  # memory of a statement without its text and plan
PORTAL_BYTES = 16 << 10  # memory of a portal, including a small number of rows, which are not charged
VALUE_FACTOR = 4  # memory of a value per byte of the message


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement with resolved names and types.

    `statement`: the one that runs, `parsed`: the one of the text, for which a query of ksqlDB has another one. `columns`: those of the
    result, None if it has no rows. `parameters`: the types of $1, $2, …. `prepared`: the prepared query. `catalog`: the one in which
    the names were resolved; with a newer catalog, `parsed` is bound again. `body`: further data that depends on the kind of statement.
    `literals`: if `statement` is not that of the text, the positions of the text's literals that columns are compared with, by value.
    """

    statement: ParsedStatement
    parsed: ParsedStatement
    text: str
    position: int = 0
    columns: tuple[Field, ...] | None = None
    parameters: tuple[Type, ...] = ()
    prepared: Prepared | None = None
    is_catalog: bool = False
    catalog: Catalog | None = field(default=None, compare=False, repr=False)
    literals: Mapping[object, int] | None = None
    # the inner Bound of COPY and DECLARE, the CatalogBound of a catalog query, the tail.Target of a TAIL, the Query of a SELECT that calls
    # sequences for each row
    body: Any = None

    @property
    def size(self) -> int:
        """Returns the approximate memory of the statement, in bytes."""
        if self.prepared is not None:
            return len(self.text) + self.prepared.size
        return BOUND_BYTES + len(self.text) + (self.body.size if hasattr(self.body, "size") else len(self.text) * PLAN_FACTOR)


@dataclass(frozen=True, slots=True)
class CatalogBound:
    """A query of the system catalog, and its columns."""

    query: CatalogQuery
    described: Described

    @property
    def size(self) -> int:
        return self.query.size


def declared(types: Sequence[Type]) -> tuple[Type, ...]:
    """Replaces unknown parameter types by text, as PostgreSQL does."""
    return tuple(TEXT if t == UNKNOWN else t for t in types)


def check_result(described: Bound, bound: Bound) -> None:
    """Raises 0A000 if a statement returns other columns than those that Describe has returned."""
    if _result(described) != _result(bound):
        raise FeatureNotSupported("cached plan must not change result type")


def _result(bound: Bound) -> list[tuple[str, Type]] | None:
    return None if bound.columns is None else [(c.name, replace(c.type, multidimensional=False)) for c in bound.columns]


@dataclass(slots=True)
class Statement:
    """A prepared statement.

    `raw`: its text as received, a key of caches. `oids`: the parameter types in Parse. `command`: the text of PREPARE, empty for a
    statement of the extended protocol. `created_s`: since the epoch.
    """

    name: str
    raw: bytes
    oids: tuple[int, ...]
    bound: Bound
    command: str = ""
    created_s: float = field(default_factory=time.time)

    @property
    def size(self) -> int:
        return BOUND_BYTES + len(self.raw) + self.bound.size


@dataclass(slots=True)
class Portal:
    """A portal or cursor.

    `rows`: None until it is run. `done`: its command was run, or its rows were sent. `key`: of the cache of polls, None if its result
    cannot be cached. `level`: the number of savepoints of its block at its creation.
    """

    name: str
    bound: Bound
    values: Sequence[object] = ()
    formats: tuple[int, ...] = ()
    key: Hashable = None
    rows: Rows | None = None
    exhausted: bool = False
    is_cursor: bool = False
    at: int | None = None  # for a TAIL, the time of DECLARE
    scroll: bool = True  # False for NO SCROLL
    hold: bool = False  # WITH HOLD
    held: bool = False  # its block was committed: it remains until it is closed
    statement: str = ""  # the name of its prepared statement
    value_bytes: int = 0  # of the values in the Bind message
    level: int = 0
    created_s: float = field(default_factory=time.time)  # since the epoch

    @property
    def size(self) -> int:
        """Returns the approximate memory in bytes, without rows: a large number of rows is charged separately.

        The statement of a named portal is a part, because the prepared statement may be replaced before the portal is closed.
        """
        return PORTAL_BYTES + VALUE_FACTOR * self.value_bytes + (self.bound.size if self.name else 0)

    async def close(self) -> None:
        """Ends the portal's rows, for example a TAIL."""
        self.exhausted = True
        if self.rows is not None:
            await self.rows.close()


class Statements(ChargedDict[Statement]):
    """The prepared statements of one session, by name."""

    def __init__(self) -> None:
        super().__init__(lambda statement: statement.size)

    def add(self, statement: Statement) -> None:
        """Stores a prepared statement. Raises 54000 if there are too many, and 53200 if memory is short."""
        if len(self) >= STATEMENTS_MAX:
            raise ProgramLimitExceeded(f"a session can have at most {STATEMENTS_MAX} prepared statements", hint="Use DEALLOCATE.")
        self[statement.name] = statement

    def find(self, name: str) -> Statement:
        """Returns the statement with this name. Raises 26000."""
        statement = self.get(name)
        if statement is None:
            raise InvalidSqlStatementName(
                f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
            )
        return statement


class Portals(ChargedDict[Portal]):
    """The portals and cursors of one session, by name."""

    def __init__(self, background: Background) -> None:
        super().__init__(lambda portal: portal.size)
        self._background = background

    def find(self, name: str, kind: str = "portal") -> Portal:
        """Returns the portal with this name. Raises 34000. `kind`: the word for it in the error."""
        portal = self.get(name)
        if portal is None:
            raise InvalidCursorName(f'{kind} "{name}" does not exist')
        return portal

    def formats(self, name: str) -> tuple[int, ...]:
        """Returns the format codes of a cursor; none if it does not exist."""
        portal = self.get(name)
        return () if portal is None else portal.formats

    def drop(self, name: str) -> None:
        """Closes a portal, if it exists."""
        portal = self.pop(name, None)
        if portal is not None and portal.rows is not None and not portal.rows.ended:
            self._background.run(portal.close())

    def drop_all(self, *, held: bool = False) -> None:
        """Closes all portals. Unless `held`, keeps cursors WITH HOLD whose block was committed."""
        for name, portal in list(self.items()):
            if held or not portal.held:
                self.drop(name)

    def back_to(self, level: int) -> None:
        """Closes the portals that were created at this or a higher level, as ROLLBACK TO and errors do."""
        for name in [name for name, portal in self.items() if portal.level >= level and not portal.held]:
            self.drop(name)

    def check_unused(self, items: Iterable[Item], command: str) -> None:
        """Raises 55006 if an open portal reads one of these relations. `command`: the statement that changes or removes them."""
        read = {id for p in self.values() if p.bound.prepared is not None and not p.held for id in p.bound.prepared.relations}
        for item in items:
            if item.id in read:
                raise ObjectInUse(f'cannot {command} "{item.name}" because it is being used by active queries in this session')

    def release(self, level: int) -> None:
        """Lowers the portals of released savepoints to the level of the remaining ones."""
        for portal in self.values():
            portal.level = min(portal.level, level)
