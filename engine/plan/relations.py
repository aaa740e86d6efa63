"""Relations taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from typing_extensions import assert_never

from lake.types import Field
from sql.plan import Aggregate, AggregateCall, Column, Distinct, Filter, Join, Limit, Project, Relation, Scalar, Scan, Sort, Union_, Values


def inputs(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Scan() | Values():
            return ()
        case Filter(input) | Project(input) | Aggregate(input) | Distinct(input) | Sort(input) | Limit(input):
            return (input,)
        case Join(left, right):
            return (left, right)
        case Union_(each):
            return each
        case _:
            assert_never(relation)


def with_inputs(relation: Relation, new: tuple[Relation, ...]) -> Relation:
    """The relation over other inputs with the same columns; the same object if they are the same objects."""
    if all(a is b for a, b in zip(inputs(relation), new, strict=True)):
        return relation
    match relation:
        case Scan() | Values():
            return relation
        case Filter() | Project() | Aggregate() | Distinct() | Sort() | Limit():
            return replace(relation, input=new[0])
        case Join():
            return replace(relation, left=new[0], right=new[1])
        case Union_():
            return replace(relation, inputs=new)
        case _:
            assert_never(relation)


def bottom_up(relation: Relation, rule: Callable[[Relation], Relation]) -> Relation:
    """The rule at every node, inputs first."""
    return rule(with_inputs(relation, tuple(bottom_up(i, rule) for i in inputs(relation))))


def walk(relation: Relation) -> Iterator[Relation]:
    yield relation
    for input in inputs(relation):
        yield from walk(input)


def scalars_of(relation: Relation) -> tuple[Scalar, ...]:
    """The scalars of a node, not of those below it."""
    match relation:
        case Filter(condition=condition):
            return (condition,)
        case Project(expressions=expressions):
            return expressions
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case Aggregate(keys=keys, aggregates=aggregates):
            return (*keys, *(s for call in aggregates for s in read_by(call)))
        case _:
            return ()


def read_by(call: AggregateCall) -> tuple[Scalar, ...]:
    """The scalars of an aggregate."""
    return call.arguments if call.filter is None else (*call.arguments, call.filter)


def column(relation: Relation, index: int) -> Column:
    return Column(index, relation.columns[index].type)


def take(relation: Relation, positions: tuple[int, ...]) -> Relation:
    """These columns of the relation, in this order; the relation itself if that is all of them in order."""
    if positions == tuple(range(len(relation.columns))):
        return relation
    return project(relation, tuple(column(relation, p) for p in positions), tuple(relation.columns[p] for p in positions))


def project(relation: Relation, expressions: tuple[Scalar, ...], columns: tuple[Field, ...]) -> Project:
    return Project(relation, expressions, columns)


def is_identity(relation: Project) -> bool:
    """Whether it gives its input's columns as they are, names aside."""
    return len(relation.expressions) == len(relation.input.columns) and all(
        isinstance(e, Column) and e.index == i for i, e in enumerate(relation.expressions)
    )
