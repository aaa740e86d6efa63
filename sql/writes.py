"""What a statement writes, bound: tables, the plans of the rows that come and go, and of what RETURNING gives.

Rows that are being inserted are a relation of their own in these plans, `INCOMING`, with the table's columns and one more: the row's
place in the statement, from 0. Whoever runs a plan has them under that name.

`demands`: the privileges to write the table, and those that the plans need (`sql.authorization`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lake.catalog import Item
from lake.types import INT8, Field, Type
from sql.authorization import Demand
from sql.plan import Relation

INCOMING = 0  # a relation id that no item has
PLACE = Field("place", INT8, False)
Checks: TypeAlias = tuple[tuple[str, Relation], ...]  # by the name of a constraint, over INCOMING: the places of rows that it forbids


@dataclass(frozen=True, slots=True)
class InsertRows:
    """`rows`: of the table's columns. Of COPY, whose rows come from the client: over INCOMING, or None if they have all columns.

    `existing`: over INCOMING and the table: the place, then the columns of the row with that key, then, of DO UPDATE, whether its WHERE
    is true and the new columns; None of a table without a key. `conflict`: what happens to a row whose key is there.
    `returning`: over INCOMING, None without RETURNING.
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
    """UPDATE and DELETE. `rows`: a row for each that is found: the old columns, how many copies of it there are (int8), the new columns
    (UPDATE only), then what RETURNING gives. `pinned`: the key is given, so nothing but that row is read of the table."""

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
    tables: tuple[Item, ...]
    parameters: tuple[Type, ...] = ()

    @property
    def demands(self) -> tuple[Demand, ...]:
        return tuple(Demand("TRUNCATE", table.id) for table in self.tables)


BoundWrite: TypeAlias = InsertRows | ChangeRows | TruncateTables
