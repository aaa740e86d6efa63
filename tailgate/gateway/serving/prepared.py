"""A bound query: the relations it reads, its result columns, and its DuckDB SQL.

Binding depends only on the text and the catalog. It runs in the event loop or, if it takes long, in
a worker process (`gateway.workers`). The worker also computes all properties of the plan that are
needed later, so a large plan can stay pickled.
"""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from tailgate.gateway.catalog.catalog_query import JOINS_MAX, CatalogQuery, catalog_query, catalog_tree, is_catalog_query, too_many_joins
from tailgate.gateway.resources.budgets import Budget, Cache
from tailgate.gateway.serving.lookup_plans import Equalities, equalities_of
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.catalog.schemas import is_logged
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.readers.failed import readable_at
from tailgate.lake.types import BY_OID, FACTS, INT8, UNKNOWN, WEIGHT, Field, Type
from tailgate.sql import plan
from tailgate.sql.authorization import Demand
from tailgate.sql.bind import bind_query
from tailgate.sql.binder.relation_names import NO_WIDTHS
from tailgate.sql.numeric_types import WITH_GENERAL
from tailgate.sql.plan import explain
from tailgate.sql.plan.session_calls import SessionCall, separated
from tailgate.sql.plan.traversal import memoize_by_object, walk
from tailgate.sql.render.duckdb import render
from tailgate.sql.statements import QueryText, Select
from tailgate.sql.time_zones import in_zone

KEPT_BYTES = 64 << 20  # of cached bound queries; a limit for clients that put new literals into every statement
FIRST_MAX = 10_000  # rows of a relation that is not mirrored which a query with LIMIT reads from the lake
PLAN_FACTOR = 100  # approximate bytes of a plan per byte of its text

# now() is never before the time that is read: the gateway's clock may be behind the engine's.
NOW = "(SELECT greatest(CAST(now() AS TIMESTAMPTZ), CAST(epoch_ms(t) AS TIMESTAMPTZ)) FROM clock)"
NODES = (f"{plan.__name__}.relations", f"{plan.__name__}.scalars")  # the modules of the nodes of plans
UNSPECIFIED = (0, FACTS["unknown"].oid)
_PARAMETERS = re.compile(r"'[^']*'|\$([0-9]+)")  # texts, and the numbers of parameters


