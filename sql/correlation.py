"""What a scalar or a relation reads of the queries around it."""

from __future__ import annotations

from collections.abc import Iterator

from sql.plan import Relation, Scalar
from sql.relations import inputs, scalars_of
from sql.rewrite import parts
from sql.subqueries import Argument, Subquery, argument, dependent, subquery


def arguments_of(scalar: Scalar) -> Iterator[Argument]:
    """The arguments that a scalar reads, those that its subqueries read among them."""
    if (found := argument(scalar)) is not None:
        yield found
    if (inner := subquery(scalar)) is not None:
        yield from arguments_read(inner.relation)
        if inner.condition is not None:
            yield from arguments_of(inner.condition)
    for part in parts(scalar):
        yield from arguments_of(part)


def arguments_read(relation: Relation) -> Iterator[Argument]:
    """The arguments that a relation reads, wherever in it."""
    if (join := dependent(relation)) is not None:
        scalars = join.arguments if join.condition is None else (*join.arguments, join.condition)
        below: tuple[Relation, ...] = (join.left, join.right)
    else:
        scalars, below = scalars_of(relation), inputs(relation)
    for scalar in scalars:
        yield from arguments_of(scalar)
    for input in below:
        yield from arguments_read(input)


def nodes(relation: Relation) -> Iterator[Relation]:
    """A relation and all below it, while LATERAL may be among them; not what is in scalars."""
    join = dependent(relation)
    yield relation
    for input in (join.left, join.right) if join is not None else inputs(relation):
        yield from nodes(input)


def has_subqueries(scalar: Scalar) -> bool:
    return subquery(scalar) is not None or any(map(has_subqueries, parts(scalar)))


def subqueries_of(scalar: Scalar) -> tuple[Subquery, ...]:
    """The subqueries of a scalar, those in their arguments aside."""
    inner = subquery(scalar)
    return (inner,) if inner is not None else tuple(s for p in parts(scalar) for s in subqueries_of(p))
