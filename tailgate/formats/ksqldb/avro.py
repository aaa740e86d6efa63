"""The Avro record of a value: all fields are nullable, and times and timestamps have milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.formats.events import avro
from tailgate.formats.events.avro import MILLISECONDS
from tailgate.lake.types import INT4, Field, Type

NAME = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
MICROS_PER_MILLISECOND = 1000
TIME = {"type": "int", "logicalType": "time-millis"}


def schema(columns: Sequence[Field], *, any_case: bool = False) -> dict[str, Any]:
    """Returns the schema of a record. `columns`: with ksqlDB's names. `any_case`: a reader's schema, for fields in lower case, too."""
    record = avro.upsert([_field(column) for column in columns], NAME)
    fields = []
    for column, field in zip(columns, record["fields"], strict=True):
        type = ["null", TIME] if column.type.name == "time" else field["type"]
        lower = field["name"].lower()
        aliases = {"aliases": [lower]} if any_case and lower != field["name"] else {}
        fields.append({**field, "type": type, "default": None, **aliases})
    return {**record, "fields": fields}


def stored(columns: Sequence[Field], arrays: Sequence[pa.Array]) -> tuple[list[Field], list[pa.Array]]:
    """Returns the columns of a record and their values, as an encoder of Avro takes them."""
    values = [
        pc.divide(array, MICROS_PER_MILLISECOND).cast(pa.int32()) if column.type.name == "time" else array
        for column, array in zip(columns, arrays, strict=True)
    ]
    return [Field(c.name, INT4) if c.type.name == "time" else _field(c) for c in columns], values


def _field(column: Field) -> Field:
    type: Type = column.type
    if type.name in ("timestamp", "timestamptz"):
        type = replace(type, modifiers=(MILLISECONDS,))
    return Field(column.name, type, True)
