"""Custom types: a name that CREATE TYPE gives to another type.

A statement gets the types when it is executed. Items and queries have the types and not their names, so DROP TYPE changes none of them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from tailgate.lake.catalog import Catalog, CustomType
from tailgate.lake.catalog.names import Name
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, type_name
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.types import BUILT_IN

Value = TypeVar("Value")


def with_types(value: Value, catalog: Catalog) -> Value:
    """Returns a statement or query with the types that the names of custom types stand for. Unknown names stay as they are."""
    return cast(Value, _expanded(value, catalog)) if any(catalog.each(CustomType)) else value


def definition(item: CustomType) -> TypeName:
    """Returns the type that a custom type stands for."""
    return type_name(KsqldbCursor(item.definition))


def _expanded(value: Any, catalog: Catalog) -> Any:
    if isinstance(value, tuple):
        parts = tuple(_expanded(part, catalog) for part in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if isinstance(value, TypeName) and value.name not in BUILT_IN:
        item = catalog.find(Name(value.name), "type")
        return replace(definition(item), position=value.position) if isinstance(item, CustomType) else value
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {f.name: new for f in fields(value) if (new := _expanded(old := getattr(value, f.name), catalog)) is not old}
    return replace(value, **changes) if changes else value
