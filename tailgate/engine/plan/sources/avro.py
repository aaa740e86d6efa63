"""Derives columns from an Avro reader's schema.

The type of a column follows `connect.name`, because Debezium's times have no logical type, then
`logicalType`. The decoder returns a value in Spark's type for it (tailgate/engine/java, `AvroTypes`), and
`spell` converts this to the stored form of the column's type.

    column type          from
    bool … float8        boolean, int, long, float, double; int2 where Connect says int8 or int16
                         (MariaDB's BOOLEAN stays a number)
    numeric(p, s)        decimal of bytes or fixed
    numeric              Debezium's record of a scale and a value
    date, timestamp[tz]  int and long with a unit; a text with a zone
    time, interval       int and long of a time of day; interval if a connector's TIME may be
                         negative or above 24 h (MySQL, MariaDB)
    text, uuid, jsonb    string by its name; enums are text
    jsonb                records and maps, arrays of arrays and of several types
    type[]               arrays
    name1, name2, …      a column for each type of a union of several types besides null

Source: Avro 1.12 specification; Debezium 3, "Data type mappings".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tailgate.engine.plan.sources.spark_sql import interval_of, jsonb_of, jsonb_of_debezium, micros_of, uuid_of
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NUMERIC,
    NUMERIC_PRECISION,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Type,
)

# a parsed schema: a name, an object or a list
Schema = Any
Spell = Callable[[str], str]  # Spark SQL of a decoded value → Spark SQL of its stored form


@dataclass(frozen=True, slots=True)
class Column:
    """A column made of a field; `stored` maps Spark SQL of the field to that of its stored form."""

    name: str
    type: Type
    nullable: bool
    stored: Spell
    # name of the record's field; empty if it is the column's name, which differs for members of a
    # union
    field: str = ""

    @property
    def of(self) -> str:
        """Returns the name of the record's field."""
        return self.field or self.name


def _same(text: str) -> str:
    return text


# by connect.name, then by logicalType: types whose unit the decoder knows (tailgate/engine/java, AvroTypes),
# and names of texts
NAMED: dict[str, Type] = {
    "io.debezium.time.Date": DATE,
    "date": DATE,
    "io.debezium.time.Timestamp": TIMESTAMP,
    "io.debezium.time.MicroTimestamp": TIMESTAMP,
    "io.debezium.time.NanoTimestamp": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP,
    "local-timestamp-micros": TIMESTAMP,
    "local-timestamp-nanos": TIMESTAMP,
    "timestamp-millis": TIMESTAMPTZ,
    "timestamp-micros": TIMESTAMPTZ,
    "timestamp-nanos": TIMESTAMPTZ,
    "io.debezium.time.ZonedTimestamp": TIMESTAMPTZ,
    "io.debezium.time.MicroDuration": INTERVAL,
    "io.debezium.time.Time": TIME,
    "io.debezium.time.MicroTime": TIME,
    "io.debezium.time.NanoTime": TIME,
    "time-millis": TIME,
    "time-micros": TIME,
    "io.debezium.data.Json": JSONB,
    "io.debezium.data.Uuid": UUID,
    "uuid": UUID,
}
PLAIN = {
    "boolean": BOOL,
    "int": INT4,
    "long": INT8,
    "float": FLOAT4,
    "double": FLOAT8,
    "string": TEXT,
    "bytes": BYTEA,
    "enum": TEXT,
    "fixed": BYTEA,
}
SIGNED_TIMES = ("io.debezium.connector.mysql", "io.debezium.connector.mariadb")  # namespaces of connectors with a TIME that is a duration
VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"


