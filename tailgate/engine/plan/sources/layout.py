"""Maps a source's records to columns and a key, with the Spark SQL that computes them.

One function derives all of this from the source's options, both for CREATE SOURCE (the item's
columns) and for the circuit (their expressions), so the two always agree. Options:

    topic, brokers, channel       origin of the records; the channel is "<reader>/<topic>"
    kafka                         connection settings of lake.secrets
    value_format, key_format      {"type": "bytes" | "text" | "json" | "csv" | "regex" | "avro" |
                                  "protobuf", …}; key_format may be null
                                  avro: "schema" of the reader, "registry" URL or absent, "access"
                                  to it (as `kafka`), "wire": whether messages begin with
                                  Confluent's header
                                  protobuf: "schema" of the message and of the types that it
                                  contains (engine.plan.sources.protobuf)
    envelope                      "none" | "upsert" | "debezium"
    columns                       the declared columns of JSON (lake.types.field_to_json;
                                  "precision" of a time), or null
    decimals                      Debezium's JSON without schema: "precise" (base64) or "string"
    materialized                  whether rows without an envelope are stored
    primary_key                   column names of PRIMARY KEY (…) NOT ENFORCED
    include                       [kind, name] of each INCLUDE; ["header", name, header, as bytes]
    on_error                      "dead letter", "fail" or "null"
    paused                        whether the source is not read
    transactions                  transaction metadata of Debezium, to keep transactions whole
                                  (engine.ddl.transactions)
    max_message_bytes             limit for key and value together; absent: no limit
    max_records_per_second        limit; absent: no limit
    added, first_columns          names of the columns that REFRESH SCHEMA has added at the end;
                                  number of the other columns
    start                         start of each partition; absent: its first record
    topic_id                      distinguishes the topic from another of the same name

Columns by envelope (a column that the key and the value have is taken from the key):

    none        value columns, included columns
    upsert      key columns, value columns, included columns
    debezium    columns of `after`, included columns; without a key, a bag of rows
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailgate.engine.plan.graph import CAPTURED, DELETED, POSITION, FormatSpec, KafkaDecoder, Linear, Select, Where
from tailgate.engine.plan.sources import avro, debezium, protobuf
from tailgate.engine.plan.sources.keys import SCALARS, key_columns, message_key, record_columns
from tailgate.engine.plan.sources.made import Decoded, Made, by_name
from tailgate.engine.plan.sources.reads import Document, Reads, Struct, native
from tailgate.engine.plan.sources.spell import cast_of, jsonb_of, name, required, text
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition
from tailgate.lake.types import BOOL, BYTEA, INT4, INT8, JSONB, TEXT, TIMESTAMPTZ, Field, Type, field_from_json

Options = Mapping[str, Any]

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


def layout(options: Options) -> Layout:
    """Returns the layout of a source with these options. Raises the errors of CREATE SOURCE."""
    made = _layout(options)
    return replace(made, decoder=replace(made.decoder, max_bytes=options.get("max_message_bytes")))


def _layout(options: Options) -> Layout:
    match options["envelope"]:
        case "none":
            return _none(options)
        case "upsert":
            return _upsert(options)
        case "debezium":
            return _debezium(options)
    raise ValueError(options["envelope"])


def _none(options: Options) -> Layout:
    """Returns the layout of a source without an envelope."""
    at = Decoded()
    value = _value(options, at.value)
    own = _included_key(options)
    made = _arranged(options, [*value, *own, *_included(options, at)])
    nulls = options.get("on_error") == "null"
    checks = [] if nulls else [required(f"{at.value} IS NOT NULL", "null value"), *_not_null(options, value)]
    steps = Where(" AND ".join(checks or ["true"]))
    if nulls:
        value = [Made(Field(m.field.name, m.field.type), m.expression) for m in value]
    decoder = KafkaDecoder(_format(options["key_format"] if own else None), _value_format(options))
    shape = Linear((steps, Select(tuple(m.expression for m in made))))
    return Layout(decoder, _fields(made), None, shape, bool(options.get("materialized")), _fields(made))


def _upsert(options: Options) -> Layout:
    """Returns the layout of a source with ENVELOPE UPSERT."""
    at = Decoded()
    key = key_columns(options, alias=next((i[1] for i in options["include"] if i[0] == "key"), None))
    value = [m for m in _value(options, at.value) if m.field.name not in {k.field.name for k in key}]
    made = [*key, *value, *_included(options, at)]
    if options["columns"] is not None:  # in the order of their declaration
        declared = [c["name"] for c in options["columns"]]
        made.sort(key=lambda m: declared.index(m.field.name) if m.field.name in declared else -1 if m in key else len(declared))
    made = _arranged(options, made)
    where = Where(" AND ".join([required(f"{at.key} IS NOT NULL", "null key"), *_not_null(options, value, f"{at.value} IS NULL")]))
    select = Select(
        (
            *(m.expression for m in made),
            f"{at.value} IS NULL",
            f"concat_ws('/', CAST({at.partition} AS STRING), lpad(CAST({at.offset} AS STRING), 20, '0'))",
        )
    )
    decoder = KafkaDecoder(_format(options["key_format"]), _value_format(options))
    key_places = tuple(made.index(k) for k in key)
    return Layout(decoder, _fields(made), key_places, Linear((where, select)), True, _fields(made) + UPSERT_COLUMNS)


def _debezium(options: Options) -> Layout:
    """Returns the layout of a source with ENVELOPE DEBEZIUM."""
    at = Decoded()
    key_format = options["key_format"]
    keyless = not options["primary_key"] and key_format is None
    if options["value_format"]["type"] == "avro":
        schema = avro.parse(options["value_format"]["schema"])
        source = tuple(avro.fields(avro.fields(schema)["source"])) if "source" in avro.fields(schema) else ()
        told, sure, has_before = "op" in avro.fields(schema), True, "before" in avro.fields(schema)
        value = _format(options["value_format"])
    else:
        source, told, sure, has_before = debezium.SOURCE, True, False, not named_by_message(key_format, options["primary_key"])
        value = _connect_json(options, options["columns"] or (), envelope=True, before=has_before)
    envelope = debezium.envelope(at.value, told=told, sure=sure, before=has_before)
    rows = _rows(options, envelope, "after")
    if keyless:
        return _without_key(options, KafkaDecoder(_format(None), value), envelope, source, rows)
    key, message = _debezium_key(options, rows, has_before)
    keys = {k.field.name: k for k in key}
    made = _arranged(options, [keys.get(m.field.name, m) for m in rows] + _included(options, at))
    names = [m.field.name for m in made]
    where = debezium.wanted(envelope, key=at.key if message.kind != "none" else None, needs_before=False)
    gone = debezium.without_row(envelope)
    checks = [] if message.kind != "none" else [_key_there(envelope, k) for k in key]
    checks += _not_null(options, [m for m in rows if m.field.name not in keys], gone)
    captured = debezium.captured(envelope, source, at.partition, keyed=True)
    columns, places = _fields(made), tuple(names.index(k.field.name) for k in key)
    moved = _old_key(options, key) if message.kind == "none" else []
    select = Select((*(m.expression for m in made), *captured, *(m.expression for m in moved)))
    shape = Linear((Where(" AND ".join([where.expression, *checks])), select))
    entering = _entering(columns, places) if moved else (Linear(),)
    source_columns = columns + CAPTURED + _fields(moved)
    return Layout(KafkaDecoder(message, value), columns, places, shape, True, source_columns, entering)


def named_by_message(key_format: Options | None, primary_key: Sequence[str]) -> bool:
    """Returns whether the message's key identifies the row; otherwise the rows before and after do."""
    return key_format is not None and (key_format["type"] == "json" or not primary_key)


