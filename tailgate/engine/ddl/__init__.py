"""Compiles DDL statements to changes of the catalog: values in, values out.

Only `kafka.registry` performs I/O.

- `table`, `view`, `subscription`, `function`, `endpoint` and `kafka` return the items of a CREATE
  statement, `replace` those of CREATE OR REPLACE.
- `enums` and `composites` create and change enum and composite types; `sql.tables.domains` domains.
- `drop` finds the items that a DROP removes.
- `alter` and `schema` rename and move items, `kafka.refresh` adds new columns to a source.
- `roles` changes roles, privileges and owners, and `definitions` checks the privileges of definitions.

All functions raise an error for an incorrect statement, and 0A000 with the name of the feature for
one that is not supported.
"""

from tailgate.engine.ddl.alter import alter, alter_sequence
from tailgate.engine.ddl.composites import create_composite
from tailgate.engine.ddl.definitions import check_definitions, check_types
from tailgate.engine.ddl.endpoint import create_endpoint
from tailgate.engine.ddl.enums import alter_type, create_enum
from tailgate.engine.ddl.function import alter_function, comment_on_function, create_function, drop_function
from tailgate.engine.ddl.kafka.connection import alter_secret, create_connection, create_secret
from tailgate.engine.ddl.kafka.dead_letters import matching_letters
from tailgate.engine.ddl.kafka.refresh import refresh_schema
from tailgate.engine.ddl.kafka.registry import PROBE_SUBJECT, Registry, SchemaLookup
from tailgate.engine.ddl.kafka.sink import create_sink, sink_schema, sink_view
from tailgate.engine.ddl.kafka.source import create_source
from tailgate.engine.ddl.kafka.start import StartOffsets, StartTime, start_of
from tailgate.engine.ddl.monitoring.alert import create_alert
from tailgate.engine.ddl.monitoring.objective import create_objective
from tailgate.engine.ddl.monitoring.replacement import replace_watched
from tailgate.engine.ddl.replace import replace_view
from tailgate.engine.ddl.roles.default_privileges import with_default_privileges
from tailgate.engine.ddl.roles.roles import RoleStatement, change_roles, comment_on_role
from tailgate.engine.ddl.schema import alter_schema, create_schema
from tailgate.engine.ddl.subscription import create_subscription
from tailgate.engine.ddl.table import alter_table, create_table
from tailgate.engine.ddl.view import create_view, errors_item
from tailgate.sql.comments import comment
from tailgate.sql.drop import Notice, drop, drop_schemas
from tailgate.sql.new_items import find_item

__all__ = [
    "PROBE_SUBJECT",
    "Notice",
    "Registry",
    "RoleStatement",
    "SchemaLookup",
    "StartOffsets",
    "StartTime",
    "alter",
    "alter_function",
    "alter_schema",
    "alter_secret",
    "alter_sequence",
    "alter_table",
    "alter_type",
    "change_roles",
    "check_definitions",
    "check_types",
    "comment",
    "comment_on_function",
    "comment_on_role",
    "create_alert",
    "create_composite",
    "create_connection",
    "create_endpoint",
    "create_enum",
    "create_function",
    "create_objective",
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
    "find_item",
    "matching_letters",
    "refresh_schema",
    "replace_view",
    "replace_watched",
    "sink_schema",
    "sink_view",
    "start_of",
    "with_default_privileges",
]  # fmt: skip
