"""The values of quoted literals and of parameters in text format."""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported, InvalidTextRepresentation, StringDataRightTruncation, TailgateError
from tailgate.lake.types import Type, numeric
from tailgate.sql.input import intervals, jsonb, numbers, times
from tailgate.sql.plan import Literal, Value

NUMERIC_SCALE_MAX = 38


def literal(text: str, type: Type, position: int | None = None, *, fields: str = "") -> Literal:
    """Returns the literal of a text; a numeric without modifiers has the scale of its text.

    `fields` restricts an interval, such as `hour to second`. Errors have the position.
    """
    try:
        value = parse(text, type, fields)
    except TailgateError as error:
        error.position = position if error.position is None else error.position
        raise
    if type.name == "numeric" and not type.is_array and not type.modifiers:
        type = numeric(scale_of(text))
        value = numbers.scaled(numbers.numeric(text), *type.decimal)
    return Literal(value, type, position)


def scale_of(text: str) -> int:
    """Returns the number of digits after the decimal point of a number's text."""
    exponent = numbers.numeric(text).as_tuple().exponent
    return min(max(0, -int(exponent)), NUMERIC_SCALE_MAX)


def parse(text: str, type: Type, fields: str = "") -> Value:
    """Returns the value of a text in its stored form."""
    if type.is_array:
        return tuple(None if item is None else parse(item, type.element) for item in elements(text))
    match type.name:
        case "bool":
            return numbers.boolean(text)
        case "int2" | "int4" | "int8" | "oid" as name:
            return numbers.integer(text, name)
        case "float4" | "float8" as name:
            return numbers.real(text, name)
        case "numeric":
            value = numbers.numeric(text)
            return numbers.scaled(value, *type.decimal) if type.modifiers else value
        case "text" | "name" | "unknown":
            return text
        case "varchar" | "bpchar":
            return _limited(text, type)
        case "bytea":
            return numbers.byte_string(text)
        case "date":
            return times.to_date(text)
        case "timestamp":
            return times.to_timestamp(text)
        case "timestamptz":
            return times.to_timestamptz(text)
        case "time":
            return times.to_time(text)
        case "interval":
            return intervals.to_interval(text, fields)
        case "uuid":
            return numbers.uuid(text)
        case "jsonb":
            return jsonb.canonical(text)
    raise FeatureNotSupported(f"literals of type {type} are not supported")


def _limited(text: str, type: Type) -> str:
    """Returns a value of varchar(n) or char(n). Raises 22001 if it is too long."""
    if not type.modifiers:
        return text
    padded = type.name == "bpchar"
    length = type.modifiers[0]
    if len(text.rstrip(" ") if padded else text) > length:
        raise StringDataRightTruncation(f"value too long for type {type}")
    return text[:length].ljust(length) if padded else text


def elements(text: str) -> list[str | None]:
    """Returns the texts of the elements of a one-dimensional array; None is NULL."""
    stripped = text.strip(numbers.BLANKS)
    if not stripped.startswith("{"):
        raise _malformed(text, 'Array value must start with "{" or dimension information.')
    if not stripped.endswith("}"):
        raise _malformed(text, "Unexpected end of input.")
    body = stripped[1:-1]
    if not body.strip(numbers.BLANKS):
        return []
    items: list[str | None] = []
    at = 0
    while True:
        item, quoted, escaped_length = "", False, 0  # blanks up to that length were escaped
        while at < len(body) and body[at] != ",":
            char = body[at]
            if char in numbers.BLANKS and (quoted or not item):
                pass
            elif quoted or (char == '"' and item):
                raise _malformed(text, "Unexpected array element.")
            elif char == '"':
                quoted = True
                at += 1
                while at < len(body) and body[at] != '"':
                    at += body[at] == "\\"
                    item += body[at : at + 1]
                    at += 1
                if at >= len(body):
                    raise _malformed(text, "Unexpected end of input.")
            elif char == "\\":
                at += 1
                item += body[at : at + 1]
                escaped_length = len(item)
            elif char in "{}":
                raise FeatureNotSupported("arrays of more than one dimension are not supported")
            else:
                item += char
            at += 1
        if not quoted:
            item = item[:escaped_length] + item[escaped_length:].rstrip(numbers.BLANKS)
            if not item:
                raise _malformed(text, 'Unexpected "," character.')
        items.append(None if item.upper() == "NULL" and not quoted else item)
        if at >= len(body):
            return items
        at += 1


def _malformed(text: str, detail: str) -> TailgateError:
    return InvalidTextRepresentation(f'malformed array literal: "{text}"', detail=detail)
