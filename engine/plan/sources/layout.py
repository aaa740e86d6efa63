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
from engine.plan.sources.spell import cast_of, name, required
from lake.errors import FeatureNotSupported, InvalidObjectDefinition, UndefinedColumn
from lake.types import BYTEA, INT4, INT8, JSONB, TEXT, TIMESTAMPTZ, Field, Type, field_from_json

Options = Mapping[str, Any]

SCALARS: dict[str, Type] = {"bytes": BYTEA, "text": TEXT, "json": JSONB}
INCLUDED: dict[str, tuple[str, Type]] = {
    "partition": ("__partition", INT4),
    "offset": ("__offset", INT8),
    "timestamp": ("__timestamp", TIMESTAMPTZ),
}
NO_POSITION = "CAST(NULL AS STRING)"


@dataclass(frozen=True, slots=True)
class Made:
    """A column and the Spark SQL over graph.DECODED that makes its stored form."""

    field: Field
    expression: str


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
    value = _value(options, ("value",))
    own = _included_key(options)
    made = [*value, *own, *_included(options)]
    steps = Where(" AND ".join([required("`value` IS NOT NULL", "null value"), *_not_null(options, made)]))
    decoder = KafkaDecoder(_format(options["key_format"] if own else None), _value_format(options))
    return Layout(decoder, tuple(m.field for m in made), None, Linear((steps, Select(tuple(m.expression for m in made)))))


def _upsert(options: Options) -> Layout:
    key = _key(options, alias=dict(options["include"]).get("key"))
    value = [m for m in _value(options, ("value",)) if m.field.name not in {k.field.name for k in key}]
    made = [*key, *value, *_included(options)]
    if options["columns"] is not None:  # in the order in which they were declared
        declared = [c["name"] for c in options["columns"]]
        made.sort(key=lambda m: declared.index(m.field.name) if m.field.name in declared else -1 if m in key else len(declared))
    places = tuple(made.index(k) for k in key)
    where = Where(" AND ".join([required("`key` IS NOT NULL", "null key"), *_not_null(options, value, unless="`value` IS NULL")]))
    select = Select((*(m.expression for m in made), "`value` IS NULL", NO_POSITION))
    return Layout(
        KafkaDecoder(_format(options["key_format"]), _value_format(options)), tuple(m.field for m in made), places, Linear((where, select))
    )


def _debezium(options: Options) -> Layout:
    key_format = options["key_format"]
    if options["value_format"]["type"] == "avro":
        envelope: tuple[str, ...] = ("value",)
        schema = avro.parse(options["value_format"]["schema"])
        source = tuple(avro.fields(avro.fields(schema)["source"])) if "source" in avro.fields(schema) else ()
        spec = FormatSpec("avro", schema=options["value_format"]["schema"], registry=options["value_format"]["registry"])
    else:
        envelope = ("value",)
        source = tuple(debezium.POSITIONS)
        spec = FormatSpec("json_columns", columns=_envelope_ddl(options))
    rows = _rows(options, (*envelope, "after"))
    if options["primary_key"]:
        key = _by_name([Made(m.field, m.expression) for m in rows], options["primary_key"])
        if options["value_format"]["type"] != "avro" or "before" in avro.fields(avro.parse(options["value_format"]["schema"])):
            before = {m.field.name: m.expression for m in _rows(options, (*envelope, "before"))}
            key = [Made(k.field, f"coalesce({k.expression}, {before[k.field.name]})") for k in key]
        keyed = False
    elif key_format is not None:
        key, keyed = _message_key(options, rows), True
    else:
        raise InvalidObjectDefinition(
            "ENVELOPE DEBEZIUM needs to know what identifies a row",
            hint="Name the columns with PRIMARY KEY (…) NOT ENFORCED, or the message's key with KEY FORMAT.",
        )
    keys = {k.field.name: k for k in key}
    made = [keys.get(m.field.name, m) for m in rows] + _included(options)
    names = [m.field.name for m in made]
    where = debezium.wanted(envelope, keyed=keyed)
    if not keyed:
        where = Where(
            " AND ".join(
                [where.expression, *(required(f"{k.expression} IS NOT NULL", f'null in key column "{k.field.name}"') for k in key)]
            )
        )
    select = Select((*(m.expression for m in made), debezium.deleted(envelope), debezium.position(envelope, source)))
    decoder = KafkaDecoder(_format(key_format if keyed else None), spec)
    return Layout(decoder, tuple(m.field for m in made), tuple(names.index(k.field.name) for k in key), Linear((where, select)))


# ---- values ----------------------------------------------------------------------------------------------------------------------


def _value(options: Options, path: tuple[str, ...]) -> list[Made]:
    """The columns of a value that is no envelope."""
    format = options["value_format"]
    if format["type"] == "json" and options["columns"] is not None:
        return _rows(options, path)
    if format["type"] == "avro":
        schema = avro.parse(format["schema"])
        if avro.is_record(schema):
            return _rows(options, path)
        type, nullable, stored = avro.column(schema)
        return [Made(Field("data", type, nullable), stored(name(*path)))]
    type = SCALARS[format["type"]]
    return [Made(Field("text" if type == TEXT else "data", type, False), name(*path))]


