"""The views above a query that is stopped: they keep their rows and their operators with the state, and get no changes of it."""

from __future__ import annotations

from collections.abc import Iterable

from tailgate.engine.plan.rules.change import stateful
from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.digest import digest
from tailgate.engine.plan.views.replacements import readers
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, MaterializedView


def maintained_readers(ids: Iterable[int], catalog: Catalog) -> list[MaterializedView]:
    """Returns the views above these that ticks change."""
    return [item for item in readers(ids, catalog) if isinstance(item, MaterializedView) and nodes.is_maintained(item)]


def sharing(views: Iterable[MaterializedView], catalog: Catalog) -> list[MaterializedView]:
    """Returns those of the views that share an operator with a maintained view that is not among them."""
    by_id = {view.id: view for view in views}
    others = {
        node for other in catalog.each(MaterializedView) if other.id not in by_id and nodes.is_maintained(other) for _, node in other.nodes
    }
    return [view for view in by_id.values() if any(node in others for _, node in view.nodes)]


def continued(views: Iterable[MaterializedView], after: Catalog) -> list[MaterializedView]:
    """Returns views with a record of their operators in a catalog in which views below them are stopped."""
    streams = Streams(after)
    recorded = []
    for view in views:
        digests = [digest(operator, view, after) for operator in stateful(streams(view))]
        recorded.append(nodes.with_record(view, [(new, node) for new, (_, node) in zip(digests, view.nodes, strict=False)]))
    return recorded
