"""Replacements: items that are backfilled to take the places of others, and the switch to them.

    R, read by U, gets a new definition ──► S (replaces R) and T (replaces U, reads S) are filled
    all items of the group are ready    ──► one entry: R and U get the definitions of S and T, and
                                            the differences of their rows; S and T are dropped

For readers of R the switch is a normal change of rows. This module handles values only;
`engine.runtime.backfill.installation` performs the switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tailgate.engine.plan.rules.change import Stream
from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, Function, Item, MaterializedView, View, ViewErrors
from tailgate.lake.catalog.items import Replaceable
from tailgate.lake.errors import TailgateError
from tailgate.lake.readers.failed import failure


def stored_inputs(item: Item, catalog: Catalog) -> set[int]:
    """Returns the ids of the items with rows that an item reads, through plain views and functions."""
    return {id for id in catalog.below(item, _has_no_rows) if not _has_no_rows(catalog[id])}


def _has_no_rows(item: Item) -> bool:
    return isinstance(item, View | Function)


def readers(ids: Iterable[int], catalog: Catalog) -> tuple[Item, ...]:
    """Returns the views and functions that read one of these items, directly or through others.

    Replacements are not included. Each item comes after those that it reads. A lake of an older
    version may hold a cycle of functions and views: each item is visited once, and none reads itself.
    """
    readers_by_id: dict[int, Item] = {}  # higher ones first
    visited: set[int] = set()

    def visit(id: int, first: int) -> None:
        for item in reversed(catalog.dependents(id)):
            if isinstance(item, View | MaterializedView | Function) and not item.replaces and item.id != first and item.id not in visited:
                visited.add(item.id)
                visit(item.id, first)
                readers_by_id[item.id] = item

    for id in ids:
        visit(id, id)
    return tuple(reversed(readers_by_id.values()))


@dataclass(frozen=True, slots=True)
class Finding:
    """A view that the engine fills again when it starts, or cannot maintain, and the reason."""

    view: str
    reason: str


def unusable(catalog: Catalog, *, lost: bool = False) -> list[MaterializedView]:
    """Returns the ready views whose state cannot keep them up to date, lower views first.

    They are the views that this version plans differently or that are stale, and with `lost` all views that have state; and the views
    that read one of these. Raises the error of a view that cannot be planned.
    """
    views, streams = _maintained(catalog), Streams(catalog)
    own = [i for i in views if (lost and nodes.digests(i)) or _obstacle(i, catalog, streams) is not None]
    return _with_readers(own, views, catalog)


def planning_findings(catalog: Catalog) -> list[Finding]:
    """Returns a finding for each view that this version cannot plan, and for each view in `unusable`."""
    streams, views = Streams(catalog), _maintained(catalog)
    reasons: dict[int, str] = {}
    for item in views:
        try:
            reason = _obstacle(item, catalog, streams)
        except TailgateError as error:
            reason = f"this version cannot plan it: {error}"
        if reason is not None:
            reasons[item.id] = reason
    affected = _with_readers([i for i in views if i.id in reasons], views, catalog)
    return [Finding(f"{catalog.schema_of(i).name}.{i.name}", reasons.get(i.id, "it reads a view that is filled again")) for i in affected]


def _obstacle(item: MaterializedView, catalog: Catalog, streams: Callable[[Item], Stream]) -> str | None:
    """Returns why the state of a view cannot keep it up to date, or None if it can. Raises the error of a view that cannot be planned."""
    if nodes.is_stale(item):
        return "it is being filled again"
    return None if nodes.matches_record(item, catalog, streams(item)) else "this version plans it differently"


def _maintained(catalog: Catalog) -> list[MaterializedView]:
    """Returns the views that the engine maintains, or would maintain if it had their state."""
    return [i for i in catalog.visible if isinstance(i, MaterializedView) and i.ready and failure(i) is None and not i.paused]


def _with_readers(own: list[MaterializedView], views: list[MaterializedView], catalog: Catalog) -> list[MaterializedView]:
    """Returns views, and those of `views` that read one of them, lower views first."""
    above = [i for i in readers([i.id for i in own], catalog) if isinstance(i, MaterializedView) and i in views]
    return [*(i for i in own if i.id not in {a.id for a in above}), *above]


def replacement(item: MaterializedView, id: int, group: int) -> MaterializedView:
    """Returns an item, not numbered yet, that is to replace this one with the same definition."""
    new = replace(_definition(item), id=id, errors=id + 1, ready=False, replaces=item.id, group=group)
    return replace(new, next_node=0, numberings=0, comments={})


def _definition(item: MaterializedView) -> MaterializedView:
    """Returns the view without the fields of a replacement, and without its state."""
    return replace(item, group=0, stale=None, failed=None, paused=False, has_new_columns=False)


def group(item: Item) -> int:
    """Returns the id of the group of replacements that an item belongs to, or 0."""
    return item.group if isinstance(item, Replaceable | ViewErrors) else 0


def switch(replacements: Iterable[Item], catalog: Catalog, share: Callable[[MaterializedView, Catalog], MaterializedView]) -> Change:
    """Returns the change that gives each replaced item its replacement's definition.

    The replaced item keeps its id, and the replacement is dropped; a replacement with new columns
    stays, and the replaced item is dropped. `share`: an `engine.plan.views.sharing.Sharing`.
    """
    replacements = tuple(replacements)
    replaced_ids = {item.id: item.replaces for item in replacements}
    put: dict[int, Item] = {}
    drop: list[int] = []
    for item in replacements:
        old = catalog[item.replaces]
        if isinstance(item, MaterializedView | ViewErrors) and item.has_new_columns:
            put[item.id] = replace(item, replaces=0, ready=True, group=0, has_new_columns=False)
            drop.append(old.id)
            continue
        drop.append(item.id)
        put[old.id] = _switched(item, old, tuple(replaced_ids.get(d, d) for d in item.depends))
    after = catalog.apply(Change(put=tuple(put.values()), drop=tuple(drop)))
    for id, item in put.items():
        if isinstance(item, MaterializedView):
            put[id] = shared = share(item, after)
            after = after.apply(Change(put=(shared,)))
    return Change(tuple(put.values()), tuple(drop))


def _switched(item: Item, old: Item, depends: tuple[int, ...]) -> Item:
    """Returns the replaced item with its replacement's definition. Names, comments and numbers of operators belong to the id."""
    assert isinstance(item, Replaceable)
    new = replace(
        item, id=old.id, errors=old.errors, replaces=0, depends=depends, ready=True, name=old.name, group=0, comments=old.comments
    )
    if isinstance(new, MaterializedView) and isinstance(old, MaterializedView):
        return replace(_definition(new), next_node=old.next_node, numberings=old.numberings)
    return new
