"""Recognizes look-ups: `SELECT columns FROM relation WHERE column = value [AND …]`, by a key or an index of the relation.

bound plan ──► equalities: column → values, one or those of IN ──► the key or index with only such columns ──► Lookup
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pyarrow as pa

from tailgate.gateway.encode.remembered import Encoding
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.indexes import KEY_TYPES, indexes
from tailgate.lake.types import Field, Type
from tailgate.sql import plan
from tailgate.values.codec.style import Style
from tailgate.values.raw import values as raw_values

Constant = plan.Literal | plan.Parameter
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

    `fields`: all columns of the relation. `constants`: for each column of the way, the values to find; `types`: the types of these
    columns. `rest`: conditions on other columns, each with one value. `columns`: positions of the projected columns. `encodings`:
    a cache of row encodings by format codes and style.
    """

    way: AccessPath
    fields: tuple[Field, ...]
    constants: tuple[tuple[Constant, ...], ...]
    rest: tuple[tuple[int, Constant], ...]
    columns: tuple[int, ...]
    types: tuple[Type, ...]
    encodings: dict[tuple[tuple[int, ...], Style], Encoding] = field(default_factory=dict, compare=False, repr=False)

    def keys(self, values: Iterable[object]) -> list[tuple[Any, ...]]:
        """Returns the distinct keys to find, in raw form. Omits NULL, which equals nothing. `values`: of the parameters."""
        values = tuple(values)
        parts = [
            [raw_key(v, type) for g in constants if (v := _value(g, values)) is not None]
            for constants, type in zip(self.constants, self.types, strict=True)
        ]
        if len(parts) == 1 and len(parts[0]) == 1:
            return [(parts[0][0],)]
        return list(dict.fromkeys(product(*parts)))

    def others(self, values: Iterable[object]) -> list[tuple[int, Any]] | None:
        """Returns the conditions of `rest` as (column, raw value), or None if a value is NULL and no row can match."""
        if not self.rest:
            return []
        values = tuple(values)
        conditions = []
        for column, constant in self.rest:
            value = _value(constant, values)
            if value is None:
                return None
            conditions.append((column, raw_key(value, self.fields[column].type)))
        return conditions


def _value(constant: Constant, values: tuple[object, ...]) -> object:
    return constant.value if isinstance(constant, plan.Literal) else values[constant.number - 1]


@dataclass(frozen=True, slots=True)
class Equalities:
    """The conditions and the projection of a query over one relation.

    `constants`: (column, values), where the column must equal one of the values. `columns`: positions of the projected columns.
    """

    scan: plan.Scan
    constants: tuple[tuple[int, tuple[Constant, ...]], ...]
    columns: tuple[int, ...]


def equalities_of(relation: plan.Relation) -> Equalities | None:
    """Returns the equalities of a query, or None if it cannot be a look-up."""
    match relation:
        case plan.Project(input=plan.Filter(input=plan.Scan() as scan, condition=condition), expressions=expressions):
            pass
        case _:
            return None
    columns = tuple(c.index for c in expressions if isinstance(c, plan.Column))
    constants_by_column = _equalities(condition)
    if len(columns) != len(expressions) or constants_by_column is None or sum(map(len, constants_by_column.values())) > KEYS_MAX:
        return None
    return Equalities(scan, tuple(constants_by_column.items()), columns)


def lookup_of(equalities: Equalities | None, catalog: Catalog) -> Lookup | None:
    """Returns the look-up to which a query amounts, or None if no key or index serves it. Prefers the relation's key."""
    if equalities is None:
        return None
    scan, constants_by_column = equalities.scan, dict(equalities.constants)
    ways = [w for w in _ways(scan, catalog) if set(w.columns) <= constants_by_column.keys()]
    if not ways:
        return None
    way = max(ways, key=lambda w: (not w.declared, len(w.columns)))
    rest = tuple((c, values) for c, values in constants_by_column.items() if c not in way.columns)
    count = 1
    for column in way.columns:
        count *= len(constants_by_column[column])
    if count > KEYS_MAX or any(len(values) > 1 for _, values in rest):
        return None
    constants = tuple(constants_by_column[c] for c in way.columns)
    types = tuple(scan.columns[i].type for i in way.columns)
    return Lookup(way, scan.columns, constants, tuple((c, values[0]) for c, values in rest), equalities.columns, types)


def _ways(scan: plan.Scan, catalog: Catalog) -> Iterable[AccessPath]:
    if scan.key:
        yield AccessPath(scan.relation, scan.key, scan.key, len(scan.columns))
    for item in indexes(catalog, scan.relation):
        if not item.computed:
            yield AccessPath(scan.relation, tuple(dict.fromkeys(item.positions)), scan.key, len(scan.columns), declared=True)


def _equalities(condition: plan.Scalar) -> dict[int, tuple[Constant, ...]] | None:
    """Returns the values that each column may have, or None if the condition is not a conjunction of equalities."""
    constants_by_column: dict[int, tuple[Constant, ...]] = {}
    for part in condition.arguments if isinstance(condition, plan.And) else (condition,):
        column, constants = _equality(part)
        if column is None or column.index in constants_by_column:
            return None
        if column.type.is_array or column.type.name not in KEY_TYPES or any(_family(g.type) != _family(column.type) for g in constants):
            return None
        constants_by_column[column.index] = constants
    return constants_by_column


def _equality(part: plan.Scalar) -> tuple[plan.Column | None, tuple[Constant, ...]]:
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
    constants = tuple(i for i in items if isinstance(i, (plan.Literal, plan.Parameter)))
    return (column, constants) if isinstance(column, plan.Column) and len(constants) == len(items) else (None, ())


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
    """Converts a stored value to the raw form of `values.raw`."""
    if type.name in ("int2", "int4", "int8", "bool"):
        return value
    if isinstance(value, str):
        return value.encode()
    return raw_values(pa.array([value], type.arrow), type)[0]