def _arranged(options: Options, made: list[Made]) -> list[Made]:
    """Moves columns that were added later to the end; they are nullable, because older rows lack them."""
    added = options.get("added", ())
    places = {name: i for i, name in enumerate(added)}
    later = sorted((m for m in made if m.field.name in places), key=lambda m: places[m.field.name])
    return [m for m in made if m.field.name not in places] + [Made(replace(m.field, nullable=True), m.expression) for m in later]


def _key_there(envelope: Struct, key: Made) -> str:
    """Returns the condition that a column of the key is not NULL."""
    return required(f"{envelope.field('op')} = 't' OR {key.expression} IS NOT NULL", f'null in key column "{key.field.name}"')


def _debezium_key(options: Options, rows: list[Made], has_before: bool) -> tuple[list[Made], FormatSpec]:
    """Returns the key's columns, and how the message's key is decoded if they come from it."""
    key_format, names = options["key_format"], list(options["primary_key"])
    if key_format is not None and key_format["type"] == "json":
        if not names:
            raise InvalidObjectDefinition(
                "the columns of a key in JSON must be declared", hint="Name them with PRIMARY KEY (…) NOT ENFORCED beside the columns."
            )
        columns = [c for c in options["columns"] or () if c["name"] in names]
        spec = _connect_json(options, columns, envelope=False, before=False)
        return [Made(k.field, Struct(Decoded().key).field(k.field.name)) for k in by_name(rows, names)], spec
    if names:
        key = by_name(rows, names)
        if has_before:
            before = {m.field.name: m.expression for m in _rows(options, Struct(Decoded().value), "before")}
            key = [Made(k.field, f"coalesce({k.expression}, {before[k.field.name]})") for k in key]
        return key, _format(None)
    return message_key(options, rows), _format(key_format)


