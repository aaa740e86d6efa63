"""How a plan is kept up to date: streams of changes between operators that keep state.

    Δ(σ R) = σ ΔR                  a step of an edge
    Δ(π R) = π ΔR                  a step of an edge
    Δ(L ⋈ R) = ΔL ⋈ R_old + L_new ⋈ ΔR       Joined: both sides are kept by key; outer, semi and anti joins count partners besides
    Δ(τ R) = τ ΔR, and what the clock adds and takes       Timed: the rows whose time to come or go is ahead are kept, in order
    Δ(L ∩ R), Δ(L ∖ R): per touched row, from how often it is there on either side       Paired: rows are counted on both sides
    Δ(L ∪ R) = ΔL + ΔR             Merged: streams side by side
    Δ(γ R): per touched group, minus its old row, plus its new one       Reduced: the accumulators are kept by group
    Δ(top R): per touched partition, minus the old first rows, plus the new ones       Topped: the rows are kept by partition, in order
    Δ(window R): per touched partition, minus its old rows, plus its new ones           Recomputed: likewise

A `Stream` is where changes come from and the filters and projections that they pass. Two streams are equal when they carry the same
changes, so what several views have in common is found by comparing them (`digest`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from engine.plan.graph import Aggregate, JoinKind, Linear, SetKind, SortColumn, Where, WindowFunction
from lake.types import Field


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of an append-only source, decoded. `width`: how many of its first columns, if not all."""

    item: int
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a stored relation that no view makes: of a keyed source, of dead letters, of a table. `width` as of a source."""

    item: int
    width: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Another materialized view, which is kept by `stream`."""

    item: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class Joined:
    """Columns of the left, then of the right, of the pairs whose keys are equal and which pass the `condition`, if there is one.

    left, right, full: also rows without a partner, with NULLs; semi, anti: the left's rows with one, without one. `null_safe`: of each
    column of the keys, whether NULL equals NULL. `unique`: of the left and of the right, whether a key has one row at most; not told of a
    join with a condition.
    """

    left: Stream
    right: Stream
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    kind: JoinKind = "inner"
    null_safe: tuple[bool, ...] = ()
    condition: Where | None = None
    unique: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True)
class Reduced:
    """The first `keys` columns of the input once for each group, then the aggregates; over its own columns of the input each."""

    input: Stream
    keys: int
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class Timed:
    """The rows of the input that are there now: its last two columns, which go, say from when on and until when, in milliseconds."""

    input: Stream


@dataclass(frozen=True, slots=True)
class Paired:
    """INTERSECT or EXCEPT of inputs with equal types of columns; `all`: of bags, else of sets."""

    left: Stream
    right: Stream
    kind: SetKind
    all: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """One row of one column, which is there from the beginning and for ever: what rows without FROM are made of."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The changes of several streams with equal types of columns."""

    inputs: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class Topped:
    """Of the rows with equal `partition` columns the first `count` (None: all) in `order` after `offset`.

    `ties`: those equal in order to the last one too. Of the input's columns the first `width` are the row; those behind it are only
    split or sorted by.
    """

    input: Stream
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    count: int | None
    offset: int
    ties: bool


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Each row, the first `width` columns of the input, with what the functions say of it among the rows of its partition."""

    input: Stream
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    functions: tuple[WindowFunction, ...]


Leaf: TypeAlias = Source | Kept | View | Unit
Stateful: TypeAlias = Joined | Reduced | Timed | Paired | Topped | Recomputed
Origin: TypeAlias = Leaf | Stateful | Merged
STATEFUL = (Joined, Reduced, Timed, Paired, Topped, Recomputed)


@dataclass(frozen=True, slots=True)
class Stream:
    """Changes of rows of `columns`: those of the origin after `shape`. `append_only`: no row ever goes."""

    origin: Origin
    shape: Linear
    columns: tuple[Field, ...]
    append_only: bool


def inputs(origin: Stateful) -> tuple[Stream, ...]:
    """By port."""
    return (origin.left, origin.right) if isinstance(origin, Joined | Paired) else (origin.input,)


def _above(origin: Origin) -> tuple[Stream, ...]:
    """The streams that an origin is made of; none of a leaf."""
    if isinstance(origin, Merged):
        return origin.inputs
    return inputs(origin) if isinstance(origin, STATEFUL) else ()


def stateful(stream: Stream) -> tuple[Stateful, ...]:
    """The operators of a stream down to its leaves, each once, inputs first."""
    found: dict[Stateful, None] = {}

    def visit(origin: Origin) -> None:
        if origin in found:
            return
        for input in _above(origin):
            visit(input.origin)
        if isinstance(origin, STATEFUL):
            found[origin] = None

    visit(stream.origin)
    return tuple(found)


def leaves(stream: Stream) -> tuple[Leaf, ...]:
    """What a stream comes from, each once, in the order of the plan."""
    found: dict[Leaf, None] = {}

    def visit(origin: Origin) -> None:
        for input in _above(origin):
            visit(input.origin)
        if isinstance(origin, Leaf):
            found[origin] = None

    visit(stream.origin)
    return tuple(found)
