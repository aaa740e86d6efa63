"""Names and types that the inference from all kinds of schemas shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import catalog_name

Columns: TypeAlias = tuple[tuple[str, TypeName], ...]  # names of the catalog


def column_name(field: str) -> str:
    """Returns the catalog's name for a field of a schema."""
    return catalog_name(field.upper())


def columns(fields: Iterable[tuple[str, TypeName | None]]) -> Columns:
    """Returns the columns of fields. Those without a type are left out."""
    return tuple((column_name(name), type) for name, type in fields if type is not None)


def array(element: TypeName | None) -> TypeName | None:
    return None if element is None else TypeName("array", arguments=(element,))


def map_of(value: TypeName | None) -> TypeName | None:
    """Returns the map with values of a type, whose keys are VARCHAR."""
    return None if value is None else TypeName("map", arguments=(types.VARCHAR, value))


def struct(fields: Iterable[tuple[str, TypeName | None]]) -> TypeName | None:
    """Returns the structure of fields, None without fields."""
    of_fields = columns(fields)
    names = tuple(name for name, _ in of_fields)
    return TypeName("struct", arguments=tuple(type for _, type in of_fields), fields=names) if names else None
