"""The result of unnesting a relation, and helpers for its argument columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tailgate.lake.types import BOOL
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.comparison import TYPES
from tailgate.sql.plan import Call, Column, IsDistinct, Not, Relation, Scalar
from tailgate.sql.plan.traversal import take


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
        (found,) = (f for f in catalogue.operators("=") if f.arguments == (name, name))
        return Call(found, (one, other), BOOL)
    return Not(IsDistinct(one, other))


def arranged(found: Unnested, columns: tuple[int, ...]) -> Unnested:
    """Reorders the columns: those of `columns` first, then the argument columns."""
    places = {n: len(columns) + i for i, n in enumerate(found.places)}
    return replace(found, relation=take(found.relation, (*columns, *found.places.values())), places=places)


def nulls_of(left: Unnested, right: Unnested) -> frozenset[int]:
    """Returns the `nulls` of a join. An argument of both sides must be in the `nulls` of both."""
    both = left.places.keys() & right.places.keys()
    return frozenset(n for n in left.nulls | right.nulls if n not in both or n in left.nulls & right.nulls)


def name_of(scalar: Scalar, relation: Relation) -> str:
    """Returns a readable name for a scalar's column. Casts are ignored."""
    if isinstance(scalar, Call) and scalar.function.kind == "cast":
        return name_of(scalar.arguments[0], relation)
    return relation.columns[scalar.index].name if isinstance(scalar, Column) else "?column?"
