"""The layout of a source with ENVELOPE DEBEZIUM."""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.engine.plan.circuit.decoders import FormatSpec, KafkaDecoder
from tailgate.engine.plan.circuit.operators import CHANGE_EVENT
from tailgate.engine.plan.circuit.steps import Filter, Project, Steps
from tailgate.engine.plan.sources import avro, debezium
from tailgate.engine.plan.sources.accessors import Struct, connect_value
from tailgate.engine.plan.sources.column_expressions import ColumnExpression, Decoded, by_name
from tailgate.engine.plan.sources.format_specs import connect_json_spec, format_spec
from tailgate.engine.plan.sources.keys import message_key
from tailgate.engine.plan.sources.layout import Layout
from tailgate.engine.plan.sources.row_columns import added_columns_last, fields, included_columns, not_null_checks, row_columns
from tailgate.engine.plan.sources.spark_sql import required
from tailgate.lake.catalog import Source
from tailgate.lake.catalog.formats import Avro, Json, MessageFormat
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition
from tailgate.lake.types import Field, Type


def debezium_layout(source: Source) -> Layout:
    """Returns the layout of a source with ENVELOPE DEBEZIUM."""
    at = Decoded()
    key_format = source.key_format
    keyless = not source.primary_key and key_format is None
    if isinstance(source.value_format, Avro):
        schema = avro.parse(source.value_format.schema)
        origin = tuple(avro.fields(avro.fields(schema)["source"])) if "source" in avro.fields(schema) else ()
        has_op, always_has_op, has_before = "op" in avro.fields(schema), True, "before" in avro.fields(schema)
        value = format_spec(source.value_format)
    else:
        origin, has_op, always_has_op, has_before = debezium.SOURCE, True, False, not named_by_message(key_format, source.primary_key)
        value = connect_json_spec(source, source.declared or (), envelope=True, before=has_before)
    envelope = debezium.envelope(at.value, has_op=has_op, always_has_op=always_has_op, has_before=has_before)
    rows = row_columns(source, envelope, "after")
    if keyless:
        return _without_key(source, KafkaDecoder(format_spec(None), value), envelope, origin, rows)
    key, message = _debezium_key(source, rows, has_before)
    keys = {k.field.name: k for k in key}
    columns = added_columns_last(source, [keys.get(m.field.name, m) for m in rows] + included_columns(source, at))
    names = [c.field.name for c in columns]
    where = debezium.valid_changes(envelope, key=at.key if message.kind != "none" else None, needs_before=False)
    checks = [] if message.kind != "none" else [_key_is_present(envelope, k) for k in key]
    checks += not_null_checks(source, [m for m in rows if m.field.name not in keys], debezium.without_row(envelope))
    event = debezium.change_event(envelope, origin, at.partition, keyed=True)
    key_positions = tuple(names.index(k.field.name) for k in key)
    old_key = _key_before(source, key) if message.kind == "none" else []
    select = Project((*(c.expression for c in columns), *event, *(c.expression for c in old_key)))
    shape = Steps((Filter(" AND ".join([where.expression, *checks])), select))
    entering = _key_change_steps(fields(columns), key_positions) if old_key else (Steps(),)
    source_columns = fields(columns) + CHANGE_EVENT + fields(old_key)
    return Layout(KafkaDecoder(message, value), fields(columns), key_positions, shape, True, source_columns, entering)


def named_by_message(key_format: MessageFormat | None, primary_key: Sequence[str]) -> bool:
    """Returns whether the message's key identifies the row; otherwise the rows before and after do."""
    return key_format is not None and (isinstance(key_format, Json) or not primary_key)


def _key_is_present(envelope: Struct, key: ColumnExpression) -> str:
    """Returns the condition that a column of the key is not NULL."""
    return required(f"{envelope.field('op')} = 't' OR {key.expression} IS NOT NULL", f'null in key column "{key.field.name}"')


