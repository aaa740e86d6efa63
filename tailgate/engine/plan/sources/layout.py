"""Maps a source's records to columns and a key, with the Spark SQL that computes them.

One function derives all of this from the source's definition, both for CREATE SOURCE (the item's
columns) and for the circuit (their expressions), so the two always agree.

Columns by envelope (a column that the key and the value have is taken from the key):

    none        value columns, included columns
    upsert      key columns, value columns, included columns
    debezium    columns of `after`, included columns; without a key, a bag of rows
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import assert_never

from tailgate.engine.plan.graph import CAPTURED, DELETED, POSITION, FormatSpec, KafkaDecoder, Linear, Select, Where
from tailgate.engine.plan.sources import avro, debezium, protobuf
from tailgate.engine.plan.sources.keys import SCALARS, key_columns, message_key, record_columns
from tailgate.engine.plan.sources.made import Decoded, Made, by_name
from tailgate.engine.plan.sources.reads import Document, Reads, Struct, native
from tailgate.engine.plan.sources.spell import cast_of, jsonb_of, name, required, text
from tailgate.lake.catalog import Source
from tailgate.lake.catalog.codec import encode_settings
from tailgate.lake.catalog.formats import Avro, Bytes, Csv, DeclaredColumn, Include, Json, MessageFormat, Protobuf, Regex, Text
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition
from tailgate.lake.types import BOOL, BYTEA, INT4, INT8, JSONB, TEXT, TIMESTAMPTZ, Field, Type

INCLUDED: dict[str, Type] = {"partition": INT4, "offset": INT8, "timestamp": TIMESTAMPTZ}
# follow the columns of the row
UPSERT_COLUMNS = (Field(DELETED, BOOL, False), Field(POSITION, TEXT))


@dataclass(frozen=True, slots=True)
class Layout:
    """The mapping from records to rows.

    `columns` are those of the item, and `key` has the positions of the key among them, or None.
    `shape` computes `source_columns`. If the rows are `stored`, each of `entering` maps these to
    the input of the operator that stores the rows.
    """

    decoder: KafkaDecoder
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    shape: Linear
    stored: bool
    source_columns: tuple[Field, ...]
    entering: tuple[Linear, ...] = (Linear(),)


def layout(source: Source) -> Layout:
    """Returns the layout of a source. Raises the errors of CREATE SOURCE."""
    made = _layout(source)
    return replace(made, decoder=replace(made.decoder, max_bytes=source.max_message_bytes))


def _layout(source: Source) -> Layout:
    match source.envelope:
        case "none":
            return _none(source)
        case "upsert":
            return _upsert(source)
        case "debezium":
            return _debezium(source)
        case _:
            assert_never(source.envelope)


def _none(source: Source) -> Layout:
    """Returns the layout of a source without an envelope."""
    at = Decoded()
    value = _value(source, at.value)
    own = _included_key(source)
    made = _arranged(source, [*value, *own, *_included(source, at)])
    nulls = source.on_error == "null"
    checks = [] if nulls else [required(f"{at.value} IS NOT NULL", "null value"), *_not_null(source, value)]
    steps = Where(" AND ".join(checks or ["true"]))
    if nulls:
        value = [Made(Field(m.field.name, m.field.type), m.expression) for m in value]
    decoder = KafkaDecoder(_format(source.key_format if own else None), _value_format(source))
    shape = Linear((steps, Select(tuple(m.expression for m in made))))
    return Layout(decoder, _fields(made), None, shape, source.materialized, _fields(made))


def _upsert(source: Source) -> Layout:
    """Returns the layout of a source with ENVELOPE UPSERT."""
    at = Decoded()
    key = key_columns(source, alias=next((i.name for i in source.include if i.kind == "key"), None))
    value = [m for m in _value(source, at.value) if m.field.name not in {k.field.name for k in key}]
    made = [*key, *value, *_included(source, at)]
    if source.declared is not None:  # in the order of their declaration
        declared = [c.field.name for c in source.declared]
        made.sort(key=lambda m: declared.index(m.field.name) if m.field.name in declared else -1 if m in key else len(declared))
    made = _arranged(source, made)
    where = Where(" AND ".join([required(f"{at.key} IS NOT NULL", "null key"), *_not_null(source, value, f"{at.value} IS NULL")]))
    select = Select(
        (
            *(m.expression for m in made),
            f"{at.value} IS NULL",
            f"concat_ws('/', CAST({at.partition} AS STRING), lpad(CAST({at.offset} AS STRING), 20, '0'))",
        )
    )
    decoder = KafkaDecoder(_format(source.key_format), _value_format(source))
    key_places = tuple(made.index(k) for k in key)
    return Layout(decoder, _fields(made), key_places, Linear((where, select)), True, _fields(made) + UPSERT_COLUMNS)


def _debezium(source: Source) -> Layout:
    """Returns the layout of a source with ENVELOPE DEBEZIUM."""
    at = Decoded()
    key_format = source.key_format
    keyless = not source.primary_key and key_format is None
    if isinstance(source.value_format, Avro):
        schema = avro.parse(source.value_format.schema)
        origin = tuple(avro.fields(avro.fields(schema)["source"])) if "source" in avro.fields(schema) else ()
        told, sure, has_before = "op" in avro.fields(schema), True, "before" in avro.fields(schema)
        value = _format(source.value_format)
    else:
        origin, told, sure, has_before = debezium.SOURCE, True, False, not named_by_message(key_format, source.primary_key)
        value = _connect_json(source, source.declared or (), envelope=True, before=has_before)
    envelope = debezium.envelope(at.value, told=told, sure=sure, before=has_before)
    rows = _rows(source, envelope, "after")
    if keyless:
        return _without_key(source, KafkaDecoder(_format(None), value), envelope, origin, rows)
    key, message = _debezium_key(source, rows, has_before)
    keys = {k.field.name: k for k in key}
    made = _arranged(source, [keys.get(m.field.name, m) for m in rows] + _included(source, at))
    names = [m.field.name for m in made]
    where = debezium.wanted(envelope, key=at.key if message.kind != "none" else None, needs_before=False)
    gone = debezium.without_row(envelope)
    checks = [] if message.kind != "none" else [_key_there(envelope, k) for k in key]
    checks += _not_null(source, [m for m in rows if m.field.name not in keys], gone)
    captured = debezium.captured(envelope, origin, at.partition, keyed=True)
    columns, places = _fields(made), tuple(names.index(k.field.name) for k in key)
    moved = _old_key(source, key) if message.kind == "none" else []
    select = Select((*(m.expression for m in made), *captured, *(m.expression for m in moved)))
    shape = Linear((Where(" AND ".join([where.expression, *checks])), select))
    entering = _entering(columns, places) if moved else (Linear(),)
    source_columns = columns + CAPTURED + _fields(moved)
    return Layout(KafkaDecoder(message, value), columns, places, shape, True, source_columns, entering)


def named_by_message(key_format: MessageFormat | None, primary_key: Sequence[str]) -> bool:
    """Returns whether the message's key identifies the row; otherwise the rows before and after do."""
    return key_format is not None and (isinstance(key_format, Json) or not primary_key)


