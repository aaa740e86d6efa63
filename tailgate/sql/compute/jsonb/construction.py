"""Functions that construct a jsonb from values of other types.

Source: PostgreSQL 15, src/backend/utils/adt/jsonb.c.
"""

from __future__ import annotations

from decimal import Decimal

from tailgate.lake.errors import ArraySubscriptError, InvalidParameterValue, NullValueNotAllowed
from tailgate.sql.compute.casts import float4_to_text, float8_to_text
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import dump, load
from tailgate.values.times.dates import write_date, write_timestamp

# --- scalars -------------------------------------------------------------------------------------


@udf("text", to="jsonb")
def jsonb_of_text(text: str) -> str:
    return dump(text)


def _number(text: str) -> str:
    """Returns a number without an exponent; NaN and infinity become strings."""
    return dump(Decimal(text)) if text[-1].isdigit() else dump(text)


@udf("float8", to="jsonb")
def jsonb_of_float8(value: float) -> str:
    return _number(float8_to_text(value))


@udf("float4", to="jsonb")
def jsonb_of_float4(value: float) -> str:
    return _number(float4_to_text(value))


@udf("timestamp", to="jsonb")
def jsonb_of_timestamp(value: int) -> str:
    return dump(write_timestamp(value, separator=b"T").decode())


@udf("timestamptz", to="jsonb")
def jsonb_of_timestamptz(value: int) -> str:
    return dump(write_timestamp(value, b"+00:00", b"T").decode())


@udf("date", to="jsonb")
def jsonb_of_date(value: int) -> str:
    return dump(write_date(value).decode())


# --- arrays and objects --------------------------------------------------------------------------


def members_of(keys: list[str | None], values: list[str | None]) -> list[tuple[str, str | None]]:
    """Returns the members of json_object(text[], text[]) and jsonb_object(text[], text[]). Raises 2202E, 22004."""
    if len(keys) != len(values):
        raise ArraySubscriptError("mismatched array dimensions")
    members = [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
    if len(members) < len(keys):
        raise NullValueNotAllowed("null value not allowed for object key")
    return members


def members_of_pairs(items: list[str | None]) -> list[tuple[str, str | None]]:
    """Returns the members of json_object(text[]) and jsonb_object(text[]), whose items are alternating keys and values."""
    if len(items) % 2:
        raise ArraySubscriptError("array must have even number of elements")
    return members_of(items[::2], items[1::2])


@udf("jsonb[]", to="jsonb")
def jsonb_build_array(items: list[str | None]) -> str:
    return "[" + ", ".join("null" if i is None else i for i in items) + "]"


@udf("text[]", "jsonb[]", to="jsonb")
def jsonb_build_object(keys: list[str | None], values: list[str | None]) -> str:
    for i, key in enumerate(keys):
        if key is None:
            raise InvalidParameterValue(f"argument {2 * i + 1}: key must not be null")
    return dump({k: None if v is None else load(v) for k, v in zip(keys, values, strict=True)})


@udf("text[]", to="jsonb")
def jsonb_from_pairs(items: list[str | None]) -> str:
    """Computes jsonb_object(text[])."""
    return dump(dict(members_of_pairs(items)))


@udf("text[]", "text[]", to="jsonb")
def jsonb_object_of(keys: list[str | None], values: list[str | None]) -> str:
    """Computes jsonb_object(text[], text[])."""
    return dump(dict(members_of(keys, values)))
