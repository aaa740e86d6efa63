"""The columns of a schema of any kind."""

from __future__ import annotations

from tailgate.engine.ddl.kafka.registry import RegisteredSchema
from tailgate.engine.ddl.ksqldb.inference import avro, json_schema, protobuf
from tailgate.engine.ddl.ksqldb.inference.naming import Columns
from tailgate.sql.ksqldb.expressions import TypeName


def inferred(schema: RegisteredSchema, name: str = "") -> Columns | TypeName:
    """Returns the columns of a record, or the type of another schema.

    `name`: the full name of a record or message in the schema. Raises 22023 if the schema does not have it.
    """
    match schema.kind:
        case "AVRO":
            return avro.inferred(schema.texts, name)
        case "PROTOBUF":
            return protobuf.inferred(schema.texts, name)
    return json_schema.inferred(schema.texts[-1])
