"""Calls of volatile functions that an expression contains several times as one operand of its text, computed once for each row.

    CASE random() WHEN 0 THEN … WHEN 1 THEN …   ──►   π_{CASE WHEN r = 0 … WHEN r = 1 …}(π_{…, random() as r}(…))

The binder uses one object for such an operand, and rewrites keep it. Calls that stand in the text twice are two objects.
"""

from __future__ import annotations

from collections import Counter

from tailgate.lake.types import Field
from tailgate.sql.plan import Call, Column, Filter, Project, Relation, Scalar
from tailgate.sql.plan.properties import is_volatile
from tailgate.sql.plan.rewriting import rebuild, walk
from tailgate.sql.plan.traversal import bottom_up, column, scalars_of, take


def computed_once(plan: Relation) -> Relation:
    """Returns the plan with such calls as columns, or the same object if it has none."""
    return bottom_up(plan, _with_columns) if is_volatile(plan) else plan


def _with_columns(node: Relation) -> Relation:
    if not isinstance(node, Project | Filter):
        return node
    calls = [part for scalar in scalars_of(node) for part in walk(scalar) if _is_volatile(part)]
    counts = Counter(map(id, calls))
    often = {id(call): call for call in calls if counts[id(call)] > 1}
    if not often:
        return node
    width = len(node.input.columns)
    columns: dict[int, Scalar] = {id: Column(width + i, call.type) for i, (id, call) in enumerate(often.items())}

    def over(scalar: Scalar) -> Scalar:
        return columns[id(scalar)] if id(scalar) in columns else rebuild(scalar, over)

    own = tuple(column(node.input, i) for i in range(width))
    fields = tuple(Field(f"volatile{i}", call.type) for i, call in enumerate(often.values()))
    wide = Project(node.input, (*own, *often.values()), (*node.input.columns, *fields))
    if isinstance(node, Project):
        return Project(wide, tuple(map(over, node.expressions)), node.columns)
    return take(Filter(wide, over(node.condition)), tuple(range(width)))


def _is_volatile(scalar: Scalar) -> bool:
    """Returns whether a scalar is a call without arguments, which has no effect but its value and cannot fail."""
    return isinstance(scalar, Call) and scalar.function.volatility == "volatile" and not scalar.arguments
