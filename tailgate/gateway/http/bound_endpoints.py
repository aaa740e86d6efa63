"""Endpoints with their bound queries, or with the plans of their writes.

An endpoint whose query is a look-up by key, with columns or their casts to text as results, is answered from an index of the relation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailgate.gateway.encode.json_rows import object_writer, row_writer, text_value_writer, value_writer
from tailgate.gateway.serving.lookup_plans import Lookup, equalities_of, lookup_of
from tailgate.gateway.serving.prepared import Prepared, bind
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.writes.constraints.rules import Rules, rendered
from tailgate.gateway.writes.plans import ChangePlan, InsertPlan, bound
from tailgate.lake.catalog import Catalog, Endpoint, Function, Table, View, known_columns
from tailgate.lake.catalog.schemas import ENDPOINTS_ID, IDEMPOTENCY_KEYS_TABLE, SYSTEM
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field
from tailgate.sql import plan
from tailgate.sql.authorization import EXECUTE, Demand, renamed
from tailgate.sql.binder.writes.rules import rules_of
from tailgate.sql.definitions import write_of
from tailgate.sql.plan.properties import key
from tailgate.sql.statements import Insert, QueryText

# types whose cast to text is their output
PLAIN_TEXTS = ("int2", "int4", "int8", "numeric", "text", "varchar", "uuid", "date")
PAGING = ("limit", "cursor")

Form = Mapping[int, tuple[object, ...]]
WriteRow = Callable[[Sequence[Any]], bytes]


@dataclass(frozen=True, slots=True)
class Call:
    """The call of an endpoint, without its query."""

    endpoint: Endpoint

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns the demand for EXECUTE of the caller."""
        return (Demand(EXECUTE, self.endpoint.id),)


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """The bound query of an endpoint.

    - `prepared`: with the demands of the endpoint: EXECUTE for the caller, and those of its query for its owner.
    - `single`: a key proves that there is at most one row.
    - `ordered`: the query has an ORDER BY.
    - `texts`: for each column, whether it is a cast to text that `prepared.equalities` leave out.
    """

    prepared: Prepared
    single: bool
    ordered: bool
    texts: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class BoundEndpoint:
    """An endpoint that can be evaluated. `form`: see `form_of`.

    `lookup`: the look-up that returns the objects; None if there is none, or if their order matters.
    `write`: writes a row of the query; `write_found`: one of the look-up's relation.
    """

    endpoint: Endpoint
    form: Form
    query: BoundQuery
    write: WriteRow
    lookup: Lookup | None
    write_found: WriteRow | None

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the objects."""
        return self.query.prepared.columns

    @property
    def single(self) -> bool:
        """Returns whether there is at most one object."""
        return self.query.single


@dataclass(frozen=True, slots=True)
class BoundWrite:
    """An endpoint that writes.

    - `plan`: with the demands of the endpoint, as `BoundQuery.prepared`.
    - `columns`: of RETURNING. `single`: the statement writes at most one row.
    - `keys`: the rules of the table of Idempotency-Keys.
    - `write`: writes a row of RETURNING.
    """

    endpoint: Endpoint
    plan: InsertPlan | ChangePlan
    columns: tuple[Field, ...]
    single: bool
    keys: Rules
    write: WriteRow

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns the demands of the plan."""
        return self.plan.demands


def form_of(id: int, catalog: Catalog) -> Form:
    """Returns what an endpoint's objects depend on besides stored rows: its definition, and those of the views and functions below it.

    By id; empty if there is no such endpoint.
    """
    endpoint = catalog.items.get(id)
    if not isinstance(endpoint, Endpoint):
        return {}
    form: dict[int, tuple[object, ...]] = {id: (endpoint.query, endpoint.numbers)}
    for below in catalog.below(endpoint, lambda item: isinstance(item, View | Function)):
        match item := catalog[below]:
            case View():
                form[below] = item.query, [column.name for column in item.columns]
            case Function():
                form[below] = item.query, item.defaults, item.strict
    return form


def bind_endpoint(endpoint: Endpoint, catalog: Catalog, catalog_n: int) -> BoundQuery:
    """Binds the query of an endpoint. Raises the errors of a query that can no longer be read."""
    oids = tuple(t.oid for t in endpoint.types)
    prepared = bind(QueryText(endpoint.query), oids, catalog.stored, catalog_n, known_columns(endpoint))
    if prepared.calls:
        raise FeatureNotSupported(f"{prepared.calls[0].name} in an endpoint is not supported")
    relation = prepared.query.plan
    below, texts = _without_texts(relation)
    demands = (*Call(endpoint).demands, *renamed(prepared.demands, endpoint.id))
    prepared = replace(prepared, demands=demands, equalities=equalities_of(below))
    return BoundQuery(prepared, key(relation) == (), _is_ordered(relation), texts)


