"""jsonb as canonical text: what it is made of, and how it is taken apart.

Source: PostgreSQL 15, src/backend/utils/adt/{jsonb,jsonfuncs,jsonb_op,jsonb_util}.c.
"""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

from lake.errors import InvalidParameterValue, of
from sql.compute.casts import float4_to_text, float8_to_text, timestamp_text
from sql.compute.parsing import printed
from sql.compute.registry import own
from sql.input import jsonb
from sql.input import jsonb_operators as o
from sql.input.jsonb import dump, load

own("text", to="jsonb", name="jsonb_parse")(jsonb.canonical)
own("jsonb", to="bool", name="jsonb_bool")(o.to_bool)
own("jsonb", to="int2", name="jsonb_int2")(o.to_integer("int2"))
own("jsonb", to="int4", name="jsonb_int4")(o.to_integer("int4"))
own("jsonb", to="int8", name="jsonb_int8")(o.to_integer("int8"))
own("jsonb", to="float4", name="jsonb_float4")(o.to_real("float4"))
own("jsonb", to="float8", name="jsonb_float8")(o.to_real("float8"))
own("jsonb", to="int4", name="jsonb_array_length")(o.array_length)
own("jsonb", "text", to="bool", name="jsonb_exists")(o.exists)


@own("jsonb", "int4", "int4", to="numeric")
def jsonb_numeric(text: str, precision: int, scale: int) -> Decimal:
    return printed(o.number_of(text, "numeric"), precision, scale)


@own("jsonb", "text", to="jsonb")
def jsonb_get(text: str, key: str) -> str | None:
    return o.as_json(o.member(text, key))


@own("jsonb", "text", to="text")
def jsonb_get_text(text: str, key: str) -> str | None:
    return o.as_text(o.member(text, key))


@own("jsonb", "int4", to="jsonb")
def jsonb_element(text: str, index: int) -> str | None:
    return o.as_json(o.member(text, index))


@own("jsonb", "int4", to="text")
def jsonb_element_text(text: str, index: int) -> str | None:
    return o.as_text(o.member(text, index))


@own("jsonb", "text[]", to="jsonb")
def jsonb_path(text: str, path: list[str | None]) -> str | None:
    return None if None in path else o.as_json(o.at_path(text, path))


@own("jsonb", "text[]", to="text")
def jsonb_path_text(text: str, path: list[str | None]) -> str | None:
    return None if None in path else o.as_text(o.at_path(text, path))


@own("jsonb", "jsonb", to="bool")
def jsonb_contains(a: str, b: str) -> bool:
    return o.contains(load(a), load(b))


@own("jsonb", to="text")
def jsonb_typeof(text: str) -> str:
    return o.kind(load(text))


@own("jsonb", "text[]", to="bool")
def jsonb_exists_any(text: str, keys: list[str | None]) -> bool:
    return any(o.exists(text, key) for key in keys if key is not None)


@own("jsonb", "text[]", to="bool")
def jsonb_exists_all(text: str, keys: list[str | None]) -> bool:
    return all(o.exists(text, key) for key in keys if key is not None)


# --- rows of it --------------------------------------------------------------------------------------------------------------------


@own("jsonb", to="jsonb[]")
def jsonb_elements(text: str) -> list[str | None]:
    return [o.as_json(v) for v in o.elements(text)]


@own("jsonb", to="text[]")
def jsonb_elements_text(text: str) -> list[str | None]:
    return [o.as_text(v) for v in o.elements(text)]


@own("jsonb", to="text[]")
def jsonb_keys(text: str) -> list[str]:
    return list(o.members(text, "jsonb_object_keys"))


@own("jsonb", to="pairs")
def jsonb_each(text: str) -> list[dict[str, str | None]]:
    return [{"key": k, "value": o.as_json(v)} for k, v in o.members(text, "jsonb_each").items()]


@own("jsonb", to="pairs")
def jsonb_each_text(text: str) -> list[dict[str, str | None]]:
    return [{"key": k, "value": o.as_text(v)} for k, v in o.members(text, "jsonb_each_text").items()]


# --- making --------------------------------------------------------------------------------------------------------------------


@own("text", to="jsonb")
def jsonb_of_text(text: str) -> str:
    return dump(text)


def _number(text: str) -> str:
    """NaN and infinity are strings; others have no exponent."""
    return dump(Decimal(text)) if text[-1].isdigit() else dump(text)


@own("float8", to="jsonb")
def jsonb_of_float8(value: float) -> str:
    return _number(float8_to_text(value))


@own("float4", to="jsonb")
def jsonb_of_float4(value: float) -> str:
    return _number(float4_to_text(value))


@own("timestamp", to="jsonb")
def jsonb_of_timestamp(value: datetime) -> str:
    return dump(timestamp_text(value, "T"))


@own("timestamptz", to="jsonb")
def jsonb_of_timestamptz(value: datetime) -> str:
    return dump(timestamp_text(value.astimezone(timezone.utc), "T") + "+00:00")


@own("date", to="jsonb")
def jsonb_of_date(value: date) -> str:
    return dump(value.isoformat())


@own("jsonb[]", to="jsonb")
def jsonb_build_array(items: list[str | None]) -> str:
    return "[" + ", ".join("null" if i is None else i for i in items) + "]"


@own("text[]", "jsonb[]", to="jsonb")
def jsonb_build_object(keys: list[str | None], values: list[str | None]) -> str:
    for i, key in enumerate(keys):
        if key is None:
            raise InvalidParameterValue(f"argument {2 * i + 1}: key must not be null")
    return dump({k: None if v is None else load(v) for k, v in zip(keys, values, strict=True)})


@own("text[]", to="jsonb", name="jsonb_from_pairs")
def of_pairs(items: list[str | None]) -> str:
    if len(items) % 2:
        raise of("2202E", "array must have even number of elements")
    return of_lists(items[::2], items[1::2])


@own("text[]", "text[]", to="jsonb", name="jsonb_object_of")
def of_lists(keys: list[str | None], values: list[str | None]) -> str:
    if len(keys) != len(values):
        raise of("2202E", "mismatched array dimensions")
    if None in keys:
        raise of("22004", "null value not allowed for object key")
    return dump(dict(zip(keys, values, strict=True)))