def _arranged(source: Source, made: list[Made]) -> list[Made]:
    """Moves columns that were added later to the end; they are nullable, because older rows lack them."""
    added = source.added
    places = {name: i for i, name in enumerate(added)}
    later = sorted((m for m in made if m.field.name in places), key=lambda m: places[m.field.name])
    return [m for m in made if m.field.name not in places] + [Made(replace(m.field, nullable=True), m.expression) for m in later]


def _key_there(envelope: Struct, key: Made) -> str:
    """Returns the condition that a column of the key is not NULL."""
    return required(f"{envelope.field('op')} = 't' OR {key.expression} IS NOT NULL", f'null in key column "{key.field.name}"')


def _debezium_key(source: Source, rows: list[Made], has_before: bool) -> tuple[list[Made], FormatSpec]:
    """Returns the key's columns, and how the message's key is decoded if they come from it."""
    key_format, names = source.key_format, list(source.primary_key)
    if key_format is not None and isinstance(key_format, Json):
        if not names:
            raise InvalidObjectDefinition(
                "the columns of a key in JSON must be declared", hint="Name them with PRIMARY KEY (…) NOT ENFORCED beside the columns."
            )
        columns = [c for c in source.declared or () if c.field.name in names]
        spec = _connect_json(source, columns, envelope=False, before=False)
        return [Made(k.field, Struct(Decoded().key).field(k.field.name)) for k in by_name(rows, names)], spec
    if names:
        key = by_name(rows, names)
        if has_before:
            before = {m.field.name: m.expression for m in _rows(source, Struct(Decoded().value), "before")}
            key = [Made(k.field, f"coalesce({k.expression}, {before[k.field.name]})") for k in key]
        return key, _format(None)
    return message_key(source, rows), _format(key_format)