def bind_writing(endpoint: Endpoint, catalog: Catalog) -> tuple[InsertPlan | ChangePlan, tuple[Field, ...], bool, Rules]:
    """Binds the statement of an endpoint that writes. Returns the first fields of `BoundWrite`. Raises the errors of the binder."""
    stored, statement = catalog.stored, write_of(endpoint.query)
    oids = tuple(t.oid for t in endpoint.types)
    columns, plan = bound(statement, oids, stored, known_columns(endpoint))
    assert columns is not None and isinstance(plan, InsertPlan | ChangePlan)
    plan = replace(plan, demands=(*Call(endpoint).demands, *renamed(plan.demands, endpoint.id)))
    if isinstance(plan, ChangePlan):
        single = plan.pinned
    else:
        assert isinstance(statement, Insert)
        single = statement.rows is None or (isinstance(statement.rows, tuple) and len(statement.rows) == 1)
    keys = bind_keys(catalog)
    assert keys is not None
    return plan, columns, single, keys


def bind_keys(catalog: Catalog) -> Rules | None:
    """Returns the rules of the table of Idempotency-Keys, or None before the first endpoint that writes."""
    keys = catalog.at(IDEMPOTENCY_KEYS_TABLE, SYSTEM[ENDPOINTS_ID])
    return rendered(rules_of(keys, catalog.stored), 0, compact=False)[keys.id] if isinstance(keys, Table) else None


def _without_texts(relation: plan.Relation) -> tuple[plan.Relation, tuple[bool, ...]]:
    """Returns the query with columns in place of their casts to text, and which columns these are."""
    if not isinstance(relation, plan.Project):
        return relation, (False,) * len(relation.columns)
    inner = [_text_of(e) for e in relation.expressions]
    expressions = tuple(e if i is None else i for e, i in zip(relation.expressions, inner, strict=True))
    return replace(relation, expressions=expressions), tuple(i is not None for i in inner)


def _text_of(scalar: plan.Scalar) -> plan.Column | None:
    """Returns the column that a scalar casts to text, or None."""
    match scalar:
        case plan.Call(function=function, arguments=(plan.Column() as column,), type=type):
            if function.kind == "cast" and type.name == "text" and not type.is_array and not column.type.is_array:
                return column if column.type.name in PLAIN_TEXTS else None
    return None


def _is_ordered(relation: plan.Relation) -> bool:
    match relation:
        case plan.Sort() | plan.TopK():
            return True
        case plan.Limit(input=input) | plan.Project(input=input):
            return _is_ordered(input)
    return False


class BoundEndpoints:
    """A cache of bound endpoints for the newest catalog."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._catalog_n = -1
        self._bound: dict[int, asyncio.Task[BoundEndpoint | BoundWrite]] = {}

    async def get(self, endpoint: Endpoint) -> BoundEndpoint | BoundWrite:
        """Returns the bound endpoint; binds it once for concurrent requests."""
        catalog, catalog_n = self._serving.progress.known
        if self._catalog_n != catalog_n:
            self._bound, self._catalog_n = {}, catalog_n
        task = self._bound.get(endpoint.id)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._bound[endpoint.id] = asyncio.ensure_future(self._bind(endpoint, catalog, catalog_n))
        return task.result() if task.done() else await asyncio.shield(task)

    async def _bind(self, endpoint: Endpoint, catalog: Catalog, catalog_n: int) -> BoundEndpoint | BoundWrite:
        if endpoint.method != "GET":
            plan, columns, single, keys = await self._serving.workers.run_bounded(bind_writing, endpoint, catalog)
            return BoundWrite(endpoint, plan, columns, single, keys, row_writer(columns, endpoint.numbers))
        query = await self._serving.workers.run_bounded(bind_endpoint, endpoint, catalog, catalog_n)
        prepared, numbers = query.prepared, endpoint.numbers
        lookup = lookup_of(prepared.equalities, catalog) if query.single or not query.ordered else None
        write_found = None if lookup is None else _found_writer(lookup, query, endpoint)
        return BoundEndpoint(endpoint, form_of(endpoint.id, catalog), query, row_writer(prepared.columns, numbers), lookup, write_found)


def _found_writer(lookup: Lookup, query: BoundQuery, endpoint: Endpoint) -> WriteRow:
    """Returns the function that writes the object of a row of the looked-up relation."""
    types = [lookup.fields[i].type for i in lookup.columns]
    writers = [text_value_writer(t) if text else value_writer(t, endpoint.numbers) for t, text in zip(types, query.texts, strict=True)]
    write = object_writer([c.name for c in query.prepared.columns], writers)
    return lambda row: write([row[i] for i in lookup.columns])
