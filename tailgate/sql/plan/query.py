"""A bound query: its plan, parameters, dependencies and demands."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailgate.lake.types import Field, Type
from tailgate.sql.authorization import Demand
from tailgate.sql.plan.relations import Relation


@dataclass(frozen=True, slots=True)
class Query:
    """A bound query.

    `parameters`: types of $1, $2, … `depends`: ids of the items that its text names, including plain
    views. `places`: (position, id) of each of these names. `demands`: the privileges that evaluating
    the plan needs (`sql.authorization`). `locked`: ids of the relations that FOR UPDATE names.
    """

    plan: Relation
    columns: tuple[Field, ...]
    parameters: tuple[Type, ...] = ()
    depends: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    demands: tuple[Demand, ...] = field(default=(), compare=False)
    locked: frozenset[int] = field(default=frozenset(), compare=False)