def _debezium_key(source: Source, rows: list[ColumnExpression], has_before: bool) -> tuple[list[ColumnExpression], FormatSpec]:
    """Returns the key's columns, and how the message's key is decoded if they come from it."""
    key_format, names = source.key_format, list(source.primary_key)
    if isinstance(key_format, Json):
        if not names:
            raise InvalidObjectDefinition(
                "the columns of a key in JSON must be declared", hint="Name them with PRIMARY KEY (…) NOT ENFORCED after the columns."
            )
        columns = [c for c in source.declared or () if c.field.name in names]
        spec = connect_json_spec(source, columns, envelope=False, before=False)
        at = Struct(Decoded().key)
        return [ColumnExpression(k.field, connect_value(at.field(k.field.name), k.field.type)) for k in by_name(rows, names)], spec
    if names:
        key = by_name(rows, names)
        if has_before:
            before = {m.field.name: m.expression for m in row_columns(source, Struct(Decoded().value), "before")}
            key = [ColumnExpression(k.field, f"coalesce({k.expression}, {before[k.field.name]})") for k in key]
        return key, format_spec(None)
    return message_key(source, rows), format_spec(key_format)


def _key_before(source: Source, key: list[ColumnExpression]) -> list[ColumnExpression]:
    """Returns the columns of the key before the change.

    If the key is not the connector's key, an update may change it.
    """
    before = {m.field.name: m.expression for m in row_columns(source, Struct(Decoded().value), "before")}
    return [ColumnExpression(Field(f"__old {k.field.name}", k.field.type), before[k.field.name]) for k in key]


def _key_change_steps(columns: tuple[Field, ...], key: tuple[int, ...]) -> tuple[Steps, ...]:
    """Returns the steps from a source that also has the columns of the old key.

    An update that changes the key becomes two events: the row is deleted under its old key, and the
    change is applied under the new one.
    """
    width, all = len(columns), len(columns) + len(CHANGE_EVENT)
    old = {k: f"c{all + i}" for i, k in enumerate(key)}
    new_row = [f"c{i}" for i in range(all)]
    has_old_key = " AND ".join(f"{o} IS NOT NULL" for o in old.values())
    key_differs = " OR ".join(f"{o} <> c{k}" for k, o in old.items())
    old_row = [old.get(i, c) if i < width else c for i, c in enumerate(new_row)]
    old_row[width] = "'d'"
    changes_key = Filter(f"c{width} = 'u' AND {has_old_key} AND ({key_differs})")
    return (Steps((changes_key, Project(tuple(old_row)))), Steps((Project(tuple(new_row)),)))


def _without_key(source: Source, decoder: KafkaDecoder, envelope: Struct, origin: tuple[str, ...], rows: list[ColumnExpression]) -> Layout:
    """Returns the layout of a table without a key.

    The source's columns are the row after the change and the row before it, each a struct, then
    CHANGE_EVENT.
    """
    if source.include:
        raise FeatureNotSupported(
            "INCLUDE with ENVELOPE DEBEZIUM of a table without a key is not supported",
            hint="Name the columns that identify rows with PRIMARY KEY (…) NOT ENFORCED.",
        )
    before = added_columns_last(source, row_columns(source, envelope, "before"))
    where = debezium.valid_changes(envelope, key=None, needs_before=True)
    checks = not_null_checks(source, rows, debezium.without_row(envelope))
    rows = added_columns_last(source, rows)
    structs = [
        f"CASE WHEN {envelope.exists(image)} THEN {_struct(columns)} END" for image, columns in (("after", rows), ("before", before))
    ]
    select = Project((*structs, *debezium.change_event(envelope, origin, Decoded().partition, keyed=False)))
    row = Type("record", fields=tuple(Field(f"c{i}", m.field.type) for i, m in enumerate(rows)))
    columns = (Field("__after", row), Field("__before", row), *CHANGE_EVENT)
    shape = Steps((Filter(" AND ".join([where.expression, *checks])), select))
    return Layout(decoder, fields(rows), None, shape, True, columns)


def _struct(columns: list[ColumnExpression]) -> str:
    return "named_struct(" + ", ".join(f"'f{n}', {m.expression}" for n, m in enumerate(columns, 1)) + ")"
