"""Arrays, maps and structures, which are jsonb: access to their parts, and constructors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailgate.lake.errors import DatatypeMismatch, DuplicateColumn, FeatureNotSupported, UndefinedColumn
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import Expression, TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.typed.coercion import of_one_type
from tailgate.sql.ksqldb.typed.values import Typed, coerced, part, to_json

CASTS = "Cast a NULL to its type."
NUMBER = re.compile(r"[0-9]+|\(-[0-9]+\)")


def fields(structure: Typed, position: int) -> tuple[str, ...]:
    """Returns the names of the fields of a structure. Raises 42804."""
    if structure.type.name != "struct":
        raise DatatypeMismatch(f"Expected STRUCT type, got: {types.in_schema(structure.type)}", position=position)
    return structure.type.fields


def field(structure: Typed, name: str | None, shown: str, position: int) -> Typed:
    """Returns structure->name. Names match regardless of case; an equal one comes first. `shown`: the text of the structure.

    Raises 42703 or 42804.
    """
    names = fields(structure, position)
    if name is None:
        raise FeatureNotSupported("->* is not supported here", hint="Use it as an item of SELECT.", position=position)
    spelling = next((f for f in names if f == name), None) or next((f for f in names if f.lower() == name.lower()), None)
    if spelling is None:
        raise UndefinedColumn(f"Could not find field '{ksqldb_name(name)}' in '{shown}'.", position=position)
    return part(structure, quoted_text(ksqldb_name(spelling)), structure.type.arguments[names.index(spelling)])


def subscript(collection: Typed, index: Typed, position: int) -> Typed:
    """Returns the value of a key of a map, or an element of an array: from 1, or from -1 backwards. Raises 42804."""
    may_fail = collection.may_fail or index.may_fail
    if collection.type.name == "map" and index.type in (types.VARCHAR, types.UNKNOWN):
        return part(collection, coerced(index, types.VARCHAR).text, collection.type.arguments[1], may_fail=may_fail)
    if collection.type.name == "array" and index.type.name in ("int", "bigint"):
        return part(collection, _from_zero(index.text), collection.type.arguments[0], may_fail=may_fail)
    raise DatatypeMismatch(
        f"Subscript of type {types.in_schema(index.type)} is not supported for {types.in_schema(collection.type)}", position=position
    )


def _from_zero(index: str) -> str:
    """Returns the index of an element as -> counts it: from 0, or from -1 backwards."""
    if NUMBER.fullmatch(index):
        number = int(index.strip("()"))
        return f"({number})" if number < 0 else str(number - 1) if number else "CAST(NULL AS integer)"
    return f"CAST(CASE WHEN {index} > 0 THEN {index} - 1 WHEN {index} < 0 THEN {index} END AS integer)"


def array_of(values: Sequence[Typed], expressions: Sequence[Expression], position: int) -> Typed:
    """Returns ARRAY[values]. Raises 42804 without values, or if they have no common type."""
    if not values:
        raise DatatypeMismatch("Array constructor cannot be empty. Please supply at least one element.", position=position)
    if all(value.type == types.UNKNOWN for value in values):
        raise DatatypeMismatch("Cannot construct an array with all NULL elements", hint=CASTS, position=position)
    elements, type = of_one_type(values, expressions, position)
    return Typed(f"jsonb_build_array({', '.join(map(to_json, elements))})", TypeName("array", arguments=(type,)), _may_fail(values))


def map_of(keys: Sequence[Typed], values: Sequence[Typed], expressions: Sequence[Expression], position: int) -> Typed:
    """Returns MAP(key := value, …). Raises 42804 without entries, or for other keys than texts."""
    if not values:
        raise DatatypeMismatch("Map constructor cannot be empty. Please supply at least one key value pair.", position=position)
    if any(key.type != types.VARCHAR for key in keys):
        raise DatatypeMismatch("Only STRING keys are supported in maps", position=position)
    if all(value.type == types.UNKNOWN for value in values):
        raise DatatypeMismatch("Cannot construct a map with all NULL values", hint=CASTS, position=position)
    entries, type = of_one_type(values, expressions, position)
    members = ", ".join(f"CAST({key.text} AS text), {to_json(value)}" for key, value in zip(keys, entries, strict=True))
    return Typed(f"jsonb_build_object({members})", TypeName("map", arguments=(types.VARCHAR, type)), may_fail=True)


def struct_of(names: Sequence[str], values: Sequence[Typed], position: int) -> Typed:
    """Returns STRUCT(name := value, …). Raises 42701 for a name that occurs twice."""
    for n, name in enumerate(names):
        if name in names[:n]:
            raise DuplicateColumn(f"Duplicate field names found in STRUCT: {ksqldb_name(name)}", position=position)
    typed = [coerced(v, types.VARCHAR) if v.type == types.UNKNOWN else v for v in values]
    members = ", ".join(f"{quoted_text(ksqldb_name(name))}, {to_json(value)}" for name, value in zip(names, typed, strict=True))
    type = TypeName("struct", arguments=tuple(v.type for v in typed), fields=tuple(names))
    return Typed(f"jsonb_build_object({members})", type, _may_fail(values))


def _may_fail(values: Sequence[Typed]) -> bool:
    return any(v.may_fail for v in values)