def _old_key(source: Source, key: list[Made]) -> list[Made]:
    """Returns the columns of the key before the change.

    If the key is not the connector's key, an update may change it.
    """
    before = {m.field.name: m.expression for m in _rows(source, Struct(Decoded().value), "before")}
    return [Made(Field(f"__old {k.field.name}", k.field.type), before[k.field.name]) for k in key]


def _entering(columns: tuple[Field, ...], key: tuple[int, ...]) -> tuple[Linear, ...]:
    """Returns the steps from a source that also has the columns of the old key.

    An update that changes the key becomes two events: the row is deleted under its old key, and the
    change is applied under the new one.
    """
    width, all = len(columns), len(columns) + len(CAPTURED)
    old = {k: f"c{all + i}" for i, k in enumerate(key)}
    here = [f"c{i}" for i in range(all)]
    there = " AND ".join(f"{o} IS NOT NULL" for o in old.values())
    differs = " OR ".join(f"{o} <> c{k}" for k, o in old.items())
    gone = [old.get(i, c) if i < width else c for i, c in enumerate(here)]
    gone[width] = "'d'"
    moves = Where(f"c{width} = 'u' AND {there} AND ({differs})")
    return (Linear((moves, Select(tuple(gone)))), Linear((Select(tuple(here)),)))


def _without_key(source: Source, decoder: KafkaDecoder, envelope: Struct, origin: tuple[str, ...], rows: list[Made]) -> Layout:
    """Returns the layout of a table without a key.

    The source's columns are the row after the change and the row before it, each a struct, then
    CAPTURED.
    """
    if source.include:
        raise FeatureNotSupported(
            "INCLUDE with ENVELOPE DEBEZIUM of a table without a key is not supported",
            hint="Name what identifies a row with PRIMARY KEY (…) NOT ENFORCED.",
        )
    before = _arranged(source, _rows(source, envelope, "before"))
    where = debezium.wanted(envelope, key=None, needs_before=True)
    checks = _not_null(source, rows, debezium.without_row(envelope))
    rows = _arranged(source, rows)
    structs = [f"CASE WHEN {envelope.exists(image)} THEN {_struct(made)} END" for image, made in (("after", rows), ("before", before))]
    select = Select((*structs, *debezium.captured(envelope, origin, Decoded().partition, keyed=False)))
    row = Type("record", fields=tuple(Field(f"c{i}", m.field.type) for i, m in enumerate(rows)))
    columns = (Field("__after", row), Field("__before", row), *CAPTURED)
    shape = Linear((Where(" AND ".join([where.expression, *checks])), select))
    return Layout(decoder, _fields(rows), None, shape, True, columns)


def _struct(made: list[Made]) -> str:
    return "named_struct(" + ", ".join(f"'c{i}', {m.expression}" for i, m in enumerate(made)) + ")"


# ---- values ----------------------------------------------------------------------------------------------------------------------


