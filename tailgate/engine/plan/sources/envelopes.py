"""Derives the layout of a source, by envelope."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import assert_never

from tailgate.engine.plan.circuit.decoders import KafkaDecoder
from tailgate.engine.plan.circuit.operators import DELETED, POSITION
from tailgate.engine.plan.circuit.steps import Filter, Project, Steps, then
from tailgate.engine.plan.sources.column_expressions import ColumnExpression, Decoded
from tailgate.engine.plan.sources.debezium_layout import debezium_layout
from tailgate.engine.plan.sources.format_specs import format_spec, key_format_spec, value_format_spec
from tailgate.engine.plan.sources.keys import key_columns
from tailgate.engine.plan.sources.layout import Layout
from tailgate.engine.plan.sources.row_columns import (
    added_columns_last,
    declared_columns_first,
    fields,
    included_columns,
    included_key,
    not_null_checks,
    of_value,
    value_columns,
)
from tailgate.engine.plan.sources.spark_sql import required
from tailgate.lake.catalog import Source
from tailgate.lake.errors import DatatypeMismatch, UndefinedColumn
from tailgate.lake.types import BOOL, TEXT, Field

# follow the columns of the row
UPSERT_COLUMNS = (Field(DELETED, BOOL, False), Field(POSITION, TEXT))


def source_layout(source: Source) -> Layout:
    """Returns the layout of a source. Raises the errors of CREATE SOURCE."""
    layout = _by_envelope(source)
    return replace(layout, decoder=replace(layout.decoder, max_bytes=source.max_message_bytes), time=_time(source, layout))


def time_column(source: Source) -> str:
    """Returns the column with the times of records, of the option `timestamp` or INCLUDE TIMESTAMP FROM; empty if Kafka has them."""
    included = (i.name or "timestamp" for i in source.include if i.kind == "timestamp" and i.column)
    return source.timestamp or next(included, "")


def _time(source: Source, layout: Layout) -> Steps | None:
    """Returns the steps from a decoded record to its time, or None if Kafka has it. Raises 42703, 42804."""
    name = time_column(source)
    if not name:
        return None
    position = next((i for i, column in enumerate(layout.columns) if column.name == name), None)
    if position is None:
        raise UndefinedColumn(f'column "{name}" does not exist')
    column = f"c{position}" if layout.key is not None or source.envelope == "none" else f"c0.f{position + 1}"
    match layout.columns[position].type.name:
        case "int8":
            milliseconds = column
        case "timestamp" | "timestamptz":
            milliseconds = f"unix_millis(CAST({column} AS TIMESTAMP))"
        case other:
            raise DatatypeMismatch(
                f'column "{name}" is of type {other} and cannot be a timestamp',
                hint="Use a column of type timestamptz, timestamp, or bigint with milliseconds since the epoch.",
            )
    return then(layout.shape, Project((milliseconds,)))


def _by_envelope(source: Source) -> Layout:
    match source.envelope:
        case "none":
            return _append_only(source)
        case "upsert":
            return _upsert(source)
        case "debezium":
            return debezium_layout(source)
        case _:
            assert_never(source.envelope)


def _append_only(source: Source) -> Layout:
    """Returns the layout of a source without an envelope."""
    at = Decoded()
    value = value_columns(of_value(source), at.value)
    has_value = f"{at.value} IS NOT NULL"
    # a stream of ksqlDB has no row for a null value
    checks = [has_value if source.ksqldb is not None else required(has_value, "null value"), *not_null_checks(source, value)]
    if source.on_error == "null":  # a record that cannot be decoded is read as NULL
        value = [ColumnExpression(Field(c.field.name, c.field.type), c.expression) for c in value]
        checks = ["true"]
    key = included_key(source)
    columns = added_columns_last(source, declared_columns_first(source, [*value, *key, *included_columns(source, at, [*value, *key])]))
    decoder = KafkaDecoder(key_format_spec(source) if key else format_spec(None), value_format_spec(of_value(source)))
    shape = Steps((Filter(" AND ".join(checks)), Project(tuple(c.expression for c in columns))))
    return Layout(decoder, fields(columns), None, shape, source.materialized, fields(columns))


def _upsert(source: Source) -> Layout:
    """Returns the layout of a source with ENVELOPE UPSERT."""
    at = Decoded()
    key = _with_nulls(source, key_columns(source, alias=next((i.name for i in source.include if i.kind == "key"), None)))
    value = [c for c in value_columns(of_value(source), at.value) if c.field.name not in {k.field.name for k in key}]
    is_deletion = f"{at.value} IS NULL"
    columns = [*key, *value, *included_columns(source, at, [*key, *value], is_deletion)]
    if source.declared is not None:  # in the order of their declaration
        declared = [column.field.name for column in source.declared]
        undeclared_key = -1 if source.ksqldb is None else len(declared)  # of ksqlDB's keys, the bounds of a window are not declared
        columns.sort(
            key=lambda c: declared.index(c.field.name) if c.field.name in declared else undeclared_key if c in key else len(declared)
        )
    columns = added_columns_last(source, columns)
    has_key = f"{at.key} IS NOT NULL"
    # a table of ksqlDB has no row for a null key
    parts = [has_key, *(f"{k.expression} IS NOT NULL" for k in key if not k.field.nullable)]
    keyed = " AND ".join(parts) if source.ksqldb is not None else required(has_key, "null key")
    where = Filter(" AND ".join([keyed, *not_null_checks(source, value, is_deletion)]))
    select = Project(
        (
            *(c.expression for c in columns),
            is_deletion,
            f"concat_ws('/', CAST({at.partition} AS STRING), lpad(CAST({at.offset} AS STRING), 20, '0'))",
        )
    )
    decoder = KafkaDecoder(key_format_spec(source), value_format_spec(of_value(source)))
    key_positions = tuple(columns.index(k) for k in key)
    return Layout(decoder, fields(columns), key_positions, Steps((where, select)), True, fields(columns) + UPSERT_COLUMNS)


def _with_nulls(source: Source, key: list[ColumnExpression]) -> list[ColumnExpression]:
    """Returns the columns of a key, nullable if they are those of a table of ksqlDB with several.

    Tables that earlier versions declared keep columns that are not nullable.
    """
    declared = {column.field.name for column in source.declared or ()}  # without the bounds of windows
    nullable = {c.name for c in source.columns if c.nullable} if source.columns else declared
    if source.ksqldb is None or sum(k.field.name in declared for k in key) < 2:
        return key
    return [replace(k, field=replace(k.field, nullable=k.field.name in nullable)) for k in key]
