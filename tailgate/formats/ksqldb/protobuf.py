"""The formats PROTOBUF and PROTOBUF_NOSR: the message ConnectDefault1, whose fields are numbered in the order of the columns.

    BOOLEAN, INT, BIGINT, DOUBLE   bool, int32, int64, double
    VARCHAR, BYTES, DECIMAL        string, bytes, confluent.type.Decimal
    DATE, TIME, TIMESTAMP          google.type.Date, google.type.TimeOfDay, google.protobuf.Timestamp
    ARRAY; MAP; STRUCT             repeated field; repeated message with key and value; message

A field of a scalar type has no presence in proto3: 0, an empty text and NULL are not written. With `nullable` = OPTIONAL it is
`optional`, and with WRAPPER a message such as google.protobuf.Int32Value.

Source: ksqlDB 0.29, documentation, "Serialization formats", "Protobuf"; Protocol Buffers, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import count
from typing import Any, TypeAlias

from tailgate.formats.events.avro import field_names
from tailgate.formats.ksqldb.avro import unscaled
from tailgate.formats.ksqldb.values import Column, Type, Values, kind
from tailgate.formats.varint import varint
from tailgate.lake.errors import FeatureNotSupported

NAME = "ConnectDefault1"
OPTIONAL, WRAPPER = "OPTIONAL", "WRAPPER"
VARINT, FIXED64, LENGTH = 0, 1, 2
EPOCH = date(1970, 1, 1)

Encode: TypeAlias = Callable[[Any], bytes]

SCALARS = {"boolean": "bool", "int": "int32", "bigint": "int64", "double": "double", "varchar": "string", "bytes": "bytes"}
WRAPPERS = {"boolean": "Bool", "int": "Int32", "bigint": "Int64", "double": "Double", "varchar": "String", "bytes": "Bytes"}
MESSAGES = {
    "decimal": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    "date": ("google.type.Date", "google/type/date.proto"),
    "time": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    "timestamp": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
WRAPPERS_FILE = "google/protobuf/wrappers.proto"


# ---- schema ----------------------------------------------------------------------------------------------------------------------


def schema(columns: Sequence[Column], name: str = NAME, nullable: str = "") -> str:
    """Returns the `.proto` text. `name`: of the message, with its package. `nullable`: OPTIONAL, WRAPPER or empty."""
    package, _, last = name.rpartition(".")
    imports: dict[str, None] = {}
    message = _message(last, [(c.name, c.type) for c in columns], nullable, imports, count(2), "")
    files = "".join(f'import "{file}";\n' for file in imports)
    return 'syntax = "proto3";\n' + (f"package {package};\n" if package else "") + f"{files}\n{message}"


def _message(
    name: str, fields: Sequence[tuple[str, Type]], nullable: str, imports: dict[str, None], numbers: Iterator[int], at: str
) -> str:
    """Returns the text of a message. `numbers`: those of the next inner messages. `imports` receives the files of the types."""
    inner: list[str] = []
    lines: list[str] = []
    for number, (field, (_, type)) in enumerate(zip(field_names([n for n, _ in fields]), fields, strict=True), 1):
        repeated = kind(type) in ("array", "map")
        element = type[1] if kind(type) == "array" else type
        label, options = "repeated " if repeated else "", ""
        match element:
            case ["struct", *members]:
                text = f"ConnectDefault{next(numbers)}"
                inner.append(_message(text, [(n, t) for n, t in members], nullable, imports, numbers, at + "  "))
            case ["map", of_values]:
                text = f"ConnectDefault{next(numbers)}Entry"
                inner.append(_message(text, [("key", "varchar"), ("value", of_values)], nullable, imports, numbers, at + "  "))
            case str() if element in SCALARS and not repeated and nullable == WRAPPER:
                text = f"google.protobuf.{WRAPPERS[element]}Value"
                imports[WRAPPERS_FILE] = None
            case str() if element in SCALARS:
                text = SCALARS[element]
                label = "optional " if nullable == OPTIONAL and not repeated else label
            case _:
                text, file = MESSAGES[kind(element)]
                imports[file] = None
                if kind(element) == "decimal":
                    imports["confluent/meta.proto"] = None
                    digits = f'[{{ key: "precision", value: "{element[1]}" }}, {{ key: "scale", value: "{element[2]}" }}]'
                    options = f" [(confluent.field_meta) = {{ params: {digits} }}]"
        lines.append(f"{at}  {label}{text} {field} = {number}{options};\n")
    return f"{at}message {name} {{\n{''.join(lines)}{''.join(inner)}{at}}}\n"


# ---- bytes -----------------------------------------------------------------------------------------------------------------------


def encoded(columns: Sequence[Column], values: Sequence[Values], length: int, nullable: str = "") -> list[bytes | None]:
    """Returns the message of each row."""
    encoders = [_field(number, column.type, nullable) for number, column in enumerate(columns, 1)]
    parts = [list(map(encode, of_column)) for encode, of_column in zip(encoders, values, strict=True)]
    return [b"".join(row) for row in zip(*parts, strict=True)] if parts else [b""] * length


def _field(number: int, type: Type, nullable: str) -> Encode:
    """Returns a function that encodes a field with its tag. NULL has no bytes."""
    match type:
        case ["array", inner]:
            return _repeated(number, inner, nullable)
        case ["map", inner]:
            entry = ["struct", ["key", "varchar"], ["value", inner]]
            encode = _repeated(number, entry, nullable)
            return lambda value: b"" if value is None else encode([{"key": k, "value": v} for k, v in value.items()])
        case str() if type in SCALARS:
            return _scalar_field(number, type, nullable)
    begin, message = tag(number, LENGTH), value(type, nullable)
    return lambda value: b"" if value is None else begin + sized(message(value))


def _scalar_field(number: int, type: str, nullable: str) -> Encode:
    encode, default = value(type, nullable), {"varchar": "", "bytes": b""}.get(type, 0)
    begin = tag(number, WIRE.get(type, LENGTH))
    size = sized if type in ("varchar", "bytes") else bytes
    if nullable == WRAPPER:
        outer, alone = tag(number, LENGTH), _scalar_field(1, type, "")
        return lambda value: b"" if value is None else outer + sized(alone(value))
    if nullable == OPTIONAL:
        return lambda value: b"" if value is None else begin + size(encode(value))
    return lambda value: b"" if value is None or value == default else begin + size(encode(value))


def _repeated(number: int, type: Type, nullable: str) -> Encode:
    """Returns a function that encodes a repeated field; numbers and booleans are packed. An element that is NULL has the default."""
    begin, encode = tag(number, LENGTH), value(type, nullable)
    if kind(type) in WIRE:
        return lambda value: begin + sized(b"".join(encode(item or 0) for item in value)) if value else b""
    default: Any = {"varchar": "", "bytes": b""}.get(kind(type))

    def element(item: Any) -> bytes:
        content = default if item is None else item
        return begin + sized(b"" if content is None else encode(content))

    return lambda value: b"" if value is None else b"".join(map(element, value))


WIRE = {"boolean": VARINT, "int": VARINT, "bigint": VARINT, "double": FIXED64}  # of the scalars that are packed


def _date(value: int) -> bytes:
    """Encodes a date of the years 1 to 9999. Raises 0A000 for others."""
    try:
        date = EPOCH + timedelta(days=value)
    except OverflowError:
        raise FeatureNotSupported("dates beyond the years 1 to 9999 are not supported in Protobuf") from None
    return _numbers(date.year, date.month, date.day)


def value(type: Type, nullable: str) -> Encode:
    """Returns a function that encodes a value without its tag and length."""
    match type:
        case ["struct", *fields]:
            members = [(name, _field(number, inner, nullable)) for number, (name, inner) in enumerate(fields, 1)]
            return lambda value: b"".join(encode(value[name]) for name, encode in members)
        case ["map", _]:  # an array of maps is an array of messages with one field
            return _field(1, type, nullable)
        case ["decimal", precision, scale]:
            digits = _numbers(0, precision, scale)
            return lambda value: tag(1, LENGTH) + sized(unscaled(value, scale)) + digits
        case "date":
            return _date
        case "time":
            return lambda value: _numbers(*_time(value), value % 1000 * 1_000_000)
        case "timestamp":
            return lambda value: _numbers(value // 1000, value % 1000 * 1_000_000)
        case "varchar":
            return str.encode
        case "bytes":
            return bytes
        case "double":
            return struct.Struct("<d").pack
    return varint


def _time(milliseconds: int) -> tuple[int, int, int]:
    seconds = milliseconds // 1000
    return seconds // 3600, seconds // 60 % 60, seconds % 60


def _numbers(*numbers: int) -> bytes:
    """Returns fields 1, 2, … with these numbers. Those that are 0 are not written."""
    return b"".join(tag(field, VARINT) + varint(n) for field, n in enumerate(numbers, 1) if n)


def tag(number: int, wire: int) -> bytes:
    """Returns the number and the wire type of a field."""
    return varint(number << 3 | wire)


def sized(data: bytes) -> bytes:
    """Returns bytes after their length."""
    return varint(len(data)) + data
