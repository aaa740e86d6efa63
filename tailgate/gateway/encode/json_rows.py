"""Rows as JSON objects: the functions that write raw values (`values.raw`), by type.

The forms are those of PostgreSQL's row_to_json: times as in ISO 8601, numbers as numbers, json as it is, other types as strings. With
`numbers="text"`, bigint and numeric are strings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from tailgate.lake.types import Field, Type
from tailgate.values.codec.style import DEFAULT
from tailgate.values.composites.arrays import nested_text
from tailgate.values.raw import STRINGS
from tailgate.values.registry import text_writer

Write = Callable[[Any], bytes]
Numbers = Literal["number", "text"]
ENCODER = json.JSONEncoder(ensure_ascii=False)  # json.dumps makes one for each call
LARGE_NUMBERS = ("int8", "numeric")  # JavaScript rounds them


def value_writer(type: Type, numbers: Numbers = "number") -> Write:
    """Returns the function that writes a raw value that is not NULL.

    >>> value_writer(Type("int8"))(5), value_writer(Type("int8"), "text")(5)
    (b'5', b'"5"')
    >>> value_writer(Type("int4", is_array=True, multidimensional=True))(([1, None], [2, 1, 2, 1, 1]))
    b'[[1,null]]'
    """
    if type.is_array:
        element = nullable(value_writer(type.element, numbers))
        if type.multidimensional:
            return lambda value: nested_text(list(map(element, value[0])), value[1], b"[", b"]")
        return lambda items: b"[" + b",".join(map(element, items)) + b"]"
    text = text_writer(type, DEFAULT)
    match type.name:
        case "record":
            return row_writer(type.fields, numbers)
        case "bool":
            return lambda value: b"true" if value else b"false"
        case "json" | "jsonb":
            return bytes
        case "timestamp" | "timestamptz":
            return lambda value: b'"' + text(value).replace(b" ", b"T", 1).replace(b"+00", b"+00:00", 1) + b'"'
        case "float4" | "float8":
            return lambda value: _number(text(value))
        case "int2" | "int4" | "int8" | "oid" | "numeric":
            if type.general and numbers == "number":
                return lambda value: _number(text(value))
            return (lambda value: b'"' + text(value) + b'"') if numbers == "text" and type.name in LARGE_NUMBERS else text
        case name if name in STRINGS:
            return lambda value: string(text(value))
    return lambda value: string(text(value))


def _number(text: bytes) -> bytes:
    """Returns a float; JSON has no numbers for NaN and infinity."""
    return b'"' + text + b'"' if text[-1:] in (b"N", b"y") else text


def string(text: bytes) -> bytes:
    """Returns a JSON string."""
    return ENCODER.encode(text.decode()).encode()


def nullable(write: Write) -> Write:
    """Returns the function for values that may be NULL."""
    return lambda value: b"null" if value is None else write(value)


def text_value_writer(type: Type) -> Write:
    """Returns the function that writes a value as the string to which a cast to text converts it."""
    text = text_writer(type, DEFAULT)
    return lambda value: string(text(value))


def row_writer(fields: Sequence[Field], numbers: Numbers = "number") -> Callable[[Sequence[Any]], bytes]:
    """Returns the function that writes a row as an object."""
    return object_writer([f.name for f in fields], [value_writer(f.type, numbers) for f in fields])


def object_writer(names: Sequence[str], writers: Sequence[Write]) -> Callable[[Sequence[Any]], bytes]:
    """Returns the function that writes an object with these members from their raw values.

    >>> object_writer(["a", "b"], [value_writer(Type("int4")), value_writer(Type("text"))])((1, None))
    b'{"a":1,"b":null}'
    """
    keys = [string(name.encode()) + b":" for name in names]
    members = [(key, nullable(write)) for key, write in zip(keys, writers, strict=True)]

    def write(row: Sequence[Any]) -> bytes:
        return b"{" + b",".join([key + value(item) for (key, value), item in zip(members, row, strict=True)]) + b"}"

    return write
