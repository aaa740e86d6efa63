"""Pieces of Spark SQL that turn what a decoder gives into the stored form of a column."""

from __future__ import annotations

from sql.spark import expression

from lake.types import JSONB, TEXT, Type
from sql import plan
from sql.functions import cast

MICROS = 1_000_000


def name(*path: str) -> str:
    """A field by its path: `a`.`b`."""
    return ".".join("`" + p.replace("`", "``") + "`" for p in path)


def text(value: str) -> str:
    """A literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def required(condition: str, reason: str) -> str:
    """True where the condition is, else the record is a dead letter for this reason."""
    return f"tg_required(CASE WHEN {condition} THEN true END, {text(reason)})"


def jsonb_of(value: str) -> str:
    """Canonical text of a jsonb; fails where the value is no JSON."""
    return cast_of(value, TEXT, JSONB)


def cast_of(value: str, source: Type, to: Type) -> str:
    """PostgreSQL's cast of a value."""
    if source == to:
        return value
    return expression(plan.Call(cast(source, to), (plan.Column(0, source),), to), (value,))


def micros_of(value: str) -> str:
    """Microseconds of a day-time interval."""
    minutes = f"(extract(DAYS FROM {value}) * 24 + extract(HOURS FROM {value})) * 60 + extract(MINUTES FROM {value})"
    return f"CAST(({minutes}) * 60 AS BIGINT) * {MICROS} + CAST(extract(SECONDS FROM {value}) * {MICROS} AS BIGINT)"


def interval_of(value: str) -> str:
    """An interval of a day-time interval. Days stay in the time part, as they are no days of a calendar."""
    fields = f"named_struct('months', 0, 'days', 0, 'micros', {micros_of(value)})"
    return f"CASE WHEN {value} IS NOT NULL THEN {fields} END"
