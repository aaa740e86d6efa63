"""Queries of ksqlDB as queries of PostgreSQL's dialect.

    SelectQuery ──► joins: FromClause ──► selections: Translation(text, columns, message_key)

`scopes` has the columns that a query sees in a relation of the catalog.
"""

from tailgate.sql.ksqldb.queries.joins import FromClause, from_clause
from tailgate.sql.ksqldb.queries.push import PushQuery, push_query
from tailgate.sql.ksqldb.queries.scopes import is_stream, key_names
from tailgate.sql.ksqldb.queries.selections import Translation, aggregation, derivation, projection

__all__ = [
    "FromClause",
    "PushQuery",
    "Translation",
    "aggregation",
    "derivation",
    "from_clause",
    "is_stream",
    "key_names",
    "projection",
    "push_query",
]
