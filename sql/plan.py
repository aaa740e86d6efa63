"""The algebra: what a query means, as frozen values, typed and bound to the catalog's ids.

    Relation: rows with `columns`; a Scalar inside it refers to its input's columns by position
    Scalar:   a value of `type` computed from one row

Two plans are equal when they mean the same tree. Names of columns are for people (SELECT's output, EXPLAIN) and positions of text
for errors: positions take no part in equality. The unions are closed: match on them ends with assert_never, so a new node is a list
of places for the type checker to name.

A relation is a bag of rows. Order is only meant by Sort and Limit; a view's Limit over a Sort is kept up to date as a TopK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal as OneOf
from typing import TypeAlias, Union

from lake.types import BOOL, INT8, Field, Type
from sql.authorization import Demand
from sql.functions.entry import Function

# A literal in stored form: time is int of microseconds, interval (months, days, microseconds), jsonb and uuid text, timestamp a naive
# datetime, timestamptz an aware one in UTC, an array a tuple, None is NULL. Values a Python type cannot hold (infinity, year 10000) are
# refused when bound.
Value: TypeAlias = Union[bool, int, float, str, bytes, Decimal, date, datetime, tuple["Value", ...], None]  # noqa: UP007

# --- scalars ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """Column `index` of the input; of a join's condition: of the left's columns followed by the right's."""

    index: int
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
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
    """A function, operator or cast of the catalogue; arguments are of exactly its argument types."""

    function: Function
    arguments: tuple[Scalar, ...]
    type: Type
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Three-valued; of two or more."""

    arguments: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Or:
    arguments: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Not:
    argument: Scalar

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    """IS NULL; never NULL itself."""

    argument: Scalar

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class IsDistinct:
    """IS DISTINCT FROM, of two values of one type; never NULL itself."""

    left: Scalar
    right: Scalar

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class InList:
    """argument IN (items), all of one type; NULL if not found and the argument or an item is NULL."""

    argument: Scalar
    items: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Case:
    """The result of the first branch whose condition is true, else `otherwise`; branches not taken are not evaluated."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar
    type: Type


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first that is not NULL; those after it are not evaluated."""

    arguments: tuple[Scalar, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Extreme:
    """GREATEST or LEAST; NULLs are passed over, NULL if there is nothing else."""

    which: OneOf["greatest", "least"]
    arguments: tuple[Scalar, ...]
    type: Type


Scalar: TypeAlias = Column | Literal | Parameter | Call | And | Or | Not | IsNull | IsDistinct | InList | Case | Coalesce | Extreme


@dataclass(frozen=True, slots=True)
class SortKey:
    expression: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over a group's rows; `count(*)` has no arguments. `filter`: only rows for which it is true.

    `order`: in which the rows are taken. Of an ordered-set aggregate it is what WITHIN GROUP says, and holds what is aggregated.
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
    """Where a frame begins or ends; `offset` of preceding and following: a scalar without columns."""

    kind: OneOf["unbounded preceding", "preceding", "current row", "following", "unbounded following"]
    offset: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of a partition that a window function sees from one of them."""

    mode: OneOf["rows", "range", "groups"] = "range"
    start: Bound = Bound("unbounded preceding")
    end: Bound = Bound("current row")
    exclude: OneOf["no others", "current row", "group", "ties"] = "no others"


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function, or an aggregate over a frame; one value for each row."""

    function: Function
    arguments: tuple[Scalar, ...]
    type: Type
    frame: Frame = Frame()
    filter: Scalar | None = None
    position: int | None = field(default=None, compare=False)


# --- relations -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a catalog item that has rows of its own (never a plain view: those are expanded).

    `relation`: its id. `key`: positions of columns that identify a row, or None. `name` is for people. `rows`: about how many there were
    when the view was planned, 0 if that was not known; None if the plan is not to go by sizes.
    """

    relation: int
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None = None
    name: str = field(default="", compare=False)
    position: int | None = field(default=None, compare=False)
    rows: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Values:
    """Rows written out; `SELECT 1` reads one row of no columns."""

    rows: tuple[tuple[Scalar, ...], ...]
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the condition is true, not false and not NULL."""

    input: Relation
    condition: Scalar

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    """One row for each row: `expressions`, named by `columns`."""

    input: Relation
    expressions: tuple[Scalar, ...]
    columns: tuple[Field, ...]


JoinKind: TypeAlias = OneOf["inner", "left", "right", "full", "cross", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs for which the condition is true; columns are the left's, then the right's (semi, anti: the left's alone).

    left, right and full add the rows without a partner, with NULLs. `condition` is None for cross only.
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
    """One row per distinct `keys`; columns are the keys, then the aggregates, in this order. NULLs are one group.

    With no keys there is exactly one row, also for empty input (SQL standard).
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
    """Each row once; NULLs are equal here."""

    input: Relation

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Union_:
    """UNION ALL of inputs with the same types of columns (UNION is Distinct of it)."""

    inputs: tuple[Relation, ...]
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class SetOperation:
    """INTERSECT or EXCEPT of inputs with the same types of columns; NULLs are equal. `all`: of two bags, else of two sets."""

    left: Relation
    right: Relation
    kind: OneOf["intersect", "except"]
    all: bool
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Each row with what `calls` say of its partition; columns are the input's, then one for each call."""

    input: Relation
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns + tuple(Field(c.function.name, c.type) for c in self.calls)


@dataclass(frozen=True, slots=True)
class TopK:
    """Of the rows with equal `keys` the first `count` (None: all) in `order`, after leaving out `offset`.

    DISTINCT ON is a count of 1. Rows that are equal in `order` come in the order of their values, column by column, so that the answer
    depends on nothing but the rows. `ties`: those equal in `order` to the last one too. Count and offset are of type int8, without columns.
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
    """Each row with each of the rows that a set-returning function gives for it; left: with NULLs if it gives none.

    Columns are the input's, then `outputs`, then with `ordinality` the number of the row, counted from 1.
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
    input: Relation
    keys: tuple[SortKey, ...]
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` rows (None: all), after leaving out `offset`; both scalars of type int8 without columns."""

    input: Relation
    count: Scalar | None
    offset: Scalar | None = None
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Working:
    """Inside a Recursive of this number: the rows that its last round brought."""

    number: int
    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE, for ad-hoc queries: the rows of `base`, then of `step` over the rows of the round before, until there are none.

    `all`: a row comes as often as it is found; else once, and what has been there is not new.
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
    """A bound query. `parameters`: types of $1, $2, …; `depends`: ids of the items that its text names, plain views included; `places`:
    where it names them, position and id; `demands`: the privileges that it takes to evaluate the plan (`sql.authorization`)."""

    plan: Relation
    columns: tuple[Field, ...]
    parameters: tuple[Type, ...] = ()
    depends: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    demands: tuple[Demand, ...] = field(default=(), compare=False)


def name_of(scalar: Scalar, input: Relation) -> str:
    """A name for people."""
    match scalar:
        case Column(index=index):
            return input.columns[index].name
        case Call(function=function) if function.kind == "function":
            return function.name
        case _:
            return "?column?"


def nullable(scalar: Scalar, columns: tuple[Field, ...]) -> bool:
    """Whether it can be NULL, as far as one can see: False is a promise."""
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