def declared(oids: Sequence[int], catalog: Catalog) -> tuple[Type, ...]:
    """Returns the types that a client declares for parameters; UNKNOWN for those that are inferred."""
    types = (UNKNOWN if oid in UNSPECIFIED else BY_OID.get(abs(oid)) or catalog.type_with(oid) or UNKNOWN for oid in oids)
    return tuple(type.array(multidimensional=True) if oid < 0 else type for oid, type in zip(oids, types, strict=True))


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """A query over the changes of its only relation.

    The last column of the relation and of the result is the weight. `read`: the other columns of the relation, without
    those that it got after a view was defined over it. `used` is as in `Prepared`.
    """

    sql: str
    read: tuple[Field, ...]
    constants: tuple[plan.Value, ...]
    used: frozenset[int]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A bound query.

    - `parameters`: types of $1, $2, …
    - `relations`: ids of the relations it reads; `demands`: the privileges it needs.
    - `catalog_n`: the log entry of the catalog it was bound against.
    - `sql`: DuckDB SQL over tables r<id>. `constants` are its long literals, passed as parameters;
      `used` has the numbers of the other parameters in it.
    - `volatile`: the result may change although no relation does.
    - `failed_at`: if it reads failed views, the newest time at which all are readable; else None.
    - `equalities`: set if the query may be a look-up by key.
    - `changes`: set if the query can be evaluated on changes alone.
    - `calls`: calls of sequences. Their values are parameters behind those of the statement or, `by_row`, columns of a source; then
      `sql` is empty (`gateway.writes.rows`).
    - `first`: so many rows of its only relation suffice, any of them: `SELECT … FROM relation LIMIT n`; else None.
    - `unlogged`: it reads relations whose rows are not in the log, so its result is not cached.
    - `time_zone`: the zone in which the query computes.
    - `locked`: ids of the relations that FOR UPDATE names.
    - `size`: approximate bytes; `packed`: the bound query or its pickle.
    """

    columns: tuple[Field, ...]
    parameters: tuple[Type, ...]
    relations: frozenset[int]
    demands: tuple[Demand, ...]
    catalog_n: int
    sql: str
    items: tuple[Item, ...] = field(repr=False)
    volatile: bool
    failed_at: int | None
    constants: tuple[plan.Value, ...] = field(repr=False)
    used: frozenset[int]
    equalities: Equalities | None = field(repr=False)
    changes: ChangeQuery | None = field(repr=False)
    size: int
    packed: plan.Query | bytes = field(repr=False, compare=False)
    calls: tuple[SessionCall, ...] = ()
    by_row: bool = False
    first: int | None = None
    unlogged: bool = False
    time_zone: str = "UTC"
    locked: frozenset[int] = frozenset()
    lookup: list[Any] = field(default_factory=list, repr=False, compare=False)  # the look-up plan, cached once computed

    @property
    def query(self) -> plan.Query:
        """Returns the bound query. That of a worker process is unpickled each time, so that `size` remains right."""
        query: plan.Query = pickle.loads(self.packed) if isinstance(self.packed, bytes) else self.packed
        return query


@dataclass(frozen=True, slots=True, eq=False)
class SessionCatalog:
    """A catalog as a session sees it.

    `catalog_n` is the log entry that last changed it. `scope` is a cache key for whatever else
    affects the meaning of a text: the search path, temporary views, the dialect of ksqlDB's HTTP API.
    None for the default path.
    """

    catalog: Catalog
    catalog_n: int
    scope: Hashable = None


Key = tuple[str, tuple[int, ...], int, Hashable]  # text, types of parameters, catalog, scope


class Statements:
    """A thread-safe cache of bound queries by text, parameter types and catalog."""

    def __init__(self, budget: Budget) -> None:
        self._lock = threading.Lock()
        self.cache: Cache[Key, Prepared | CatalogQuery] = Cache(budget, KEPT_BYTES)

    def find(self, key: Key) -> Prepared | CatalogQuery | None:
        return self.cache.get(key)

    def keep(self, key: Key, query: Prepared | CatalogQuery) -> Prepared | CatalogQuery:
        """Caches a query, unless another thread has done so; returns the cached one."""
        with self._lock:
            cached = self.cache.get(key)
            if cached is None:
                self.cache.put(key, query, query.size)
                cached = query
            return cached


def key_of(query: QueryText, oids: Sequence[int], session_catalog: SessionCatalog) -> Key:
    return query.text, tuple(oids), session_catalog.catalog_n, session_catalog.scope


def analyzed(query: QueryText, oids: Sequence[int], catalog: Catalog, catalog_n: int) -> Prepared | CatalogQuery:
    """Returns the bound query, or a CatalogQuery if it reads the system catalog."""
    tree = catalog_tree(query.text)
    if tree is not None and is_catalog_query(tree, catalog):
        return catalog_query(tree, oids, catalog)
    return bind(query, oids, catalog, catalog_n)


def analyzed_in_worker(query: QueryText, oids: Sequence[int], catalog: Catalog, catalog_n: int) -> Prepared | CatalogQuery:
    """Does the same as `analyzed` in a worker process, and returns the plan pickled."""
    query_plan = analyzed(query, oids, catalog, catalog_n)
    if isinstance(query_plan, CatalogQuery):
        return query_plan
    packed = pickle.dumps(query_plan.packed, 5)
    return replace(query_plan, packed=packed, size=len(query_plan.sql) + len(packed))


def bind(query: QueryText, oids: Sequence[int], catalog: Catalog, catalog_n: int, widths: Mapping[int, int] = NO_WIDTHS) -> Prepared:
    """Binds a query and renders its DuckDB SQL. Raises SQL errors. `widths`: as in `bind_query`."""
    with in_zone(catalog.time_zone):
        return _bound(query, oids, catalog, catalog_n, widths)


def _bound(query: QueryText, oids: Sequence[int], catalog: Catalog, catalog_n: int, widths: Mapping[int, int]) -> Prepared:
    bound = bind_query(query, catalog, declared(oids, catalog), widths=widths, numeric_rules=WITH_GENERAL, locking=True)
    numbered = separated(bound.plan, len(bound.parameters) + 1)
    by_row = numbered.source is not None
    if numbered.all_calls and not by_row:
        bound = replace(bound, plan=numbered.relation)
    relations = frozenset(scan.relation for scan in scans(bound.plan))
    items = tuple(readable(catalog[r]) for r in sorted(relations))
    # like PostgreSQL, report a plain view's own columns; the plan has only those of its relations
    columns = tuple(
        replace(column, origin=origin) if origin is not None and origin[0] in bound.depends else column
        for column, origin in zip(bound.columns, origins(bound.plan), strict=True)
    )
    check_joins(bound.plan)
    constants: list[plan.Value] = []
    sql = "" if by_row else render(bound.plan, now=NOW, constants=constants)
    changing = volatile(bound.plan) or bool(numbered.all_calls)
    return Prepared(
        columns,
        bound.parameters,
        relations,
        bound.demands,
        catalog_n,
        sql,
        items,
        volatile=changing,
        failed_at=readable_at(items),
        constants=tuple(constants),
        used=used_numbers(numbers(bound.plan), sql),
        equalities=None if numbered.all_calls else equalities_of(bound.plan),
        changes=None if changing else changes_of(bound.plan),
        size=len(query.text) * PLAN_FACTOR + len(sql) + sum(len(c) for c in constants if isinstance(c, str | bytes)),
        packed=bound,
        calls=numbered.all_calls,
        by_row=by_row,
        first=None if bound.locked or numbered.all_calls else first_of(bound.plan),
        unlogged=not all(map(is_logged, relations)),
        time_zone=catalog.time_zone,
        locked=bound.locked,
    )


@memoize_by_object
def origins(relation: plan.Relation) -> list[tuple[int, int] | None]:
    """Returns for each column the relation and column number that it passes through unchanged.

    None stands for a column that is computed or comes through other operators.
    """
    match relation:
        case plan.Scan(relation=id, columns=columns):
            return [(id, number) for number in range(1, len(columns) + 1)]
        case plan.Project(input=input, expressions=expressions):
            below = origins(input)
            return [below[e.index] if isinstance(e, plan.Column) else None for e in expressions]
        case plan.Filter(input=input) | plan.Sort(input=input) | plan.Limit(input=input):
            return origins(input)
        case plan.Join(left=left, kind="semi" | "anti"):
            return origins(left)
        case plan.Join(left=left, right=right, kind="inner" | "left" | "right" | "full" | "cross"):
            return [*origins(left), *origins(right)]
        case plan.Reduce(input=input, keys=keys, aggregates=aggregates):
            below = origins(input)
            return [*(below[k.index] if isinstance(k, plan.Column) else None for k in keys), *[None] * len(aggregates)]
        case _:
            return [None] * len(relation.columns)


def readable(item: Item) -> Item:
    """Returns the item if its rows can be read; otherwise raises 55000."""
    if not item.stored:
        raise ObjectNotInPrerequisiteState(
            f'{item.kind} "{item.name}" is not stored, so it has no rows to read',
            hint="Create a materialized view of it, or create it with CREATE MATERIALIZED SOURCE.",
        )
    if not item.ready:
        raise ObjectNotInPrerequisiteState(
            f'{item.kind} "{item.name}" is still being filled', hint="It can be read when its CREATE statement has answered."
        )
    return item


def nodes(plan_or_part: object) -> Iterator[object]:
    """Yields each node of a plan once, relations and scalars."""
    visited: set[int] = set()
    waiting = [plan_or_part]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value
        elif type(value).__module__ in NODES and id(value) not in visited:
            visited.add(id(value))
            yield value
            names = type(value).__dataclass_fields__  # type: ignore[attr-defined]  # all nodes are dataclasses
            waiting += [getattr(value, name) for name in names]


def check_joins(relation: plan.Relation) -> None:
    """Raises 54001 if a plan has too many joins: DuckDB's planner takes long and ignores interrupts."""
    if sum(isinstance(n, plan.Join) for n in nodes(relation)) > JOINS_MAX:
        raise too_many_joins()


