"""Recognizes look-ups: `SELECT columns FROM relation WHERE column = value [AND …]`, by a key or an index of the relation.

bound plan ──► equalities: column → values, one or those of IN ──► the key or index with only such columns ──► Lookup
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pyarrow as pa

from tailgate.gateway.encode.raw import values as raw_values
from tailgate.gateway.encode.remembered import Encoding
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.indexes import KEY_TYPES, indexes
from tailgate.lake.types import Field, Type
from tailgate.sql import plan
from tailgate.values.style import Style

Given = plan.Literal | plan.Parameter
KEYS_MAX = 1000  # keys that one statement may look up with IN; DuckDB scans for more


@dataclass(frozen=True, slots=True)
class AccessPath:
    """The columns by which a relation can be looked up.

    `key`: the columns of the relation's unique key, None if rows may be equal. `width`: the number of the relation's columns, which
    may grow. `declared`: the columns are those of a CREATE INDEX.
    """

    relation: int
    columns: tuple[int, ...]
    key: tuple[int, ...] | None
    width: int
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """A query that reads a relation's rows by key.

    `fields`: all columns of the relation. `given`: for each column of the way, the values to find; `types`: the types of these
    columns. `rest`: conditions on other columns, each with one value. `columns`: positions of the projected columns. `encodings`:
    a cache of row encodings by format codes and style.
    """

    way: AccessPath
    fields: tuple[Field, ...]
    given: tuple[tuple[Given, ...], ...]
    rest: tuple[tuple[int, Given], ...]
    columns: tuple[int, ...]
    types: tuple[Type, ...]
    encodings: dict[tuple[tuple[int, ...], Style], Encoding] = field(default_factory=dict, compare=False, repr=False)

    def keys(self, values: Iterable[object]) -> list[tuple[Any, ...]]:
        """Returns the distinct keys to find, in raw form. Omits NULL, which equals nothing. `values`: of the parameters."""
        values = tuple(values)
        parts = [
            [raw_key(v, type) for g in given if (v := _value(g, values)) is not None]
            for given, type in zip(self.given, self.types, strict=True)
        ]
        if len(parts) == 1 and len(parts[0]) == 1:
            return [(parts[0][0],)]
        return list(dict.fromkeys(product(*parts)))

    def others(self, values: Iterable[object]) -> list[tuple[int, Any]] | None:
        """Returns the conditions of `rest` as (column, raw value), or None if a value is NULL and no row can match."""
        if not self.rest:
            return []
        values = tuple(values)
        found = []
        for column, given in self.rest:
            value = _value(given, values)
            if value is None:
                return None
            found.append((column, raw_key(value, self.fields[column].type)))
        return found


def _value(given: Given, values: tuple[object, ...]) -> object:
    return given.value if isinstance(given, plan.Literal) else values[given.number - 1]


@dataclass(frozen=True, slots=True)
class Equalities:
    """The conditions and the projection of a query over one relation.

    `found`: (column, values), where the column must equal one of the values. `columns`: positions of the projected columns.
    """

    scan: plan.Scan
    found: tuple[tuple[int, tuple[Given, ...]], ...]
    columns: tuple[int, ...]


def equalities_of(relation: plan.Relation) -> Equalities | None:
    """Returns the equalities of a query, or None if it cannot be a look-up."""
    match relation:
        case plan.Project(input=plan.Filter(input=plan.Scan() as scan, condition=condition), expressions=expressions):
            pass
        case _:
            return None
    columns = tuple(c.index for c in expressions if isinstance(c, plan.Column))
    found = _equalities(condition)
    if len(columns) != len(expressions) or found is None or sum(map(len, found.values())) > KEYS_MAX:
        return None
    return Equalities(scan, tuple(found.items()), columns)


def lookup_of(equalities: Equalities | None, catalog: Catalog) -> Lookup | None:
    """Returns the look-up to which a query amounts, or None if no key or index serves it. Prefers the relation's key."""
    if equalities is None:
        return None
    scan, found = equalities.scan, dict(equalities.found)
    ways = [w for w in _ways(scan, catalog) if set(w.columns) <= found.keys()]
    if not ways:
        return None
    way = max(ways, key=lambda w: (not w.declared, len(w.columns)))
    rest = tuple((c, given) for c, given in found.items() if c not in way.columns)
    count = 1
    for column in way.columns:
        count *= len(found[column])
    if count > KEYS_MAX or any(len(given) > 1 for _, given in rest):
        return None
    given = tuple(found[c] for c in way.columns)
    types = tuple(scan.columns[i].type for i in way.columns)
    return Lookup(way, scan.columns, given, tuple((c, values[0]) for c, values in rest), equalities.columns, types)


def _ways(scan: plan.Scan, catalog: Catalog) -> Iterable[AccessPath]:
    if scan.key:
        yield AccessPath(scan.relation, scan.key, scan.key, len(scan.columns))
    for item in indexes(catalog, scan.relation):
        yield AccessPath(scan.relation, tuple(dict.fromkeys(item.positions)), scan.key, len(scan.columns), declared=True)


def _equalities(condition: plan.Scalar) -> dict[int, tuple[Given, ...]] | None:
    """Returns the values that each column may have, or None if the condition is not a conjunction of equalities."""
    found: dict[int, tuple[Given, ...]] = {}
    for part in condition.arguments if isinstance(condition, plan.And) else (condition,):
        column, given = _equality(part)
        if column is None or column.index in found:
            return None
        if column.type.is_array or column.type.name not in KEY_TYPES or any(_family(g.type) != _family(column.type) for g in given):
            return None
        found[column.index] = given
    return found


def _equality(part: plan.Scalar) -> tuple[plan.Column | None, tuple[Given, ...]]:
    match part:
        case plan.Call(function=function, arguments=(left, right)) if function.name == "=" and function.kind == "operator":
            column, value = _same(left), _same(right)
            if isinstance(value, plan.Column):
                column, value = value, column
            items: tuple[plan.Scalar, ...] = (value,)
        case plan.InList(argument=argument, items=items):
            column, items = _same(argument), tuple(map(_same, items))
        case _:
            return None, ()
    given = tuple(i for i in items if isinstance(i, (plan.Literal, plan.Parameter)))
    return (column, given) if isinstance(column, plan.Column) and len(given) == len(items) else (None, ())


_FAMILIES = {"int2": "integer", "int4": "integer", "int8": "integer", "varchar": "text"}


def _family(type: Type) -> str:
    """Returns the group of types that represent equal values by the same raw value."""
    return _FAMILIES.get(type.name, type.name) + ("[]" if type.is_array else "")


def _same(scalar: plan.Scalar) -> plan.Scalar:
    """Removes a cast that keeps the value: between integers, or between text and varchar."""
    match scalar:
        case plan.Call(function=function, arguments=(plan.Column() | plan.Literal() | plan.Parameter() as inner,), type=type):
            if (
                function.kind == "cast"
                and not type.modifiers
                and _family(inner.type) == _family(type)
                and _family(type) in ("integer", "text")
            ):
                return inner
    return scalar


def raw_key(value: object, type: Type) -> Any:
    """Converts a stored value to the raw form of `encode.raw`."""
    if type.name in ("int2", "int4", "int8", "bool"):
        return value
    if isinstance(value, str):
        return value.encode()
    return raw_values(pa.array([value], type.arrow), type)[0]
