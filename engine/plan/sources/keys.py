"""The columns that a message's key gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.plan.sources import avro
from engine.plan.sources.made import Decoded, Made, by_name
from engine.plan.sources.spell import cast_of, name
from lake.errors import FeatureNotSupported, InvalidObjectDefinition, UndefinedColumn
from lake.types import BYTEA, JSONB, TEXT, Field, Type, field_from_json

SCALARS: dict[str, Type] = {"bytes": BYTEA, "text": TEXT, "json": JSONB}


def key_columns(options: Mapping[str, Any], alias: str | None) -> list[Made]:
    """A record's fields, or one column: of the primary key's name, of `alias`, or key0."""
    format = options["key_format"]
    if format is None:
        raise InvalidObjectDefinition("ENVELOPE UPSERT needs the message's key", hint="Say KEY FORMAT … VALUE FORMAT … instead of FORMAT.")
    at, names = Decoded().key, list(options["primary_key"])
    if format["type"] == "avro":
        schema = avro.parse(format["schema"])
        if avro.is_record(schema):
            fields = avro.columns(schema)
            if alias is not None and len(fields) != 1:
                raise FeatureNotSupported(
                    "INCLUDE KEY AS for a key of several columns is not supported", hint="Leave out AS; each field becomes a column."
                )
            made = [Made(Field(alias or c.name, c.type, False), c.stored(f"{at}.{name(c.name)}")) for c in fields]
            return by_name(made, names) if names else made
        type, _, stored = avro.column(schema)
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


def message_key(options: Mapping[str, Any], rows: list[Made]) -> list[Made]:
    """The columns of a row that the message's key has, by name."""
    format = options["key_format"]
    known = {m.field.name: m.field.type for m in rows}
    if format["type"] != "avro" or not avro.is_record(schema := avro.parse(format["schema"])):
        raise FeatureNotSupported(
            "ENVELOPE DEBEZIUM with a key that is no record is not supported", hint="Name the columns with PRIMARY KEY (…) NOT ENFORCED."
        )
    made = []
    for c in avro.columns(schema):
        if c.name not in known:
            raise UndefinedColumn(f'column "{c.name}" of the message\'s key is no column of the row')
        stored = c.stored(f"{Decoded().key}.{name(c.name)}")
        made.append(Made(Field(c.name, known[c.name], False), cast_of(stored, c.type, known[c.name])))
    return made