def numbers(relation: plan.Relation) -> frozenset[int]:
    """Returns the numbers of the parameters in a plan."""
    return frozenset(n.number for n in nodes(relation) if isinstance(n, plan.Parameter))


def used_numbers(planned: frozenset[int], sql: str) -> frozenset[int]:
    """Returns those of a plan's parameters that are in its SQL: constants in ORDER BY are not rendered."""
    return planned & {int(number) for number in _PARAMETERS.findall(sql) if number} if planned else planned


def scans(relation: plan.Relation) -> Iterator[plan.Scan]:
    return (node for node in walk(relation) if isinstance(node, plan.Scan))


def volatile(relation: plan.Relation) -> bool:
    return any(isinstance(n, plan.Call) and n.function.volatility != "immutable" for n in nodes(relation))


def first_of(relation: plan.Relation) -> int | None:
    """Returns the number of rows of its only relation that suffice for a query, if it needs few and no certain ones; else None."""
    if not isinstance(relation, plan.Limit) or relation.offset is not None or not isinstance(relation.count, plan.Literal):
        return None
    count, input = relation.count.value, relation.input
    while isinstance(input, plan.Project):
        input = input.input
    return count if isinstance(input, plan.Scan) and isinstance(count, int) and count <= FIRST_MAX else None


def changes_of(relation: plan.Relation) -> ChangeQuery | None:
    """Returns the query over the *changes* of its only relation; None if other operators occur.

    Δ(σ(π(R))) = σ(π(ΔR)): filters and projections look at one row at a time, so they apply to the
    changes, and weights are passed through.
    """
    over = _over_changes(relation)
    if over is None:
        return None
    constants: list[plan.Value] = []
    (scan,) = scans(relation)
    return ChangeQuery(render(over, constants=constants), scan.columns, tuple(constants), numbers(over))


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


def explained(packed: plan.Query | bytes) -> explain.Explained:
    """Returns the plan for EXPLAIN."""
    query: plan.Query = pickle.loads(packed) if isinstance(packed, bytes) else packed
    return explain.explained(query.plan)


def query_text(query: Select | QueryText | exp.Expr) -> QueryText:
    if isinstance(query, Select):
        query = query.query
    return query if isinstance(query, QueryText) else QueryText(query.sql("postgres"), 0, query)
