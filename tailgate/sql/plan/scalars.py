"""The nodes of scalars: values of a `type` that are computed from one row.

A scalar refers to columns of its input by position. `position` is an offset in the statement, for
errors, and is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from tailgate.lake.types import BOOL, Field, Type
from tailgate.sql.functions.entry import Function
from tailgate.values.codec.codec import Value


@dataclass(frozen=True, slots=True)
class Column:
    """Column `index` of the input.

    In the condition of a join, the columns of the left side come first.
    """

    index: int
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is in stored form (see `Value`)."""

    value: Value
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """$number, counted from 1."""

    number: int
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, operator or cast. The arguments have exactly the types of its signature."""

    function: Function
    arguments: tuple[Scalar, ...]
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """The conjunction of two or more conditions, in three-valued logic."""

    arguments: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Or:
    """The disjunction of two or more conditions, in three-valued logic."""

    arguments: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition. NULL if the condition is NULL."""

    argument: Scalar

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    """IS NULL. The result is never NULL."""

    argument: Scalar

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class IsDistinct:
    """IS DISTINCT FROM for two values of one type. The result is never NULL."""

    left: Scalar
    right: Scalar

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class InList:
    """argument IN (items), all of one type.

    NULL if no item is equal and the argument or an item is NULL.
    """

    argument: Scalar
    items: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Case:
    """The result of the first branch whose condition is true, else `otherwise`.

    Other branches are not evaluated.
    """

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar
    type: Type


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first argument that is not NULL. Later arguments are not evaluated."""

    arguments: tuple[Scalar, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class GreatestLeast:
    """GREATEST or LEAST. NULLs are ignored; the result is NULL if all arguments are."""

    which: OneOf["greatest", "least"]
    arguments: tuple[Scalar, ...]
    type: Type


Scalar: TypeAlias = Column | Literal | Parameter | Call | And | Or | Not | IsNull | IsDistinct | InList | Case | Coalesce | GreatestLeast


@dataclass(frozen=True, slots=True)
class SortKey:
    """An expression of ORDER BY with its direction."""

    expression: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over the rows of a group for which `filter` is true. `count(*)` has no arguments.

    `order` is the ORDER BY of the aggregate. For an ordered-set aggregate it is the ORDER BY of WITHIN
    GROUP, which contains the aggregated expression.

    `limit`: how many of the first values, in order, the relations above read; negative: of the last ones; None: all.
    `unique`: whether they read only the first one of equal values.
    """

    function: Function
    arguments: tuple[Scalar, ...]
    type: Type
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[SortKey, ...] = ()
    position: int | None = field(default=None, compare=False)
    limit: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """The start or end of a frame.

    `offset`, for preceding and following, is a scalar without columns.
    """

    kind: OneOf["unbounded preceding", "preceding", "current row", "following", "unbounded following"]
    offset: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of a window function: the rows of the partition that it reads for one row."""

    mode: OneOf["rows", "range", "groups"] = "range"
    start: Bound = Bound("unbounded preceding")
    end: Bound = Bound("current row")
    exclude: OneOf["no others", "current row", "group", "ties"] = "no others"


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function, or an aggregate over a frame. It has one value per row."""

    function: Function
    arguments: tuple[Scalar, ...]
    type: Type
    frame: Frame = Frame()
    filter: Scalar | None = None
    position: int | None = field(default=None, compare=False)


def nullable(scalar: Scalar, columns: tuple[Field, ...]) -> bool:
    """Returns whether a scalar may be NULL. False is guaranteed, True is not."""
    match scalar:
        case Column(index=index):
            return columns[index].nullable
        case Literal(value=value):
            return value is None
        case IsNull() | IsDistinct():
            return False
        case And(arguments=arguments) | Or(arguments=arguments):
            return any(nullable(a, columns) for a in arguments)
        case Not(argument=argument):
            return nullable(argument, columns)
        case Coalesce(arguments=arguments) | GreatestLeast(arguments=arguments):
            return all(nullable(a, columns) for a in arguments)
        case Case(branches=branches, otherwise=otherwise):
            return nullable(otherwise, columns) or any(nullable(then, columns) for _, then in branches)
        case _:
            return True
