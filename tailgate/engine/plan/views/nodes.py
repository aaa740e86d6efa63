"""Node numbers. They are derived from item ids, so they are stable and, like ids, never used again.

    node = item * SLOTS + slot

    source:            slot 0 its source node, slot 1 its upsert if it is keyed
    dead letters:      slot 0 their upsert
    materialized view: operators from slot 0 up, backfill sources from the last slot down

A materialized view records its operators in `nodes`: pairs of digest and node, inputs first, in the
order of `change.stateful`. A new view starts with new nodes for all of them (`with_new_nodes`). When its
backfill is complete, equal operators of other views replace them (`engine.plan.views.sharing`), and their
state is removed. A restarted engine rebuilds the same circuit from this record.

If the digests of a record differ from those of the stream, for example after a change of the
planner, the recorded state has another meaning. Such a view gets new nodes and a new backfill
(`matches_record`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tailgate.engine.plan.rules.change import Stream, leaves, stateful
from tailgate.engine.plan.views.digest import digest, is_paused
from tailgate.lake.catalog import Catalog, DeadLetters, Item, MaterializedView
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.readers.failed import failure

# nodes of one item; ids up to 2^21 then fit the 32 bits that a node has in the keys of the state
SLOTS = 1024
BACKFILLS = 128  # slots reserved for the sources of a view's backfill

UPSERT = 1  # slot of a keyed source's upsert


def source_node(item: Item) -> int:
    """Returns the node that decodes a source's records."""
    return item.id * SLOTS


def upsert_node(item: Item) -> int:
    """Returns the upsert of a keyed source or of dead letters."""
    return item.id * SLOTS + (0 if isinstance(item, DeadLetters) else UPSERT)


def backfill_node(item: Item, number: int) -> int:
    """Returns the node of the source that backfills `item` from the leaf with this number."""
    return (item.id + 1) * SLOTS - 1 - number


def owner(node: int) -> int:
    """Returns the id of the item for which a node was created."""
    return node // SLOTS


def with_new_nodes(item: MaterializedView, catalog: Catalog, stream: Stream) -> MaterializedView:
    """Returns the view with new nodes for all its operators. Raises 54000 if it needs too many."""
    operators = stateful(stream)
    used = [node % SLOTS for _, node in item.nodes if owner(node) == item.id]
    if len(leaves(stream)) > BACKFILLS:
        raise ProgramLimitExceeded(
            f'view "{item.name}" reads more than {BACKFILLS} relations', hint="Create a materialized view of a part of it."
        )
    first = max([item.next_node, *(s + 1 for s in used)])
    if first + len(operators) > SLOTS - BACKFILLS:
        raise ProgramLimitExceeded(
            f'view "{item.name}" needs more than {SLOTS - BACKFILLS} operators', hint="Create a materialized view of a part of it."
        )
    nodes = tuple((digest(o, item, catalog), item.id * SLOTS + first + i) for i, o in enumerate(operators))
    return replace(item, nodes=nodes, next_node=first + len(operators), numberings=item.numberings + 1)


def is_stale(item: Item) -> bool:
    """Returns whether the view is not maintained because its state is lost.

    A replacement is being backfilled.
    """
    return isinstance(item, MaterializedView) and item.stale is not None


def with_stale_since(item: MaterializedView, time: int) -> MaterializedView:
    """Returns the view marked as stale. `time` is that of its last tick."""
    return replace(item, stale=time)


def stale_since(item: MaterializedView) -> int | None:
    """Returns the time of a stale view's last tick, if it is known."""
    return None if item.stale is True else item.stale


def is_maintained(item: Item) -> bool:
    """Returns whether the circuit maintains the view: its state is not lost, and it has neither failed nor been paused."""
    return not is_stale(item) and failure(item) is None and not is_paused(item)


def matches_record(item: MaterializedView, catalog: Catalog, stream: Stream) -> bool:
    """Returns whether the view's record matches this stream."""
    return [d for d, _ in item.nodes] == [digest(o, item, catalog) for o in stateful(stream)]


def digests(item: MaterializedView) -> frozenset[str]:
    """Returns the digests of the operators in the view's record."""
    return frozenset(d for d, _ in item.nodes)


def nodes_by_digest(item: MaterializedView) -> dict[str, int]:
    """Returns the nodes of the view's operators, by digest."""
    return dict(item.nodes)


def node_of(item: MaterializedView, position: int) -> int:
    """Returns the node of the operator at this position in `change.stateful`."""
    return item.nodes[position][1]


def with_record(item: MaterializedView, operators: Iterable[tuple[str, int]]) -> MaterializedView:
    """Returns the view with these operators (digest, node) as its record."""
    return replace(item, nodes=tuple(operators))
