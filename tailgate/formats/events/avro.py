"""Avro schemas of a relation's events, with Materialize's names and structure.

    DEBEZIUM   value: record envelope {before: ["null", record row {columns}], after: ["null", "row"]}
    UPSERT     value: record envelope {columns}
    both       key, if the sink has one: record row {its columns}

A nullable column is ["null", t], null first. Subjects are `{topic}-value` and `{topic}-key`.

A fixed numeric has the digits and the scale of its stored form (tailgate/lake/types), a general one is Debezium's
VariableScaleDecimal.

Source: Materialize, "CREATE SINK: Kafka", Avro schemas; its test kafka-avro-sinks.td.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tailgate.lake.types import Field, Type

VALUE_NAME, KEY_NAME, ROW_NAME = "envelope", "row", "row"

# Namespace of the types that need a name in Avro. It is Materialize's, so that Tailgate can take over a topic.
NAMESPACE = "com.materialize.sink"

MILLISECONDS = 3  # timestamp(0) to timestamp(3) are written as milliseconds, others as microseconds

JSON = {"type": "string", "connect.name": "io.debezium.data.Json"}
VARIABLE_SCALE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
UUID = {"type": "string", "logicalType": "uuid"}

SIMPLE: dict[str, Any] = {
    "date": {"type": "int", "logicalType": "date"},
    "time-micros": {"type": "long", "logicalType": "time-micros"},
    "uuid": UUID,
    "json": JSON,
}


def in_milliseconds(type: Type) -> bool:
    """Returns whether a timestamp's declared precision needs no microseconds."""
    return bool(type.modifiers) and type.modifiers[0] <= MILLISECONDS


def debezium(columns: Sequence[Field], name: str = VALUE_NAME) -> dict[str, Any]:
    """Returns the schema of values with ENVELOPE DEBEZIUM."""
    row = _record(columns, ROW_NAME, _Names())
    return {
        "type": "record",
        **_full_name(name),
        "fields": [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", ROW_NAME]}],
    }


def upsert(columns: Sequence[Field], name: str = VALUE_NAME) -> dict[str, Any]:
    """Returns the schema of values with ENVELOPE UPSERT."""
    return _record(columns, name, _Names())


def key(columns: Sequence[Field], name: str = KEY_NAME) -> dict[str, Any]:
    """Returns the schema of keys."""
    return _record(columns, name, _Names())


def _full_name(name: str) -> dict[str, str]:
    """Splits a full name `a.b.c` into name and namespace.

    >>> _full_name("abc.def.ghi")
    {'name': 'ghi', 'namespace': 'abc.def'}
    """
    namespace, _, last = name.rpartition(".")
    return {"name": last, "namespace": namespace} if namespace else {"name": last}


def field_names(names: Sequence[str]) -> list[str]:
    """Returns Avro names for columns: unsupported characters become `_`, a leading digit gets a `_`, duplicates get a number.

    >>> field_names(["a b", "a_b", "2x", "", "a_b"])
    ['a_b', 'a_b1', '_2x', '_', 'a_b2']
    """
    out: list[str] = []
    used: set[str] = set()
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not stem or stem[0].isdigit():
            stem = "_" + stem
        candidate, number = stem, 0
        while candidate in used:
            number += 1
            # without `_`, a digit at the end would become part of the number
            candidate = f"{stem}_{number}" if stem[-1].isdigit() else f"{stem}{number}"
        used.add(candidate)
        out.append(candidate)
    return out


class _Names:
    """The types defined so far in one schema: Avro allows each definition only once."""

    def __init__(self) -> None:
        self.records = 0
        self.interval = self.numeric = False


def _record(columns: Sequence[Field], name: str, names: _Names) -> dict[str, Any]:
    fields = [
        {"name": field_name, "type": _nullable(field.type, field.nullable, names)}
        for field_name, field in zip(field_names([c.name for c in columns]), columns, strict=True)
    ]
    return {"type": "record", **_full_name(name), "fields": fields}


def _nullable(type: Type, nullable: bool, names: _Names) -> Any:
    inner = _type(type, names)
    return ["null", inner] if nullable else inner


def _type(type: Type, names: _Names) -> Any:
    """Returns the Avro type of a PostgreSQL type."""
    if type.is_array:
        return {"type": "array", "items": _nullable(type.element, True, names)}
    if type.name == "record":
        name = f"{NAMESPACE}.record{names.records}"
        names.records += 1
        return _record(type.fields, name, names)
    if type.name == "interval":
        if names.interval:
            return f"{NAMESPACE}.interval"
        names.interval = True
        return {"type": "fixed", "name": "interval", "namespace": NAMESPACE, "size": 16}
    if type.general:
        if names.numeric:
            return VARIABLE_SCALE_DECIMAL
        names.numeric = True
        namespace, _, name = VARIABLE_SCALE_DECIMAL.rpartition(".")
        fields = [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}]
        return {"type": "record", "name": name, "namespace": namespace, "connect.name": VARIABLE_SCALE_DECIMAL, "fields": fields}
    if type.name == "numeric":
        precision, scale = type.decimal
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if type.name in ("timestamp", "timestamptz"):
        return {"type": "long", "logicalType": "timestamp-millis" if in_milliseconds(type) else "timestamp-micros"}
    avro = type.facts.avro
    return SIMPLE.get(avro, avro)
