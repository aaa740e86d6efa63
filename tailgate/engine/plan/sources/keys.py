"""The columns of a message's key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailgate.engine.plan.sources import avro, protobuf
from tailgate.engine.plan.sources.made import Decoded, Made, by_name
from tailgate.engine.plan.sources.spell import cast_of, name
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, UndefinedColumn
from tailgate.lake.types import BYTEA, JSONB, TEXT, Field, Type, field_from_json

SCALARS: dict[str, Type] = {"bytes": BYTEA, "text": TEXT, "json": JSONB}


def key_columns(options: Mapping[str, Any], alias: str | None) -> list[Made]:
    """Returns the key's columns: the fields of a record, or one column for a single value.

    The name of a single column is that of the primary key, or `alias`, or key0.
    """
    format = options["key_format"]
    if format is None:
        raise InvalidObjectDefinition("ENVELOPE UPSERT needs the message's key", hint="Say KEY FORMAT … VALUE FORMAT … instead of FORMAT.")
    at, names = Decoded().key, list(options["primary_key"])
    fields = record_columns(format)
    if fields is not None:
        if alias is not None and len(fields) != 1:
            raise FeatureNotSupported(
                "INCLUDE KEY AS for a key of several columns is not supported", hint="Leave out AS; each field becomes a column."
            )
        made = [Made(Field(alias or f.field.name, f.field.type, False), f.expression) for f in fields]
        return by_name(made, names) if names else made
    if format["type"] == "avro":
        type, _, stored = avro.column(avro.parse(format["schema"]))
        expression = stored(at)
    else:
        type, expression = SCALARS[format["type"]], at
    if not names:
        return [Made(Field(alias or "key0", type, False), expression)]
    if len(names) != 1:
        raise InvalidObjectDefinition(f"the message's key is one value and cannot be the {len(names)} columns of the primary key")
    declared = {f.name: f.type for f in map(field_from_json, options["columns"] or ())}
    wanted = declared.get(names[0], type)
    return [Made(Field(names[0], wanted, False), cast_of(expression, type, wanted))]


def record_columns(format: Mapping[str, Any]) -> list[Made] | None:
    """Returns the fields of a key that is a record or a message, or None for a single value."""
    at = Decoded().key
    if format["type"] == "protobuf":
        return [Made(c, f"{at}.{name(c.name)}") for c in protobuf.columns(format["schema"])]
    if format["type"] != "avro" or not avro.is_record(schema := avro.parse(format["schema"])):
        return None
    return [Made(Field(c.name, c.type, c.nullable), c.stored(f"{at}.{name(c.name)}")) for c in avro.columns(schema)]


def message_key(options: Mapping[str, Any], rows: list[Made]) -> list[Made]:
    """Returns the columns of the message's key, by name, with the types of the row's columns."""
    format = options["key_format"]
    known = {m.field.name: m.field.type for m in rows}
    fields = record_columns(format)
    if fields is None:
        raise FeatureNotSupported(
            "ENVELOPE DEBEZIUM with a key that is no record is not supported", hint="Name the columns with PRIMARY KEY (…) NOT ENFORCED."
        )
    made = []
    for c in fields:
        own = c.field.name
        if own not in known:
            raise UndefinedColumn(f'column "{own}" of the message\'s key is no column of the row')
        made.append(Made(Field(own, known[own], False), cast_of(c.expression, c.field.type, known[own])))
    return made
