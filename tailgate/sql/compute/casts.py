"""Casts between text and types that DuckDB casts differently or does not have.

Text is as PostgreSQL prints it in UTC with DateStyle ISO and IntervalStyle postgres.

Source: PostgreSQL 15, the types' input and output functions.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.ranges import ALL_RANGES
from tailgate.lake.types import Type
from tailgate.sql.compute.registry import udf
from tailgate.values.composites import records
from tailgate.values.composites.arrays import as_list, parsed, quote
from tailgate.values.numbers import numerics
from tailgate.values.numbers.floats import write_double, write_single
from tailgate.values.registry import read_text
from tailgate.values.strings import single_bytes
from tailgate.values.times.dates import write_date, write_time, write_timestamp, write_timestamptz
from tailgate.values.times.intervals import Interval, write_postgres

PARSED_TYPES = (
    """
    bool int2 int4 int8 float4 float8 date time timetz timestamp timestamptz interval uuid bytea oid inet cidr macaddr macaddr8 bit varbit
    money
""".split()
    + list(ALL_RANGES)
)

# --- to text -------------------------------------------------------------------------------------


@udf("float8", to="text")
def float8_to_text(value: float) -> str:
    return write_double(value).decode()


@udf("float4", to="text")
def float4_to_text(value: float) -> str:
    return write_single(value).decode()


@udf("time", to="text")
def time_to_text(micros: int) -> str:
    return write_time(micros).decode()


@udf("interval", to="text")
def interval_to_text(value: Interval) -> str:
    return write_postgres(value).decode()


@udf("date", to="text")
def date_to_text(value: int) -> str:
    return write_date(value).decode()


@udf("timestamp", to="text")
def timestamp_to_text(value: int) -> str:
    return write_timestamp(value).decode()


@udf("timestamptz", to="text")
def timestamptz_to_text(value: int) -> str:
    return write_timestamptz(value, "UTC").decode()


@udf("char", to="text")
def char_to_text(value: str) -> str:
    return single_bytes.shown(value)


# --- "char" --------------------------------------------------------------------------------------


@udf("text", to="char")
def text_to_char(text: str) -> str:
    return single_bytes.read(text)


@udf("int4", to="char")
def int4_to_char(number: int) -> str:
    if not -128 <= number <= 127:
        raise NumericValueOutOfRange('"char" out of range')
    return single_bytes.character(number % 256)


@udf("char", to="int4")
def char_to_int4(value: str) -> int:
    byte = single_bytes.byte_of(value)
    return byte - 256 if byte > 127 else byte


# --- arrays to text and back ---------------------------------------------------------------------


@udf("text[]", to="text")
def array_to_text(items: list[str | None]) -> str:
    """Returns the text of an array, from the texts of its elements.

    >>> array_to_text(["a", "b c", None, "null", 'x"'])
    '{a,"b c",NULL,"null","x\\\\""}'
    """
    return "{" + ",".join("NULL" if item is None else quote(item.encode()).decode() for item in items) + "}"


@udf("text", to="text[]")
def text_to_elements(text: str) -> list[str | None]:
    """Returns the texts of the elements of an array of one dimension from 1, from the array's text."""
    return list(as_list(parsed(text)))


@udf("text[]", to="text")
def row_to_text(fields: list[str | None]) -> str:
    """Returns the text of a row, from the texts of its fields.

    >>> row_to_text(["1", None, "a b"])
    '(1,,"a b")'
    """
    return "(" + ",".join("" if text is None else records.quote(text.encode()).decode() for text in fields) + ")"


@udf("text", "int4", to="text[]")
def text_to_fields(text: str, width: int) -> list[str | None]:
    """Returns the texts of the fields of a row, from the row's text."""
    return records.parsed(text, width)


# --- text to other types -------------------------------------------------------------------------


def _parser(type_name: str) -> Callable[[str], Any]:
    type = Type(type_name)
    return lambda text: read_text(text, type)


for _name in PARSED_TYPES:
    udf("text", to=_name, name="text_to_" + _name)(_parser(_name))


@udf("text", "int4", "int4", to="numeric")
def text_to_numeric(text: str, precision: int, scale: int) -> Decimal:
    return numerics.scaled(numerics.exact(text), precision, scale)
