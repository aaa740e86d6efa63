"""How a plan is kept up to date: streams of changes between operators that keep state.

    Δ(σ R) = σ ΔR                  a step of an edge
    Δ(π R) = π ΔR                  a step of an edge
    Δ(L ⋈ R) = ΔL ⋈ R_old + L_new ⋈ ΔR       Joined: both sides are kept by key; outer, semi and anti joins count partners besides
    Δ(τ R) = τ ΔR, and what the clock adds and takes       Timed: the rows whose time to come or go is ahead are kept, in order
    Δ(γ R): per touched group, minus its old row, plus its new one       Reduced: the accumulators are kept by group

A `Stream` is where changes come from and the filters and projections that they pass. Two streams are equal when they carry the same
changes, so what several views have in common is found by comparing them (`digest`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from engine.plan.graph import Aggregate, JoinKind, Linear, Where
from lake.types import Field


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of an append-only source, decoded."""

    item: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a stored relation that no view makes: of a keyed source, of dead letters, of a table."""

    item: int


@dataclass(frozen=True, slots=True)
class View:
    """Another materialized view, which is kept by `stream`."""

    item: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class Joined:
    """Columns of the left, then of the right, of the pairs whose keys are equal and which pass the `condition`, if there is one.

    left, right, full: also rows without a partner, with NULLs; semi, anti: the left's rows with one, without one. `null_safe`: of each
    column of the keys, whether NULL equals NULL.
    """

    left: Stream
    right: Stream
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    kind: JoinKind = "inner"
    null_safe: tuple[bool, ...] = ()
    condition: Where | None = None


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


Leaf: TypeAlias = Source | Kept | View
Stateful: TypeAlias = Joined | Reduced | Timed
Origin: TypeAlias = Leaf | Stateful
STATEFUL = (Joined, Reduced, Timed)


@dataclass(frozen=True, slots=True)
class Stream:
    """Changes of rows of `columns`: those of the origin after `shape`. `append_only`: no row ever goes."""

    origin: Origin
    shape: Linear
    columns: tuple[Field, ...]
    append_only: bool


def inputs(origin: Stateful) -> tuple[Stream, ...]:
    """By port."""
    return (origin.left, origin.right) if isinstance(origin, Joined) else (origin.input,)


def stateful(stream: Stream) -> tuple[Stateful, ...]:
    """The operators of a stream down to its leaves, each once, inputs first."""
    found: dict[Stateful, None] = {}

    def visit(origin: Origin) -> None:
        if isinstance(origin, STATEFUL) and origin not in found:
            for input in inputs(origin):
                visit(input.origin)
            found[origin] = None

    visit(stream.origin)
    return tuple(found)


def leaves(stream: Stream) -> tuple[Leaf, ...]:
    """What a stream comes from, each once, in the order of the plan."""
    found: dict[Leaf, None] = {}

    def visit(origin: Origin) -> None:
        if isinstance(origin, STATEFUL):
            for input in inputs(origin):
                visit(input.origin)
        else:
            found[origin] = None

    visit(stream.origin)
    return tuple(found)
