"""Node numbers. They are derived from item ids, so they are stable and, like ids, never used again.

    node = item * SLOTS + slot

    source:            slot 0 its source node, slot 1 its upsert if it is keyed
    dead letters:      slot 0 their upsert
    materialized view: operators from slot 0 up, backfill sources from the last slot down

A materialized view records its operators in `options["nodes"]`: a list of [digest, node], inputs
first, in the order of `change.stateful`. A new view starts with new nodes for all of them
(`number`). When its backfill is complete, equal operators of other views replace them
(`engine.plan.sharing`), and their state is removed. A restarted engine rebuilds the same circuit
from this record.

If the digests of a record differ from those of the stream, for example after a change of the
planner, the recorded state has another meaning. Such a view gets new nodes and a new backfill
(`recorded`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tailgate.engine.plan.change import Stream, leaves, stateful
from tailgate.engine.plan.digest import digest
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.failed import failure

# nodes of one item; ids up to 2^21 then fit the 32 bits that a node has in the keys of the state
SLOTS = 1024
BACKFILLS = 128  # slots reserved for the sources of a view's backfill

UPSERT = 1  # slot of a keyed source's upsert


def source_node(item: Item) -> int:
    """Returns the node that decodes a source's records."""
    return item.id * SLOTS


def upsert_node(item: Item) -> int:
    """Returns the upsert of a keyed source or of dead letters."""
    return item.id * SLOTS + (0 if item.kind == "dead letters" else UPSERT)


def backfill_node(item: Item, with_new_nodes: int) -> int:
    """Returns the node of the source that backfills `item` from the leaf with this number."""
    return (item.id + 1) * SLOTS - 1 - with_new_nodes


def owner(node: int) -> int:
    """Returns the id of the item for which a node was created."""
    return node // SLOTS


def with_new_nodes(item: Item, catalog: Catalog, stream: Stream) -> Item:
    """Returns the view with new nodes for all its operators. Raises 54000 if it needs too many."""
    operators = stateful(stream)
    used = [slot % SLOTS for _, slot in record(item) if owner(slot) == item.id]
    if len(leaves(stream)) > BACKFILLS:
        raise ProgramLimitExceeded(
            f'view "{item.name}" reads more than {BACKFILLS} relations', hint="Create a materialized view of a part of it."
        )
    first = max([int(item.options.get("next_node", 0)), *(s + 1 for s in used)])
    if first + len(operators) > SLOTS - BACKFILLS:
        raise ProgramLimitExceeded(
            f'view "{item.name}" needs more than {SLOTS - BACKFILLS} operators', hint="Create a materialized view of a part of it."
        )
    nodes = [[digest(o, item, catalog), item.id * SLOTS + first + i] for i, o in enumerate(operators)]
    return _with(item, {"nodes": nodes, "next_node": first + len(operators), "fills": generation(item) + 1})


def generation(item: Item) -> int:
    """Returns how often the item was numbered; the channels of each backfill contain this number."""
    return int(item.options.get("fills", 0))


def is_stale(item: Item) -> bool:
    """Returns whether the view is not maintained because its state is lost.

    A replacement is being backfilled.
    """
    return bool(item.options.get("stale"))


def with_stale_since(item: Item, time: int) -> Item:
    """Returns the view marked as stale. `time` is that of its last tick."""
    return _with(item, {"stale": time})


def stale_since(item: Item) -> int | None:
    """Returns the time of a stale view's last tick, if it is known."""
    time = item.options.get("stale")
    return time if isinstance(time, int) and not isinstance(time, bool) else None


def is_maintained(item: Item) -> bool:
    """Returns whether the circuit maintains the view: its state is not lost, and it has not failed."""
    return not is_stale(item) and failure(item) is None


def matches_record(item: Item, catalog: Catalog, stream: Stream) -> bool:
    """Returns whether the view's record matches this stream."""
    return [d for d, _ in record(item)] == [digest(o, item, catalog) for o in stateful(stream)]


def digests(item: Item) -> frozenset[str]:
    """Returns the digests of the operators in the view's record."""
    return frozenset(d for d, _ in record(item))


def nodes_by_digest(item: Item) -> dict[str, int]:
    """Returns the nodes of the view's operators, by digest."""
    return dict(record(item))


def node_of(item: Item, position: int) -> int:
    """Returns the node of the operator at this position in `change.stateful`."""
    return record(item)[position][1]


def record(item: Item) -> list[tuple[str, int]]:
    """Returns the digests and nodes of the view's operators, inputs first."""
    return [(str(d), int(n)) for d, n in item.options.get("nodes", ())]


def with_record(item: Item, operators: Iterable[tuple[str, int]]) -> Item:
    """Returns the view with these operators (digest, node) as its record."""
    return _with(item, {"nodes": [list(o) for o in operators]})


def _with(item: Item, options: Mapping[str, Any]) -> Item:
    return replace(item, options={**item.options, **options})
