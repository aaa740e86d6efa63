"""The view of a push query: SELECT … EMIT CHANGES that reads a declared stream, joins, or has windows.

It is in a system schema, which no search path contains, and dropped when its query ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tailgate.engine.ddl.ksqldb.items import view_of
from tailgate.lake.catalog import Catalog, MaterializedView
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.schemas import TRANSIENT_ID
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries import Translation, push_query
from tailgate.sql.ksqldb.queries.push import transient_name
from tailgate.sql.ksqldb.queries.scopes import nested_types
from tailgate.sql.ksqldb.statements import PushQuery


def transient_view(statement: PushQuery, text: str, catalog: Catalog, reset: Literal["earliest", "latest"], name: str) -> MaterializedView:
    """Returns the view of a push query; `text` is the statement as typed. If a query has the `name`, the view gets another one."""
    query = push_query(statement.query, catalog)
    if not name or ksqldb_name(name) in catalog.queries:
        name = transient_name(statement.query)
    ksqldb = KsqldbItem(
        type=query.type,
        statement=text,
        topic="",
        key_format="",
        value_format="",
        types=nested_types(query.columns),
        query=ksqldb_name(name),
        reset=reset,
    )
    return replace(view_of(name, Translation(query.text, query.columns, ()), catalog), ksqldb=ksqldb, schema=TRANSIENT_ID)
