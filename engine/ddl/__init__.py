"""Statements to changes of the catalog: values in, values out; only `registry` speaks to the world.

`source`, `table`, `view`, `sink`, `subscription` and `connection` make the items of a CREATE, `drop` finds those that a DROP takes away,
`alter` and `schema` name them anew, `refresh` gives a source new columns,
`roles` changes roles and grants. Each raises what the statement did wrong, or 0A000 with the
feature's name for what is not supported.
"""

from engine.ddl.alter import alter, comment
from engine.ddl.connection import alter_secret, create_connection, create_secret
from engine.ddl.definitions import check_definitions
from engine.ddl.drop import Notice, drop, drop_schemas
from engine.ddl.function import comment_on_function, create_function, drop_function
from engine.ddl.index import create_index
from engine.ddl.letters import chosen as chosen_letters
from engine.ddl.names import of_kind
from engine.ddl.refresh import refresh_schema
from engine.ddl.registry import ANSWERS, Registry, SchemaLookup
from engine.ddl.replace import replace_view
from engine.ddl.roles import change_roles
from engine.ddl.schema import alter_schema, create_schema
from engine.ddl.sink import create_sink, sink_schema, sink_view
from engine.ddl.source import create_source
from engine.ddl.subscription import create_subscription
from engine.ddl.table import create_table
from engine.ddl.view import create_view, errors_item

__all__ = [
    "ANSWERS",
    "Notice",
    "Registry",
    "SchemaLookup",
    "alter",
    "alter_schema",
    "alter_secret",
    "change_roles",
    "check_definitions",
    "chosen_letters",
    "comment",
    "comment_on_function",
    "create_connection",
    "create_function",
    "create_index",
    "create_schema",
    "create_secret",
    "create_sink",
    "create_source",
    "create_subscription",
    "create_table",
    "create_view",
    "drop",
    "drop_function",
    "drop_schemas",
    "errors_item",
    "of_kind",
    "refresh_schema",
    "replace_view",
    "sink_schema",
    "sink_view",
]  # fmt: skip
