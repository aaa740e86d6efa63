"""Numbers of nodes: made of the item's id, so that they are stable and are never used again, as ids are not.

    node = item * SLOTS + slot

    source:            slot 0 its source node, slot 1 its upsert if it is keyed
    dead letters:      slot 0 their upsert
    materialized view: slots from 0 its operators, from the last slot down the sources that fill it

A materialized view records its operators in `options["nodes"]`: a list of [digest, node], inputs first, the order in which
`change.stateful` gives them. A new view begins with nodes of its own for all of them (`number`). When it is filled, operators of other
views take the places of those that are the same (`engine.plan.sharing`), and the private copies are forgotten. The record is all that a
restarted engine needs to build the same circuit again.

A record whose digests are not those of the stream (another version of the planner, say) names state that means something else; such
a view is numbered anew and filled again (`recorded`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.plan.change import Stream, leaves, stateful
from engine.plan.digest import digest
from lake.catalog import Catalog, Item
from lake.errors import ProgramLimitExceeded
from lake.failed import failure

SLOTS = 1024  # nodes of one item; ids up to 2^21 then fit the 32 bits that a node has in the state's keys
FILLS = 128  # of them for the sources that fill a view

UPSERT = 1  # slot of a keyed source's upsert


def source_node(item: Item) -> int:
    return item.id * SLOTS


def upsert_node(item: Item) -> int:
    return item.id * SLOTS + (0 if item.kind == "dead letters" else UPSERT)


def fill_node(item: Item, number: int) -> int:
    """The source that fills `item` from its leaf of this number."""
    return (item.id + 1) * SLOTS - 1 - number


def owner(node: int) -> int:
    """The id of the item that a node was made for."""
    return node // SLOTS


def number(item: Item, catalog: Catalog, stream: Stream) -> Item:
    """The view with nodes of its own for all its operators, none of which has been used before."""
    operators = stateful(stream)
    used = [slot % SLOTS for _, slot in record(item) if owner(slot) == item.id]
    if len(leaves(stream)) > FILLS:
        raise ProgramLimitExceeded(
            f'view "{item.name}" reads more than {FILLS} relations', hint="Create a materialized view of a part of it."
        )
    first = max([int(item.options.get("next_node", 0)), *(s + 1 for s in used)])
    if first + len(operators) > SLOTS - FILLS:
        raise ProgramLimitExceeded(
            f'view "{item.name}" needs more than {SLOTS - FILLS} operators', hint="Create a materialized view of a part of it."
        )
    nodes = [[digest(o, item, catalog), item.id * SLOTS + first + i] for i, o in enumerate(operators)]
    return _with(item, {"nodes": nodes, "next_node": first + len(operators), "fills": generation(item) + 1})


def generation(item: Item) -> int:
    """How often the item was numbered: each fill has channels of its own."""
    return int(item.options.get("fills", 0))


def stale(item: Item) -> bool:
    """Whether the view's rows are no longer kept up to date, because its state is lost: a replacement is being filled."""
    return bool(item.options.get("stale"))


def made_stale(item: Item, time: int) -> Item:
    """Returns the view as stale. `time` is that of its last tick."""
    return _with(item, {"stale": time})


def stale_since(item: Item) -> int | None:
    """Returns the time of a stale view's last tick, if it is known."""
    found = item.options.get("stale")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def maintained(item: Item) -> bool:
    """Returns whether the circuit keeps the view up to date: its state is not lost, and it has not failed."""
    return not stale(item) and failure(item) is None


def recorded(item: Item, catalog: Catalog, stream: Stream) -> bool:
    """Whether the view's record is of this stream."""
    return [d for d, _ in record(item)] == [digest(o, item, catalog) for o in stateful(stream)]


def digests(item: Item) -> frozenset[str]:
    """Of the operators in the view's record."""
    return frozenset(d for d, _ in record(item))


def by_digest(item: Item) -> dict[str, int]:
    """The nodes of the view's operators."""
    return dict(record(item))


def node_of(item: Item, position: int) -> int:
    """The node of the operator at this position of `change.stateful`."""
    return record(item)[position][1]


def record(item: Item) -> list[tuple[str, int]]:
    """Returns the digests and nodes of the view's operators, inputs first."""
    return [(str(d), int(n)) for d, n in item.options.get("nodes", ())]


def with_record(item: Item, operators: Iterable[tuple[str, int]]) -> Item:
    """Returns the view with these operators."""
    return _with(item, {"nodes": [list(o) for o in operators]})


def _with(item: Item, options: Mapping[str, Any]) -> Item:
    return replace(item, options={**item.options, **options})
