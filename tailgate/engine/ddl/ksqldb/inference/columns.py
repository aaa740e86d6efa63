"""The columns of a schema of any kind."""

from __future__ import annotations

from tailgate.engine.ddl.kafka.registry import RegisteredSchema
from tailgate.engine.ddl.ksqldb.inference import avro, json_schema, protobuf
from tailgate.engine.ddl.ksqldb.inference.naming import Columns, in_upper_case
from tailgate.sql.ksqldb.expressions import TypeName


def inferred(schema: RegisteredSchema, name: str = "") -> Columns | TypeName:
    """Returns the columns of a record, or the type of another schema, with names in upper case.

    `name`: the full name of a record or message in the schema. Raises 22023 if the schema does not have it.
    """
    columns = with_names(schema, name)
    return tuple(in_upper_case(*column) for column in columns) if isinstance(columns, tuple) else in_upper_case("", columns)[1]


def with_names(schema: RegisteredSchema, name: str = "") -> Columns | TypeName:
    """Returns the same with the names of the schema."""
    match schema.kind:
        case "AVRO":
            return avro.inferred(schema.texts, name)
        case "PROTOBUF":
            return protobuf.inferred(schema.texts, name)
    return json_schema.inferred(schema.texts[-1], schema.names)
