"""Traverses and rebuilds relations of a plan.

A relation that a query uses twice (WITH, a view) is one object with two parents, so a plan is a
graph. A traversal must visit each object once. Thirty CTEs that each use the previous one twice
would otherwise take 2^30 visits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import TypeVar

from typing_extensions import assert_never

from tailgate.lake.types import Field
from tailgate.sql.plan import (
    AggregateCall,
    ArrivalJoin,
    Closing,
    Column,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Project,
    Recursive,
    Reduce,
    Relation,
    Retention,
    Scalar,
    Scan,
    Session,
    SetOperation,
    Sort,
    SortKey,
    TopK,
    UnionAll,
    Values,
    Window,
    WindowCall,
    WithinJoin,
    WorkingTable,
)

T = TypeVar("T")


def memoize_by_object(function: Callable[[Relation], T]) -> Callable[[Relation], T]:
    """Memoizes a recursive function of relations, by object, for the time of one outermost call."""
    local = threading.local()

    @wraps(function)
    def remembered(relation: Relation) -> T:
        results: dict[int, tuple[Relation, T]] | None = getattr(local, "known", None)
        if results is None:
            local.known = {}
            try:
                return function(relation)
            finally:
                local.known = None
        if id(relation) not in results:
            results[id(relation)] = relation, function(relation)
        return results[id(relation)][1]

    return remembered


def inputs(relation: Relation) -> tuple[Relation, ...]:
    """Returns the direct inputs of a node, in order."""
    match relation:
        case Scan() | Values() | WorkingTable():
            return ()
        case Recursive(base=base, step=step):
            return (base, step)
        case Filter(input) | Project(input) | Reduce(input) | Distinct(input) | Sort(input) | Limit(input):
            return (input,)
        case Window(input) | TopK(input) | Generate(input) | Closing(input):
            return (input,)
        case Join(left, right) | ArrivalJoin(left, right) | WithinJoin(left, right) | SetOperation(left, right):
            return (left, right)
        case UnionAll(each):
            return each
        case _:
            assert_never(relation)


def with_inputs(relation: Relation, new: tuple[Relation, ...]) -> Relation:
    """Returns the node with other inputs that have the same columns.

    Returns the node itself if the inputs are the same objects.
    """
    if all(a is b for a, b in zip(inputs(relation), new, strict=True)):
        return relation
    match relation:
        case Scan() | Values() | WorkingTable():
            return relation
        case Recursive():
            return replace(relation, base=new[0], step=new[1])
        case Filter() | Project() | Reduce() | Distinct() | Sort() | Limit():
            return replace(relation, input=new[0])
        case Window() | TopK() | Generate() | Closing():
            return replace(relation, input=new[0])
        case Join() | ArrivalJoin() | WithinJoin() | SetOperation():
            return replace(relation, left=new[0], right=new[1])
        case UnionAll():
            return replace(relation, inputs=new)
        case _:
            assert_never(relation)


def bottom_up(relation: Relation, rule: Callable[[Relation], Relation]) -> Relation:
    """Applies a rule to every node, inputs first, and returns the new plan."""

    @memoize_by_object
    def changed(node: Relation) -> Relation:
        return rule(with_inputs(node, tuple(map(changed, inputs(node)))))

    return changed(relation)


def walk(relation: Relation) -> Iterator[Relation]:
    """Yields the relation and all relations below it, each once, in pre-order."""
    visited: set[int] = set()
    waiting = [relation]
    while waiting:
        node = waiting.pop()
        if id(node) not in visited:
            visited.add(id(node))
            yield node
            waiting += reversed(inputs(node))


@memoize_by_object
def tree_size(relation: Relation) -> int:
    """Returns the number of nodes of the plan as a tree, in which shared nodes count once per use."""
    return 1 + sum(map(tree_size, inputs(relation)))


def scalars_of(relation: Relation) -> tuple[Scalar, ...]:
    """Returns the scalars of a node, without those of its inputs."""
    match relation:
        case Filter(condition=condition) | ArrivalJoin(condition=condition):
            return (condition,)
        case WithinJoin(condition=condition, times=times):
            return (condition, *times)
        case Closing(time=time, end=end, session=session):
            return (time, end) if session is None else (time, end, session.start, *session.keys)
        case Project(expressions=expressions):
            return expressions
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case Reduce(keys=keys, aggregates=aggregates, retention=retention):
            ends = () if retention is None else (retention.end,)
            return (*keys, *(s for call in aggregates for s in read_by(call)), *ends)
        case Window(partition=partition, order=order, calls=calls):
            return (*partition, *(k.expression for k in order), *(s for call in calls for s in read_by(call)))
        case TopK(keys=keys, order=order):
            return (*keys, *(k.expression for k in order))
        case Generate(arguments=arguments):
            return arguments
        case Sort(keys=sort_keys):
            return tuple(k.expression for k in sort_keys)
        case _:
            return ()


def read_by(call: AggregateCall | WindowCall) -> tuple[Scalar, ...]:
    """Returns the scalars that an aggregate or window function reads."""
    order = tuple(k.expression for k in call.order) if isinstance(call, AggregateCall) else ()
    return (*call.arguments, *order) if call.filter is None else (*call.arguments, *order, call.filter)


Rule = Callable[[Scalar], Scalar]


def with_scalars(relation: Relation, new: Rule) -> Relation:
    """Returns the node with `new` applied to each of its scalars. Its inputs do not change."""
    match relation:
        case Filter(condition=condition) | ArrivalJoin(condition=condition):
            return replace(relation, condition=new(condition))
        case WithinJoin(condition=condition, times=(left, right)):
            return replace(relation, condition=new(condition), times=(new(left), new(right)))
        case Closing(time=time, end=end, session=session):
            merged = None if session is None else Session(new(session.start), tuple(map(new, session.keys)))
            return replace(relation, time=new(time), end=new(end), session=merged)
        case Project(expressions=expressions):
            return replace(relation, expressions=tuple(map(new, expressions)))
        case Join(condition=condition):
            return relation if condition is None else replace(relation, condition=new(condition))
        case Reduce(keys=keys, aggregates=aggregates, retention=retention):
            calls = tuple(_with_arguments(c, new) for c in aggregates)
            ends = None if retention is None else Retention(new(retention.end), retention.length)
            return replace(relation, keys=tuple(map(new, keys)), aggregates=calls, retention=ends)
        case Window(partition=partition, order=order, calls=windows):
            functions = tuple(_with_arguments(c, new) for c in windows)
            return replace(relation, partition=tuple(map(new, partition)), order=_sorted_by(order, new), calls=functions)
        case TopK(keys=keys, order=order):
            return replace(relation, keys=tuple(map(new, keys)), order=_sorted_by(order, new))
        case Sort(keys=sort_keys):
            return replace(relation, keys=_sorted_by(sort_keys, new))
        case Generate(arguments=arguments):
            return replace(relation, arguments=tuple(map(new, arguments)))
        case Scan() | Values() | Distinct() | UnionAll() | SetOperation() | Limit() | Recursive() | WorkingTable():
            return relation
        case _:
            assert_never(relation)


def mapped(plan: Relation, new: Rule, node: Callable[[Relation], Relation] = lambda node: node) -> Relation:
    """Returns the plan with `new` applied to each scalar, and then `node` to each relation, from the inputs up. Shared ones stay shared."""
    results: dict[int, Relation] = {}

    def visit(old: Relation) -> Relation:
        result = results.get(id(old))
        if result is None:
            result = node(_mapped(with_inputs(old, tuple(map(visit, inputs(old)))), new))
            results[id(old)] = result
        return result

    return visit(plan)


def _mapped(node: Relation, new: Rule) -> Relation:
    if isinstance(node, Values):
        rows = tuple(tuple(map(new, row)) for row in node.rows)
        same = all(a is b for old, new_row in zip(node.rows, rows, strict=True) for a, b in zip(old, new_row, strict=True))
        return node if same else Values(rows, node.columns)
    if isinstance(node, Limit) or all(new(s) is s for s in scalars_of(node)):
        return node
    return with_scalars(node, new)


C = TypeVar("C", AggregateCall, WindowCall)


def _with_arguments(call: C, new: Rule) -> C:
    condition = None if call.filter is None else new(call.filter)
    result = replace(call, arguments=tuple(map(new, call.arguments)), filter=condition)
    return replace(result, order=_sorted_by(call.order, new)) if isinstance(call, AggregateCall) else result


def _sorted_by(keys: tuple[SortKey, ...], new: Rule) -> tuple[SortKey, ...]:
    return tuple(replace(k, expression=new(k.expression)) for k in keys)


def column(relation: Relation, index: int, by: int = 0) -> Column:
    """Returns a reference to a column of a relation. `by`: the number of columns before the relation, as on the right of a join."""
    return Column(index + by, relation.columns[index].type)


def take(relation: Relation, positions: tuple[int, ...]) -> Relation:
    """Returns a projection on these columns, or the relation itself if they are all of its columns in order."""
    if positions == tuple(range(len(relation.columns))):
        return relation
    return project(relation, tuple(column(relation, p) for p in positions), tuple(relation.columns[p] for p in positions))


def project(relation: Relation, expressions: tuple[Scalar, ...], columns: tuple[Field, ...]) -> Project:
    """Returns a projection."""
    return Project(relation, expressions, columns)


def is_identity(relation: Project) -> bool:
    """Returns whether a projection only renames the columns of its input."""
    return len(relation.expressions) == len(relation.input.columns) and all(
        isinstance(e, Column) and e.index == i for i, e in enumerate(relation.expressions)
    )


def is_one_row(relation: Relation) -> bool:
    """Returns whether the relation is the input of SELECT without FROM: one row without columns."""
    return isinstance(relation, Values) and len(relation.rows) == 1 and not relation.columns


def cross_join(left: Relation, right: Relation) -> Relation:
    """Returns the cross join of two relations, or one of them if the other is `is_one_row`."""
    return right if is_one_row(left) else left if is_one_row(right) else Join(left, right, "cross", None)
