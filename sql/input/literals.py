"""A literal in quotes, or a value of a parameter in text, to the stored form of a type."""

from __future__ import annotations

from lake.errors import FeatureNotSupported, InvalidTextRepresentation, StringDataRightTruncation, TailgateError
from lake.types import Type, numeric
from sql.input import jsonb, numbers, times
from sql.plan import Literal, Value


def literal(text: str, type: Type, position: int | None = None, *, fields: str = "") -> Literal:
    """The literal of a text; a numeric without modifiers takes the scale of its text. Errors carry the position."""
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
    """Digits behind the point of a number's text, as PostgreSQL shows it."""
    exponent = numbers.numeric(text).as_tuple().exponent
    return min(max(0, -int(exponent)), 38)


def parse(text: str, type: Type, fields: str = "") -> Value:
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
        case "varchar" | "bpchar" as name:
            if not type.modifiers:
                return text
            length = type.modifiers[0]
            if len(text.rstrip(" ") if name == "bpchar" else text) > length:
                raise StringDataRightTruncation(f"value too long for type {type}")
            return text[:length].ljust(length) if name == "bpchar" else text
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
            return times.to_interval(text, fields)
        case "uuid":
            return numbers.uuid(text)
        case "jsonb":
            return jsonb.canonical(text)
    raise FeatureNotSupported(f"literals of type {type} are not supported")


def elements(text: str) -> list[str | None]:
    """The elements of an array in PostgreSQL's text form, of one dimension."""

    def malformed(detail: str) -> TailgateError:
        return InvalidTextRepresentation(f'malformed array literal: "{text}"', detail=detail)

    stripped = text.strip(numbers.BLANKS)
    if not stripped.startswith("{"):
        raise malformed('Array value must start with "{" or dimension information.')
    if not stripped.endswith("}"):
        raise malformed("Unexpected end of input.")
    inner = stripped[1:-1]
    if not inner.strip(numbers.BLANKS):
        return []
    found: list[str | None] = []
    at = 0
    while True:
        part, quoted, kept = "", False, 0  # kept: of the part, what may not be stripped
        while at < len(inner) and inner[at] != ",":
            char = inner[at]
            if char in numbers.BLANKS and (quoted or not part):
                pass
            elif quoted or (char == '"' and part):
                raise malformed("Unexpected array element.")
            elif char == '"':
                quoted = True
                at += 1
                while at < len(inner) and inner[at] != '"':
                    at += inner[at] == "\\"
                    part += inner[at : at + 1]
                    at += 1
                if at >= len(inner):
                    raise malformed("Unexpected end of input.")
            elif char == "\\":
                at += 1
                part += inner[at : at + 1]
                kept = len(part)
            elif char in "{}":
                raise FeatureNotSupported("arrays of more than one dimension are not supported")
            else:
                part += char
            at += 1
        if not quoted:
            part = part[:kept] + part[kept:].rstrip(numbers.BLANKS)
            if not part:
                raise malformed('Unexpected "," character.')
        found.append(None if part.upper() == "NULL" and not quoted else part)
        if at >= len(inner):
            return found
        at += 1