def _old_key(options: Options, key: list[Made]) -> list[Made]:
    """Returns the columns of the key before the change.

    If the key is not the connector's key, an update may change it.
    """
    before = {m.field.name: m.expression for m in _rows(options, Struct(Decoded().value), "before")}
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


def _without_key(options: Options, decoder: KafkaDecoder, envelope: Struct, source: tuple[str, ...], rows: list[Made]) -> Layout:
    """Returns the layout of a table without a key.

    The source's columns are the row after the change and the row before it, each a struct, then
    CAPTURED.
    """
    if options["include"]:
        raise FeatureNotSupported(
            "INCLUDE with ENVELOPE DEBEZIUM of a table without a key is not supported",
            hint="Name what identifies a row with PRIMARY KEY (…) NOT ENFORCED.",
        )
    before = _arranged(options, _rows(options, envelope, "before"))
    where = debezium.wanted(envelope, key=None, needs_before=True)
    checks = _not_null(options, rows, debezium.without_row(envelope))
    rows = _arranged(options, rows)
    structs = [f"CASE WHEN {envelope.exists(image)} THEN {_struct(made)} END" for image, made in (("after", rows), ("before", before))]
    select = Select((*structs, *debezium.captured(envelope, source, Decoded().partition, keyed=False)))
    row = Type("record", fields=tuple(Field(f"c{i}", m.field.type) for i, m in enumerate(rows)))
    columns = (Field("__after", row), Field("__before", row), *CAPTURED)
    shape = Linear((Where(" AND ".join([where.expression, *checks])), select))
    return Layout(decoder, _fields(rows), None, shape, True, columns)


def _struct(made: list[Made]) -> str:
    return "named_struct(" + ", ".join(f"'c{i}', {m.expression}" for i, m in enumerate(made)) + ")"


# ---- values ----------------------------------------------------------------------------------------------------------------------


def _value(options: Options, at: str) -> list[Made]:
    """Returns the columns of a value without an envelope."""
    format = options["value_format"]
    if format["type"] == "json" and options["columns"] is not None:
        return _rows(options, Struct(at) if native(_declared(options)) else Document(at))
    if format["type"] == "avro":
        schema = avro.parse(format["schema"])
        if avro.is_record(schema):
            return _rows(options, Struct(at))
        type, nullable, stored = avro.column(schema)
        return [Made(Field("data", type, nullable), stored(at))]
    if format["type"] == "protobuf":
        return [Made(c, Struct(at).field(c.name)) for c in protobuf.columns(format["schema"])]
    if format["type"] in ("csv", "regex"):
        return _texts(options, at)
    type = SCALARS[format["type"]]
    return [Made(Field("text" if type == TEXT else "data", type, False), at)]


def _texts(options: Options, at: str) -> list[Made]:
    """Returns the columns of a line; declared columns are cast from text as in PostgreSQL."""
    given = [f"{at}.c{i}" for i in range(len(options["value_format"]["names"]))]
    declared = _declared(options)
    if not declared:
        return [Made(Field(n, TEXT), g) for n, g in zip(options["value_format"]["names"], given, strict=True)]
    if len(declared) != len(given):
        raise InvalidObjectDefinition(f"{len(declared)} columns are declared, and the format has {len(given)}")
    return [Made(f, cast_of(g, TEXT, f.type)) for f, g in zip(declared, given, strict=True)]


def _rows(options: Options, at: Reads, *path: str) -> list[Made]:
    """Returns the columns of a row: the image at `path` (`after`, `before`), or the value itself."""
    if options["value_format"]["type"] == "avro":
        schema = avro.parse(options["value_format"]["schema"])
        signed = options["envelope"] == "debezium" and avro.has_signed_times(schema)
        if options["envelope"] == "debezium":
            schema = avro.fields(schema)["after"]
        columns = avro.columns(schema, signed_times=signed)
        return [Made(Field(c.name, c.type, c.nullable), c.stored(at.field(*path, c.of))) for c in columns]
    if options["columns"] is None:
        raise InvalidObjectDefinition(
            "the columns of a JSON source with this envelope must be declared", hint="CREATE SOURCE name (column type, …) FROM KAFKA …"
        )
    # in an envelope, the decoder returns the stored form
    if path:
        return [Made(f, at.field(*path, f.name)) for f in _declared(options)]
    return [Made(f, at.column(f)) for f in _declared(options)]


