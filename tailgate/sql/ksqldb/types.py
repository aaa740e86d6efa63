"""The types of ksqlDB and those of the catalog.

    BOOLEAN  INT   BIGINT  DOUBLE            DECIMAL(p, s)  VARCHAR  BYTES  DATE  TIME  TIMESTAMP
    boolean  int4  int8    double precision  numeric(p, s)  text     bytea  date  time  timestamp

    ARRAY<…>  MAP<VARCHAR, …>  STRUCT<…>     jsonb

The catalog's columns do not have the types inside a jsonb: `KsqldbItem.types` has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, InvalidParameterValue, SyntaxError_, UndefinedObject
from tailgate.lake.types import Type
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name, quoted

BOOLEAN, INT, BIGINT, DOUBLE, VARCHAR = map(TypeName, ("boolean", "int", "bigint", "double", "varchar"))
DECIMAL = TypeName("decimal")  # of any precision and scale
BYTES, DATE, TIME, TIMESTAMP, UNKNOWN = map(TypeName, ("bytes", "date", "time", "timestamp", "unknown"))

KEY = " KEY"  # the end of a column of the key in a schema

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
# the catalog's names of these types
NAMES = {**{name: name for name in POSTGRESQL}, "boolean": "bool", "int": "int4", "bigint": "int8", "double": "float8"} | {
    "varchar": "text",
    "bytes": "bytea",
}
STRUCTURES = ("array", "map", "struct")
BUILT_IN = frozenset((*POSTGRESQL, "decimal", *STRUCTURES))
# the types that an array and a map need in <…>; items of earlier versions may have others
NEEDED = {"array": (1, "the type of its elements"), "map": (2, "the types of its keys and values")}
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


# digits of a whole number as a DECIMAL
DIGITS = {"int": 10, "bigint": 19}
PRECISION_MAX = 38
SCALE_MIN = 6  # of a product or quotient whose digits exceed the maximum


def postgresql(type: TypeName) -> str:
    """Returns the name of a type in PostgreSQL's dialect. Raises 42704, and 0A000 for a map whose keys are not VARCHAR."""
    if type.name == "decimal":
        return f"numeric({', '.join(map(str, type.numbers))})" if type.numbers else "numeric"
    if type.name in STRUCTURES:
        check_keys(type)
        return "jsonb"
    if type.name not in POSTGRESQL:
        raise UndefinedObject(f"Cannot resolve unknown type: {type.name.upper()}", position=type.position)
    return POSTGRESQL[type.name]


def check_keys(type: TypeName) -> None:
    """Raises 0A000 if a type contains a map whose keys are not VARCHAR, and 42704 for an unknown type."""
    if type.name == "map" and type.arguments[0] != VARCHAR:
        raise FeatureNotSupported(f"{shown(type)} is not supported", hint="Use MAP<VARCHAR, …>.", position=type.position)
    for argument in type.arguments:
        postgresql(argument)


def check(type: TypeName) -> None:
    """Raises 42601 for an array or a map with a wrong number of types, and 22023 for a DECIMAL with invalid digits.

    Raises 42701 for two equal fields, and 42704 or 0A000 as `postgresql`.
    """
    count, needed = NEEDED.get(type.name, (len(type.arguments), ""))
    if len(type.arguments) != count:
        raise SyntaxError_(f"{type.name.upper()} needs {needed}", position=type.position)
    for argument in type.arguments:
        check(argument)
    if type.name == "decimal":
        message = "" if len(type.numbers) == 2 else "DECIMAL needs a precision and a scale"
        if not message and type.numbers[0] < 1:
            message = "DECIMAL precision must be >= 1"
        elif not message and type.numbers[1] > type.numbers[0]:
            message = "DECIMAL precision must be >= scale"
        if message:
            digits = text(type).replace(", ", ",")
            raise InvalidParameterValue(f"{message}: {digits}", hint="Write DECIMAL(precision, scale).", position=type.position)
        if type.numbers[0] > PRECISION_MAX:
            raise FeatureNotSupported(f"{text(type)} is not supported", hint=f"Use at most {PRECISION_MAX} digits.", position=type.position)
    duplicate = next((f for n, f in enumerate(type.fields) if f in type.fields[:n]), None)
    if duplicate is not None:
        raise DuplicateColumn(f"Duplicate field names found in STRUCT: {ksqldb_name(duplicate)}", position=type.position)
    postgresql(type)


