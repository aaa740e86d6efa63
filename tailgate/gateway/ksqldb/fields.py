"""Columns and their types as ksqlDB's HTTP API describes them: objects with a name and a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS
from tailgate.sql.ksqldb.types import shown

Entity = dict[str, Any]


def fields_of(columns: Mapping[str, TypeName], keys: Sequence[str]) -> list[Entity]:
    """Returns columns, those in the key first, without the bounds of the windows in the key."""
    fields = [
        {"name": ksqldb_name(name), "schema": schema(type), **({"type": "KEY"} if name in keys else {})}
        for name, type in columns.items()
        if name not in WINDOW_BOUNDS or WINDOW_BOUNDS[0] not in keys
    ]
    return sorted(fields, key=lambda field: "type" not in field)  # sorting is stable


def schema(type: TypeName) -> Entity:
    """Returns the schema of a type.

    >>> schema(TypeName("decimal", (4, 2)))
    {'type': 'DECIMAL', 'fields': None, 'memberSchema': None, 'parameters': {'precision': 4, 'scale': 2}}
    """
    name = {"varchar": "STRING"}.get(type.name, shown(TypeName(type.name)) if type.name == "int" else type.name.upper())
    described: Entity = {"type": name, "fields": None, "memberSchema": None}
    if type.name == "struct":
        described["fields"] = [{"name": ksqldb_name(n), "schema": schema(t)} for n, t in zip(type.fields, type.arguments, strict=True)]
    elif type.arguments:
        described["memberSchema"] = schema(type.arguments[-1])
    if type.numbers:
        described["parameters"] = dict(zip(("precision", "scale"), type.numbers, strict=False))
    return described
