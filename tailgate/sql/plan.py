"""The relational algebra of bound queries, as frozen values with types and catalog ids.

    Relation: rows with `columns`; a Scalar in it refers to columns of its input by position
    Scalar:   a value of `type` computed from one row

Two plans are equal if their trees are equal. Column names are for output and EXPLAIN. `position` is
an offset in the statement, for errors, and is not compared. The unions are closed: each `match` ends
with assert_never, so the type checker lists all places that must handle a new node.

A relation is a bag of rows. Only Sort and Limit define an order. The Limit over a Sort of a view is
maintained as a TopK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal as OneOf
from typing import TypeAlias, Union

from tailgate.lake.types import BOOL, INT8, Field, Type
from tailgate.sql.authorization import Demand
from tailgate.sql.functions.entry import Function

# A literal in its stored form: time is an int of microseconds, interval is (months, days, microseconds), jsonb and uuid are
# text, timestamp is a naive datetime, timestamptz an aware datetime in UTC, an array is a tuple, and NULL is None. The binder
# rejects values that the Python type cannot represent (infinity, year 10000).
Value: TypeAlias = Union[bool, int, float, str, bytes, Decimal, date, datetime, tuple["Value", ...], None]  # noqa: UP007

# --- scalars ---------------------------------------------------------------------------------------------------------------------


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
class Extreme:
    """GREATEST or LEAST. NULLs are ignored; the result is NULL if all arguments are."""

    which: OneOf["greatest", "least"]
    arguments: tuple[Scalar, ...]
    type: Type


Scalar: TypeAlias = Column | Literal | Parameter | Call | And | Or | Not | IsNull | IsDistinct | InList | Case | Coalesce | Extreme


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
    """

    function: Function
    arguments: tuple[Scalar, ...]
    type: Type
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[SortKey, ...] = ()
    position: int | None = field(default=None, compare=False)


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


# --- relations -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a source, table or materialized view. Plain views are expanded by the binder.

    `relation`: its id. `key`: positions of columns that identify a row, or None. `name`: for output.
    `rows`: the approximate number of rows when the view was planned, 0 if unknown; None if the planner
    must not consider sizes.
    """

    relation: int
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None = None
    name: str = field(default="", compare=False)
    position: int | None = field(default=None, compare=False)
    rows: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows. The input of `SELECT 1` is one row without columns."""

    rows: tuple[tuple[Scalar, ...], ...]
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the condition is true, neither false nor NULL."""

    input: Relation
    condition: Scalar

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    """One row per input row, with the values of `expressions`. `columns` has their names."""

    input: Relation
    expressions: tuple[Scalar, ...]
    columns: tuple[Field, ...]


JoinKind: TypeAlias = OneOf["inner", "left", "right", "full", "cross", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs of rows for which the condition is true.

    Columns are those of the left, then those of the right side; for semi and anti only those of the
    left. left, right and full joins add the rows without a match, with NULLs. `condition` is None for
    cross joins only.
    """

    left: Relation
    right: Relation
    kind: JoinKind
    condition: Scalar | None
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        left, right = self.left.columns, self.right.columns
        if self.kind in ("semi", "anti"):
            return left
        if self.kind in ("right", "full"):
            left = tuple(Field(f.name, f.type) for f in left)
        if self.kind in ("left", "full"):
            right = tuple(Field(f.name, f.type) for f in right)
        return left + right


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per distinct `keys`. The columns are the keys, then the aggregates. NULLs are one group.

    Without keys there is exactly one row, also for empty input (SQL standard).
    """

    input: Relation
    keys: tuple[Scalar, ...]
    aggregates: tuple[AggregateCall, ...]

    @property
    def columns(self) -> tuple[Field, ...]:
        keys = (Field(name_of(k, self.input), k.type, nullable(k, self.input.columns)) for k in self.keys)
        return (*keys, *(Field(a.function.name, a.type, a.function.name != "count") for a in self.aggregates))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each distinct row once. NULLs count as equal."""

    input: Relation

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Union_:
    """UNION ALL of inputs with the same column types. UNION is a Distinct over it."""

    inputs: tuple[Relation, ...]
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class SetOperation:
    """INTERSECT or EXCEPT of inputs with the same column types. NULLs count as equal.

    `all`: INTERSECT ALL or EXCEPT ALL, which count duplicates.
    """

    left: Relation
    right: Relation
    kind: OneOf["intersect", "except"]
    all: bool
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Each input row with window functions over its partition.

    One column per call follows the input's columns.
    """

    input: Relation
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns + tuple(Field(c.function.name, c.type) for c in self.calls)


@dataclass(frozen=True, slots=True)
class TopK:
    """For each distinct `keys`, the first `count` rows in `order` after skipping `offset` rows.

    A count of None means all rows. DISTINCT ON has a count of 1. Ties in `order` are broken by all
    column values, from left to right, so the result is deterministic. `ties`: WITH TIES, also the rows
    equal in `order` to the last one. Count and offset have type int8 and no columns.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    count: Scalar | None
    offset: Scalar | None = None
    ties: bool = False
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Generate:
    """Each input row combined with each row that a set-returning function returns for it.

    kind 'left': with NULLs if the function returns no row. Columns are those of the input, then
    `outputs`, then with `ordinality` the row number, from 1.
    """

    input: Relation
    function: Function
    arguments: tuple[Scalar, ...]
    outputs: tuple[Field, ...]
    ordinality: bool = False
    kind: OneOf["inner", "left"] = "inner"
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        number = (Field("ordinality", INT8, self.kind == "left"),) if self.ordinality else ()
        return self.input.columns + self.outputs + number


@dataclass(frozen=True, slots=True)
class Sort:
    """The rows in the order of `keys`."""

    input: Relation
    keys: tuple[SortKey, ...]
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` rows (None: all) after skipping `offset` rows.

    Both have type int8 and no columns.
    """

    input: Relation
    count: Scalar | None
    offset: Scalar | None = None
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Working:
    """The working table of the Recursive with this number: the rows that its previous iteration added."""

    number: int
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE, for ad-hoc queries only.

    The rows of `base`, then repeatedly those of `step` over the rows of the previous iteration, until
    an iteration adds none. `all`: UNION ALL. Otherwise rows that already exist are discarded.
    """

    number: int
    base: Relation
    step: Relation
    all: bool
    columns: tuple[Field, ...]


Relation: TypeAlias = (
    Scan
    | Values
    | Filter
    | Project
    | Join
    | Aggregate
    | Distinct
    | Union_
    | SetOperation
    | Window
    | TopK
    | Generate
    | Sort
    | Limit
    | Recursive
    | Working
)


@dataclass(frozen=True, slots=True)
class Query:
    """A bound query.

    `parameters`: types of $1, $2, … `depends`: ids of the items that its text names, including plain
    views. `places`: (position, id) of each of these names. `demands`: the privileges that evaluating
    the plan needs (`sql.authorization`).
    """

    plan: Relation
    columns: tuple[Field, ...]
    parameters: tuple[Type, ...] = ()
    depends: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    demands: tuple[Demand, ...] = field(default=(), compare=False)


def name_of(scalar: Scalar, input: Relation) -> str:
    """Returns the default name of an output column."""
    match scalar:
        case Column(index=index):
            return input.columns[index].name
        case Call(function=function) if function.kind == "function":
            return function.name
        case _:
            return "?column?"


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
        case Coalesce(arguments=arguments) | Extreme(arguments=arguments):
            return all(nullable(a, columns) for a in arguments)
        case Case(branches=branches, otherwise=otherwise):
            return nullable(otherwise, columns) or any(nullable(then, columns) for _, then in branches)
        case _:
            return True
