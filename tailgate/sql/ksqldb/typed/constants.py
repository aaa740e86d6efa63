"""Literals, and literals that are texts as values of other types.

Source: ksqlDB 0.29, documentation, "Type Coercion", section "Literal rules".
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timezone
from decimal import Decimal

from tailgate.lake.errors import DatatypeMismatch, InvalidDatetimeFormat
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.typed.values import ConstantValue, Typed
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX

INT_MAX, BIGINT_MAX = 2**31 - 1, 2**63 - 1
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
BOOLEANS = {word[:n]: word in ("true", "yes") for word in ("true", "yes", "false", "no") for n in range(1, len(word) + 1)}
# a date and a time of which the end may be missing
MOMENT = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?)?)?)?(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)


def constant(value: ConstantValue, position: int) -> Typed:
    """Returns a literal. Raises 42804 for a number that is too large."""
    match value:
        case None:
            return Typed("NULL", types.UNKNOWN)
        case bool():
            return Typed(str(value).lower(), types.BOOLEAN, constant=value)
        case int():
            if abs(value) > BIGINT_MAX:
                raise DatatypeMismatch(f"{value} is out of the range of BIGINT", position=position)
            type = types.INT if abs(value) <= INT_MAX else types.BIGINT
            return Typed(str(value) if value >= 0 else f"({value})", type, constant=value)
        case float():
            return Typed(f"CAST('{value!r}' AS double precision)", types.DOUBLE, constant=value)
        case Decimal():
            digits = value.as_tuple()
            scale = max(-int(digits.exponent), 0)
            return Typed(f"({value:f})", TypeName("decimal", (max(len(digits.digits), scale), scale)), constant=value)
        case str():
            return Typed(quoted_text(value), types.VARCHAR, constant=value)


def number_of(text: str, position: int) -> Typed | None:
    """Returns the number in a text, or None, also for an integer with too many digits."""
    match = NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    if match[2]:
        return constant(float(match[0]), position)
    if "." in match[1]:
        return constant(Decimal(match[0]), position)
    return None if len(match[0]) > INTEGER_DIGITS_MAX else constant(int(match[0]), position)


def boolean_of(text: str) -> Typed | None:
    """Returns the boolean in a text: true, yes, false or no, or the beginning of one of these; otherwise None."""
    value = BOOLEANS.get(text.strip().lower())
    return None if value is None else Typed(str(value).lower(), types.BOOLEAN, constant=value)


def moment_of(text: str, type: TypeName, position: int) -> Typed:
    """Returns the TIMESTAMP, DATE or TIME in a text. A time with a zone is converted to UTC. Raises 22007."""
    try:
        match type.name:
            case "date":
                return Typed(f"date '{date.fromisoformat(text)}'", type)
            case "time":
                return Typed(f"time '{time.fromisoformat(text)}'", type)
        return Typed(f"timestamp '{timestamp_of(text)}'", type)
    except ValueError:
        shown = types.in_schema(type)
        raise InvalidDatetimeFormat(f'invalid input syntax for type {shown}: "{text}"', position=position) from None


def timestamp_of(text: str) -> datetime:
    """Returns the timestamp in UTC of a text whose end may be missing: a year, a month, …. Raises ValueError."""
    match = MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = (int(match[n] or (1 if n in (2, 3) else 0)) for n in range(1, 7))
    local = datetime(year, month, day, hour, minute, second, int((match[7] or "").ljust(6, "0")), timezone.utc)
    zone = datetime.strptime(match[8], "%z").tzinfo if match[8] else timezone.utc
    return local.replace(tzinfo=zone).astimezone(timezone.utc).replace(tzinfo=None)
