"""Names and types that the inference from all kinds of schemas shares. Names are those of the fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name

Columns: TypeAlias = tuple[tuple[str, TypeName], ...]  # names of the catalog


def columns(fields: Iterable[tuple[str, TypeName | None]]) -> Columns:
    """Returns the columns of fields. Those without a type are left out."""
    return tuple((catalog_name(name), type) for name, type in fields if type is not None)


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


def in_upper_case(name: str, type: TypeName) -> tuple[str, TypeName]:
    """Returns a column with its name, and those of the fields of its structures, in upper case."""
    return _upper(name), _fields_in_upper_case(type)


def _fields_in_upper_case(type: TypeName) -> TypeName:
    return replace(type, arguments=tuple(map(_fields_in_upper_case, type.arguments)), fields=tuple(map(_upper, type.fields)))


def _upper(name: str) -> str:
    return catalog_name(ksqldb_name(name).upper())
