"""A query that was bound against the catalog: what it reads, what it gives, and the text DuckDB runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from lake.catalog import Catalog, Item
from lake.errors import ObjectNotInPrerequisiteState
from lake.failed import readable_at
from lake.types import FACTS, INT8, UNKNOWN, WEIGHT, Field, Type
from sql import plan
from sql.authorization import SELECT, Demand
from sql.bind import bind_query
from sql.duckdb import render
from sql.relations import once_each, walk
from sql.statements import QueryText, Select

KEPT = 2000  # bound queries; a client with its own literals in every statement must not fill memory

BY_OID = {f.oid: Type(f.name) for f in FACTS.values()} | {f.array_oid: Type(f.name, is_array=True) for f in FACTS.values() if f.array_oid}
# never before the time that is read: a clock that was set back is behind what the engine took for now
NOW = "(SELECT greatest(CAST(now() AS TIMESTAMPTZ), CAST(epoch_ms(t) AS TIMESTAMPTZ)) FROM clock)"
UNSPECIFIED = (0, FACTS["unknown"].oid)


@dataclass(frozen=True, slots=True)
class Prepared:
    """`relations`: ids of what it reads. `catalog_n`: the entry whose catalog it was bound against. `volatile`: it may change though no
    relation does. `sql`: over tables r<id>. `parameters`: types of $1, $2, … `failed_at`: the newest time at which all is readable if it
    reads views that have failed, otherwise None. `constants`: its long literals, parameters of `sql`. `used`: the numbers of the other
    parameters that `sql` has. `demands`: the privileges that it takes to run it."""

    columns: tuple[Field, ...]
    parameters: tuple[Type, ...]
    relations: frozenset[int]
    catalog_n: int
    sql: str
    query: plan.Query = field(repr=False)
    items: tuple[Item, ...] = field(repr=False)
    volatile: bool = False
    failed_at: int | None = None
    constants: tuple[plan.Value, ...] = field(default=(), repr=False)
    demands: tuple[Demand, ...] = ()
    used: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A catalog as a session sees it. `catalog_n`: the entry that made it. `scope`: what the meaning of names depends on besides: a key for
    whatever sessions share; None along the path that most have."""

    catalog: Catalog
    catalog_n: int
    scope: Hashable = None


class Statements:
    """Bound queries by text, parameter types and catalog. For any thread: long ones are not bound in the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, tuple[int, ...], int, Hashable], Prepared] = OrderedDict()

    def prepare(self, query: Select | QueryText | exp.Expression, oids: Sequence[int], seen: Seen) -> Prepared:
        tree, text = _tree(query)
        key = (text, tuple(oids), seen.catalog_n, seen.scope)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        made = bind(tree, oids, seen.catalog, seen.catalog_n)
        with self._lock:
            found = self._kept.setdefault(key, made)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return found


def bind(tree: QueryText, oids: Sequence[int], catalog: Catalog, catalog_n: int) -> Prepared:
    query = bind_query(tree, catalog, tuple(UNKNOWN if oid in UNSPECIFIED else BY_OID.get(oid, UNKNOWN) for oid in oids))
    relations = frozenset(scan.relation for scan in scans(query.plan))
    items = tuple(readable(catalog[r]) for r in sorted(relations))
    # of a plain view PostgreSQL tells the view's own columns, which the plan no longer knows
    columns = tuple(
        replace(column, origin=origin) if origin is not None and origin[0] in query.depends else column
        for column, origin in zip(query.columns, origins(query.plan), strict=True)
    )
    constants: list[plan.Value] = []
    text = render(query.plan, now=NOW, constants=constants)
    # what the plan reads is asked for even if the binder has noted nothing of it
    unnoted = relations - {d.item for d in query.demands}
    return Prepared(
        columns,
        query.parameters,
        relations,
        catalog_n,
        text,
        query,
        items,
        volatile=volatile(query.plan),
        failed_at=readable_at(items),
        constants=tuple(constants),
        used=numbers(query.plan),
        demands=(*query.demands, *(Demand(SELECT, r) for r in sorted(unnoted))),
    )


@once_each
def origins(relation: plan.Relation) -> list[tuple[int, int] | None]:
    """Which column of which relation each column is, as it stands there; None where it is computed, or comes through more than a filter."""
    match relation:
        case plan.Scan(relation=id, columns=columns):
            return [(id, number) for number in range(1, len(columns) + 1)]
        case plan.Project(input=input, expressions=expressions):
            below = origins(input)
            return [below[e.index] if isinstance(e, plan.Column) else None for e in expressions]
        case plan.Filter(input=input) | plan.Sort(input=input) | plan.Limit(input=input):
            return origins(input)
        case plan.Join(left=left, right=right, kind="inner" | "left" | "right" | "full" | "cross"):
            return [*origins(left), *origins(right)]
        case _:
            return [None] * len(relation.columns)


def readable(item: Item) -> Item:
    """The item if its rows can be read; 55000 otherwise."""
    if not item.stored:
        raise ObjectNotInPrerequisiteState(
            f'{item.kind} "{item.name}" is not stored, so it has no rows to read',
            hint="Make a materialized view of it, or create it with CREATE MATERIALIZED SOURCE.",
        )
    if not item.ready:
        raise ObjectNotInPrerequisiteState(
            f'{item.kind} "{item.name}" is still being filled', hint="It can be read when its CREATE statement has answered."
        )
    return item


def nodes(plan_or_part: object) -> Iterator[object]:
    """Every node of a plan, relations and scalars, each once."""
    seen: set[int] = set()
    waiting = [plan_or_part]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value
        elif getattr(type(value), "__module__", "") == plan.__name__ and id(value) not in seen:
            seen.add(id(value))
            yield value
            waiting += [getattr(value, name) for name in type(value).__dataclass_fields__]  # type: ignore[attr-defined]


def numbers(relation: plan.Relation) -> frozenset[int]:
    """Of the parameters that a plan has."""
    return frozenset(n.number for n in nodes(relation) if isinstance(n, plan.Parameter))


def scans(relation: plan.Relation) -> Iterator[plan.Scan]:
    return (node for node in walk(relation) if isinstance(node, plan.Scan))


def volatile(relation: plan.Relation) -> bool:
    return any(isinstance(n, plan.Call) and n.function.volatility != "immutable" for n in nodes(relation))


def linear(prepared: Prepared) -> plan.Relation | None:
    """The plan over *changes* of its one relation, with the weight as last column; None if the plan is more than filters and projections.

    Δ(σ(π(R))) = σ(π(ΔR)): filters and projections look at one row at a time, so they apply to the changes, weights carried along.
    """
    return None if prepared.volatile else _over_changes(prepared.query.plan)


def _over_changes(relation: plan.Relation) -> plan.Relation | None:
    match relation:
        case plan.Scan(columns=columns):
            return replace(relation, columns=(*columns, Field(WEIGHT, INT8, False)), key=(0,))
        case plan.Filter(input=input):
            below = _over_changes(input)
            return None if below is None else replace(relation, input=below)
        case plan.Project(input=input, expressions=expressions, columns=columns):
            below = _over_changes(input)
            if below is None:
                return None
            weight = plan.Column(len(below.columns) - 1, INT8)
            return replace(relation, input=below, expressions=(*expressions, weight), columns=(*columns, Field(WEIGHT, INT8, False)))
        case _:
            return None


def _tree(query: Select | QueryText | exp.Expression) -> tuple[QueryText, str]:
    if isinstance(query, Select):
        query = query.query
    if isinstance(query, QueryText):
        return query, query.text
    return QueryText(query.sql("postgres"), 0, query), query.sql("postgres")
