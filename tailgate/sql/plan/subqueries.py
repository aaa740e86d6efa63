"""Plan nodes for subqueries. The binder creates them, and `sql.decorrelate` replaces them by joins.

They never occur in a plan that `sql.bind` returns. A subquery has arguments like a function: scalars
over the row of the outer query for which it is evaluated. Inside its relation `Argument(depth, number)`
refers to one of them. So a traversal of the outer scalar finds the outer columns that the subquery
reads, and need not look into its relation.

    SELECT (SELECT max(o.at) FROM orders o WHERE o.user_id = u.id) FROM users u
    Subquery('scalar', Reduce[max(at)](Filter[user_id = Argument(1, 0)](orders)), depth=1, arguments=(Column u.id,))

`depth` is the nesting level. A relation may read the arguments of every subquery that contains it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import cast

from tailgate.lake.types import Field, Type
from tailgate.sql.plan import JoinKind, Relation, Scalar


@dataclass(frozen=True, slots=True)
class Argument:
    """A reference to argument `number` of the enclosing subquery at `depth`."""

    depth: int
    number: int
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Subquery:
    """A value computed from a relation. Its `kind` is one of:

    - 'scalar': `column` of the only row; NULL without a row, error 21000 with several
    - 'exists': whether there is a row
    - 'any': true if `condition` is true for a row, else NULL if it is NULL for a row, else false. The
      condition reads the columns of the relation and arguments.
    - 'array': column 0 of all rows, in their order
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
        """Leaves the relation out: hashing it would visit a shared node once for each of its uses."""
        return hash((self.kind, self.depth, self.column, self.type))


@dataclass(frozen=True, slots=True)
class Dependent:
    """A LATERAL join. The right side reads columns of the left side as `arguments`.

    If `condition` is None, every pair of rows matches.
    """

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


# The unions of sql.plan are closed and do not contain these classes. The following functions convert between the types.


def as_scalar(node: Argument | Subquery) -> Scalar:
    """Casts a node to Scalar, for the type checker."""
    return cast(Scalar, node)


def as_relation(node: Dependent) -> Relation:
    """Casts a node to Relation, for the type checker."""
    return cast(Relation, node)


def argument(scalar: Scalar) -> Argument | None:
    """Returns the scalar if it is an Argument, else None."""
    inner: object = scalar
    return inner if isinstance(inner, Argument) else None


def subquery(scalar: Scalar) -> Subquery | None:
    """Returns the scalar if it is a Subquery, else None."""
    inner: object = scalar
    return inner if isinstance(inner, Subquery) else None


def dependent(relation: Relation) -> Dependent | None:
    """Returns the relation if it is a Dependent, else None."""
    inner: object = relation
    return inner if isinstance(inner, Dependent) else None
