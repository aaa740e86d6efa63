"""The state of an aggregation of a stream whose filter changes: groups that exist stay, and later records pass the new filter.

Source: ksqlDB 0.29, documentation, "Update a running persistent query", section "Stateful data selection".
"""

from __future__ import annotations

from tailgate.engine.plan.circuit.steps import Filter, Steps
from tailgate.engine.plan.rules.change import Leaf, Reduce, Stream, stateful
from tailgate.engine.plan.views.digest import digest
from tailgate.engine.plan.views.nodes import with_record
from tailgate.lake.catalog import Catalog, MaterializedView


def with_kept_state(view: MaterializedView, before: Stream, after: Stream, catalog: Catalog) -> MaterializedView | None:
    """Returns a view whose query changes, with the operator of its old query, or None if this operator's state has another meaning.

    `before`, `after`: the streams of the old and the new query. `catalog` contains the view with the new query.
    """
    match stateful(before), stateful(after):
        case (Reduce() as old,), (Reduce() as new,):
            pass
        case _:
            return None
    is_same = (old.keys, old.aggregates, old.retention) == (new.keys, new.aggregates, None) and before.shape == after.shape
    if not is_same or not isinstance(old.input.origin, Leaf) or _without_filters(old.input) != _without_filters(new.input):
        return None
    nodes = {node for _, node in view.nodes}
    if any(nodes & {node for _, node in other.nodes} for other in catalog.each(MaterializedView) if other.id != view.id):
        return None
    return with_record(view, ((digest(new, view, catalog), view.nodes[0][1]),))


def _without_filters(stream: Stream) -> Stream:
    steps = tuple(step for step in stream.shape.steps if not isinstance(step, Filter))
    return Stream(stream.origin, Steps(steps), stream.columns, stream.append_only)
