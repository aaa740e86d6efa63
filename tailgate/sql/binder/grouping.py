"""Rewrites expressions over the input of GROUP BY as expressions over its groups.

During binding, `Aggregated` takes the place of an aggregate in its expression. `Groups.over` then
replaces it, and each expression equal to a key, by a column of the Reduce node. If a column of
the input remains, that is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from tailgate.lake.errors import GroupingError
from tailgate.lake.types import Type
from tailgate.sql.binder.grouping_sets import GROUPING, not_grouped
from tailgate.sql.binder.scope import Scope
from tailgate.sql.plan import AggregateCall, Column, Scalar, SortKey, Values, Window, WindowCall
from tailgate.sql.plan.rewriting import parts, rebuild
from tailgate.sql.plan.subqueries import subquery
from tailgate.sql.plan.traversal import read_by, with_scalars


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate inside an expression that is not yet over groups; never in a plan."""

    call: AggregateCall

    @property
    def type(self) -> Type:
        return self.call.type


def placeholder(call: AggregateCall) -> Scalar:
    """Returns the scalar that takes an aggregate's place until its groups exist."""
    return cast(Scalar, Aggregated(call))


def aggregate(scalar: Scalar) -> AggregateCall | None:
    """Returns the call if the scalar is an aggregate, else None."""
    inner: object = scalar
    return inner.call if isinstance(inner, Aggregated) else None


@dataclass(frozen=True, slots=True)
class Windowed:
    """A window function inside an expression that has no Window node yet; never in a plan."""

    call: WindowCall
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]

    @property
    def type(self) -> Type:
        return self.call.type

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (*read_by(self.call), *self.partition, *(k.expression for k in self.order))

    def over(self, new: Callable[[Scalar], Scalar]) -> Windowed:
        """Returns the window function with each of its scalars replaced by `new`."""
        window = with_scalars(Window(Values((), ()), self.partition, self.order, (self.call,)), new)
        assert isinstance(window, Window)
        return Windowed(window.calls[0], window.partition, window.order)


def windowed(scalar: Scalar) -> Windowed | None:
    """Returns the window function if the scalar is one, else None."""
    inner: object = scalar
    return inner if isinstance(inner, Windowed) else None


def has_windows(scalar: Scalar) -> bool:
    """Returns whether a scalar contains a window function outside of aggregates."""
    return windowed(scalar) is not None or (aggregate(scalar) is None and any(map(has_windows, parts(scalar))))


def has_aggregates(scalar: Scalar) -> bool:
    """Returns whether a scalar contains an aggregate, also inside a window function."""
    if (window := windowed(scalar)) is not None:
        return any(map(has_aggregates, window.scalars))
    return aggregate(scalar) is not None or any(map(has_aggregates, parts(scalar)))


@dataclass
class Groups:
    """The keys and grouping sets of a GROUP BY, and the distinct aggregates found so far.

    `keys` are scalars over the input. Each of the `sets` contains indexes of keys.
    """

    keys: tuple[Scalar, ...]
    scope: Scope
    sets: tuple[frozenset[int], ...]
    calls: list[AggregateCall] = field(default_factory=list)

    def over(self, scalar: Scalar, *, inside: bool = False) -> Scalar:
        """Returns an expression over the columns of the Reduce node.

        `inside`: a subquery reads it. Raises 42803.
        """
        for i, key in enumerate(self.keys):
            if key == scalar:
                return Column(i, key.type)
        if (window := windowed(scalar)) is not None:
            return cast(Scalar, window.over(self.over))
        if (call := aggregate(scalar)) is not None:
            if call.function is GROUPING and any(a not in self.keys for a in call.arguments):
                raise not_grouped(next((a.position for a in call.arguments if a not in self.keys and isinstance(a, Column)), call.position))
            if call not in self.calls:
                self.calls.append(call)
            return Column(len(self.keys) + self.calls.index(call), call.type)
        if isinstance(scalar, Column):
            shown = f'column "{self._name(scalar)}" must appear in the GROUP BY clause or be used in an aggregate function'
            if inside:
                shown = f'subquery uses ungrouped column "{self._name(scalar)}" from outer query'
            raise GroupingError(shown, position=scalar.position)
        inside = inside or subquery(scalar) is not None
        return rebuild(scalar, lambda s: self.over(s, inside=inside))

    def _name(self, column: Column) -> str:
        for table in self.scope.tables:
            for visible in table.columns:
                if isinstance(visible.scalar, Column) and visible.scalar.index == column.index:
                    return f"{table.alias}.{visible.name}" if table.alias else visible.name
        return "?column?"
