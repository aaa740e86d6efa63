"""The columns of views and recursive queries: numerics have all 38 digits.

The type of such a column does not change if its expression does (CREATE OR REPLACE VIEW), or from
round to round of a recursion. Within a query, types are exact (`sql.numeric_types`). General numerics of tables are
read with 16 digits after the decimal point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tailgate.lake.types import Type
from tailgate.sql.binder.types.coercion import cast
from tailgate.sql.binder.types.overloads import fixed
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.numeric_types import full, widest
from tailgate.sql.plan import Column, Project, Relation


def with_full_columns(plan: Relation) -> Relation:
    """Returns the plan with its computed numerics cast to 38 digits."""
    return _with_types(plan, full)


def with_widest_columns(plan: Relation) -> Relation:
    """Returns the plan with its computed numerics cast to general ones or, by rules without these, to 38 digits."""
    return _with_types(plan, widest)


def _with_types(plan: Relation, type_of: Callable[[Type], Type]) -> Relation:
    """Returns the plan with its columns cast to other types."""
    columns = tuple(replace(c, type=type_of(c.type)) for c in plan.columns)
    if columns == plan.columns:
        return plan
    input, scalars = (plan.input, plan.expressions) if isinstance(plan, Project) else (plan, as_columns(plan))
    return Project(input, tuple(cast(s, c.type, Parameters(), None) for s, c in zip(scalars, columns, strict=True)), columns)


def with_fixed_columns(plan: Relation) -> Relation:
    """Returns the plan with its general numerics cast to fixed ones."""
    scalars = tuple(fixed(scalar) for scalar in as_columns(plan))
    return Project(plan, scalars, tuple(replace(c, type=s.type) for c, s in zip(plan.columns, scalars, strict=True)))


def as_columns(plan: Relation) -> tuple[Column, ...]:
    """Returns the columns of a plan as scalars."""
    return tuple(Column(i, f.type) for i, f in enumerate(plan.columns))
