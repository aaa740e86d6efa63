"""Functional dependency: GROUP BY a primary key allows any column of its table in the select list.

Source: PostgreSQL 15, check_functional_grouping() in src/backend/catalog/pg_constraint.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tailgate.lake.catalog import Catalog
from tailgate.sql.binder.grouping import Groups, aggregate, windowed
from tailgate.sql.plan import Column, Filter, Join, Project, Relation, Scalar, Scan
from tailgate.sql.plan.rewriting import parts
from tailgate.sql.plan.subqueries import dependent

KEYED = ("table", "source")


def with_identified(groups: Groups, plan: Relation, scalars: Iterable[Scalar], catalog: Catalog) -> Groups:
    """Adds keys for the columns that the primary keys in GROUP BY determine.

    Only columns that the expressions read are added. Groups with several grouping sets are returned
    unchanged.
    """
    key_columns = frozenset(k.index for k in groups.keys if isinstance(k, Column))
    if not key_columns or groups.sets != (frozenset(range(len(groups.keys))),):
        return groups
    dependent_columns = {i for key, columns in _keyed(plan, 0, catalog) if key <= key_columns for i in columns}
    more = dict.fromkeys(c for s in scalars for c in _loose(s, groups.keys) if c.index in dependent_columns - key_columns)
    keys = (*groups.keys, *more)
    return replace(groups, keys=keys, sets=(frozenset(range(len(keys))),)) if more else groups


def _keyed(plan: Relation, start: int, catalog: Catalog) -> Iterator[tuple[frozenset[int], range]]:
    """Yields the indexes of the key and of all columns of each table of FROM with a key."""
    if (inner := dependent(plan)) is not None:
        yield from _keyed(inner.left, start, catalog)
        return
    match plan:
        case Scan(relation=relation, key=key) if key and catalog[relation].kind in KEYED:
            yield frozenset(start + k for k in key), range(start, start + len(plan.columns))
        case Project(input=Scan(relation=relation, key=key) as scan) if key and catalog[relation].kind in KEYED:
            # FROM leaves out the columns that ALTER TABLE has dropped
            present = [i for i, column in enumerate(catalog[relation].columns[: len(scan.columns)]) if not column.is_dropped]
            if len(present) < len(scan.columns) and [e.index for e in plan.expressions if isinstance(e, Column)] == present:
                yield frozenset(start + present.index(k) for k in key), range(start, start + len(present))
        case Filter(input=input):
            yield from _keyed(input, start, catalog)
        case Join(left=left, right=right):
            yield from _keyed(left, start, catalog)
            yield from _keyed(right, start + len(left.columns), catalog)
        case _:
            return


def _loose(scalar: Scalar, keys: tuple[Scalar, ...]) -> Iterator[Column]:
    """Yields the columns that a scalar reads outside of keys and aggregates."""
    if scalar in keys or aggregate(scalar) is not None:
        return
    if isinstance(scalar, Column):
        yield scalar
        return
    window = windowed(scalar)
    for part in parts(scalar) if window is None else window.scalars:
        yield from _loose(part, keys)
