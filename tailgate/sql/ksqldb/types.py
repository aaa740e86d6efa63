"""The types of ksqlDB and those of the catalog.

    BOOLEAN  INT   BIGINT  DOUBLE            DECIMAL(p, s)  VARCHAR  BYTES  DATE  TIME  TIMESTAMP
    boolean  int4  int8    double precision  numeric(p, s)  text     bytea  date  time  timestamp

ARRAY, MAP and STRUCT occur only in the schemas of Avro values, whose columns are jsonb in the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailgate.lake.errors import FeatureNotSupported, UndefinedObject
from tailgate.lake.types import Type
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name

BOOLEAN, INT, BIGINT, DOUBLE, VARCHAR = map(TypeName, ("boolean", "int", "bigint", "double", "varchar"))
BYTES, DATE, TIME, TIMESTAMP, UNKNOWN = map(TypeName, ("bytes", "date", "time", "timestamp", "unknown"))

POSTGRESQL = {
    "boolean": "boolean",
    "int": "integer",
    "bigint": "bigint",
    "double": "double precision",
    "varchar": "text",
    "bytes": "bytea",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
}
OF_CATALOG = {
    "bool": BOOLEAN,
    "int2": INT,
    "int4": INT,
    "int8": BIGINT,
    "float4": DOUBLE,
    "float8": DOUBLE,
    "text": VARCHAR,
    "varchar": VARCHAR,
    "bpchar": VARCHAR,
    "uuid": VARCHAR,
    "bytea": BYTES,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMP,
}
STRUCTURES = ("array", "map", "struct")
# Avro's primitive types, and its logical types that have one of ksqlDB
OF_AVRO = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "string": VARCHAR,
    "bytes": BYTES,
    "enum": VARCHAR,
}
NUMBERS = ("int", "bigint", "decimal", "double")  # from the narrowest to the widest
WIDER = (("int", "bigint"), ("int", "double"), ("bigint", "double"))  # casts that never fail


def postgresql(type: TypeName) -> str:
    """Returns the name of a type in PostgreSQL's dialect. Raises 0A000 or 42704."""
    if type.name == "decimal":
        return f"numeric({', '.join(map(str, type.numbers))})" if type.numbers else "numeric"
    if type.name in STRUCTURES:
        raise FeatureNotSupported(
            f"type {type.name.upper()} is not supported", hint="Structures are read from Avro values, by ->.", position=type.position
        )
    if type.name not in POSTGRESQL:
        raise UndefinedObject(f'type "{type.name.upper()}" does not exist', position=type.position)
    return POSTGRESQL[type.name]


def widens(source: TypeName, target: TypeName) -> bool:
    """Returns whether a cast never fails."""
    return target in (source, VARCHAR) or (source.name, target.name) in WIDER


def of_catalog(type: Type) -> TypeName:
    """Returns the type of a column of the catalog; UNKNOWN if ksqlDB has none for it."""
    if type.is_array:
        return TypeName("array", arguments=(of_catalog(type.element),))
    if type.name == "numeric":
        return TypeName("decimal", type.modifiers)
    return OF_CATALOG.get(type.name, UNKNOWN)


def of_avro(schema: Any) -> TypeName:
    """Returns the type of an Avro schema, from its JSON. A union with null has the type of its other branch."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return of_avro(others[0]) if len(others) == 1 else UNKNOWN
    if isinstance(schema, str):
        return OF_AVRO.get(schema, UNKNOWN)
    match schema:
        case {"type": "record", "fields": list(fields)}:
            return TypeName("struct", arguments=tuple(of_avro(f["type"]) for f in fields), fields=tuple(f["name"] for f in fields))
        case {"type": "array", "items": items}:
            return TypeName("array", arguments=(of_avro(items),))
        case {"type": "map", "values": values}:
            return TypeName("map", arguments=(VARCHAR, of_avro(values)))
        case {"type": _, "logicalType": _}:
            return UNKNOWN
        case {"type": inner}:
            return of_avro(inner)
    return UNKNOWN


def shown(type: TypeName) -> str:
    """Returns a type as DESCRIBE prints it.

    >>> shown(VARCHAR), shown(TypeName("decimal", (4, 2)))
    ('VARCHAR(STRING)', 'DECIMAL(4, 2)')
    """
    if type.name == "varchar":
        return "VARCHAR(STRING)"
    if type.name == "int":
        return "INTEGER"
    if type.name == "struct":
        members = (f"{name} {shown(t)}" for name, t in zip(type.fields, type.arguments, strict=True))
        return f"STRUCT<{', '.join(members)}>"
    inner = f"<{', '.join(map(shown, type.arguments))}>" if type.arguments else ""
    numbers = f"({', '.join(map(str, type.numbers))})" if type.numbers else ""
    return type.name.upper() + inner + numbers


def in_schema(type: TypeName) -> str:
    """Returns a type as the schemas of the HTTP API have it.

    >>> in_schema(VARCHAR), in_schema(TypeName("struct", arguments=(INT,), fields=("a",)))
    ('STRING', 'STRUCT<`A` INTEGER>')
    """
    if type.name == "varchar":
        return "STRING"
    if type.name == "struct":
        members = (f"`{ksqldb_name(name)}` {in_schema(t)}" for name, t in zip(type.fields, type.arguments, strict=True))
        return f"STRUCT<{', '.join(members)}>"
    if type.arguments:
        return f"{type.name.upper()}<{', '.join(map(in_schema, type.arguments))}>"
    return shown(type)


def column_types(schema: Mapping[str, Any]) -> dict[str, TypeName]:
    """Returns the types of the fields of an Avro record by name."""
    struct = of_avro(schema)
    return dict(zip(struct.fields, struct.arguments, strict=True)) if struct.name == "struct" else {}
