"""What stands for a subquery between binding and `sql.decorrelation`; never in a plan that `sql.bind` returns.

A subquery is closed as a function is: what it reads of the queries around it are its `arguments`, scalars over the row where it stands,
and inside its relation `Argument(depth, number)` means the one of that number. So walking a scalar finds what its subqueries read
like any other part of it, and nothing outside has to look into a subquery's relation.

    SELECT (SELECT max(o.at) FROM orders o WHERE o.user_id = u.id) FROM users u
    Subquery('scalar', Aggregate[max(at)](Filter[user_id = Argument(1, 0)](orders)), depth=1, arguments=(Column u.id,))

`depth` counts the closures around: a relation reads the arguments of every closure it is in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import cast

from lake.types import Field, Type
from sql.plan import JoinKind, Relation, Scalar


@dataclass(frozen=True, slots=True)
class Argument:
    """What the closure of a depth was given as this number."""

    depth: int
    number: int
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Subquery:
    """A value computed from a relation.

    'scalar': column `column` of its one row, NULL if it has none, 21000 if it has more. 'exists': whether it has a row. 'any': whether
    `condition`, over the relation's columns and the arguments, is true of a row; NULL if of none, but NULL of one. 'array': column 0
    of all rows, in their order.
    """

    kind: OneOf["scalar", "exists", "any", "array"]
    relation: Relation
    depth: int
    arguments: tuple[Scalar, ...]
    type: Type
    condition: Scalar | None = None
    column: int = 0
    position: int | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        """Of what is not a relation: hashing that would visit its parts once for each of their places."""
        return hash((self.kind, self.depth, self.column, self.type))


@dataclass(frozen=True, slots=True)
class Dependent:
    """A join whose right side reads the left's columns, as `arguments`: LATERAL. `condition` None: every pair."""

    left: Relation
    right: Relation
    depth: int
    arguments: tuple[Scalar, ...]
    kind: JoinKind
    condition: Scalar | None
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        right = self.right.columns
        if self.kind == "left":
            right = tuple(Field(f.name, f.type) for f in right)
        return self.left.columns + right


# The unions of sql.plan are closed, so these are no members of them, and are told apart by what follows.


def as_scalar(node: Argument | Subquery) -> Scalar:
    return cast(Scalar, node)


def as_relation(node: Dependent) -> Relation:
    return cast(Relation, node)


def argument(scalar: Scalar) -> Argument | None:
    inner: object = scalar
    return inner if isinstance(inner, Argument) else None


def subquery(scalar: Scalar) -> Subquery | None:
    inner: object = scalar
    return inner if isinstance(inner, Subquery) else None


def dependent(relation: Relation) -> Dependent | None:
    inner: object = relation
    return inner if isinstance(inner, Dependent) else None