def resolved(schema: Schema) -> Schema:
    """Returns the schema with each reference to a named type replaced by the type.

    Raises 0A000 if a type contains itself.
    """
    types: dict[str, Any] = {}

    def go(s: Schema, space: str, inside: tuple[str, ...]) -> Schema:
        if isinstance(s, list):
            return [go(each, space, inside) for each in s]
        if isinstance(s, str):
            name = s if s in types or "." in s else f"{space}.{s}"
            if name not in types:
                return {"type": s}
            if name in inside:
                raise FeatureNotSupported(f"recursive Avro type {name} is not supported")
            return types[name]
        kind = s["type"]
        if not isinstance(kind, str):  # {"type": {"type": …}} or {"type": [ … ]}
            return go(kind, space, inside)
        if kind in ("record", "enum", "fixed"):
            own = s.get("namespace", s["name"].rpartition(".")[0] if "." in s["name"] else space)
            name = ".".join(filter(None, (own, s["name"].rpartition(".")[2])))
            out = types[name] = {**s, "name": s["name"].rpartition(".")[2], "namespace": own}
            if kind == "record":
                out["fields"] = []
                out["fields"] = [{**f, "type": go(f["type"], own, (*inside, name))} for f in s["fields"]]
            return out
        if kind == "array":
            return {**s, "items": go(s["items"], space, inside)}
        if kind == "map":
            return {**s, "values": go(s["values"], space, inside)}
        if f"{space}.{kind}" in types or kind in types:
            return go(kind, space, inside)
        return s

    return go(schema, "", ())


def parse(*texts: str) -> Schema:
    """Parses schemas and returns the last, resolved; it may refer to types of those before it."""
    return resolved([json.loads(t) for t in texts])[-1]


def written(schema: Schema) -> str:
    """Returns a resolved schema as text: a named type in full where it occurs first, then by name."""
    written_types: set[str] = set()

    def go(s: Schema) -> Schema:
        if isinstance(s, list):
            return [go(each) for each in s]
        kind = s["type"]
        if kind in ("record", "enum", "fixed"):
            name = ".".join(filter(None, (s.get("namespace"), s["name"])))
            if name in written_types:
                return name
            written_types.add(name)
            return {**s, "fields": [{**f, "type": go(f["type"])} for f in s["fields"]]} if kind == "record" else s
        if kind == "array":
            return {**s, "items": go(s["items"])}
        if kind == "map":
            return {**s, "values": go(s["values"])}
        return kind if set(s) == {"type"} else s

    return json.dumps(go(schema), separators=(",", ":"))


def present(schema: Schema) -> tuple[Schema, bool]:
    """Returns the only type besides null, and whether there is a null. Raises 0A000 if there are more."""
    if not isinstance(schema, list):
        return schema, schema["type"] == "null"
    others = branches(schema)
    if len(others) != 1:
        raise FeatureNotSupported(f"an Avro union of {len(others)} types beside null is not supported here")
    return others[0], len(others) < len(schema)


def branches(schema: Schema) -> list[Schema]:
    """Returns the types of a union besides null; for another schema, the schema itself."""
    return [s for s in (schema if isinstance(schema, list) else [schema]) if s["type"] != "null"]


def is_record(schema: Schema) -> bool:
    """Returns whether a schema is a record, or a union of one and null. Raises 0A000 for other unions."""
    return bool(present(schema)[0]["type"] == "record")


def fields(record: Schema) -> Mapping[str, Schema]:
    """Returns the types of a record's fields, by name."""
    return {f["name"]: f["type"] for f in present(record)[0]["fields"]}


def nullable(schema: Schema) -> Schema:
    """Returns the schema with null added, first in the union because the default is NULL."""
    return [{"type": "null"}, *branches(schema)]


def merged(old: Schema, new: Schema) -> Schema:
    """Adds the fields that only the record `new` has to the record `old`, at the end.

    They are NULL if a message lacks them. A field that `new` lacks, or where it allows null,
    becomes nullable. Types inside a field do not change.
    """
    old_fields, new_fields = fields(old), fields(new)
    merged_fields = []
    for field in present(old)[0]["fields"]:
        new_type = new_fields.get(field["name"])
        becomes_nullable = new_type is None or (len(branches(new_type)) < len(new_type) if isinstance(new_type, list) else False)
        merged_fields.append({**field, "type": nullable(field["type"]), "default": None} if becomes_nullable else field)
    for field in present(new)[0]["fields"]:
        if field["name"] not in old_fields:
            merged_fields.append({"name": field["name"], "type": nullable(field["type"]), "default": None})
    return {**present(old)[0], "fields": merged_fields}