def _rows(options: Options, path: tuple[str, ...]) -> list[Made]:
    """The columns of a row that is a struct at `path`: of `after`, or the value itself."""
    if options["value_format"]["type"] == "avro":
        schema = avro.parse(options["value_format"]["schema"])
        signed = options["envelope"] == "debezium" and avro.has_signed_times(schema)
        if options["envelope"] == "debezium":
            schema = avro.fields(schema)["after"]
        columns = avro.columns(schema, signed_times=signed)
        return [Made(Field(c.name, c.type, c.nullable), c.stored(name(*path, c.name))) for c in columns]
    if options["columns"] is None:
        raise InvalidObjectDefinition(
            "the columns of a JSON source with this envelope must be declared", hint="CREATE SOURCE name (column type, …) FROM KAFKA …"
        )
    return [Made(f, name(*path, f.name)) for f in map(field_from_json, options["columns"])]


def _not_null(options: Options, made: list[Made], unless: str | None = None) -> list[str]:
    """Conditions of columns that were declared NOT NULL."""
    if options["columns"] is None:
        return []
    pass_over = f"{unless} OR " if unless else ""
    return [required(f"{pass_over}{m.expression} IS NOT NULL", f'null in column "{m.field.name}"') for m in made if not m.field.nullable]


def _envelope_ddl(options: Options) -> str:
    row = "struct<" + ", ".join(f"{name(f.name)}: {f.type.spark}" for f in map(field_from_json, options["columns"] or ())) + ">"
    source = "struct<" + ", ".join(f"{n}: {t}" for n, t in debezium.POSITIONS.items()) + ">"
    return f"before {row}, after {row}, op string, source {source}"


# ---- keys ------------------------------------------------------------------------------------------------------------------------


def _key(options: Options, alias: str | None) -> list[Made]:
    """The columns of the message's key: a record's fields, or one column."""
    format = options["key_format"]
    if format is None:
        raise InvalidObjectDefinition("ENVELOPE UPSERT needs the message's key", hint="Say KEY FORMAT … VALUE FORMAT … instead of FORMAT.")
    names: list[str] = options["primary_key"]
    if format["type"] == "avro" and avro.is_record(schema := avro.parse(format["schema"])):
        fields = avro.columns(schema)
        if alias is not None and len(fields) != 1:
            raise FeatureNotSupported(
                "INCLUDE KEY AS for a key of several columns is not supported", hint="Leave out AS; each field becomes a column."
            )
        made = [Made(Field(alias or c.name, c.type, False), c.stored(name("key", c.name))) for c in fields]
        return _by_name(made, names) if names else made
    if format["type"] == "avro":
        type, _, stored = avro.column(schema)
        expression = stored(name("key"))
    else:
        type, expression = SCALARS[format["type"]], name("key")
    if not names:
        return [Made(Field(alias or "key0", type, False), expression)]
    if len(names) != 1:
        raise InvalidObjectDefinition(f"the message's key is one value and cannot be the {len(names)} columns of the primary key")
    declared = {f.name: f.type for f in map(field_from_json, options["columns"] or ())}
    return [Made(Field(names[0], declared.get(names[0], type), False), cast_of(expression, type, declared.get(names[0], type)))]


def _message_key(options: Options, rows: list[Made]) -> list[Made]:
    """The columns of a row that the message's key has, by name."""
    format = options["key_format"]
    known = {m.field.name: m.field for m in rows}
    if format["type"] == "avro" and avro.is_record(schema := avro.parse(format["schema"])):
        key = [Made(Field(c.name, c.type, False), c.stored(name("key", c.name))) for c in avro.columns(schema)]
        for k in key:
            if k.field.name not in known:
                raise UndefinedColumn(f'column "{k.field.name}" of the message\'s key is no column of the row')
        return [
            Made(Field(k.field.name, known[k.field.name].type, False), cast_of(k.expression, k.field.type, known[k.field.name].type))
            for k in key
        ]
    raise FeatureNotSupported(
        "ENVELOPE DEBEZIUM with a key that is no record is not supported", hint="Name the columns with PRIMARY KEY (…) NOT ENFORCED."
    )


def _included_key(options: Options) -> list[Made]:
    """INCLUDE KEY of an append-only source; the key may be NULL there."""
    wanted = [alias for kind, alias in options["include"] if kind == "key"]
    if not wanted:
        return []
    if options["key_format"] is None:
        raise InvalidObjectDefinition("INCLUDE KEY needs KEY FORMAT")
    single = options["key_format"]["type"] != "avro" or not avro.is_record(avro.parse(options["key_format"]["schema"]))
    made = _key({**options, "primary_key": []}, wanted[0] or ("key" if single else None))
    return [Made(Field(m.field.name, m.field.type, True), m.expression) for m in made]


def _by_name(made: list[Made], names: list[str]) -> list[Made]:
    known = {m.field.name: m for m in made}
    for n in names:
        if n not in known:
            raise UndefinedColumn(f'column "{n}" named in key does not exist')
    return [Made(Field(n, known[n].field.type, False), known[n].expression) for n in names]


def _included(options: Options) -> list[Made]:
    out = []
    for kind, alias in options["include"]:
        if kind in INCLUDED:
            expression, type = INCLUDED[kind]
            out.append(Made(Field(alias or kind, type, kind == "timestamp"), expression))
    return out


# ---- decoders --------------------------------------------------------------------------------------------------------------------


def _format(format: Options | None) -> FormatSpec:
    if format is None:
        return FormatSpec("none")
    if format["type"] == "avro":
        return FormatSpec("avro", schema=format["schema"], registry=format["registry"])
    kind = format["type"]
    return FormatSpec(kind)


def _value_format(options: Options) -> FormatSpec:
    if options["value_format"]["type"] == "json" and options["columns"] is not None:
        declared = map(field_from_json, options["columns"])
        return FormatSpec("json_columns", columns=", ".join(f"{name(f.name)} {f.type.spark}" for f in declared))
    return _format(options["value_format"])
