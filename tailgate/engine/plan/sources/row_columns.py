"""The columns of a source's rows: those of the value, and those of INCLUDE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import assert_never

from tailgate.engine.plan.sources import avro, protobuf
from tailgate.engine.plan.sources.accessors import Accessor, Document, Struct, connect_value, native
from tailgate.engine.plan.sources.column_expressions import ColumnExpression, Decoded
from tailgate.engine.plan.sources.format_specs import declared_columns
from tailgate.engine.plan.sources.keys import SCALARS, key_columns, ksqldb_columns, record_columns
from tailgate.engine.plan.sources.spark_sql import cast_of, jsonb_of, required, text
from tailgate.lake.catalog import Source
from tailgate.lake.catalog.formats import Avro, Bytes, Csv, Include, Json, Ksqldb, Protobuf, Regex, Text
from tailgate.lake.errors import DatatypeMismatch, InvalidObjectDefinition, UndefinedColumn
from tailgate.lake.types import BYTEA, INT4, INT8, JSONB, TEXT, TIMESTAMPTZ, Field, Type

INCLUDED: dict[str, Type] = {"partition": INT4, "offset": INT8, "arrival": TEXT, "timestamp": TIMESTAMPTZ}
TIME_DIGITS = 12  # of a time in ms, in base 16
HISTORY = 0  # the time of records that a fill reads, as in Decoder of the Java library


def of_value(source: Source) -> Source:
    """Returns the source with only those declared columns that are in the message's value.

    INCLUDE KEY AS takes a declared column from the key. Values of ksqlDB do not contain the key.
    """
    if source.declared is None:
        return source
    in_key = {i.name for i in source.include if i.kind == "key"} | set(() if source.ksqldb is None else source.ksqldb.message_key)
    return replace(source, declared=tuple(c for c in source.declared if c.field.name not in in_key))


def value_columns(source: Source, at: str) -> list[ColumnExpression]:
    """Returns the columns of a value without an envelope."""
    match source.value_format:
        case Json() if source.declared is not None:
            return row_columns(source, Struct(at) if native(declared_columns(source)) else Document(at))
        case Avro(schema=schema_text):
            schema = avro.parse(schema_text)
            if avro.is_record(schema):
                return row_columns(source, Struct(at))
            type, nullable, stored = avro.column(schema)
            return [ColumnExpression(Field("data", type, nullable), stored(at))]
        case Protobuf(schema=schema_text):
            return [ColumnExpression(c, Struct(at).field(c.name)) for c in protobuf.columns(schema_text)]
        case Ksqldb():
            return ksqldb_columns(source.value_format, at)
        case Csv(names=names) | Regex(names=names):
            return _text_columns(source, names, at)
        case Bytes() | Text() | Json() as format:
            type = SCALARS[format.type]
            return [ColumnExpression(Field("text" if type == TEXT else "data", type, False), at)]
        case _:
            assert_never(source.value_format)


def _text_columns(source: Source, names: tuple[str, ...], at: str) -> list[ColumnExpression]:
    """Returns the columns of a line; declared columns are cast from text as in PostgreSQL."""
    texts = [f"{at}.c{i}" for i in range(len(names))]
    declared = declared_columns(source)
    if not declared:
        return [ColumnExpression(Field(n, TEXT), g) for n, g in zip(names, texts, strict=True)]
    if len(declared) != len(texts):
        raise InvalidObjectDefinition(f"{len(declared)} columns are declared, and the format has {len(texts)}")
    return [ColumnExpression(f, cast_of(g, TEXT, f.type)) for f, g in zip(declared, texts, strict=True)]


def row_columns(source: Source, at: Accessor, *path: str) -> list[ColumnExpression]:
    """Returns the columns of a row: the image at `path` (`after`, `before`), or the value itself."""
    if isinstance(source.value_format, Avro):
        schema = avro.parse(source.value_format.schema)
        signed = source.envelope == "debezium" and avro.has_signed_times(schema)
        if source.envelope == "debezium":
            schema = avro.fields(schema)["after"]
        columns = avro.columns(schema, signed_times=signed)
        return [ColumnExpression(Field(c.name, c.type, c.nullable), c.stored(at.field(*path, c.of))) for c in columns]
    if source.declared is None:
        raise InvalidObjectDefinition(
            "the columns of a JSON source with this envelope must be declared", hint="CREATE SOURCE name (column type, …) FROM KAFKA …"
        )
    if path:
        return [ColumnExpression(f, connect_value(at.field(*path, f.name), f.type)) for f in declared_columns(source)]
    return [ColumnExpression(f, at.column(f)) for f in declared_columns(source)]


def not_null_checks(source: Source, columns: list[ColumnExpression], unless: str | None = None) -> list[str]:
    """Returns the conditions for columns that were declared NOT NULL; `unless` disables them."""
    if source.declared is None:
        return []
    exemption = f"{unless} OR " if unless else ""
    return [required(f"{exemption}{m.expression} IS NOT NULL", f'null in column "{m.field.name}"') for m in columns if not m.field.nullable]


def included_key(source: Source) -> list[ColumnExpression]:
    """Returns the columns of INCLUDE KEY for an append-only source; the key may be NULL there."""
    aliases = [i.name for i in source.include if i.kind == "key"]
    if not aliases:
        return []
    if source.key_format is None:
        raise InvalidObjectDefinition("INCLUDE KEY needs KEY FORMAT")
    single = record_columns(source.key_format) is None
    is_declared = aliases[0] is not None and any(c.field.name == aliases[0] for c in source.declared or ())
    names = (aliases[0],) if is_declared and aliases[0] is not None else ()
    columns = key_columns(replace(source, primary_key=names), None if names else aliases[0] or ("key" if single else None))
    return [ColumnExpression(Field(m.field.name, m.field.type, True), m.expression) for m in columns]


def included_columns(
    source: Source, at: Decoded, row: Sequence[ColumnExpression] = (), unless: str | None = None
) -> list[ColumnExpression]:
    """Returns the columns of INCLUDE, except for those of the key. `row`: the other columns.

    `unless`: the condition of rows that need no timestamp in their column. Raises 42703, 42804.
    """
    arrival = f"concat({', '.join(map(_digits, (at.tick, at.order)))})"
    places = {"partition": at.partition, "offset": at.offset, "arrival": arrival, "timestamp": at.timestamp}
    out = []
    for include in source.include:
        match include:
            case Include(kind="headers", name=alias, bytes=bytes):
                out.append(ColumnExpression(Field(alias or "headers", JSONB), _headers(at.headers, bytes)))
            case Include(kind="header", name=str(alias), header=header, bytes=bytes):
                out.append(_header(at.headers, alias, header, bytes))
            case Include(kind="timestamp", name=alias, column=str(column), format=format) if column:
                out.append(ColumnExpression(Field(alias or "timestamp", TIMESTAMPTZ, False), _timestamp(column, format, row, unless)))
            case Include(kind=kind, name=alias) if kind in places:
                out.append(ColumnExpression(Field(alias or kind, INCLUDED[kind], kind == "timestamp"), places[kind]))
    return out


def digits(time: int) -> str:
    """Returns a time in ms as a text of TIME_DIGITS digits, which sorts as the time."""
    return f"{time:0{TIME_DIGITS}x}"


def _digits(time: str) -> str:
    """Returns the SQL of `digits`."""
    return f"lpad(lower(hex({time})), {TIME_DIGITS}, '0')"


def _timestamp(name: str, format: str, row: Sequence[ColumnExpression], unless: str | None) -> str:
    """Returns the timestamp in a column: a timestamp in UTC, milliseconds since the epoch, or a text of this format."""
    column = next((c for c in row if c.field.name == name), None)
    if column is None:
        raise UndefinedColumn(f'column "{name}" does not exist')
    match column.field.type.name:
        case "int8":
            value = f"timestamp_millis({column.expression})"
        case "timestamp" | "timestamptz":
            value = f"CAST({column.expression} AS TIMESTAMP)"
        case "text" if format:
            value = f"CAST(tg_ksqldb_parse_timestamp({column.expression}, {text(format)}, 'UTC') AS TIMESTAMP)"
        case _:
            raise DatatypeMismatch(f'column "{name}" is of type {column.field.type} and cannot be a timestamp')
    # a time before the epoch cannot be the time of a message
    condition = f"{f'{unless} OR ' if unless else ''}{value} >= TIMESTAMP_SECONDS(0)"
    return f"CASE WHEN {required(condition, f'no timestamp in column {name}')} THEN {value} END"


def _headers(at: str, bytes: bool) -> str:
    """Returns all headers as a jsonb array of {"key": …, "value": …}; values are text.

    A value that is not UTF-8 is written in hexadecimal digits like a bytea. `bytes`: values are base64, members KEY and VALUE.
    """
    if bytes:
        structs = f"transform({at}, h -> named_struct('KEY', h.key, 'VALUE', base64(h.value)))"
        return jsonb_of(f"coalesce(to_json({structs}, map('ignoreNullFields', 'false')), '[]')")
    text = "CASE WHEN is_valid_utf8(CAST(h.value AS STRING)) THEN CAST(h.value AS STRING) ELSE concat('\\\\x', lower(hex(h.value))) END"
    return jsonb_of(f"to_json(transform({at}, h -> named_struct('key', h.key, 'value', {text})), map('ignoreNullFields', 'false'))")


def _header(at: str, column: str, header: str, bytes: bool) -> ColumnExpression:
    """Returns the column with the last header of a name, NULL without one."""
    value = f"element_at(transform(filter({at}, h -> h.key = {text(header)}), h -> h.value), -1)"
    value = f"CASE WHEN exists({at}, h -> h.key = {text(header)}) THEN {value} END"
    return (
        ColumnExpression(Field(column, BYTEA), value)
        if bytes
        else ColumnExpression(Field(column, TEXT), f"tg_convert_from({value}, 'utf8')")
    )


def declared_columns_first(source: Source, columns: list[ColumnExpression]) -> list[ColumnExpression]:
    """Sorts declared columns in the order of their declaration, before the others."""
    places = {column.field.name: i for i, column in enumerate(source.declared or ())}
    return sorted(columns, key=lambda c: places.get(c.field.name, len(places)))


def added_columns_last(source: Source, columns: list[ColumnExpression]) -> list[ColumnExpression]:
    """Moves columns that were added later to the end; they are nullable, because older rows lack them."""
    places = {name: i for i, name in enumerate(source.added)}
    added_columns = sorted((m for m in columns if m.field.name in places), key=lambda m: places[m.field.name])
    return [m for m in columns if m.field.name not in places] + [
        ColumnExpression(replace(m.field, nullable=True), m.expression) for m in added_columns
    ]


def fields(columns: list[ColumnExpression]) -> tuple[Field, ...]:
    return tuple(m.field for m in columns)
