"""Endpoints with their bound queries.

An endpoint whose query is a look-up by key, with columns or their casts to text as results, is answered from an index of the relation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailgate.gateway.encode.json_rows import object_writer, row_writer, text_value_writer, value_writer
from tailgate.gateway.http.routes import check_names
from tailgate.gateway.serving.lookup_plans import Lookup, equalities_of, lookup_of
from tailgate.gateway.serving.prepared import Prepared, bind
from tailgate.gateway.serving.service import Serving
from tailgate.lake.catalog import Catalog, Endpoint, known_columns
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, TailgateError
from tailgate.lake.types import Type
from tailgate.sql import plan
from tailgate.sql.authorization import EXECUTE, Demand, renamed
from tailgate.sql.plan.properties import key
from tailgate.sql.statements import QueryText
from tailgate.values.registry import read_text
from tailgate.values.stored import stored

# types whose cast to text is their output
PLAIN_TEXTS = ("int2", "int4", "int8", "numeric", "text", "varchar", "uuid", "date")
PAGING = ("limit", "cursor")

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
    """An endpoint that can be evaluated. `write`: writes a row of the query; `write_found`: one of the look-up's relation."""

    endpoint: Endpoint
    query: BoundQuery
    write: WriteRow
    lookup: Lookup | None
    write_found: WriteRow | None

    def values(self, path: Mapping[str, str], fields: Mapping[str, str]) -> list[object]:
        """Returns the values of the parameters. Raises 42P02 for an unknown field, and 22023 or the type's error for a wrong value."""
        parameters, defaults = self.endpoint.parameters, self.endpoint.defaults
        if fields:
            check_names(fields, [*(p.name for p in parameters if p.name not in path), *(() if self.query.single else PAGING)])
        values: list[object] = []
        for parameter in parameters:
            text = path.get(parameter.name, fields.get(parameter.name))
            if text is None:
                if parameter.name not in defaults:
                    raise InvalidParameterValue(f'parameter "{parameter.name}" is missing')
                text = defaults[parameter.name]
            values.append(None if text is None else _value(text, parameter.name, parameter.type))
        return values


def _value(text: str, name: str, type: Type) -> object:
    try:
        if "\0" in text:
            raise InvalidParameterValue("a value contains the character with code zero")
        return stored(read_text(text, type), type)
    except TailgateError as error:
        error.detail = f'It is the value of parameter "{name}".'
        raise


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
        self._bound: dict[int, asyncio.Task[BoundEndpoint]] = {}

    async def get(self, endpoint: Endpoint) -> BoundEndpoint:
        """Returns the bound endpoint; binds it once for concurrent requests."""
        catalog, catalog_n = self._serving.progress.known
        if self._catalog_n != catalog_n:
            self._bound, self._catalog_n = {}, catalog_n
        task = self._bound.get(endpoint.id)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._bound[endpoint.id] = asyncio.ensure_future(self._bind(endpoint, catalog, catalog_n))
        return task.result() if task.done() else await asyncio.shield(task)

    async def _bind(self, endpoint: Endpoint, catalog: Catalog, catalog_n: int) -> BoundEndpoint:
        query = await self._serving.workers.run_bounded(bind_endpoint, endpoint, catalog, catalog_n)
        prepared, numbers = query.prepared, endpoint.numbers
        lookup = lookup_of(prepared.equalities, catalog)
        write_found = None if lookup is None else _found_writer(lookup, query, endpoint)
        return BoundEndpoint(endpoint, query, row_writer(prepared.columns, numbers), lookup, write_found)


def _found_writer(lookup: Lookup, query: BoundQuery, endpoint: Endpoint) -> WriteRow:
    """Returns the function that writes the object of a row of the looked-up relation."""
    types = [lookup.fields[i].type for i in lookup.columns]
    writers = [text_value_writer(t) if text else value_writer(t, endpoint.numbers) for t, text in zip(types, query.texts, strict=True)]
    write = object_writer([c.name for c in query.prepared.columns], writers)
    return lambda row: write([row[i] for i in lookup.columns])
