"""The nodes of relations: rows with `columns`, computed from other relations.

A relation is a bag of rows. Only Sort and Limit define an order. The Limit over a Sort of a view is
maintained as a TopK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from tailgate.lake.catalog import ROUNDS
from tailgate.lake.types import INT8, Field
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan.scalars import AggregateCall, Call, Column, Scalar, SortKey, WindowCall, nullable


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a source, table or materialized view. Plain views are expanded by the binder.

    `relation`: its id. `key`: positions of columns that identify a row, or None. `name`: for output.
    `rows`: the approximate number of rows when the view was planned, 0 if unknown; None if the planner
    must not consider sizes. `join_columns`: the columns that joins of the relation keep so that views can share them, or None.
    """

    relation: int
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None = None
    name: str = field(default="", compare=False)
    position: int | None = field(default=None, compare=False)
    rows: int | None = field(default=None, compare=False)
    join_columns: tuple[int, ...] | None = field(default=None, compare=False)


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
class ArrivalJoin:
    """The rows of a stream, each with the rows of a table that match when it arrives.

    The left side is append-only, and later changes of the right side do not change the result. So it
    depends on the order of changes, and only views have it. Columns and kinds are those of a Join.
    """

    left: Relation
    right: Relation
    kind: OneOf["inner", "left"]
    condition: Scalar
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.as_join().columns

    def as_join(self) -> Join:
        """Returns the join of the same sides at one time."""
        return Join(self.left, self.right, self.kind, self.condition, self.position)


@dataclass(frozen=True, slots=True)
class WithinJoin:
    """The pairs of rows of two streams for which the condition is true and whose times are near each other.

    A row of the left at time t has matches on the right from t - `before` to t + `after`, in microseconds.
    `times`: those of both sides. Rows count until the stream time, which is the greatest time so far, is
    `grace` after the end of their windows. Rows without a match are added when they arrive if `grace` is
    None, and otherwise at that time. So the result depends on the order of changes, and only views have it.

    Columns are those of a Join, then a number: rows with equal sides of the condition have it in their order.
    """

    left: Relation
    right: Relation
    kind: OneOf["inner", "left", "right", "full"]
    condition: Scalar
    times: tuple[Scalar, Scalar]
    before: int
    after: int
    grace: int | None = None
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return (*self.as_join().columns, Field("number", INT8, False))

    def as_join(self) -> Join:
        """Returns the join of the same sides at one time, without times."""
        return Join(self.left, self.right, self.kind, self.condition, self.position)


@dataclass(frozen=True, slots=True)
class Session:
    """The column with the start of a row's window, and the keys of windows that are merged."""

    start: Scalar
    keys: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Closing:
    """The rows of a stream whose windows are open when they arrive.

    A window closes when the stream time, the greatest `time` so far, has reached its `end` plus `grace` in
    microseconds. `last`: the rows of each window are added when it closes. So the result depends on the order
    of changes, and only views have it.

    With `session`, the windows of rows with equal keys that overlap or touch are one window. Its bounds replace those
    of its rows, in the columns `start` and `end`.

    `retention`: the microseconds after its `end` for which a window stays in the result of the aggregation above.
    """

    input: Relation
    time: Scalar
    end: Scalar
    grace: int
    last: bool = False
    session: Session | None = None
    retention: int | None = None
    position: int | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Retention:
    """The time at which a group of a window leaves: when the stream time has reached `end` plus `length` in microseconds.

    `end` is equal in all rows of a group.
    """

    end: Scalar
    length: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """One row per distinct `keys`. The columns are the keys, then the aggregates. NULLs are one group.

    Without keys there is exactly one row, also for empty input (SQL standard). With `retention` the input is a Closing.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    aggregates: tuple[AggregateCall, ...]
    retention: Retention | None = None

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
class UnionAll:
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
class WorkingTable:
    """The working table of the Recursive with this number: the rows that its previous round added."""

    number: int
    columns: tuple[Field, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE: the rows of `base`, then repeatedly those of `step` over the rows of the previous round.

    It ends with a round that adds none. `all`: UNION ALL. Otherwise rows that already exist are
    discarded. A maintained query fails for rows that need more than `limit` rounds. If it is
    `numbered`, its round is the last column of a row (`engine.plan.rewrites.rounds`).
    """

    number: int
    base: Relation
    step: Relation
    all: bool
    columns: tuple[Field, ...]
    name: str = ""
    limit: int = ROUNDS
    numbered: bool = False


Relation: TypeAlias = (
    Scan
    | Values
    | Filter
    | Project
    | Join
    | ArrivalJoin
    | WithinJoin
    | Closing
    | Reduce
    | Distinct
    | UnionAll
    | SetOperation
    | Window
    | TopK
    | Generate
    | Sort
    | Limit
    | Recursive
    | WorkingTable
)


def name_of(scalar: Scalar, input: Relation) -> str:
    """Returns the default name of an output column."""
    match scalar:
        case Column(index=index):
            return input.columns[index].name
        case Call(function=function) if function.kind == "function":
            return function.name
        case _:
            return "?column?"
