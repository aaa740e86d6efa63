"""The rows of a table that gets columns with values: the old rows are removed, and rows with the values are added."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tailgate.gateway.writes.evaluation import weighted
from tailgate.gateway.writes.modifiers import fitted
from tailgate.gateway.writes.plans import Query, query_of
from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.errors import NotNullViolation
from tailgate.lake.types import arrow_schema
from tailgate.sql.authorization import Demand
from tailgate.sql.binder.writes.targets import default_of, fields_of
from tailgate.sql.binder.writes.writes import counted
from tailgate.sql.plan import Column, Project
from tailgate.sql.plan.writes import PLACE


@dataclass(frozen=True, slots=True)
class AddedColumns:
    """A query of the table's rows: the old columns, the number of copies, and the values of the new columns.

    Only the owner may alter a table, and needs no privilege on its rows, as in PostgreSQL.
    """

    table: Table
    altered: Table
    rows: Query
    demands: tuple[Demand, ...] = ()


def plan(table: Table, altered: Table) -> AddedColumns | None:
    """Returns the query, or None if all existing rows are NULL in the new columns, and may be."""
    added = altered.columns[len(table.columns) :]
    defaults = [altered.defaults.get(column.name) for column in added]
    if all(column.nullable and default is None for column, default in zip(added, defaults, strict=True)):
        return None
    source, count = counted(table)
    values = tuple(default_of(column, default) for column, default in zip(added, defaults, strict=True))
    old = tuple(Column(i, column.type) for i, column in enumerate(table.columns))
    rows = Project(source, (*old, count, *values), (*table.columns, PLACE, *fields_of(added, [values])))
    return AddedColumns(table, altered, query_of(rows, compact=False))


def changes(plan: AddedColumns, rows: pa.Table, catalog: Catalog) -> pa.Table:
    """Returns the weighted changes of the table's rows. Raises 23502 if a row would violate NOT NULL."""
    table, altered = plan.table, plan.altered
    width = len(table.columns)
    added = altered.columns[width:]
    old, weights = fitted(rows.select(range(width)), table.columns), rows.column(width).to_numpy()
    values = fitted(rows.select(range(width + 1, rows.num_columns)), added)
    for column, array in zip(added, values.columns, strict=True):
        if not column.nullable and array.null_count:
            raise NotNullViolation(
                f'column "{column.name}" of relation "{table.name}" contains null values',
                names={"s": catalog.schema_of(table).name, "t": table.name, "c": column.name},
            )
    schema = arrow_schema(altered.columns)
    nulls = [pa.nulls(rows.num_rows, column.type.arrow) for column in added]
    before = pa.Table.from_arrays([*old.columns, *nulls], schema=schema)
    after = pa.Table.from_arrays([*old.columns, *values.columns], schema=schema)
    return pa.concat_tables([weighted(before, -weights), weighted(after, weights)])
