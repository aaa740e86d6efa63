"""Push queries: SELECT … EMIT CHANGES in PostgreSQL's dialect.

of one stored stream or table   ──► a query that a gateway follows
of others, JOIN, groups         ──► the query of a view that the engine maintains while a gateway follows it
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Literal

from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.names import Name
from tailgate.sql.ksqldb.custom_types import with_types
from tailgate.sql.ksqldb.expressions import Constant, SelectQuery, TypeName
from tailgate.sql.ksqldb.queries.grouping import aggregates_in
from tailgate.sql.ksqldb.queries.joins import from_clause
from tailgate.sql.ksqldb.queries.selections import aggregation, pushed

QUERY_NAME = "query_name"  # the setting of a request to the engine with the name of the view


@dataclass(frozen=True, slots=True)
class PushQuery:
    """A push query. `text`: in PostgreSQL's dialect. `columns`: those of its rows, which `hidden` further columns follow.

    - `key`: the positions of the columns that identify a row; none if rows are only added, or the projection lacks one of them.
    - `type`: whether it has the rows of a stream, whose position is in the hidden columns, or of a table.
    - `windows`: the id of a table with windows, whose end is the last hidden column.
    - `needs_view`: whether the engine has to maintain its rows.
    - `is_of_tables`: whether it reads tables only.
    """

    text: str
    columns: tuple[tuple[str, TypeName], ...]
    hidden: tuple[str, ...]
    key: tuple[int, ...]
    type: Literal["stream", "table"]
    needs_view: bool
    is_of_tables: bool
    windows: int | None = None


def transient_name(query: SelectQuery) -> str:
    """Returns a new name for a push query, in the catalog's case."""
    return f"transient_{query.source.name}_{secrets.token_hex(8)}"


def push_query(query: SelectQuery, catalog: Catalog) -> PushQuery:
    """Returns a push query. Raises errors as of `from_clause`, `aggregation` and `pushed`."""
    query = _grouped(with_types(query, catalog))
    source = from_clause(query, catalog)
    translation = aggregation(query, source) if query.group_by else pushed(query, source)
    names = [*(name for name, _ in translation.columns), *translation.hidden]
    item = catalog.relation(Name(query.source.name))
    return PushQuery(
        translation.text,
        translation.columns,
        translation.hidden,
        tuple(names.index(name) for name in translation.message_key),
        "table" if query.group_by else source.type,
        needs_view=bool(query.joins or source.scope.clock) or not item.stored or (bool(query.group_by) and source.type == "stream"),
        is_of_tables=source.type == "table",
        windows=item.id if source.type == "table" and not query.group_by and translation.hidden else None,
    )


def _grouped(query: SelectQuery) -> SelectQuery:
    """Returns a query whose rows are one group if it has aggregates without GROUP BY, which only push queries may have."""
    is_one_group = not query.group_by and any(aggregates_in((query.items, query.having)))
    return replace(query, group_by=(Constant(True, query.position),)) if is_one_group else query