def _declared(options: Options) -> tuple[Field, ...]:
    return tuple(map(field_from_json, options["columns"] or ()))


def _not_null(options: Options, made: list[Made], unless: str | None = None) -> list[str]:
    """Returns the conditions for columns that were declared NOT NULL; `unless` disables them."""
    if options["columns"] is None:
        return []
    pass_over = f"{unless} OR " if unless else ""
    return [required(f"{pass_over}{m.expression} IS NOT NULL", f'null in column "{m.field.name}"') for m in made if not m.field.nullable]


def _included_key(options: Options) -> list[Made]:
    """Returns the columns of INCLUDE KEY for an append-only source; the key may be NULL there."""
    wanted = [i[1] for i in options["include"] if i[0] == "key"]
    if not wanted:
        return []
    if options["key_format"] is None:
        raise InvalidObjectDefinition("INCLUDE KEY needs KEY FORMAT")
    single = record_columns(options["key_format"]) is None
    made = key_columns({**options, "primary_key": []}, wanted[0] or ("key" if single else None))
    return [Made(Field(m.field.name, m.field.type, True), m.expression) for m in made]


def _included(options: Options, at: Decoded) -> list[Made]:
    """Returns the columns of INCLUDE, except for those of the key."""
    places = {"partition": at.partition, "offset": at.offset, "timestamp": at.timestamp}
    out = []
    for kind, alias, *header in options["include"]:
        if kind in places:
            out.append(Made(Field(alias or kind, INCLUDED[kind], kind == "timestamp"), places[kind]))
        elif kind == "headers":
            out.append(Made(Field(alias or kind, JSONB), _headers(at.headers)))
        elif kind == "header":
            out.append(_header(at.headers, alias, *header))
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


def _format(format: Options | None) -> FormatSpec:
    """Returns the decoder of a format, `none` without one."""
    if format is None:
        return FormatSpec("none")
    match format["type"]:
        case "avro":
            access = json.dumps(format["access"], sort_keys=True) if "access" in format else ""
            return FormatSpec("avro", "", format["schema"], format.get("registry", ""), format.get("wire", True), access)
        case "csv":
            of = {"columns": len(format["names"]), "delimiter": format["delimiter"], "header": format["header"], "nulls": format["nulls"]}
            return FormatSpec("csv", schema=json.dumps(of))
        case "regex":
            return FormatSpec("regex", schema=format["pattern"])
        case "protobuf":
            return FormatSpec("protobuf", schema=format["schema"])
    return FormatSpec(format["type"])


def _value_format(options: Options) -> FormatSpec:
    """Returns the decoder of the value; it reads declared JSON columns directly if it can."""
    declared = _declared(options)
    if options["value_format"]["type"] == "json" and options["columns"] is not None and native(declared):
        return FormatSpec("json_columns", columns=_ddl(declared, " "))
    return _format(options["value_format"])


def _connect_json(options: Options, columns: Sequence[Options], *, envelope: bool, before: bool) -> FormatSpec:
    """Returns the format of Debezium's JSON.

    The declared columns define the meaning of values if the message has no schema (tailgate/engine/java,
    ConnectColumn).
    """
    spec = {
        "columns": [_connect_column(c) for c in columns],
        "envelope": envelope,
        "before": before,
        "decimals": options.get("decimals", "precise"),
    }
    return FormatSpec("connect_json", schema=json.dumps(spec))


def _connect_column(column: Options) -> dict[str, Any]:
    """Returns a column for the decoder.

    `precision` has the declared digits of a time or the scale of a numeric; it is absent if none
    was declared.
    """
    field = field_from_json(dict(column))
    out: dict[str, Any] = {"name": field.name, "type": field.type.name, "spark": field.type.spark, "array": field.type.is_array}
    precision = field.type.modifiers[1] if field.type.name == "numeric" and field.type.modifiers else column.get("precision")
    return out if precision is None else {**out, "precision": precision}


def _ddl(columns: tuple[Field, ...], between: str) -> str:
    return ", ".join(f"{name(f.name)}{between}{f.type.spark}" for f in columns)
