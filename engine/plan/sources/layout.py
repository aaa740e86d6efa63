"""What a source's records become: columns, the key among them, and the Spark SQL that makes them.

One function tells it from the source's options, for CREATE SOURCE (which columns the item has) and for the circuit (how they are made),
so the two cannot disagree. Options:

    topic, brokers, channel       where the records come from; the channel is "<reader>/<topic>"
    kafka                         more settings of the reader
    value_format, key_format      {"type": "bytes" | "text" | "json" | "avro", "schema": reader's schema, "registry": URL}; no key: null
    envelope                      "none" | "upsert" | "debezium"
    columns                       of JSON, the declared ones (lake.types.field_to_json), or null
    primary_key                   names of columns, of PRIMARY KEY (…) NOT ENFORCED
    include                       [kind, name] of each INCLUDE

Columns by envelope:

    none        value columns, included ones
    upsert      key columns, value columns (those that the key has are taken from the key), included ones
    debezium    columns of `after` (those that the key has are taken from the key), included ones
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.plan.graph import FormatSpec, KafkaDecoder, Linear, Select, Where
from engine.plan.sources import avro, debezium
from engine.plan.sources.keys import SCALARS, key_columns, message_key
from engine.plan.sources.made import Decoded, Made, by_name
from engine.plan.sources.reads import Document, Reads, Struct, native
from engine.plan.sources.spell import name, required
from lake.errors import InvalidObjectDefinition
from lake.types import INT4, INT8, TEXT, TIMESTAMPTZ, Field, Type, field_from_json

Options = Mapping[str, Any]

INCLUDED: dict[str, Type] = {"partition": INT4, "offset": INT8, "timestamp": TIMESTAMPTZ}
NO_POSITION = "CAST(NULL AS STRING)"


@dataclass(frozen=True, slots=True)
class Layout:
    """`columns` of the item; `key` among them, or None; `shape` also gives what an upsert wants after the row, if there is a key."""

    decoder: KafkaDecoder
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    shape: Linear


def layout(options: Options) -> Layout:
    match options["envelope"]:
        case "none":
            return _none(options)
        case "upsert":
            return _upsert(options)
        case "debezium":
            return _debezium(options)
    raise ValueError(options["envelope"])


def _none(options: Options) -> Layout:
    at = Decoded()
    value = _value(options, at.value)
    own = _included_key(options)
    made = [*value, *own, *_included(options, at)]
    steps = Where(" AND ".join([required(f"{at.value} IS NOT NULL", "null value"), *_not_null(options, value)]))
    decoder = KafkaDecoder(_format(options["key_format"] if own else None), _value_format(options))
    return Layout(decoder, _fields(made), None, Linear((steps, Select(tuple(m.expression for m in made)))))


def _upsert(options: Options) -> Layout:
    at = Decoded()
    key = key_columns(options, alias=dict(options["include"]).get("key"))
    value = [m for m in _value(options, at.value) if m.field.name not in {k.field.name for k in key}]
    made = [*key, *value, *_included(options, at)]
    if options["columns"] is not None:  # in the order in which they were declared
        declared = [c["name"] for c in options["columns"]]
        made.sort(key=lambda m: declared.index(m.field.name) if m.field.name in declared else -1 if m in key else len(declared))
    where = Where(" AND ".join([required(f"{at.key} IS NOT NULL", "null key"), *_not_null(options, value, f"{at.value} IS NULL")]))
    select = Select((*(m.expression for m in made), f"{at.value} IS NULL", NO_POSITION))
    decoder = KafkaDecoder(_format(options["key_format"]), _value_format(options))
    return Layout(decoder, _fields(made), tuple(made.index(k) for k in key), Linear((where, select)))


def _debezium(options: Options) -> Layout:
    value_format, key_format = options["value_format"], options["key_format"]
    steps: tuple[Select, ...] = ()
    at = Decoded()
    envelope: Reads
    if value_format["type"] == "avro":
        schema = avro.parse(value_format["schema"])
        has_before = "before" in avro.fields(schema)
        source = tuple(avro.fields(avro.fields(schema)["source"])) if "source" in avro.fields(schema) else ()
        envelope, spec = Struct(at.value), _format(value_format)
    else:
        has_before, source = True, tuple(debezium.POSITIONS)
        opened, spec = _json_envelope(options)
        steps, at = (Select((at.key, opened, at.partition, at.offset, at.timestamp)),), Decoded.selected()
        envelope = Struct(at.value) if spec.kind == "json_columns" else Document(at.value)
    rows = _rows(options, envelope, "after")
    if options["primary_key"]:
        keyed = False
        key = by_name(rows, options["primary_key"])
        if has_before:
            before = {m.field.name: m.expression for m in _rows(options, envelope, "before")}
            key = [Made(k.field, f"coalesce({k.expression}, {before[k.field.name]})") for k in key]
    elif key_format is not None:
        key, keyed = message_key(options, rows), True
    else:
        raise InvalidObjectDefinition(
            "ENVELOPE DEBEZIUM needs to know what identifies a row",
            hint="Name the columns with PRIMARY KEY (…) NOT ENFORCED, or the message's key with KEY FORMAT.",
        )
    keys = {k.field.name: k for k in key}
    made = [keys.get(m.field.name, m) for m in rows] + _included(options, at)
    names = [m.field.name for m in made]
    where = debezium.wanted(envelope, key=at.key if keyed else None)
    checks = [] if keyed else [required(f"{k.expression} IS NOT NULL", f'null in key column "{k.field.name}"') for k in key]
    others = [m for m in rows if m.field.name not in keys]
    checks += _not_null(options, others, debezium.deleted(envelope))
    select = Select((*(m.expression for m in made), debezium.deleted(envelope), debezium.position(envelope, source)))
    decoder = KafkaDecoder(_format(key_format if keyed else None), spec)
    shape = Linear((*steps, Where(" AND ".join([where.expression, *checks])), select))
    return Layout(decoder, _fields(made), tuple(names.index(k.field.name) for k in key), shape)


# ---- values ----------------------------------------------------------------------------------------------------------------------


def _value(options: Options, at: str) -> list[Made]:
    """The columns of a value that is no envelope."""
    format = options["value_format"]
    if format["type"] == "json" and options["columns"] is not None:
        return _rows(options, Struct(at) if native(_declared(options)) else Document(at))
    if format["type"] == "avro":
        schema = avro.parse(format["schema"])
        if avro.is_record(schema):
            return _rows(options, Struct(at))
        type, nullable, stored = avro.column(schema)
        return [Made(Field("data", type, nullable), stored(at))]
    type = SCALARS[format["type"]]
    return [Made(Field("text" if type == TEXT else "data", type, False), at)]


def _rows(options: Options, at: Reads, *path: str) -> list[Made]:
    """The columns of a row: of `after`, or the value itself."""
    if options["value_format"]["type"] == "avro":
        schema = avro.parse(options["value_format"]["schema"])
        signed = options["envelope"] == "debezium" and avro.has_signed_times(schema)
        if options["envelope"] == "debezium":
            schema = avro.fields(schema)["after"]
        columns = avro.columns(schema, signed_times=signed)
        return [Made(Field(c.name, c.type, c.nullable), c.stored(at.field(*path, c.name))) for c in columns]
    if options["columns"] is None:
        raise InvalidObjectDefinition(
            "the columns of a JSON source with this envelope must be declared", hint="CREATE SOURCE name (column type, …) FROM KAFKA …"
        )
    return [Made(f, at.column(f, *path)) for f in _declared(options)]


def _declared(options: Options) -> tuple[Field, ...]:
    return tuple(map(field_from_json, options["columns"] or ()))


def _not_null(options: Options, made: list[Made], unless: str | None = None) -> list[str]:
    """Conditions of columns that were declared NOT NULL."""
    if options["columns"] is None:
        return []
    pass_over = f"{unless} OR " if unless else ""
    return [required(f"{pass_over}{m.expression} IS NOT NULL", f'null in column "{m.field.name}"') for m in made if not m.field.nullable]


def _included_key(options: Options) -> list[Made]:
    """INCLUDE KEY of an append-only source; the key may be NULL there."""
    wanted = [alias for kind, alias in options["include"] if kind == "key"]
    if not wanted:
        return []
    if options["key_format"] is None:
        raise InvalidObjectDefinition("INCLUDE KEY needs KEY FORMAT")
    single = options["key_format"]["type"] != "avro" or not avro.is_record(avro.parse(options["key_format"]["schema"]))
    made = key_columns({**options, "primary_key": []}, wanted[0] or ("key" if single else None))
    return [Made(Field(m.field.name, m.field.type, True), m.expression) for m in made]


def _included(options: Options, at: Decoded) -> list[Made]:
    places = {"partition": at.partition, "offset": at.offset, "timestamp": at.timestamp}
    return [
        Made(Field(alias or kind, INCLUDED[kind], kind == "timestamp"), places[kind])
        for kind, alias in options["include"]
        if kind in places
    ]


def _fields(made: list[Made]) -> tuple[Field, ...]:
    return tuple(m.field for m in made)


# ---- decoders --------------------------------------------------------------------------------------------------------------------


def _format(format: Options | None) -> FormatSpec:
    if format is None:
        return FormatSpec("none")
    if format["type"] == "avro":
        return FormatSpec("avro", schema=format["schema"], registry=format["registry"])
    return FormatSpec(format["type"])


def _value_format(options: Options) -> FormatSpec:
    declared = _declared(options)
    if options["value_format"]["type"] == "json" and options["columns"] is not None and native(declared):
        return FormatSpec("json_columns", columns=_ddl(declared, " "))
    return _format(options["value_format"])


def _json_envelope(options: Options) -> tuple[str, FormatSpec]:
    """Spark SQL of the envelope, and how the value is decoded. Connect may have wrapped it: {"schema": …, "payload": envelope}."""
    declared, value = _declared(options), Decoded().value
    if not native(declared):
        return f"coalesce(tg_jsonb_get({value}, 'payload'), {value})", FormatSpec("json")
    row = f"struct<{_ddl(declared, ': ')}>"
    source = "struct<" + ", ".join(f"{name(n)}: {t}" for n, t in debezium.POSITIONS.items()) + ">"
    fields = {"before": row, "after": row, "op": "string", "source": source}
    inner = ", ".join(f"{n}: {t}" for n, t in fields.items())
    bare = ", ".join(f"'{n}', {value}.{name(n)}" for n in fields)
    columns = ", ".join(f"{n} {t}" for n, t in fields.items())
    opened = f"CASE WHEN {value} IS NOT NULL THEN coalesce({value}.`payload`, named_struct({bare})) END"
    return opened, FormatSpec("json_columns", columns=f"payload struct<{inner}>, {columns}")


def _ddl(columns: tuple[Field, ...], between: str) -> str:
    return ", ".join(f"{name(f.name)}{between}{f.type.spark}" for f in columns)
