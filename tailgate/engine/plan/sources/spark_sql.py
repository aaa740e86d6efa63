"""Generates Spark SQL that converts decoded values to the stored forms of columns."""

from __future__ import annotations

from tailgate.engine.plan.casts import cast_to
from tailgate.lake.types import JSONB, TEXT, UUID, Type
from tailgate.sql import plan
from tailgate.sql.render.spark import expression

MICROS = 1_000_000
UNAVAILABLE = "__debezium_unavailable_value"  # tailgate/engine/java, UnavailableValue
UUID_TEXT = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def name(*path: str) -> str:
    """Returns a field's path in Spark SQL: `a`.`b`."""
    return ".".join("`" + p.replace("`", "``") + "`" for p in path)


def text(value: str) -> str:
    """Returns a text literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def required(condition: str, reason: str) -> str:
    """Returns a condition that makes the record a dead letter, with a reason, if it is not true."""
    return f"tg_required(CASE WHEN {condition} THEN true END, {text(reason)})"


def jsonb_of(value: str) -> str:
    """Returns the canonical text of a jsonb; it fails if the value is not valid JSON."""
    return cast_of(value, TEXT, JSONB)


def jsonb_of_debezium(value: str) -> str:
    """Returns `jsonb_of`, or a JSON string for Debezium's placeholder of a value that was not sent."""
    return f"CASE WHEN {value} = '{UNAVAILABLE}' THEN '\"{UNAVAILABLE}\"' ELSE {jsonb_of(value)} END"


def cast_of(value: str, source: Type, to: Type) -> str:
    """Returns PostgreSQL's cast of a value."""
    if to == UUID:
        return uuid_of(value)
    return expression(cast_to(plan.Column(0, source), to), (value,))


def uuid_of(value: str) -> str:
    """Returns a uuid in lower case; it fails if the text is not a uuid."""
    not_one = "tg_required(CAST(NULL AS STRING), 'invalid input syntax for type uuid')"
    return f"CASE WHEN {value} RLIKE {text(UUID_TEXT)} THEN lower({value}) WHEN {value} IS NOT NULL THEN {not_one} END"


def micros_of(value: str) -> str:
    """Returns the microseconds of a day-time interval."""
    minutes = f"(extract(DAYS FROM {value}) * 24 + extract(HOURS FROM {value})) * 60 + extract(MINUTES FROM {value})"
    return f"CAST(({minutes}) * 60 AS BIGINT) * {MICROS} + CAST(extract(SECONDS FROM {value}) * {MICROS} AS BIGINT)"


def interval_of(value: str) -> str:
    """Returns an interval from a day-time interval.

    Days become part of the time, because they are not calendar days.
    """
    fields = f"named_struct('months', 0, 'days', 0, 'micros', {micros_of(value)})"
    return f"CASE WHEN {value} IS NOT NULL THEN {fields} END"
