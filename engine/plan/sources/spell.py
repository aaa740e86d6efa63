"""Pieces of Spark SQL that turn what a decoder gives into the stored form of a column."""

from __future__ import annotations

from engine.plan.casts import cast_to
from lake.types import JSONB, TEXT, UUID, Type
from sql import plan
from sql.spark import expression

MICROS = 1_000_000
UNAVAILABLE = "__debezium_unavailable_value"  # engine/java, Captured
UUID_TEXT = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


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


def jsonb_of_debezium(value: str) -> str:
    """The same of a text that may be what stands for a value which was not sent; then it is a string."""
    return f"CASE WHEN {value} = '{UNAVAILABLE}' THEN '\"{UNAVAILABLE}\"' ELSE {jsonb_of(value)} END"


def cast_of(value: str, source: Type, to: Type) -> str:
    """PostgreSQL's cast of a value."""
    if to == UUID:
        return uuid_of(value)
    return expression(cast_to(plan.Column(0, source), to), (value,))


def uuid_of(value: str) -> str:
    """A uuid of its text, in lower case."""
    not_one = "tg_required(CAST(NULL AS STRING), 'invalid input syntax for type uuid')"
    return f"CASE WHEN {value} RLIKE {text(UUID_TEXT)} THEN lower({value}) WHEN {value} IS NOT NULL THEN {not_one} END"


def micros_of(value: str) -> str:
    """Microseconds of a day-time interval."""
    minutes = f"(extract(DAYS FROM {value}) * 24 + extract(HOURS FROM {value})) * 60 + extract(MINUTES FROM {value})"
    return f"CAST(({minutes}) * 60 AS BIGINT) * {MICROS} + CAST(extract(SECONDS FROM {value}) * {MICROS} AS BIGINT)"


def interval_of(value: str) -> str:
    """An interval of a day-time interval. Days stay in the time part, as they are no days of a calendar."""
    fields = f"named_struct('months', 0, 'days', 0, 'micros', {micros_of(value)})"
    return f"CASE WHEN {value} IS NOT NULL THEN {fields} END"
