"""The queries that wait for Kafka or the schema registry, from the engine's status of their sources and sinks.

ksqlDB's state of such a query is ERROR. It continues by itself when they answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tailgate.lake.catalog import Catalog, Item, MaterializedView, Sink, Source

Status = Mapping[str, Any]  # the engine's answer
NO_STATUS: Status = MappingProxyType({})


def waiting(status: Status, catalog: Catalog) -> frozenset[str]:
    """Returns the ids of the queries whose source or sink has an error now."""
    if not status:
        return frozenset()
    stored = catalog.stored

    def has_error(kind: str, item: Item) -> bool:
        return bool(status.get(kind, {}).get(stored.name_of(item).sql, {}).get("error"))

    broken = {source.id for source in catalog.each(Source) if has_error("sources", source)}
    broken |= {sink.depends[0] for sink in catalog.each(Sink) if sink.of_view and has_error("sinks", sink)}
    views = ((view, view.ksqldb) for view in catalog.each(MaterializedView) if view.ksqldb is not None)
    return frozenset(
        k.query for view, k in views if k.query and broken.intersection((view.id, *(id for id in view.depends if id != k.into)))
    )
