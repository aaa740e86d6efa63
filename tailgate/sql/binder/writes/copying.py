"""The columns of COPY: without a list of columns, all but the generated ones.

Source: PostgreSQL 15, src/backend/commands/copy.c (CopyGetAttnums).
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import InvalidColumnReference
from tailgate.sql.binder.writes.targets import columns_named
from tailgate.sql.statements import CopyTo, Delete, FollowKsqldb, Insert, Select, Tail, Update, WithWrites
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import ColumnName


def copied_columns(table: Table, columns: tuple[ColumnName, ...]) -> tuple[int, ...]:
    """Returns the indexes of the columns that COPY names, or of all but the generated ones. Raises 42703, 42701, 42P10."""
    indexes = columns_named(table, columns)
    for i in indexes if columns else ():
        _check(table, table.columns[i].name)
    return tuple(i for i in indexes if table.columns[i].name not in table.generated)


def copied_query(statement: CopyTo, catalog: Catalog) -> Select | Tail | FollowKsqldb | Insert | Update | Delete | WithWrites:
    """Returns the query of COPY … TO. Raises 42P10."""
    query = statement.statement
    table = None if statement.relation is None else catalog.find(statement.relation)
    if not isinstance(table, Table) or not table.generated or not isinstance(query, Select):
        return query
    tree = query.query.tree
    if not isinstance(tree.expressions[0], exp.Star):
        for column in tree.expressions:
            _check(table, column.name)
        return query
    names = [column.name for column in table.columns if not column.is_dropped and column.name not in table.generated]
    tree = tree.copy()
    tree.set("expressions", [exp.column(name, quoted=True) for name in names])
    text = f"SELECT {', '.join(map(quoted, names))} FROM {query.query.text.removeprefix('TABLE ')}"
    return Select(QueryText(text, query.query.offset, tree))


def _check(table: Table, column: str) -> None:
    if column in table.generated:
        raise InvalidColumnReference(f'column "{column}" is a generated column', detail="Generated columns cannot be used in COPY.")
