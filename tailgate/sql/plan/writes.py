"""Bound INSERT, COPY, UPDATE, DELETE and TRUNCATE: the table, and plans for the changes and RETURNING.

In these plans the relation `INCOMING` contains the rows to insert: the columns of the table, then
`place`, the position of the row in the statement, from 0. The executor of a plan provides it.

`demands` are the privileges to write the table and those that the plans need (`sql.authorization`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tailgate.lake.catalog import Item
from tailgate.lake.types import INT8, Field, Type
from tailgate.sql.authorization import Demand
from tailgate.sql.plan import Relation

INCOMING = 0  # a relation id that is not the id of any item
PLACE = Field("place", INT8, False)
Checks: TypeAlias = tuple[tuple[str, Relation], ...]  # (constraint, a plan over INCOMING: the places of rows that violate it)


@dataclass(frozen=True, slots=True)
class InsertRows:
    """A bound INSERT or COPY.

    `rows`: a plan with the columns of the table. For COPY it reads the client's rows from INCOMING; None
    if these have all columns. `existing`: a plan over INCOMING and the table, None if the table has no
    key. Its columns are the place, the existing row with the same key, and for DO UPDATE whether its
    WHERE is true and the new row. `conflict`: the action for a row whose key exists. `returning`: a plan
    over INCOMING, None without RETURNING.
    """

    table: Item
    rows: Relation | None
    existing: Relation | None
    conflict: str  # 'error', 'nothing', 'update'
    returning: Relation | None = None
    parameters: tuple[Type, ...] = ()
    demands: tuple[Demand, ...] = ()
    checks: Checks = ()


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """A bound UPDATE or DELETE.

    `rows`: one row per affected row: the old columns, the number of copies (int8), the new columns (UPDATE
    only), then the columns of RETURNING. `pinned`: the WHERE clause fixes the key, so the statement reads
    at most one row of the table.
    """

    table: Item
    rows: Relation
    updates: bool
    pinned: bool
    returning: tuple[Field, ...] | None = None
    parameters: tuple[Type, ...] = ()
    demands: tuple[Demand, ...] = ()
    checks: Checks = ()


@dataclass(frozen=True, slots=True)
class TruncateTables:
    """A bound TRUNCATE."""

    tables: tuple[Item, ...]
    parameters: tuple[Type, ...] = ()

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns the demands for TRUNCATE on each table."""
        return tuple(Demand("TRUNCATE", table.id) for table in self.tables)


BoundWrite: TypeAlias = InsertRows | ChangeRows | TruncateTables