def _value(source: Source, at: str) -> list[Made]:
    """Returns the columns of a value without an envelope."""
    match source.value_format:
        case Json() if source.declared is not None:
            return _rows(source, Struct(at) if native(_declared(source)) else Document(at))
        case Avro(schema=text):
            schema = avro.parse(text)
            if avro.is_record(schema):
                return _rows(source, Struct(at))
            type, nullable, stored = avro.column(schema)
            return [Made(Field("data", type, nullable), stored(at))]
        case Protobuf(schema=text):
            return [Made(c, Struct(at).field(c.name)) for c in protobuf.columns(text)]
        case Csv(names=names) | Regex(names=names):
            return _texts(source, names, at)
        case Bytes() | Text() | Json() as format:
            type = SCALARS[format.type]
            return [Made(Field("text" if type == TEXT else "data", type, False), at)]
        case _:
            assert_never(source.value_format)


def _texts(source: Source, names: tuple[str, ...], at: str) -> list[Made]:
    """Returns the columns of a line; declared columns are cast from text as in PostgreSQL."""
    given = [f"{at}.c{i}" for i in range(len(names))]
    declared = _declared(source)
    if not declared:
        return [Made(Field(n, TEXT), g) for n, g in zip(names, given, strict=True)]
    if len(declared) != len(given):
        raise InvalidObjectDefinition(f"{len(declared)} columns are declared, and the format has {len(given)}")
    return [Made(f, cast_of(g, TEXT, f.type)) for f, g in zip(declared, given, strict=True)]


def _rows(source: Source, at: Reads, *path: str) -> list[Made]:
    """Returns the columns of a row: the image at `path` (`after`, `before`), or the value itself."""
    if isinstance(source.value_format, Avro):
        schema = avro.parse(source.value_format.schema)
        signed = source.envelope == "debezium" and avro.has_signed_times(schema)
        if source.envelope == "debezium":
            schema = avro.fields(schema)["after"]
        columns = avro.columns(schema, signed_times=signed)
        return [Made(Field(c.name, c.type, c.nullable), c.stored(at.field(*path, c.of))) for c in columns]
    if source.declared is None:
        raise InvalidObjectDefinition(
            "the columns of a JSON source with this envelope must be declared", hint="CREATE SOURCE name (column type, …) FROM KAFKA …"
        )
    # in an envelope, the decoder returns the stored form
    if path:
        return [Made(f, at.field(*path, f.name)) for f in _declared(source)]
    return [Made(f, at.column(f)) for f in _declared(source)]


def _declared(source: Source) -> tuple[Field, ...]:
    return tuple(c.field for c in source.declared or ())


def _not_null(source: Source, made: list[Made], unless: str | None = None) -> list[str]:
    """Returns the conditions for columns that were declared NOT NULL; `unless` disables them."""
    if source.declared is None:
        return []
    pass_over = f"{unless} OR " if unless else ""
    return [required(f"{pass_over}{m.expression} IS NOT NULL", f'null in column "{m.field.name}"') for m in made if not m.field.nullable]


def _included_key(source: Source) -> list[Made]:
    """Returns the columns of INCLUDE KEY for an append-only source; the key may be NULL there."""
    wanted = [i.name for i in source.include if i.kind == "key"]
    if not wanted:
        return []
    if source.key_format is None:
        raise InvalidObjectDefinition("INCLUDE KEY needs KEY FORMAT")
    single = record_columns(source.key_format) is None
    made = key_columns(replace(source, primary_key=()), wanted[0] or ("key" if single else None))
    return [Made(Field(m.field.name, m.field.type, True), m.expression) for m in made]


def _included(source: Source, at: Decoded) -> list[Made]:
    """Returns the columns of INCLUDE, except for those of the key."""
    places = {"partition": at.partition, "offset": at.offset, "timestamp": at.timestamp}
    out = []
    for include in source.include:
        match include:
            case Include(kind="headers", name=alias):
                out.append(Made(Field(alias or "headers", JSONB), _headers(at.headers)))
            case Include(kind="header", name=str(alias), header=str(header), bytes=bytes):
                out.append(_header(at.headers, alias, header, bytes))
            case Include(kind=kind, name=alias) if kind in places:
                out.append(Made(Field(alias or kind, INCLUDED[kind], kind == "timestamp"), places[kind]))
    return out