def of_ksqldb(type: TypeName) -> Type:
    """Returns the type of the catalog for a type without structures. Raises 0A000 or 42704."""
    postgresql(type)
    return Type("numeric", type.numbers) if type.name == "decimal" else Type(NAMES[type.name])


def widens(source: TypeName, target: TypeName) -> bool:
    """Returns whether a cast never fails."""
    return source == target or (source.name, target.name) in WIDER


def is_coercible(source: TypeName, target: TypeName) -> bool:
    """Returns whether a value is cast implicitly: a number to a wider type, and the same inside arrays, maps and structures."""
    if source in (target, UNKNOWN):
        return True
    if source.name in NUMBERS and target.name in NUMBERS:
        return NUMBERS.index(source.name) < NUMBERS.index(target.name) or source.name == target.name == "decimal"
    if source.name != target.name or source.name not in STRUCTURES or len(source.arguments) != len(target.arguments):
        return False
    return source.fields == target.fields and all(map(is_coercible, source.arguments, target.arguments))


def decimal_of(type: TypeName) -> TypeName:
    """Returns the DECIMAL that has all values of a whole number's type, or the DECIMAL itself."""
    return TypeName("decimal", (DIGITS[type.name], 0)) if type.name in DIGITS else type


def bounded(precision: int, scale: int) -> TypeName:
    """Returns a DECIMAL; if it has too many digits, some after the point are left out."""
    excess = max(precision - PRECISION_MAX, 0)
    return TypeName("decimal", (precision - excess, max(scale - excess, min(scale, SCALE_MIN))))


def widest(numbers: Sequence[TypeName]) -> TypeName:
    """Returns the narrowest type that has the values of all of these numbers."""
    name = max((n.name for n in numbers), key=NUMBERS.index)
    if name != "decimal":
        return TypeName(name)
    decimals = [decimal_of(n).numbers or (PRECISION_MAX, 0) for n in numbers]
    scale = max(s for _, s in decimals)
    return bounded(max(p - s for p, s in decimals) + scale, scale)


def common(types: Sequence[TypeName]) -> TypeName:
    """Returns the type to which values are cast: the widest of numbers, otherwise that of the first that is not NULL."""
    of_values = [t for t in types if t != UNKNOWN]
    if of_values and all(t.name in NUMBERS for t in of_values):
        return widest(of_values)
    return of_values[0] if of_values else VARCHAR


def is_common(types: Sequence[TypeName]) -> bool:
    """Returns whether values have a common type: they are numbers, or coercible to the type of the first that is not NULL."""
    type = common(types)
    return all(t in (type, UNKNOWN) or (t.name in NUMBERS and type.name in NUMBERS) or is_coercible(t, type) for t in types)


def is_complete(type: TypeName) -> bool:
    """Returns whether the types inside a type are all known."""
    return type.name != "unknown" and all(map(is_complete, type.arguments))


def of_catalog(type: Type) -> TypeName:
    """Returns the type of a column of the catalog; UNKNOWN if ksqlDB has none for it."""
    if type.is_array:
        return TypeName("array", arguments=(of_catalog(type.element),))
    if type.name == "numeric":
        return TypeName("decimal", type.modifiers)
    return OF_CATALOG.get(type.name, UNKNOWN)


