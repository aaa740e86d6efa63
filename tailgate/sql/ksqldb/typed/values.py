"""Typed expressions of PostgreSQL's dialect, and the forms of values.

    type                stored form     inside an array, map or structure
    BOOLEAN, numbers    the same        JSON's boolean or number
    VARCHAR             text            string
    BYTES               bytea           string in base64
    DATE                date            number of days since 1970-01-01
    TIME, TIMESTAMP     time, timestamp number of milliseconds
    ARRAY               jsonb           array
    MAP, STRUCT         jsonb           object; the keys of a structure are ksqlDB's names of its fields

A NULL inside is JSON's null. This is also the form in messages in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName

EPOCH_DAY, EPOCH = "date '1970-01-01'", "timestamp '1970-01-01'"


ConstantValue: TypeAlias = str | int | float | Decimal | bool | None


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression of PostgreSQL's dialect and its type in ksqlDB.

    `may_fail`: its evaluation may raise an error. `constant`: its value, if it is a literal.
    """

    text: str
    type: TypeName
    may_fail: bool = False
    constant: ConstantValue = None

    def or_null(self) -> Typed:
        """Returns an expression that is NULL where this one fails."""
        return replace(self, text=f"try({self.text})", may_fail=False) if self.may_fail else self


def to_json(value: Typed) -> str:
    """Returns the jsonb of a value, NULL for NULL."""
    text = value.text
    match value.type.name:
        case "unknown":
            return "CAST(NULL AS jsonb)"
        case "array" | "map" | "struct":
            return text
        case "varchar":
            return f"to_jsonb(CAST({text} AS text))"
        case "bytes":
            return f"to_jsonb(ksqldb_from_bytes({text}, 'base64'))"
        case "date":
            return f"to_jsonb({text} - {EPOCH_DAY})"
        case "time" | "timestamp":
            return f"to_jsonb({milliseconds(text)})"
    return f"to_jsonb({text})"


def element_json(value: Typed) -> str:
    """Returns the jsonb of a value, JSON's null for NULL."""
    return f"coalesce({to_json(value)}, CAST('null' AS jsonb))"


def milliseconds(text: str) -> str:
    """Returns the milliseconds of a time or a timestamp."""
    return f"CAST(extract(epoch FROM {text}) * 1000 AS bigint)"


def of_json(json: str, type: TypeName, *, may_fail: bool = False) -> Typed:
    """Returns the value of a jsonb."""
    if type.name in types.STRUCTURES:
        return Typed(f"ksqldb_present({json})", type, may_fail)
    return of_text(f"({json} #>> '{{}}')", type, may_fail=may_fail)


def part(value: Typed, key: str, type: TypeName, *, may_fail: bool = False) -> Typed:
    """Returns the value of a key of an object, or of an index of an array. `key`: an expression."""
    may_fail = may_fail or value.may_fail
    if type.name in types.STRUCTURES:
        return Typed(f"ksqldb_present({value.text} -> {key})", type, may_fail)
    return of_text(f"({value.text} ->> {key})", type, may_fail=may_fail)


def moment_of_varchar(value: Typed, type: TypeName) -> Typed:
    """Returns the DATE, TIME or TIMESTAMP in a VARCHAR. A time with a zone is converted to UTC, and a TIMESTAMP may lack its end."""
    value = replace(value, text=f"ksqldb_whole_timestamp({value.text})") if type.name == "timestamp" else value
    descriptors = f"{quoted_text(types.descriptor(value.type))}, {quoted_text(types.descriptor(type))}"
    return of_json(f"ksqldb_cast({to_json(value)}, {descriptors})", type, may_fail=True)


def of_text(text: str, type: TypeName, *, may_fail: bool = False) -> Typed:
    """Returns the value of a scalar of JSON, from its text."""
    match type.name:
        case "varchar":
            return Typed(text, type, may_fail)
        case "bytes":
            return Typed(f"ksqldb_to_bytes({text}, 'base64')", type, may_fail)
        case "date":
            return Typed(f"({EPOCH_DAY} + CAST({text} AS integer))", type, may_fail)
        case "time":
            return Typed(f"CAST({of_milliseconds(f'CAST({text} AS bigint)')} AS time)", type, may_fail)
        case "timestamp":
            return Typed(of_milliseconds(f"CAST({text} AS bigint)"), type, may_fail)
    return Typed(f"CAST({text} AS {types.postgresql(type)})", type, may_fail)


def of_milliseconds(text: str) -> str:
    """Returns the timestamp of a number of milliseconds since 1970, in UTC."""
    return f"(to_timestamp({text} / CAST(1000 AS double precision)) AT TIME ZONE 'UTC')"


def coerced(value: Typed, type: TypeName) -> Typed:
    """Returns a value as a type to which it is cast implicitly."""
    if value.type == type:
        return value
    if value.type == types.UNKNOWN:
        return Typed(f"CAST({value.text} AS {types.postgresql(type)})", type)
    if type.name in types.STRUCTURES:
        return Typed(f"ksqldb_convert({value.text}, {quoted_text(types.descriptor(type))})", type, may_fail=True)
    if not type.numbers and type == types.DECIMAL:
        type = types.decimal_of(value.type)
        if type == value.type:
            return value
    return Typed(f"CAST({value.text} AS {types.postgresql(type)})", type, value.may_fail)