def _headers(at: str) -> str:
    """Returns all headers as a jsonb array of {"key": …, "value": …}; values are text.

    A value that is not UTF-8 is written in hexadecimal digits like a bytea.
    """
    text = "CASE WHEN is_valid_utf8(CAST(h.value AS STRING)) THEN CAST(h.value AS STRING) ELSE concat('\\\\x', lower(hex(h.value))) END"
    return jsonb_of(f"to_json(transform({at}, h -> named_struct('key', h.key, 'value', {text})), map('ignoreNullFields', 'false'))")


def _header(at: str, column: str, header: str, bytes: bool) -> Made:
    """Returns the column with the last header of a name, NULL without one."""
    value = f"element_at(transform(filter({at}, h -> h.key = {text(header)}), h -> h.value), -1)"
    value = f"CASE WHEN exists({at}, h -> h.key = {text(header)}) THEN {value} END"
    return Made(Field(column, BYTEA), value) if bytes else Made(Field(column, TEXT), f"tg_convert_from({value}, 'utf8')")


def _fields(made: list[Made]) -> tuple[Field, ...]:
    return tuple(m.field for m in made)


# ---- decoders --------------------------------------------------------------------------------------------------------------------


def _format(format: MessageFormat | None) -> FormatSpec:
    """Returns the decoder of a format, `none` without one."""
    match format:
        case None:
            return FormatSpec("none")
        case Avro(schema=schema, registry=registry, wire=wire, access=settings):
            access = json.dumps(encode_settings(settings), sort_keys=True) if settings else ""
            return FormatSpec("avro", "", schema, registry, wire, access)
        case Csv(names=names, header=header, delimiter=delimiter, nulls=nulls):
            of = {"columns": len(names), "delimiter": delimiter, "header": header, "nulls": nulls}
            return FormatSpec("csv", schema=json.dumps(of))
        case Regex(pattern=pattern):
            return FormatSpec("regex", schema=pattern)
        case Protobuf(schema=schema):
            return FormatSpec("protobuf", schema=schema)
        case Bytes() | Text() | Json():
            return FormatSpec(format.type)
        case _:
            assert_never(format)


def _value_format(source: Source) -> FormatSpec:
    """Returns the decoder of the value; it reads declared JSON columns directly if it can."""
    declared = _declared(source)
    if isinstance(source.value_format, Json) and source.declared is not None and native(declared):
        return FormatSpec("json_columns", columns=_ddl(declared, " "))
    return _format(source.value_format)


def _connect_json(source: Source, columns: Sequence[DeclaredColumn], *, envelope: bool, before: bool) -> FormatSpec:
    """Returns the format of Debezium's JSON.

    The declared columns define the meaning of values if the message has no schema (tailgate/engine/java,
    ConnectColumn).
    """
    spec = {
        "columns": [_connect_column(c) for c in columns],
        "envelope": envelope,
        "before": before,
        "decimals": source.decimals,
    }
    return FormatSpec("connect_json", schema=json.dumps(spec))


def _connect_column(column: DeclaredColumn) -> dict[str, Any]:
    """Returns a column for the decoder.

    `precision` has the declared digits of a time or the scale of a numeric; it is absent if none
    was declared.
    """
    field = column.field
    out: dict[str, Any] = {"name": field.name, "type": field.type.name, "spark": field.type.spark, "array": field.type.is_array}
    precision = field.type.modifiers[1] if field.type.name == "numeric" and field.type.modifiers else column.precision
    return out if precision is None else {**out, "precision": precision}


def _ddl(columns: tuple[Field, ...], between: str) -> str:
    return ", ".join(f"{name(f.name)}{between}{f.type.spark}" for f in columns)
