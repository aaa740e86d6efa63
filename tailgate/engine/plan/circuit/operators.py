"""The stateful operators of a circuit as values, one class for each class of tailgate/engine/java's `operators`.

Each operator has a node number, the columns of its inputs, and a fingerprint that identifies its
state. Columns have no names: those of a row are c0, c1, … at each port.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailgate.engine.plan.circuit.steps import Filter
from tailgate.lake.types import INT4, INT8, TEXT, Field, Type

# the columns that follow a row in the input of an upsert: whether the key is deleted, and the
# position that orders changes of a key
DELETED, POSITION = "__deleted", "__position"

# the columns that follow a row in the input of a CdcUpsert or CdcBag (tailgate/engine/java, ChangeEvent)
CHANGE_EVENT = (
    Field("__op", TEXT),
    Field("__origin", TEXT),
    Field("__lane", TEXT),
    Field("__position", TEXT),
    Field("__place", TEXT),
    Field("__time", INT8),
    Field("__marker", TEXT),
    Field("__partition", INT4),
)

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]

SetKind = Literal["intersect", "except"]


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of the input that rows are sorted by."""

    column: int
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One result of a reduce: a function over columns of the input.

    count without columns counts rows. `filter`: the boolean column that must be true for a row to
    be aggregated, or -1. `order`: the order in which values are aggregated, before the order of the
    values themselves. `fraction`: the fraction of a percentile. `limit`: how many of the first values an array needs to
    have; negative: of the last ones; 0: all. `unique`: whether it needs only the first one of equal values.
    """

    function: str
    columns: tuple[int, ...]
    type: Type
    distinct: bool = False
    filter: int = -1
    order: tuple[SortColumn, ...] = ()
    fraction: float = 0.0
    limit: int = 0
    unique: bool = False


@dataclass(frozen=True, slots=True)
class FrameBound:
    """The start or end of a window frame; `kind` is PostgreSQL's keyword.

    `offset` is used by ROWS and GROUPS. `column` is used by RANGE: it has the value that the frame
    extends to.
    """

    kind: str
    offset: int = 0
    column: int = -1


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function, or an aggregate over a frame.

    `key`: the column that RANGE compares with the bounds, or -1.
    """

    function: AggregateCall
    mode: str
    start: FrameBound
    end: FrameBound
    exclude: str
    key: int


@dataclass(frozen=True, slots=True)
class Upsert:
    """An operator that keeps the newest row of each `key` and emits the differences.

    Port 0: a row of `columns`, then `__deleted` (boolean), then `__position` (text, may be NULL).
    Output: `columns`. A row is ignored if its position is not above that of the stored row; a row
    without a position always applies. `first`: the original number of columns, if columns were
    added later.
    """

    node: int
    columns: tuple[Field, ...]
    key: tuple[int, ...]
    fingerprint: str
    first: int | None = None


@dataclass(frozen=True, slots=True)
class CdcUpsert:
    """An operator that turns change events of a table with a key into the rows of the table.

    Port 0: a row of `columns`, then CHANGE_EVENT. Output: `columns`. Repeated and late events are
    dropped. `first`: as in Upsert.
    """

    node: int
    columns: tuple[Field, ...]
    key: tuple[int, ...]
    fingerprint: str
    first: int | None = None


@dataclass(frozen=True, slots=True)
class CdcBag:
    """An operator that turns change events of a table without a key into the rows of the table.

    Port 0: the row after the change and the row before it, each a struct or NULL, then
    CHANGE_EVENT. Output: `columns`. Repeated and late events are dropped. `first`: as in Upsert.
    """

    node: int
    columns: tuple[Field, ...]
    fingerprint: str
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """A join by key.

    Ports 0 and 1: `left` and `right`. Output: the columns of the left, then of the right (semi and
    anti joins: only those of the left).

    Two rows match if their keys are equal and `condition`, if any, is true; it reads the left's
    columns, then the right's. Both keys have equal types. A NULL in a key matches nothing, except
    that it matches NULL where the column is `null_safe`. Without key columns all pairs match. Two
    flags are given for each side: `append_only`, if it never retracts a row, and `unique`, if it
    has at most one row per key.
    """

    node: int
    kind: JoinKind
    left: tuple[Field, ...]
    right: tuple[Field, ...]
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Filter | None
    append_only: tuple[bool, bool]
    unique: tuple[bool, bool]
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        return self.left if self.kind in ("semi", "anti") else self.left + self.right


@dataclass(frozen=True, slots=True)
class ArrivalJoin:
    """A join of a stream, the left, with the rows that a table, the right, has when the stream's rows arrive.

    Ports 0 and 1: `left` and `right`; ports 2 and 3: their history, while the view is being filled.
    Output: the columns of the left, then of the right. `filling`: changes at ports 0 and 1 wait for
    the end of the fill.
    """

    node: int
    kind: Literal["inner", "left"]
    left: tuple[Field, ...]
    right: tuple[Field, ...]
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    filling: bool
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        return self.left + self.right


