"""Types of Avro schemas. Times with microseconds have no type in Kafka Connect, so they are numbers.

A union of several types besides null is a structure with a field for each type, as in Kafka Connect.
"""

from __future__ import annotations

from tailgate.engine.ddl.ksqldb.inference import naming
from tailgate.engine.ddl.ksqldb.inference.naming import Columns
from tailgate.engine.plan.sources import avro
from tailgate.engine.plan.sources.avro import Schema
from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName

SCALARS = {
    "boolean": types.BOOLEAN,
    "int": types.INT,
    "long": types.BIGINT,
    "float": types.DOUBLE,
    "double": types.DOUBLE,
    "string": types.VARCHAR,
    "bytes": types.BYTES,
    "fixed": types.BYTES,
    "enum": types.VARCHAR,
}
LOGICAL = {("int", "date"): types.DATE, ("int", "time-millis"): types.TIME, ("long", "timestamp-millis"): types.TIMESTAMP}
ENTRY = "MapEntry"  # the annotation of records that are a map's entries


def inferred(texts: tuple[str, ...], name: str) -> Columns | TypeName:
    """Returns the columns of a record, or the type of another schema. `name`: the full name that the record must have, or empty."""
    schema = avro.present(avro.parse(*texts))[0]
    if schema["type"] == "record":
        full = ".".join(filter(None, (schema.get("namespace"), schema["name"])))
        if name and full != name:
            raise InvalidParameterValue(f"the schema in the registry has the name {full}, not {name}")
        return naming.columns((field["name"], _type(field["type"])) for field in schema["fields"])
    type = _type(schema)
    if type is None:
        raise InvalidParameterValue("the schema in the registry has a type that ksqlDB lacks")
    return type


def required(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of the fields of a record that are neither nullable nor have a default."""
    schema = avro.present(avro.parse(*texts))[0]
    fields = schema["fields"] if schema["type"] == "record" else ()
    return tuple(f["name"] for f in fields if "default" not in f and not any(b["type"] == "null" for b in _all(f["type"])))


def _all(schema: Schema) -> list[Schema]:
    return schema if isinstance(schema, list) else [schema]


def _type(schema: Schema) -> TypeName | None:
    """Returns the type of a schema, None if ksqlDB has none for it."""
    branches = avro.branches(schema)
    if len(branches) != 1:
        return naming.struct((branch.get("name", branch["type"]), _type(branch)) for branch in branches)
    inner = branches[0]
    kind = inner["type"]
    match kind:
        case "record":
            return naming.struct((field["name"], _type(field["type"])) for field in inner["fields"])
        case "array":
            items = avro.branches(inner["items"])
            if len(items) == 1 and items[0].get("connect.internal.type") == ENTRY:
                return naming.map_of(_type(avro.fields(items[0])["value"]))
            return naming.array(_type(inner["items"]))
        case "map":
            return naming.map_of(_type(inner["values"]))
    if inner.get("logicalType") == "decimal":
        return TypeName("decimal", (int(inner["precision"]), int(inner.get("scale", 0))))
    return LOGICAL.get((kind, str(inner.get("logicalType")))) or SCALARS.get(kind)
