"""What DuckDB lacks, put into a connection: macros, and functions over Arrow arrays with one meaning with the engine's.

Errors carry their SQLSTATE in the text, `[22012] division by zero`; `error_of` makes an error of ours from any of DuckDB's.

The one module of this package that knows the `duckdb` library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from lake.errors import (
    CharacterNotInRepertoire,
    DataException,
    DatetimeFieldOverflow,
    DivisionByZero,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    QueryCanceled,
    TailgateError,
    of,
)  # fmt: skip
from lake.types import Type
from sql.functions import arithmetic
from sql.input import jsonb, moments, numbers
from sql.input import jsonb_operators as o
from sql.input.literals import parse

SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'",
)
FRACTION = "[22003] percentile value ' || f || ' is not between 0 and 1"
PERCENTILE = f"CASE WHEN f < 0 OR f > 1 THEN error('{FRACTION}') ELSE"
MACROS = (
    *arithmetic.MACROS,
    "tg_float_to_numeric(x, made) AS CASE WHEN isnan(x) OR isinf(x) THEN error('[22003] numeric field overflow') ELSE made END",
    "tg_numeric_divide(a, b, sa, sb, s) AS tg_decimal_divide(CAST(a AS VARCHAR), CAST(b AS VARCHAR), s)",
    "tg_json_array(l) AS '[' || array_to_string(list_transform(l, lambda x: coalesce(x, 'null')), ', ') || ']'",
    f"tg_percentile_disc(l, f) AS {PERCENTILE} l[greatest(CAST(ceil(f * len(l)) AS BIGINT), 1)] END",
    "tg_at(l, place) AS l[CAST(place AS BIGINT) + 1]",
    "tg_between(low, high, part) AS CASE WHEN part = 0 THEN low ELSE low + part * (high - low) END",
    "tg_about(l, place) AS tg_between(tg_at(l, floor(place)), tg_at(l, ceil(place)), place - floor(place))",
    f"tg_percentile_cont(l, f) AS {PERCENTILE} tg_about(l, f * (len(l) - 1)) END",
)
MARK = re.compile(r"\[([0-9A-Z]{5})\] (.*?)(?:\n|$)", re.S)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
INTEGERS = {"INT16": "smallint", "INT32": "integer", "INT64": "bigint"}


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """All that rendered plans call. Again changes nothing."""
    for setting in SETTINGS:
        connection.execute(setting)
    create: Any = connection.create_function  # its stub knows no types by name
    for name, function, arguments, result in FUNCTIONS:
        with suppress(duckdb.InvalidInputException):
            connection.remove_function(name)
        create(name, _vectorised(function, len(arguments), result), arguments, result, type="arrow", null_handling="special")
    for macro in MACROS:
        connection.execute("CREATE OR REPLACE MACRO " + macro)


def _vectorised(function: Callable[..., Any], arity: int, result: str) -> Callable[..., Any]:
    """Value by value over Arrow arrays; NULL in, NULL out. Constants are looked at once."""
    arrow = ARROW[result]

    def run(*arrays: Any) -> Any:
        memo: dict[tuple[Any, ...], Any] = {}
        out: list[Any] = []
        for values in zip(*(a.to_pylist() for a in arrays), strict=True):
            if any(v is None for v in values):
                out.append(None)
                continue
            try:
                found = memo.get(key := tuple(map(_hashable, values)), memo)
                if found is memo:
                    found = function(*values)
                    if len(memo) < MEMO_MAX:
                        memo[key] = found
            except TailgateError as error:
                raise RuntimeError(f"[{error.sqlstate}] {error.message}") from None
            out.append(found)
        return pa.array(out, type=arrow)

    # DuckDB counts parameters
    by_arity: dict[int, Callable[..., Any]] = {1: lambda a: run(a), 2: lambda a, b: run(a, b), 3: lambda a, b, c: run(a, b, c)}
    return by_arity[arity]


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


MEMO_MAX = 2048  # a vector of DuckDB's: what repeats within one is computed once
ARROW = {
    "BOOLEAN": pa.bool_(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(), "VARCHAR": pa.string(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"), "VARCHAR[]": pa.list_(pa.string()),
    "STRUCT(key VARCHAR, value VARCHAR)[]": pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])),
}  # fmt: skip


def _printed(value: Decimal, precision: int, scale: int) -> str:
    return format(numbers.scaled(value, precision, scale), "f")


ENCODINGS = {"utf8": "utf-8", "utf-8": "utf-8", "unicode": "utf-8", "latin1": "iso8859-1", "iso88591": "iso8859-1", "sqlascii": "utf-8"}


def _convert_from(data: bytes, encoding: str) -> str:
    name = ENCODINGS.get(re.sub(r"[^a-z0-9]", "", encoding.lower()))
    if name is None:
        raise InvalidParameterValue(f'invalid source encoding name "{encoding}"')
    try:
        text = data.decode(name)
    except UnicodeDecodeError as error:
        # as many bytes as the character's first byte calls for
        first = data[error.start]
        size = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF8 else 1
        shown = " ".join(f"0x{b:02x}" for b in data[error.start : error.start + size])
        raise CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {shown}') from None
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _to_timestamp(seconds: float) -> datetime:
    if seconds != seconds:
        raise DatetimeFieldOverflow("timestamp cannot be NaN")
    try:
        return EPOCH + timedelta(microseconds=round(Decimal(seconds) * 1_000_000))
    except (OverflowError, ValueError):
        raise DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"') from None


def _parser(type: str) -> Callable[[str], Any]:
    target = Type(type)
    return lambda text: parse(text, target)


def _pairs(members: dict[str, jsonb.Json], shown: Callable[[jsonb.Json], str | None]) -> list[dict[str, str | None]]:
    return [{"key": key, "value": shown(value)} for key, value in members.items()]


def _divide(a: str, b: str, scale: int) -> str:
    """Exact, rounded half away from zero."""
    divisor = Decimal(b)
    if not divisor:
        raise DivisionByZero("division by zero")
    numerator, denominator = Decimal(a).as_integer_ratio(), divisor.as_integer_ratio()
    top = numerator[0] * denominator[1] * 10**scale
    bottom = numerator[1] * denominator[0]
    negative = (top < 0) != (bottom < 0)
    quotient = (2 * abs(top) + abs(bottom)) // (2 * abs(bottom))
    if quotient >= 10**38:
        raise NumericValueOutOfRange("numeric field overflow")
    return format(Decimal(-quotient if negative else quotient).scaleb(-scale, context=numbers.EXACT), "f")


V = "VARCHAR"
PAIRS = "STRUCT(key VARCHAR, value VARCHAR)[]"
FUNCTIONS: tuple[tuple[str, Callable[..., Any], list[str], str], ...] = (
    ("tg_jsonb_parse", jsonb.canonical, [V], V),
    ("tg_jsonb_get", lambda j, k: o.as_json(o.member(j, k)), [V, V], V),
    ("tg_jsonb_get_text", lambda j, k: o.as_text(o.member(j, k)), [V, V], V),
    ("tg_jsonb_element", lambda j, i: o.as_json(o.member(j, i)), [V, "INTEGER"], V),
    ("tg_jsonb_element_text", lambda j, i: o.as_text(o.member(j, i)), [V, "INTEGER"], V),
    ("tg_jsonb_path", lambda j, p: o.as_json(o.at_path(j, p)), [V, V + "[]"], V),
    ("tg_jsonb_path_text", lambda j, p: o.as_text(o.at_path(j, p)), [V, V + "[]"], V),
    ("tg_jsonb_contains", lambda a, b: o.contains(jsonb.load(a), jsonb.load(b)), [V, V], "BOOLEAN"),
    ("tg_jsonb_exists", o.exists, [V, V], "BOOLEAN"),
    ("tg_jsonb_typeof", lambda j: o.kind(jsonb.load(j)), [V], V),
    ("tg_jsonb_array_length", o.array_length, [V], "INTEGER"),
    ("tg_jsonb_elements", lambda j: [o.as_json(v) for v in o.elements(j)], [V], V + "[]"),
    ("tg_jsonb_elements_text", lambda j: [o.as_text(v) for v in o.elements(j)], [V], V + "[]"),
    ("tg_jsonb_keys", lambda j: list(o.members(j, "jsonb_object_keys")), [V], V + "[]"),
    ("tg_jsonb_each", lambda j: _pairs(o.members(j, "jsonb_each"), o.as_json), [V], PAIRS),
    ("tg_jsonb_each_text", lambda j: _pairs(o.members(j, "jsonb_each_text"), o.as_text), [V], PAIRS),
    ("tg_jsonb_bool", o.to_bool, [V], "BOOLEAN"),
    ("tg_jsonb_int2", o.to_integer("int2"), [V], "SMALLINT"),
    ("tg_jsonb_int4", o.to_integer("int4"), [V], "INTEGER"),
    ("tg_jsonb_int8", o.to_integer("int8"), [V], "BIGINT"),
    ("tg_jsonb_float4", o.to_real("float4"), [V], "FLOAT"),
    ("tg_jsonb_float8", o.to_real("float8"), [V], "DOUBLE"),
    ("tg_jsonb_numeric", lambda j, p, s: _printed(o.number_of(j, "numeric"), p, s), [V, "INTEGER", "INTEGER"], V),
    ("tg_convert_from", _convert_from, ["BLOB", V], V),
    ("tg_to_timestamp", _to_timestamp, ["DOUBLE"], "TIMESTAMPTZ"),
    ("tg_text_to_numeric", lambda t, p, s: _printed(numbers.numeric(t), p, s), [V, "INTEGER", "INTEGER"], V),
    ("tg_decimal_divide", _divide, [V, V, "INTEGER"], V),
    ("tg_variance", moments.variance, [V, V + "[]", "INTEGER"], V),
    ("tg_moments", moments.moments, [V, "DOUBLE[][]"], "DOUBLE"),
    ("tg_jsonb_object", jsonb.made_object, [V + "[][]"], V),
    *(
        (f"tg_text_to_{name}", _parser(name), [V], Type(name).duckdb)
        for name in ("bool", "int2", "int4", "int8", "float4", "float8", "date", "timestamp", "timestamptz")
    ),
)


# --- errors ----------------------------------------------------------------------------------------------------------------------


def error_of(error: duckdb.Error) -> TailgateError:
    """What PostgreSQL would have said for an error of DuckDB's while it ran a rendered plan."""
    text = str(error)
    if match := MARK.search(text):
        return of(match[1], match[2])
    if "must not end with escape character" in text:
        return of("22025", "LIKE pattern must not end with escape character")
    if isinstance(error, duckdb.InterruptException):
        return QueryCanceled("canceling statement due to user request")
    if isinstance(error, (duckdb.OutOfRangeException, duckdb.ConversionException)):
        if "DECIMAL" in text.upper():
            return NumericValueOutOfRange("numeric field overflow")
        for word, name in INTEGERS.items():
            if word in text:
                return NumericValueOutOfRange(f"{name} out of range")
        if "division" in text:
            return NumericValueOutOfRange("integer out of range" if "INT32" in text else "bigint out of range")
        if "timestamp" in text.lower() or "date" in text.lower():
            return DatetimeFieldOverflow("timestamp out of range")
        if isinstance(error, duckdb.ConversionException) and "Could not convert string" in text:
            return InvalidTextRepresentation(text.removeprefix("Conversion Error: ").split("\n")[0])
        return NumericValueOutOfRange("value out of range")
    if isinstance(error, duckdb.OutOfMemoryException):
        return of("53200", "out of memory")
    return DataException(text.split("\n")[0]) if isinstance(error, duckdb.InvalidInputException) else of("XX000", text.split("\n")[0])
