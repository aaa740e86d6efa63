"""Streams of changes and the stateful operators between them: the maintenance of each plan node.

    Δ(σ R) = σ ΔR           a step of an edge
    Δ(π R) = π ΔR           a step of an edge
    Δ(L ⋈ R) = ΔL ⋈ R_old + L_new ⋈ ΔR
                            Join: stores both sides by key; outer, semi and anti joins also count
                            matches
    Δ(S ⋈ T at arrival) = ΔS ⋈ T
                            ArrivalJoin: stores T by key; ΔT changes T only
    Δ(S ⋈ R within)         WithinJoin: stores the rows of S and R whose windows are open; per row, in
                            order, the pairs with stored rows
    Δ(closing R)            Closing: the rows whose windows are open; stores rows to be emitted last
    Δ(τ R) = τ ΔR + rows that become visible or expire
                            TemporalFilter: stores the rows that wait for their time, in time order
    Δ(L ∩ R), Δ(L ∖ R)      SetOperation: stores the counts of each row on both sides; computed per
                            changed row
    Δ(L ∪ R) = ΔL + ΔR      Union: adds the streams
    Δ(γ R)                  Reduce: stores accumulators by group; per changed group, minus the old
                            row, plus the new one
    Δ(top R)                TopK: stores rows by partition, in order; per changed partition, minus
                            the old first rows, plus the new ones
    W = base + step(W)      Fixpoint: stores the derivations of each row by round; changes pass through
                            the step round by round
    Δ(window R)             Window: stores rows by partition, in order; per changed partition,
                            minus the old rows, plus the new ones

A `Stream` consists of the origin of changes and of the filters and projections that are applied to
them. Two streams are equal if they carry the same changes, so comparing them finds the parts that
views have in common (`digest`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.operators import JoinKind, SetKind, SortColumn
from tailgate.engine.plan.circuit.steps import Filter, Steps
from tailgate.lake.types import Field


@dataclass(frozen=True, slots=True)
class Source:
    """The decoded rows of an append-only source; `width`: only the first columns (None: all)."""

    item: int
    width: int | None = None


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """The rows of a stored relation that is not a view: a keyed source, dead letters, a table.

    `width`: as in Source.
    """

    item: int
    width: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The rows of another materialized view, which `stream` maintains."""

    item: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class Join:
    """A join: the pairs of rows with equal keys for which `condition`, if any, is true.

    Columns are those of the left, then those of the right. left, right and full joins add the rows
    without a match, with NULLs; semi and anti joins return the rows of the left with and without a
    match. `null_safe`: for each key column, whether NULL equals NULL. `unique`: for the left and
    the right, whether each key has at most one row; it is not set for joins with a condition.
    """

    left: Stream
    right: Stream
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    kind: JoinKind = "inner"
    null_safe: tuple[bool, ...] = ()
    condition: Filter | None = None
    unique: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True)
class ArrivalJoin:
    """A join of a stream, the left, with the rows that a table, the right, has when the stream's rows arrive.

    Columns and keys are those of a Join; NULL equals nothing.
    """

    left: Stream
    right: Stream
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    kind: Literal["inner", "left"] = "inner"


@dataclass(frozen=True, slots=True)
class WithinJoin:
    """A join of two streams by key and time, which the columns `left_time` and `right_time` hold.

    The other columns and keys are those of a Join, and a number follows; NULL equals nothing. `before`, `after` and
    `grace` in microseconds. `eager`: rows without a match are emitted when they arrive.
    """

    left: Stream
    right: Stream
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    kind: Literal["inner", "left", "right", "full"]
    left_time: int
    right_time: int
    before: int
    after: int
    grace: int
    eager: bool


@dataclass(frozen=True, slots=True)
class Closing:
    """The rows of a stream whose windows are open when they arrive: the first `width` columns of the input.

    `time` and `end`: the columns with the time of a row and the end of its window; `grace` in microseconds. `last`:
    rows are emitted when their window closes. `session`: the column with the start of its window, and the keys of the
    windows that are merged; their rows are retracted and emitted with the new bounds.
    """

    input: Stream
    width: int
    time: int
    end: int
    grace: int
    last: bool
    session: tuple[int, tuple[int, ...]] | None


@dataclass(frozen=True, slots=True)
class Retention:
    """A group is released when the stream time has reached its column `end` plus `length` in microseconds.

    The stream time is the greatest time of `clock`, which has one column.
    """

    clock: Stream
    end: int
    length: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """A grouped aggregation: the first `keys` columns of the input, then the aggregates.

    Each aggregate reads its own columns of the input. `retention`: when groups are released.
    """

    input: Stream
    keys: int
    aggregates: tuple[operators.AggregateCall, ...]
    retention: Retention | None = None


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """A temporal filter: the rows of the input that are visible now.

    The last two columns of the input are the times from which and until which a row is visible, in
    milliseconds. They are not part of the output.
    """

    input: Stream


