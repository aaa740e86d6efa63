"""The kind of the windows in the keys of a stream or table, or of the rows of a query."""

from __future__ import annotations

from tailgate.lake.catalog import Catalog, Item, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.sql.ksqldb.expressions import SelectQuery
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem, InsertQuery, PushQuery


def window_type(item: Item, catalog: Catalog) -> str | None:
    """Returns TUMBLING, HOPPING or SESSION; None for keys without windows."""
    ksqldb = ksqldb_of(item)
    if ksqldb is None or not ksqldb.statement:
        return None
    match parse(ksqldb.statement):
        case CreateItem(properties=properties):
            type = dict(properties).get("WINDOW_TYPE")
            return None if type is None else str(type).upper()
        case CreateAs(query=query) | InsertQuery(query=query) | PushQuery(query=query):
            if WINDOW_BOUNDS[0] not in ksqldb.message_key:
                return None
            types = (window_type(catalog[id], catalog) for id in item.depends if id != ksqldb.into)
            return _of_clause(query) or next(filter(None, types), None)
    return None


def window_type_of_query(query: SelectQuery, catalog: Catalog) -> str | None:
    """Returns the kind of the windows of a query, by default of its source."""
    source = None if query.group_by else catalog.find(Name(query.source.name))
    return _of_clause(query) or (None if source is None else window_type(source, catalog))


def _of_clause(query: SelectQuery) -> str | None:
    return None if query.window is None else query.window.kind.upper()
