"""Items that are filled to take others' places: which are needed, and the change of the catalog when they are.

    R, read by U, is to be something else ──► S (replaces R) and T (replaces U) are filled beside them, T from S
    all of the group are filled           ──► one entry: R and U have the definitions of S and T, and the difference of their rows;
                                              S and T go

Whoever reads R sees changes like any others. Values only; `engine.runtime.installing` does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from lake.catalog import Catalog, Change, Item
from lake.failed import FAILED

ANEW = "anew"  # option of a replacement with other columns: it stays under its own id, and what it replaces is dropped
KEPT = ("next_node", "fills", "comments")  # options that belong to an id and not to a definition
OWN = ("group", "stale", FAILED, ANEW, *KEPT)


def bases(item: Item, catalog: Catalog) -> set[int]:
    """What an item's definition names, through plain views and functions, down to what has rows of its own."""
    found: set[int] = set()
    visited: set[int] = set()
    queue = list(item.depends)
    while queue:
        id = queue.pop()
        if id not in visited:
            visited.add(id)
            other = catalog[id]
            if other.kind in ("view", "function"):
                queue += other.depends
            else:
                found.add(id)
    return found


def readers(ids: Iterable[int], catalog: Catalog) -> tuple[Item, ...]:
    """The views and functions that read one of these items, directly or through others, that are not replacements themselves; lower ones
    first. An older version may have left a cycle of functions and views: each item is visited once,
    and none reads itself."""
    found: dict[int, Item] = {}  # higher ones first
    begun: set[int] = set()

    def visit(id: int, first: int) -> None:
        for item in reversed(catalog.dependents(id)):
            if item.kind in ("view", "materialized view", "function") and not item.replaces and item.id != first and item.id not in begun:
                begun.add(item.id)
                visit(item.id, first)
                found[item.id] = item

    for id in ids:
        visit(id, id)
    return tuple(reversed(found.values()))


def replacement(item: Item, id: int, group: int) -> Item:
    """An item, not yet numbered, that is to replace this one by the same definition."""
    options = {name: value for name, value in item.options.items() if name not in OWN}
    return replace(item, id=id, errors=id + 1, ready=False, replaces=item.id, options={**options, "group": group})


def group(item: Item) -> int:
    return int(item.options.get("group", 0))


def switched(coming: Iterable[Item], catalog: Catalog, share: Callable[[Item, Catalog], Item]) -> Change:
    """Each replaced item with its replacement's definition, under its own id; the replacements are dropped, but those made ANEW. `share`:
    as `engine.plan.sharing.Sharing`."""
    coming = tuple(coming)
    places = {item.id: item.replaces for item in coming}
    put: dict[int, Item] = {}
    drop: list[int] = []
    for item in coming:
        old = catalog[item.replaces]
        if item.options.get(ANEW):
            options = {name: value for name, value in item.options.items() if name not in ("group", ANEW)}
            put[item.id] = replace(item, replaces=0, ready=True, options=options)
            drop.append(old.id)
            continue
        drop.append(item.id)
        options = {name: value for name, value in item.options.items() if name not in OWN}
        options |= {name: old.options[name] for name in KEPT if name in old.options}
        depends = tuple(places.get(d, d) for d in item.depends)
        put[old.id] = replace(item, id=old.id, errors=old.errors, replaces=0, depends=depends, ready=True, options=options, name=old.name)
    after = catalog.apply(Change(put=tuple(put.values()), drop=tuple(drop)))
    for id, item in put.items():
        if item.kind == "materialized view":
            put[id] = share(item, after)
            after = after.apply(Change(put=(put[id],)))
    return Change(tuple(put.values()), tuple(drop))
