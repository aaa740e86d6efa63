"""Debezium's envelope in an Avro schema, without the fields that are not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailgate.engine.plan.sources import avro, debezium
from tailgate.lake.errors import InvalidObjectDefinition


def envelope_of(schema: Any, subject: str, *, before: bool) -> Any:
    """Returns Debezium's envelope without the fields that are not read.

    `before`: whether the image of the row before the change is read. Raises 42P17 if the schema is
    not an envelope or lacks this image.
    """
    if not avro.is_record(schema) or not _is_envelope(set(avro.fields(schema))) or not avro.is_record(avro.fields(schema)["after"]):
        raise InvalidObjectDefinition(
            f'the schema of "{subject}" is not a Debezium envelope', detail="A record with the fields after, and op or before, is expected."
        )
    if before and "before" not in avro.fields(schema):
        raise InvalidObjectDefinition(
            f'the schema of "{subject}" has no field before',
            detail="The messages have no key, so the row before a change is needed to remove it.",
        )
    image = ["before"] if before else []
    out = _with_fields(schema, [*image, "after", "source", "op"])
    for field in out["fields"]:
        if field["name"] == "source":
            inner, _ = avro.present(field["type"])
            field["type"] = _with_fields(inner, list(debezium.SOURCE))
    return out


def _is_envelope(fields: set[str]) -> bool:
    """Returns whether a record with these fields is an envelope.

    Envelopes of Debezium have op. Those of sinks do not.
    """
    return "after" in fields and bool(fields & {"op", "before"})


def _with_fields(record: Any, names: list[str]) -> Any:
    """Returns a record's schema with only the fields of these names."""
    inner: Mapping[str, Any] = avro.present(record)[0]
    return {**inner, "fields": [dict(f) for f in inner["fields"] if f["name"] in names]}
