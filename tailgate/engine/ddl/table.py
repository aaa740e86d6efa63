"""CREATE TABLE and ALTER TABLE in the engine: with the history of a table, and the items that read it."""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.history import split_retention
from tailgate.engine.ddl.kafka.known_columns import check_no_backfill, readers_with_width, with_recorded_width
from tailgate.lake.catalog import Catalog, Change, Index, Reader, Sequence, Table
from tailgate.lake.errors import FeatureNotSupported, UndefinedTable
from tailgate.sql.statements import AlterTable, CreateTable
from tailgate.sql.tables.alterations import Alteration, alteration
from tailgate.sql.tables.altered_table import table_to_alter
from tailgate.sql.tables.creation import new_table


def create_table(statement: CreateTable, text: str, catalog: Catalog) -> tuple[Table, tuple[Sequence | Index, ...]]:
    """Returns the items of a table: its own, and those of its sequences and unique constraints. `text`: the statement as typed."""
    history, others = split_retention(statement.options)
    if (unknown := next((name for name, _ in others if " " in name), None)) is not None:
        raise FeatureNotSupported(f'option "{unknown}" of a table is not supported')
    return new_table(statement, text, catalog, history)


def alter_table(statement: AlterTable, catalog: Catalog, copies: int = 0) -> tuple[Alteration, Change]:
    """Returns the alteration of the table, and the change of the catalog, with the items that read the table.

    `copies`: the number of rows for which new sequences of added columns have given values.
    """
    table = table_to_alter(statement, catalog)
    if table is None:
        raise UndefinedTable(f'relation "{statement.name}" does not exist')
    altered = alteration(table, statement, catalog).numbered(copies)
    if altered.after.columns == table.columns:
        return altered, altered.change
    check_no_backfill(table, catalog)
    if len(altered.after.columns) == len(table.columns):
        return altered, altered.change
    if altered.rewrites:
        before = replace(table, id=altered.after.id)
        readers = {i.id: with_recorded_width(i, before) for i in altered.change.put if isinstance(i, Reader) and before.id in i.depends}
        return altered, replace(altered.change, put=tuple(readers.get(item.id, item) for item in altered.change.put))
    return altered, replace(altered.change, put=(*altered.change.put, *readers_with_width(table, catalog)))
