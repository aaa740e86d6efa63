"""Compiles DDL statements to changes of the catalog: values in, values out.

Only `registry` performs I/O.

- `source`, `table`, `view`, `sink`, `subscription`, `index`, `function` and `connection` return the
  items of a CREATE statement, `replace` those of CREATE OR REPLACE.
- `drop` finds the items that a DROP removes.
- `alter` and `schema` rename and move items, `refresh` adds new columns to a source.
- `roles` changes roles and grants, and `definitions` checks the privileges of definitions.

All functions raise an error for an incorrect statement, and 0A000 with the name of the feature for
one that is not supported.
"""

from engine.ddl.alter import alter, comment
from engine.ddl.connection import alter_secret, create_connection, create_secret
from engine.ddl.definitions import check_definitions
from engine.ddl.drop import Notice, drop, drop_schemas
from engine.ddl.function import comment_on_function, create_function, drop_function
from engine.ddl.index import create_index
from engine.ddl.letters import chosen as chosen_letters
from engine.ddl.names import of_class
from engine.ddl.refresh import refresh_schema
from engine.ddl.registry import ANSWERS, Registry, SchemaLookup
from engine.ddl.replace import replace_view
from engine.ddl.roles import change_roles
from engine.ddl.schema import alter_schema, create_schema
from engine.ddl.sink import create_sink, sink_schema, sink_view
from engine.ddl.source import StartOffsets, StartTime, create_source, start_of
from engine.ddl.subscription import create_subscription
from engine.ddl.table import create_table
from engine.ddl.view import create_view, errors_item

__all__ = [
    "ANSWERS",
    "Notice",
    "Registry",
    "SchemaLookup",
    "StartOffsets",
    "StartTime",
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
    "of_class",
    "refresh_schema",
    "replace_view",
    "sink_schema",
    "sink_view",
    "start_of",
]  # fmt: skip
