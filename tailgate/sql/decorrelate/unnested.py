"""The result of unnesting a relation, and helpers for its argument columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tailgate.lake.types import BOOL, Field
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.comparison import SIGNS, TYPES
from tailgate.sql.plan import Call, Column, IsDistinct, Not, Relation, Scalar
from tailgate.sql.plan.subqueries import argument
from tailgate.sql.plan.traversal import column, project, take


@dataclass(frozen=True)
class Unnested:
    """A relation with columns that hold the arguments to which each row belongs.

    `places` maps the number of an argument to the index of its column. `nulls` has the numbers of
    the arguments that are themselves NULL where their column is NULL. NULL in the column of any
    other argument means that the row belongs to no arguments.
    """

    relation: Relation
    places: dict[int, int] = field(default_factory=dict)
    nulls: frozenset[int] = frozenset()


def equal(one: Scalar, other: Scalar, nulls: bool) -> Scalar:
    """Returns the condition that two values of one type are equal.

    With `nulls`, two NULLs are equal.
    """
    name = one.type.name
    if not nulls and name in TYPES and not one.type.is_array:
        (operator,) = (f for f in catalogue.operators("=") if f.arguments == (name, name))
        return Call(operator, (one, other), BOOL)
    return Not(IsDistinct(one, other))


def arranged(unnested: Unnested, columns: tuple[int, ...]) -> Unnested:
    """Reorders the columns: those of `columns` first, then the argument columns."""
    places = {n: len(columns) + i for i, n in enumerate(unnested.places)}
    return replace(unnested, relation=take(unnested.relation, (*columns, *unnested.places.values())), places=places)


def nulls_of(left: Unnested, right: Unnested) -> frozenset[int]:
    """Returns the `nulls` of a join. An argument of both sides must be in the `nulls` of both."""
    both = left.places.keys() & right.places.keys()
    return frozenset(n for n in left.nulls | right.nulls if n not in both or n in left.nulls & right.nulls)


def name_of(scalar: Scalar, relation: Relation) -> str:
    """Returns a readable name for a scalar's column. Casts are ignored."""
    if isinstance(scalar, Call) and scalar.function.kind == "cast":
        return name_of(scalar.arguments[0], relation)
    return relation.columns[scalar.index].name if isinstance(scalar, Column) else "?column?"


def placed(below: Unnested, number: int, scalar: Scalar) -> Unnested:
    """Makes a scalar over the relation the column of an argument."""
    if isinstance(scalar, Column):
        return replace(below, places={**below.places, number: scalar.index})
    columns = below.relation.columns
    own = tuple(column(below.relation, i) for i in range(len(columns)))
    wide = project(below.relation, (*own, scalar), (*columns, Field(name_of(scalar, below.relation), scalar.type)))
    return replace(below, relation=wide, places={**below.places, number: len(columns)})


def rejects_null(condition: Scalar, depth: int, number: int) -> bool:
    """Returns True if the condition certainly is not true where the argument is NULL."""
    if not isinstance(condition, Call) or condition.function.name not in SIGNS or condition.function.kind != "operator":
        return False
    sides = (a.arguments[0] if isinstance(a, Call) and a.function.kind == "cast" else a for a in condition.arguments)
    references = (argument(s) for s in sides)
    return any(a is not None and a.depth == depth and a.number == number for a in references)
