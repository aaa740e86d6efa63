"""Replacements: items that are backfilled to take the places of others, and the switch to them.

    R, read by U, gets a new definition ──► S (replaces R) and T (replaces U, reads S) are filled
    all items of the group are ready    ──► one entry: R and U get the definitions of S and T, and
                                            the differences of their rows; S and T are dropped

For readers of R the switch is a normal change of rows. This module handles values only;
`engine.runtime.installing` performs the switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change, Item
from tailgate.lake.failed import FAILED

# option of a replacement with other columns: it keeps its id, and the item that it replaces is
# dropped
HAS_NEW_COLUMNS = "anew"
KEPT_BY_ID = ("next_node", "fills", "comments")  # options that belong to an id, not to a definition
NOT_COPIED = ("group", "stale", FAILED, HAS_NEW_COLUMNS, *KEPT_BY_ID)


def stored_inputs(item: Item, catalog: Catalog) -> set[int]:
    """Returns the ids of the items with rows that an item reads, through plain views and functions."""
    return {id for id in catalog.below(item, _has_no_rows) if not _has_no_rows(catalog[id])}


def _has_no_rows(item: Item) -> bool:
    return item.kind in ("view", "function")


def readers(ids: Iterable[int], catalog: Catalog) -> tuple[Item, ...]:
    """Returns the views and functions that read one of these items, directly or through others.

    Replacements are not included. Each item comes after those that it reads. A lake of an older
    version may hold a cycle of functions and views: each item is visited once, and none reads itself.
    """
    readers_by_id: dict[int, Item] = {}  # higher ones first
    visited: set[int] = set()

    def visit(id: int, first: int) -> None:
        for item in reversed(catalog.dependents(id)):
            if item.kind in ("view", "materialized view", "function") and not item.replaces and item.id != first and item.id not in visited:
                visited.add(item.id)
                visit(item.id, first)
                readers_by_id[item.id] = item

    for id in ids:
        visit(id, id)
    return tuple(reversed(readers_by_id.values()))


def replacement(item: Item, id: int, group: int) -> Item:
    """Returns an item, not numbered yet, that is to replace this one with the same definition."""
    options = {name: value for name, value in item.options.items() if name not in NOT_COPIED}
    return replace(item, id=id, errors=id + 1, ready=False, replaces=item.id, options={**options, "group": group})


def group(item: Item) -> int:
    """Returns the id of the group of replacements that an item belongs to, or 0."""
    return int(item.options.get("group", 0))


def switch(replacements: Iterable[Item], catalog: Catalog, share: Callable[[Item, Catalog], Item]) -> Change:
    """Returns the change that gives each replaced item its replacement's definition.

    The replaced item keeps its id, and the replacement is dropped; with HAS_NEW_COLUMNS the
    replacement stays, and the replaced item is dropped. `share`: an
    `engine.plan.sharing.Sharing`.
    """
    replacements = tuple(replacements)
    replaced_ids = {item.id: item.replaces for item in replacements}
    put: dict[int, Item] = {}
    drop: list[int] = []
    for item in replacements:
        old = catalog[item.replaces]
        if item.options.get(HAS_NEW_COLUMNS):
            options = {name: value for name, value in item.options.items() if name not in ("group", HAS_NEW_COLUMNS)}
            put[item.id] = replace(item, replaces=0, ready=True, options=options)
            drop.append(old.id)
            continue
        drop.append(item.id)
        options = {name: value for name, value in item.options.items() if name not in NOT_COPIED}
        options |= {name: old.options[name] for name in KEPT_BY_ID if name in old.options}
        depends = tuple(replaced_ids.get(d, d) for d in item.depends)
        put[old.id] = replace(item, id=old.id, errors=old.errors, replaces=0, depends=depends, ready=True, options=options, name=old.name)
    after = catalog.apply(Change(put=tuple(put.values()), drop=tuple(drop)))
    for id, item in put.items():
        if item.kind == "materialized view":
            put[id] = share(item, after)
            after = after.apply(Change(put=(put[id],)))
    return Change(tuple(put.values()), tuple(drop))
