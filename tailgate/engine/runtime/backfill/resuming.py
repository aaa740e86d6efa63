"""RESUME of paused queries of ksqlDB: the entry in which their views run again, and the views above them.

    RESUME ──► replacements are filled ──► switch: the views have the rows that they missed; those above are paused, and filled again

The views above keep their rows until their own switch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tailgate.engine.plan.views.digest import is_paused
from tailgate.engine.plan.views.stopped_inputs import maintained_readers
from tailgate.engine.runtime.backfill.preparation import prepared, replacements_of
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, ksqldb_of


def with_readers(engine: Engine, switching: Change) -> tuple[Change, tuple[Item, ...]]:
    """Returns the change of a switch that also replaces the views above resumed ones, and these replacements for the fill."""
    catalog = engine.catalog
    ids = {item.id for item in switching.put if item.id in catalog.items and is_resumed(catalog[item.id], item)}
    above = [replace(view, paused=True) for view in maintained_readers(ids, catalog) if view.id not in ids]
    if not above:
        return switching, ()
    after = catalog.apply(switching).apply(Change(put=tuple(above)))
    coming = tuple(prepared(engine, replacements_of(above, after), after))
    return replace(switching, put=(*switching.put, *above, *coming)), coming


def is_resumed(old: Item, new: Item) -> bool:
    """Returns whether a view that was paused runs again."""
    return is_paused(old) and isinstance(new, MaterializedView) and not new.paused


def keeps_rows(old: Item) -> bool:
    """Returns whether a switch only adds rows to a view: the stream of a paused query keeps those of records that its topic has lost."""
    ksqldb = ksqldb_of(old)
    return is_paused(old) and ksqldb is not None and ksqldb.type == "stream"


def missing(old: MaterializedView, new: MaterializedView, catalog: Catalog) -> Iterable[str]:
    """Yields a warning for each topic that no longer has all records that a view was made of."""
    for id, starts in new.starts.items():
        if any(begin > old.starts.get(id, {}).get(partition, begin) for partition, begin in starts.items()):
            yield f'the topic of "{catalog[id].name}" no longer has all records that "{old.name}" was made of; it continues from the oldest'
