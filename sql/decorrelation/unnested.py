"""What unnesting makes of a relation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lake.types import BOOL
from sql.functions import catalogue
from sql.functions.comparison import TYPES
from sql.plan import Call, Column, IsDistinct, Not, Relation, Scalar
from sql.relations import take


@dataclass(frozen=True)
class Unnested:
    """`places`: which column holds which argument; `nulls`: those of them where NULL stands for an argument that is NULL.

    A row with NULL in another place is for no argument.
    """

    relation: Relation
    places: dict[int, int] = field(default_factory=dict)
    nulls: frozenset[int] = frozenset()


def equal(one: Scalar, other: Scalar, nulls: bool) -> Scalar:
    """Whether two values of a type are the same; `nulls`: two NULLs are."""
    name = one.type.name
    if not nulls and name in TYPES and not one.type.is_array:
        (found,) = (f for f in catalogue.operators("=") if f.arguments == (name, name))
        return Call(found, (one, other), BOOL)
    return Not(IsDistinct(one, other))


def arranged(found: Unnested, columns: tuple[int, ...]) -> Unnested:
    """These columns first, then the places."""
    places = {n: len(columns) + i for i, n in enumerate(found.places)}
    return replace(found, relation=take(found.relation, (*columns, *found.places.values())), places=places)


def nulls_of(left: Unnested, right: Unnested) -> frozenset[int]:
    """An argument that both sides have is NULL only if both mean it."""
    both = left.places.keys() & right.places.keys()
    return frozenset(n for n in left.nulls | right.nulls if n not in both or n in left.nulls & right.nulls)


def name_of(scalar: Scalar, relation: Relation) -> str:
    """For people; of a cast, that of what is cast."""
    if isinstance(scalar, Call) and scalar.function.kind == "cast":
        return name_of(scalar.arguments[0], relation)
    return relation.columns[scalar.index].name if isinstance(scalar, Column) else "?column?"
