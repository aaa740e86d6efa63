"""Durable subscriptions: the acknowledged position of each, in readers/subscription-<id>, and its retained changes.

    CREATE ──► {"n", "time", "snapshot": true}       the rows at `time` are not acknowledged yet
    ACKNOWLEDGE … UP TO t ──► {"n", "time": t}       everything up to t is acknowledged; a position never moves back
    "since": the position's time                     the lake's `since` does not pass it
    retention exceeded, or 20 GiB ──► .stopped       by the engine; acknowledging a readable time starts it again

The object is replaced if it is unchanged, so several gateways may acknowledge, and a crash leaves
either the old or the new position.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailgate.lake.catalog import Catalog, Subscription
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.readers import holds
from tailgate.lake.store import documents

RETENTION_MS = 24 * 3_600_000  # default of the time for which unacknowledged changes are kept
_PREFIX = "subscription-"


@dataclass(frozen=True, slots=True)
class Place:
    """The acknowledged position of a subscription.

    Everything up to `time` is acknowledged, except the rows at it if `snapshot` is true. All changes up
    to entry `n` are acknowledged. `stopped`: why the subscription may not continue, or None.
    """

    n: int
    time: int
    snapshot: bool
    stopped: str | None = None


def reader(id: int) -> str:
    """Returns the reader name of a subscription."""
    return f"{_PREFIX}{id}"


def begin(lake: Lake, item: Subscription, n: int, time: int) -> None:
    """Writes the first position of a new subscription, before the subscription becomes visible."""
    holds.write(lake, reader(item.id), _content(Place(n, time, item.snapshot)))


def place(lake: Lake, id: int) -> Place | None:
    """Returns the position of a subscription, or None if it was dropped."""
    content = holds.read(lake, reader(id))
    return None if content is None else _place(lake, id, content)


def acknowledge(lake: Lake, id: int, upto: int) -> Place | None:
    """Acknowledges everything up to a time that exists, durably, and returns the new position.

    A later position stays as it is. Returns None if the subscription was dropped.
    """
    while True:
        content, version = documents.read_version(lake.store, holds.name(reader(id)))
        current = None if content is None else _place(lake, id, content)
        if current is None or upto < current.time or (upto == current.time and not current.snapshot):
            return current
        header = lake.log.find(upto)
        crash.point("subscription.acknowledge")
        new = Place(max(current.n, header.n if header else 0), upto, False)
        if documents.replace(lake.store, holds.name(reader(id)), _content(new), version):
            crash.point("subscription.acknowledged")
            if current.stopped is not None:
                holds.start(lake, reader(id))
            return new


def places(lake: Lake, catalog: Catalog) -> dict[int, Place]:
    """Returns the positions of all subscriptions of a catalog, by id."""
    all_places = {item.id: place(lake, item.id) for item in catalog.each(Subscription)}
    return {id: position for id, position in all_places.items() if position is not None}


def retentions(catalog: Catalog) -> dict[str, int]:
    """Returns how long each subscription may hold unacknowledged changes, in ms, by reader name."""
    return {reader(item.id): item.retention_ms for item in catalog.each(Subscription)}


def release_dropped(lake: Lake, readers: Iterable[str]) -> None:
    """Removes the positions of dropped subscriptions of these readers.

    An id not below `next_id` belongs to a subscription that is being created.
    """
    names = [name for name in readers if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isdecimal()]
    catalog = lake.catalog()
    for name in names:
        id = int(name.removeprefix(_PREFIX))
        item = catalog.items.get(id)
        if id < catalog.next_id and not isinstance(item, Subscription):
            holds.release(lake, name)


def _place(lake: Lake, id: int, content: dict[str, Any]) -> Place:
    return Place(content["n"], content["time"], content["snapshot"], holds.stopped(lake, reader(id)))


def _content(at: Place) -> dict[str, Any]:
    return {"n": at.n, "time": at.time, "snapshot": at.snapshot, "since": at.time}
