"""The passes that rewrite a plan. A pass that changes nothing returns the same object.

A rewritten plan gives the same rows for all inputs, and fails for no row for which the original
plan does not fail (`tests/engine/plan/test_rewrites.py` tests both with random plans).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tailgate.engine.plan.rewrites.early import group_early
from tailgate.engine.plan.rewrites.equijoin import split_joins
from tailgate.engine.plan.rewrites.factor import factor_conditions
from tailgate.engine.plan.rewrites.merge import drop_identities, merge_filters, merge_projections
from tailgate.engine.plan.rewrites.narrow import narrow_joins
from tailgate.engine.plan.rewrites.order import order_joins
from tailgate.engine.plan.rewrites.outer import anti_joins, narrow_outer_joins
from tailgate.engine.plan.rewrites.prune import prune_columns
from tailgate.engine.plan.rewrites.push import push_filters
from tailgate.engine.plan.rewrites.retention import move_retention
from tailgate.engine.plan.rewrites.rounds import number_rounds
from tailgate.engine.plan.rewrites.shared import share_joins
from tailgate.engine.plan.rewrites.temporal import extract_temporal_filters
from tailgate.engine.plan.rewrites.top import first_ranks, first_rows, first_values
from tailgate.sql.plan import Relation

Pass = Callable[[Relation], Relation]

PASSES: tuple[Pass, ...] = (
    move_retention,
    first_values,
    first_rows,
    number_rounds,
    extract_temporal_filters,
    factor_conditions,
    merge_filters,
    merge_projections,
    narrow_outer_joins,
    push_filters,
    first_ranks,
    anti_joins,
    order_joins,
    split_joins,
    push_filters,
    merge_projections,
    group_early,
    narrow_joins,
    prune_columns,
    share_joins,
    merge_projections,
    merge_filters,
    drop_identities,
)


def rewrite(relation: Relation) -> Relation:
    """Returns the plan after all passes."""
    for change in PASSES:
        relation = change(relation)
    return relation


def steps(relation: Relation) -> Iterator[tuple[str, Relation]]:
    """Yields each pass that changed the plan: its name, and the plan after it."""
    for change in PASSES:
        after = change(relation)
        if after is not relation:
            yield change.__name__, after
        relation = after
