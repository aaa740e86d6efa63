"""Values of columns as ksqlDB's formats write them, from their stored form.

    BOOLEAN, INT, BIGINT, DOUBLE, VARCHAR   bool, int, float, str
    DECIMAL, BYTES                          Decimal, bytes
    DATE; TIME, TIMESTAMP                   the number of days; of milliseconds
    ARRAY; MAP, STRUCT                      list; dict, whose fields are in the order of the type

A type is a value of JSON: "int", ["decimal", 4, 2], ["array", type], ["map", type of the values],
["struct", [name, type], …]. The type "json" is a jsonb of another dialect, whose text is written as it is.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from tailgate.lake.errors import FeatureNotSupported

MICROS_PER_MILLISECOND = 1000
SCALARS = frozenset(("boolean", "int", "bigint", "double", "varchar", "bytes", "date", "time", "timestamp"))

Type: TypeAlias = Any
Values: TypeAlias = list[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a key or a value: its name in ksqlDB and its type."""

    name: str
    type: Type


def kind(type: Type) -> str:
    """Returns the name of a type, without its arguments.

    >>> kind("int"), kind(["array", "int"])
    ('int', 'array')
    """
    return type if isinstance(type, str) else str(type[0])


def values(column: Column, array: pa.Array) -> Values:
    """Returns the values of a column. Raises 0A000 for a type that ksqlDB lacks."""
    name = kind(column.type)
    if pa.types.is_list(array.type) or (name not in SCALARS and name not in ("decimal", "array", "map", "struct", "json")):
        raise FeatureNotSupported(f'column "{column.name}" has a type that is not supported in ksqlDB\'s formats')
    match name:
        case "date":
            array = array.cast(pa.int32())
        case "time" | "timestamp":
            return [None if micros is None else micros // MICROS_PER_MILLISECOND for micros in array.cast(pa.int64()).to_pylist()]
        case "array" | "map" | "struct":
            read = reader(column.type)
            return [None if text is None else read(json.loads(text, parse_float=Decimal)) for text in array.to_pylist()]
    plain: Values = array.to_pylist()
    return plain


def reader(type: Type) -> Callable[[Any], Any]:
    """Returns a function from parsed JSON to the value of a type."""
    match type:
        case ["array", inner]:
            of_element = reader(inner)
            return lambda value: None if value is None else [of_element(item) for item in value]
        case ["map", inner]:
            of_value = reader(inner)
            return lambda value: None if value is None else {key: of_value(item) for key, item in value.items()}
        case ["struct", *fields]:
            members = [(name, reader(inner)) for name, inner in fields]
            return lambda value: None if value is None else {name: read(value.get(name)) for name, read in members}
        case ["decimal", *_]:
            return lambda value: None if value is None else Decimal(value)
        case "double":
            return lambda value: None if value is None else float(value)
        case "bytes":
            return lambda value: None if value is None else base64.b64decode(value)
    return lambda value: value