@dataclass(frozen=True, slots=True)
class SetOperation:
    """INTERSECT or EXCEPT of inputs with equal column types; `all`: of bags, otherwise of sets."""

    left: Stream
    right: Stream
    kind: SetKind
    all: bool


@dataclass(frozen=True, slots=True)
class SingleRow:
    """One row with one column that always exists; the input of queries without FROM."""


@dataclass(frozen=True, slots=True)
class Union:
    """The sum of several streams with equal column types (UNION ALL)."""

    inputs: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class TopK:
    """The first rows of each partition, sorted by `order`: `count` rows (None: all) after `offset`.

    `ties`: rows that are equal in order to the last one are included. The first `width` columns of
    the input are the row; the others are only used to partition and sort.
    """

    input: Stream
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    count: int | None
    offset: int
    ties: bool


@dataclass(frozen=True, slots=True)
class Window:
    """Window functions: the first `width` columns of each input row, then the functions' results.

    Each function sees the rows of the row's partition in `order`.
    """

    input: Stream
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    functions: tuple[operators.WindowCall, ...]


@dataclass(frozen=True, slots=True)
class WorkingTable:
    """The output of the Fixpoint with this number, where its step reads it."""

    number: int


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """A recursive query: the rows of `base`, of `step` over them, of `step` over these, and so on.

    The last column is the round of a row: 0 in the base; in the step that of the row of the working
    table that a row follows from. `all`: UNION ALL; otherwise only the first round of a row counts.
    Rows of rounds above `limit` are errors, which name the query. `keys`: the columns of `base` and `step`,
    that say which rows are equal, among them sort keys after the round; as many as the query has, or empty if these do.
    """

    number: int
    base: Stream
    step: Stream
    all: bool
    limit: int
    name: str
    keys: tuple[int, ...] = ()


Leaf: TypeAlias = Source | StoredRelation | View | SingleRow
Stateful: TypeAlias = Join | ArrivalJoin | WithinJoin | Closing | Reduce | TemporalFilter | SetOperation | TopK | Window | Fixpoint
Origin: TypeAlias = Leaf | Stateful | Union | WorkingTable
STATEFUL = (Join, ArrivalJoin, WithinJoin, Closing, Reduce, TemporalFilter, SetOperation, TopK, Window, Fixpoint)


# operators whose output depends on the order of their input
ORDERED = (ArrivalJoin, WithinJoin, Closing)


@dataclass(frozen=True, slots=True)
class Stream:
    """Changes of rows of `columns`: those of `origin` after `shape`. `append_only`: no retractions."""

    origin: Origin
    shape: Steps
    columns: tuple[Field, ...]
    append_only: bool


def inputs(origin: Stateful) -> tuple[Stream, ...]:
    """Returns the input streams of an operator, in port order."""
    if isinstance(origin, Fixpoint):
        return (origin.base, origin.step)
    if isinstance(origin, Reduce):
        return (origin.input,) if origin.retention is None else (origin.input, origin.retention.clock)
    return (origin.left, origin.right) if isinstance(origin, Join | ArrivalJoin | WithinJoin | SetOperation) else (origin.input,)


def _inputs_of(origin: Origin) -> tuple[Stream, ...]:
    """Returns the input streams of an origin; a leaf has none."""
    if isinstance(origin, Union):
        return origin.inputs
    return inputs(origin) if isinstance(origin, STATEFUL) else ()


def stateful(stream: Stream) -> tuple[Stateful, ...]:
    """Returns the operators of a stream down to its leaves, each once, inputs first."""
    operators: dict[Stateful, None] = {}

    def visit(origin: Origin) -> None:
        if origin in operators:
            return
        for input in _inputs_of(origin):
            visit(input.origin)
        if isinstance(origin, STATEFUL):
            operators[origin] = None

    visit(stream.origin)
    return tuple(operators)


def leaves(stream: Stream) -> tuple[Leaf, ...]:
    """Returns the leaves of a stream, each once, in plan order."""
    leaves_in_order: dict[Leaf, None] = {}

    def visit(origin: Origin) -> None:
        for input in _inputs_of(origin):
            visit(input.origin)
        if isinstance(origin, Leaf):
            leaves_in_order[origin] = None

    visit(stream.origin)
    return tuple(leaves_in_order)


def reads_working_table(origin: Origin, number: int) -> bool:
    """Returns whether the working table of this number is upstream of an origin, or the origin itself."""
    return origin == WorkingTable(number) or any(reads_working_table(i.origin, number) for i in _inputs_of(origin))


def table_leaves(stream: Stream) -> frozenset[Leaf]:
    """Returns the leaves on the right of joins as of arrival. Their history comes before that of the streams."""
    return frozenset(leaf for o in stateful(stream) if isinstance(o, ArrivalJoin) for leaf in leaves(o.right))