def columns(record: Schema, *, signed_times: bool = False) -> tuple[Column, ...]:
    """Returns a column for each field of a record, several for a union of several types.

    `signed_times`: the connector's TIME is a duration.
    """
    out = []
    for name, schema in fields(record).items():
        if len(members := branches(schema)) > 1:
            out += _members(name, members, signed_times)
            continue
        try:
            type, nullable, spell = column(schema, signed_times=signed_times)
        except FeatureNotSupported as e:
            raise FeatureNotSupported(f'column "{name}": {e.message}', hint=e.hint) from None
        out.append(Column(name, type, nullable, spell))
    return tuple(out)


def _members(name: str, branches: list[Schema], signed_times: bool) -> list[Column]:
    """Returns a column for each type of a union: name1, name2, …; all but one are NULL in a row."""
    out = []
    for i, branch in enumerate(branches):
        type, spell = _type(branch, signed_times)
        out.append(Column(f"{name}{i + 1}", type, True, _of_member(spell, f"member{i}"), name))
    return out


def _of_member(spell: Spell, member: str) -> Spell:
    """Returns the conversion of a union to the stored form of one of its members."""
    return lambda union: spell(f"{union}.{member}")


def column(schema: Schema, *, signed_times: bool = False) -> tuple[Type, bool, Spell]:
    """Returns the type of a column, whether it may be NULL, and the conversion to its stored form."""
    inner, nullable = present(schema)
    type, spell = _type(inner, signed_times)
    return type, nullable, spell


def _type(schema: Schema, signed_times: bool) -> tuple[Type, Spell]:
    """Returns the type of a column, and the conversion to its stored form."""
    kind = schema["type"]
    name = schema.get("connect.name")
    if name == VARIABLE_DECIMAL:
        return NUMERIC, _same
    if kind in ("record", "map"):
        return JSONB, _json_of
    if kind == "array":
        items = branches(schema["items"])
        # PostgreSQL has no arrays of several types, and an array of arrays must be rectangular
        if len(items) != 1 or items[0]["type"] == "array":
            return JSONB, _json_of
        element, spell = _type(items[0], signed_times)
        if spell is _same:
            return element.array(), _same
        return element.array(), lambda x: f"transform({x}, e -> {spell('e')})"
    if kind == "null":
        raise FeatureNotSupported("a column that is always NULL is not supported in Avro")
    if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = int(schema["precision"]), int(schema.get("scale", 0))
        if precision > NUMERIC_PRECISION:
            raise FeatureNotSupported(f"a decimal of {precision} digits is not supported, at most {NUMERIC_PRECISION}")
        return Type("numeric", (precision, scale)), _same
    if kind == "fixed" and schema.get("logicalType") == "uuid":
        digits = r"^(.{8})(.{4})(.{4})(.{4})(.{12})$"
        return UUID, lambda x: f"regexp_replace(lower(hex({x})), '{digits}', '$1-$2-$3-$4-$5')"
    meaning = NAMED.get(str(name)) or NAMED.get(str(schema.get("logicalType")))
    if meaning is None or kind not in ("int", "long", "string"):
        small = kind == "int" and schema.get("connect.type") in ("int8", "int16")
        return (INT2, lambda x: f"CAST({x} AS SMALLINT)") if small else (PLAIN[kind], _same)
    if meaning == JSONB:
        return JSONB, jsonb_of_debezium
    if meaning == UUID:
        return UUID, uuid_of
    if meaning == INTERVAL or (meaning == TIME and signed_times):
        return INTERVAL, interval_of
    if meaning == TIME:
        return TIME, micros_of
    return meaning, _same


def _json_of(x: str) -> str:
    return jsonb_of(f"to_json({x}, map('ignoreNullFields', 'false'))")


def connectors(schema: Schema) -> Iterator[str]:
    """Yields the names in an envelope's schema that may identify the connector."""
    inner, _ = present(schema)
    for name, of in fields(inner).items():
        if name == "source":
            source, _ = present(of)
            yield from (str(source.get("namespace", "")), str(source.get("connect.name", "")))


def has_signed_times(envelope: Schema) -> bool:
    """Returns whether the envelope is from a connector with a TIME that is a duration."""
    return any(c.startswith(SIGNED_TIMES) for c in connectors(envelope))