@dataclass(frozen=True, slots=True)
class WithinJoin:
    """A join of two streams by key, and by time within `before` and `after`, in microseconds.

    Ports 0 and 1: `left` and `right`; ports 2 and 3: their history, while the view is being filled.
    Output: the columns of the left, then of the right, then a number that orders the rows of a key.
    `grace`: how late rows may be; `eager`: rows without a match of an outer side are emitted when they
    arrive, otherwise when they are no longer awaited. `filling`: all rows wait for the end of the fill.
    """

    node: int
    kind: Literal["inner", "left", "right", "full"]
    left: tuple[Field, ...]
    right: tuple[Field, ...]
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    left_time: int
    right_time: int
    before: int
    after: int
    grace: int
    eager: bool
    filling: bool
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        return (*self.left, *self.right, Field("number", INT8, False))


@dataclass(frozen=True, slots=True)
class Closing:
    """The rows whose windows are open when they arrive: the first `width` columns of `input`.

    Port 0: `input`, with the time of the row and the end of its window in the columns `time` and `end`; port 1:
    its history, while the view is being filled. `grace`: how late rows may be, in microseconds. `last`: rows are
    emitted when their window closes. `session`: the column with the start of the window, and the columns of the key;
    windows of a key that overlap or touch are merged. `filling`: all rows wait for the end of the fill.
    """

    node: int
    input: tuple[Field, ...]
    width: int
    time: int
    end: int
    grace: int
    last: bool
    session: tuple[int, tuple[int, ...]] | None
    filling: bool
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        return self.input[: self.width]


KEEPS_GROUPS = "ksqldb_high_watermark"  # an aggregate


@dataclass(frozen=True, slots=True)
class Reduce:
    """Grouped aggregation: one row for each group that has rows.

    Port 0: `input`. Output: the `key` columns, then one column per aggregate. Without key columns
    there is exactly one row, also for empty input. Without aggregates the node is DISTINCT. NULLs
    form a group.

    `retention`: a column and a number of microseconds. Port 1 has times; a group leaves, and its state is released,
    in the tick after the greatest one has reached the column of the group plus this number.
    """

    node: int
    input: tuple[Field, ...]
    key: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    append_only: bool
    retention: tuple[int, int] | None
    fingerprint: str

    @property
    def keeps_groups(self) -> bool:
        """Returns whether a group stays when its last row leaves."""
        return any(call.function == KEEPS_GROUPS for call in self.aggregates)

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        results = tuple(Field(f"{a.function}{i}", a.type) for i, a in enumerate(self.aggregates))
        return tuple(self.input[k] for k in self.key) + results


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """A temporal filter: emits each row while the clock is within the row's bounds.

    Port 0: a row of `columns`, then the times (bigint, milliseconds; NULL: no bound) from which and
    until which the row is visible. Output: `columns`.
    """

    node: int
    columns: tuple[Field, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class SetOperation:
    """INTERSECT or EXCEPT of two inputs with equal `columns`. NULLs are equal.

    With `all` the operation is on bags, otherwise on sets.
    """

    node: int
    kind: SetKind
    all: bool
    columns: tuple[Field, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class TopK:
    """The first rows of each partition. Output: the first `width` columns of `input` (port 0).

    In each partition the rows are sorted by `order`, `offset` rows are skipped, and the next
    `count` are kept (None: all). With `ties` the rows that are equal in order to the last one are
    kept, too. `append_only`: the input never retracts a row.
    """

    node: int
    input: tuple[Field, ...]
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    count: int | None
    offset: int
    ties: bool
    append_only: bool
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        return self.input[: self.width]


@dataclass(frozen=True, slots=True)
class Window:
    """Window functions over the partitions of `input` (port 0).

    Output: the first `width` columns of the input, then one per function. Each function sees the
    rows of the row's partition in `order`.
    """

    node: int
    input: tuple[Field, ...]
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    functions: tuple[WindowCall, ...]
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        results = tuple(Field(f"{f.function.function}{i}", f.function.type) for i, f in enumerate(self.functions))
        return self.input[: self.width] + results


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The rows of a recursive query. Ports 0 and 1: its base, and its step, which reads the output.

    Output: `columns`, of which the last is the round. Input: these, then `sort_keys`. `keys`, `all`, `limit`, `name`: as
    in `rules.change.Fixpoint`.
    """

    node: int
    columns: tuple[Field, ...]
    sort_keys: tuple[Field, ...]
    keys: tuple[int, ...]
    all: bool
    limit: int
    name: str
    fingerprint: str


# operators whose output depends on the order of their input
ORDERED = (ArrivalJoin, WithinJoin, Closing)

Operator = (
    Upsert
    | CdcUpsert
    | CdcBag
    | Join
    | ArrivalJoin
    | WithinJoin
    | Closing
    | Reduce
    | TemporalFilter
    | SetOperation
    | TopK
    | Window
    | Fixpoint
)
