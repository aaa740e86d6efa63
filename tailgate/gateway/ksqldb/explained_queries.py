"""EXPLAIN of a statement with a query that does not run, as an entity of ksqlDB's HTTP API."""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.gateway.ksqldb.entities import QueryDescription
from tailgate.gateway.ksqldb.fields import Entity, fields_of
from tailgate.gateway.ksqldb.windows import window_type_of_query
from tailgate.lake.catalog import Catalog
from tailgate.sql.ksqldb.custom_types import with_types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.queries import aggregation, derivation, from_clause, push_query
from tailgate.sql.ksqldb.statements import CreateAs, InsertQuery, PushQuery


def explained_query(statement: CreateAs | InsertQuery | PushQuery, text: str, plan: Sequence[str], catalog: Catalog, reset: str) -> Entity:
    """Returns the entity of EXPLAIN.

    `text`: the statement as typed, without EXPLAIN. `plan`: the lines of the plan of the view that it would create.
    """
    statement = with_types(statement, catalog)
    query = statement.query
    type = "PERSISTENT" if not isinstance(statement, PushQuery) else "PUSH" if query.emit else "PULL"
    described = QueryDescription(
        id="",
        text=text,
        windows=window_type_of_query(query, catalog),
        fields=fields_of(*_columns(statement, catalog)),
        sources=[source.name for source in query.sources],
        sinks=[],
        plan=plan,
        reset=reset,
        type=type,
        state=None,
    )
    return {"@type": "queryDescription", "queryDescription": described.entity}


def _columns(statement: CreateAs | InsertQuery | PushQuery, catalog: Catalog) -> tuple[dict[str, TypeName], tuple[str, ...]]:
    """Returns the columns of the rows of a query, and the names of those in the key of its messages."""
    query = statement.query
    if isinstance(statement, PushQuery):
        return dict(push_query(query, catalog).columns), ()
    source = from_clause(query, catalog)
    translation = aggregation(query, source, statement.name) if query.group_by else derivation(query, source, statement.name)
    return dict(translation.columns), translation.message_key
