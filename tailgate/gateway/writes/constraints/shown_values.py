"""The values of rows that an error of a constraint shows: those of columns that the role may read or has written.

Source: PostgreSQL 15, src/backend/executor/execMain.c (ExecBuildSlotValueDescription), src/backend/access/index/genam.c
(BuildIndexValueDescription), src/backend/utils/adt/ri_triggers.c (ri_ReportViolation).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.catalog.roles import OPERATOR, Role
from tailgate.sql.authorization import SELECT, Demand


@dataclass(frozen=True, slots=True)
class ShownValues:
    """The values that errors of one statement show to a role. `demands`: of the statement or part, with the columns that it writes."""

    catalog: Catalog
    role: Role = OPERATOR
    demands: tuple[Demand, ...] = ()

    def shows(self, table: Item, columns: Collection[int]) -> bool:
        """Returns whether the role may read these columns. Positions behind the columns are those of values of expressions."""
        if self.catalog.may(self.role, SELECT, table.id):
            return True
        return all(column < len(table.columns) for column in columns) and self.catalog.may(self.role, SELECT, table.id, columns)

    def columns(self, table: Item) -> tuple[int, ...] | None:
        """Returns the positions of the columns that the role may read or that the statement writes, or None if it may read the table."""
        if self.catalog.may(self.role, SELECT, table.id):
            return None
        own = [d.columns or () for d in self.demands if d.item == table.id and d.privilege in ("INSERT", "UPDATE")]
        written = {column for columns in own for column in columns}
        present = (i for i, column in enumerate(table.columns) if not column.is_dropped)
        return tuple(i for i in present if i in written or self.catalog.may(self.role, SELECT, table.id, (i,)))