def of_avro(schema: Any, records: dict[str, TypeName]) -> TypeName:
    """Returns the type of an Avro schema, from its JSON. A union with null has the type of its other branch.

    `records`: those before it by the last part of their name, to which it adds its own. Debezium's `after` names the type of `before`.
    """
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return of_avro(others[0], records) if len(others) == 1 else UNKNOWN
    if isinstance(schema, str):
        return OF_AVRO.get(schema) or records.get(_last_part(schema), UNKNOWN)
    match schema:
        case {"type": "record", "fields": list(fields)}:
            names = tuple(catalog_name(f["name"]) for f in fields)
            type = TypeName("struct", arguments=tuple(of_avro(f["type"], records) for f in fields), fields=names)
            records[_last_part(schema.get("name", ""))] = type
            return type
        case {"type": "array", "items": items}:
            return TypeName("array", arguments=(of_avro(items, records),))
        case {"type": "map", "values": values}:
            return TypeName("map", arguments=(VARCHAR, of_avro(values, records)))
        case {"type": _, "logicalType": _}:
            return UNKNOWN
        case {"type": inner}:
            return of_avro(inner, records)
    return UNKNOWN


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def shown(type: TypeName) -> str:
    """Returns a type as DESCRIBE prints it.

    >>> shown(VARCHAR), shown(TypeName("decimal", (4, 2)))
    ('VARCHAR(STRING)', 'DECIMAL(4, 2)')
    """
    return _written(type, {"varchar": "VARCHAR(STRING)", "int": "INTEGER"}, ksqldb_name)


def text(type: TypeName) -> str:
    """Returns a type as it is written in a statement.

    >>> text(TypeName("struct", arguments=(VARCHAR,), fields=("name",)))
    'STRUCT<NAME VARCHAR>'
    """
    return _written(type, {}, quoted)


def _written(type: TypeName, names: Mapping[str, str], field: Callable[[str], str]) -> str:
    if type.name == "struct":
        members = (f"{field(name)} {_written(t, names, field)}" for name, t in zip(type.fields, type.arguments, strict=True))
        return f"STRUCT<{', '.join(members)}>"
    inner = f"<{', '.join(_written(a, names, field) for a in type.arguments)}>" if type.arguments else ""
    numbers = f"({', '.join(map(str, type.numbers))})" if type.numbers else ""
    return names.get(type.name, type.name.upper()) + inner + numbers


def descriptor(type: TypeName) -> str:
    """Returns a type for the conversion of JSON.

    >>> descriptor(TypeName("array", arguments=(TypeName("decimal", (4, 2)),)))
    '["array", ["decimal", 4, 2]]'
    """
    return json.dumps(described(type))


def described(type: TypeName) -> object:
    """Returns a type as JSON has it (`formats.ksqldb.values`): "int", ["array", "int"], ["struct", ["A", "int"]], …"""
    match type.name:
        case "decimal":
            return ["decimal", *(type.numbers or (PRECISION_MAX, 16))]
        case "array" | "map":
            return [type.name, described(type.arguments[-1])]
        case "struct":
            return ["struct", *([ksqldb_name(f), described(t)] for f, t in zip(type.fields, type.arguments, strict=True))]
    return type.name


def in_schema(type: TypeName) -> str:
    """Returns a type as messages and the schemas of the HTTP API have it.

    >>> in_schema(VARCHAR), in_schema(TypeName("struct", arguments=(INT,), fields=("a",)))
    ('STRING', 'STRUCT<`A` INTEGER>')
    """
    return _written(type, {"varchar": "STRING", "int": "INTEGER"}, lambda name: f"`{ksqldb_name(name)}`")


def column_in_schema(name: str, type: TypeName) -> str:
    """Returns a column as schemas in messages have it.

    >>> column_in_schema("area", VARCHAR)
    '`AREA` STRING'
    """
    return f"`{ksqldb_name(name)}` {in_schema(type)}"


def column_types(schema: Mapping[str, Any]) -> dict[str, TypeName]:
    """Returns the types of the fields of an Avro record by name."""
    fields = schema.get("fields", ()) if schema.get("type") == "record" else ()
    records: dict[str, TypeName] = {}
    return {field["name"]: of_avro(field["type"], records) for field in fields}
