"""Digests of operators: operators with equal digests compute the same function of the same input.

`engine.plan.views.sharing` uses them to find operators that views can share. A digest covers the whole
plan above the operator: sources by id, the steps of every edge, keys, functions and types, but no
names. A scan of another materialized view is replaced by that view's plan, so a view over a view
has the same digest as the equivalent single query. An append-only source contains the records of
its topic since the view was created, so the position where the view starts (`MaterializedView.starts`,
per source) is part of the digest: two views of one topic have equal rows only if they start at the
same record. A recursive query contains its view's id, because views do not share it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from typing_extensions import assert_never

from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.operators import FrameBound, SortColumn
from tailgate.engine.plan.circuit.steps import Filter, Project, Unnest
from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.change import Origin, SingleRow, Source, Stateful, StoredRelation, Stream, View
from tailgate.lake.catalog import Catalog, Item, MaterializedView
from tailgate.lake.types import Field

# version of the layout of a join's state in the store (Join.java); state of another version is
# rebuilt
JOIN_LAYOUT = 3


def digest(operator: Stateful, item: Item, catalog: Catalog) -> str:
    """Returns the digest of an operator of `item`'s stream."""
    match operator:
        case change.Join(left, right, left_key, right_key, kind, null_safe, condition, unique):
            text: list[object] = [kind, _edge(left, item, catalog), _edge(right, item, catalog), left_key, right_key]
            text += [null_safe, None if condition is None else _step(condition), unique, JOIN_LAYOUT]
        case change.ArrivalJoin(left, right, left_key, right_key, kind):
            text = ["arrival", kind, _edge(left, item, catalog), _edge(right, item, catalog), left_key, right_key]
        case change.WithinJoin(left, right, left_key, right_key, kind):
            text = ["within", kind, _edge(left, item, catalog), _edge(right, item, catalog), left_key, right_key]
            text += [operator.left_time, operator.right_time, operator.before, operator.after, operator.grace, operator.eager]
        case change.Closing(input, width, time, end, grace, last, session):
            text = ["closing", _edge(input, item, catalog), width, time, end, grace, last, *(session or ())]
        case change.Reduce(input, keys, aggregates, retention):
            calls = [call(a) for a in aggregates]
            text = ["reduce", _edge(input, item, catalog), keys, calls]
            text += [] if retention is None else [_edge(retention.clock, item, catalog), retention.end, retention.length]
        case change.SetOperation(left, right, kind, all):
            text = [kind, all, _edge(left, item, catalog), _edge(right, item, catalog)]
        case change.Fixpoint(number, base, step, all, limit, name, keys):
            text = ["fixpoint", item.id, number, _edge(base, item, catalog), _edge(step, item, catalog), all, limit, name, *keys]
        case change.TemporalFilter(input):
            text = ["timed", _edge(input, item, catalog)]
        case change.TopK(input, width, partition, order, count, offset, ties):
            text = ["top", _edge(input, item, catalog), width, partition, sorted_by(order), count, offset, ties]
        case change.Window(input, width, partition, order, functions):
            calls = [[call(f.function), f.mode, _bound(f.start), _bound(f.end), f.exclude, f.key] for f in functions]
            text = ["window", _edge(input, item, catalog), width, partition, sorted_by(order), calls]
        case _:
            assert_never(operator)
    return sha256(json.dumps(text).encode()).hexdigest()[:32]


def _bound(bound: FrameBound) -> list[object]:
    return [bound.kind, bound.offset, bound.column]


def sorted_by(keys: tuple[SortColumn, ...]) -> list[object]:
    """Returns the JSON form of a sort order."""
    return [(k.column, k.descending, k.nulls_first) for k in keys]


def call(of: operators.AggregateCall) -> list[object]:
    """Returns the JSON form of an aggregate."""
    more = [of.distinct, of.filter, sorted_by(of.order), of.fraction, *([of.limit] if of.limit else []), *(["unique"] if of.unique else [])]
    return [of.function, of.columns, of.type.spark, *more]


def expressions(stream: Stream, item: Item, catalog: Catalog) -> list[object]:
    """Returns a JSON form of all that a stream computes."""
    return _edge(stream, item, catalog)


def is_paused(item: Item) -> bool:
    """Returns whether the query of ksqlDB that maintains the view is paused or terminated: no tick changes it."""
    return isinstance(item, MaterializedView) and item.paused


def _edge(stream: Stream, item: Item, catalog: Catalog) -> list[object]:
    origin, steps = _through(stream, item, catalog)
    return [origin, steps, _types(stream.columns), stream.append_only]


def _through(stream: Stream, item: Item, catalog: Catalog) -> tuple[str, list[list[str]]]:
    """Returns the origin of a stream, looking through views that ticks change, and the steps since."""
    own = [_step(s) for s in stream.shape.steps]
    if isinstance(stream.origin, View) and not is_paused(catalog[stream.origin.item]):
        origin, steps = _through(stream.origin.stream, catalog[stream.origin.item], catalog)
        return origin, steps + own
    return _origin(stream.origin, item, catalog), own


def _start(item: Item, source: int) -> Mapping[str, int] | None:
    """Returns the offsets of a source's topic at which a view begins."""
    return item.starts.get(source) if isinstance(item, MaterializedView) else None


def _origin(origin: Origin, item: Item, catalog: Catalog) -> str:
    match origin:
        case Source(id):
            return f"source {id} from {json.dumps(_start(item, id), sort_keys=True)}"
        case StoredRelation(id) | View(id):
            return f"kept {id}"
        case SingleRow():
            return "unit"
        case change.Union(inputs):
            return json.dumps(["merged", *(_edge(i, item, catalog) for i in inputs)])
        case change.WorkingTable(number):
            return f"working table {item.id} {number}"
        case change.Join() | change.ArrivalJoin() | change.WithinJoin() | change.SetOperation() | change.Fixpoint():
            return digest(origin, item, catalog)
        case change.Closing() | change.Reduce() | change.TemporalFilter() | change.TopK() | change.Window():
            return digest(origin, item, catalog)
        case _:
            assert_never(origin)


def _step(step: Filter | Project | Unnest) -> list[str]:
    match step:
        case Filter(expression):
            return ["where", expression]
        case Project(expressions):
            return ["select", *expressions]
        case Unnest(array, fields, outer):
            return ["explode", array, str(fields), str(outer)]
        case _:
            assert_never(step)


def _types(columns: tuple[Field, ...]) -> list[str]:
    return [c.type.spark for c in columns]
