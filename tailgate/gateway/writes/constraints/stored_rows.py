"""Values that are computed for the rows of a write: with the modifiers of columns, of generated columns, and of expressions of keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from tailgate.gateway.writes.constraints.rules import Rules
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.gateway.writes.rows.query import Query
from tailgate.sql.binder.writes.generated import generated_positions


@dataclass(frozen=True, slots=True)
class StoredRows:
    """`query` evaluates a plan on the rows that `incoming` registers."""

    query: Callable[[Query], pa.Table]
    incoming: Callable[[pa.Table], AbstractContextManager[None]]

    def of(self, rules: Rules, rows: pa.Table) -> pa.Table:
        """Returns the rows in their stored form. Raises 22001, 22003, and errors of the expressions."""
        return self.computed(rules, fitted(rows, rules.table.columns))

    def computed(self, rules: Rules, rows: pa.Table) -> pa.Table:
        """Returns fitted rows with the values of the generated columns."""
        if rules.generated is None or not rows.num_rows:
            return rows
        positions = generated_positions(rules.table)
        with self.incoming(rows):
            values = self.query(rules.generated)
        for i, column in zip(positions, fitted(values, [rules.table.columns[i] for i in positions]).columns, strict=True):
            rows = rows.set_column(i, rows.schema.field(i), column)
        return rows

    def keyed(self, rules: Rules, rows: pa.Table) -> pa.Table:
        """Returns rows, which may have more columns than the table, with the columns that `Key` numbers."""
        if rules.key_values is None:
            return rows
        width = len(rules.table.columns)
        rows = rows.select(range(width))
        with self.incoming(rows):
            values = self.query(rules.key_values)
        for column in range(width, values.num_columns):
            rows = rows.append_column(values.schema.field(column), values.column(column))
        return rows
