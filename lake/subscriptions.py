"""Durable subscriptions: how far each has been acknowledged, in readers/subscription-<id>, and what is kept for it.

    CREATE ──► {"n", "time", "snapshot": true}       the rows at `time` are still to be taken
    ACKNOWLEDGE … UP TO t ──► {"n", "time": t}       all up to t is taken, for ever: a place never goes back
    "since": the place's time: `since` of the lake waits there
    retention passed, or 20 GiB ──► .stopped         by the engine; acknowledging a time that can be read begins anew

The file is replaced as a whole under a lock, so several gateways may write it, and a crash leaves the old place or the new one.
While it is not stopped, `since` waits at its place.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake import crash, files, readers
from lake.catalog import SUBSCRIPTION, Catalog, Item

if TYPE_CHECKING:
    from lake.folder import Lake

RETENTION = "retention_ms"  # option of the item: how long what is not acknowledged is kept
RETENTION_MS = 24 * 3_600_000  # where the statement does not say
SNAPSHOT = "snapshot"  # option: whether it begins with the rows of the time at which it was made
PROGRESS = "progress"  # option: whether it tells of times that are complete
_PREFIX = f"{SUBSCRIPTION}-"
_LOCK = ".subscriptions.lock"  # names that begin with a dot are no readers


@dataclass(frozen=True, slots=True)
class Place:
    """All up to `time`, which is that of entry `n` or later, is taken; with `snapshot` the rows at it are not. `stopped`: why the
    subscription may go no further, or None."""

    n: int
    time: int
    snapshot: bool
    stopped: str | None = None


def reader(id: int) -> str:
    return f"{_PREFIX}{id}"


def begin(lake: Lake, item: Item, n: int, time: int) -> None:
    """The place at which a new subscription stands, before anybody sees it."""
    _write(lake, item.id, Place(n, time, bool(item.options[SNAPSHOT])))


def place(lake: Lake, id: int) -> Place | None:
    """Where a subscription is, None if it is no more."""
    try:
        said = json.loads((lake.path / "readers" / reader(id)).read_bytes())
    except FileNotFoundError:
        return None
    return Place(said["n"], said["time"], said["snapshot"], readers.stopped(lake, reader(id)))


def acknowledge(lake: Lake, id: int, upto: int) -> Place | None:
    """Durably takes all up to a time, which must be there already; the place after it. One that is further stays. None if it is no more."""
    with _locked(lake):
        there = place(lake, id)
        if there is None or upto < there.time or (upto == there.time and not there.snapshot):
            return there
        found = lake.log.find(upto)
        crash.point("subscription.acknowledge")
        taken = Place(max(there.n, found.n if found else 0), upto, False)
        _write(lake, id, taken)
        crash.point("subscription.acknowledged")
        if there.stopped is not None:
            readers.start(lake, reader(id))
        return taken


def places(lake: Lake, catalog: Catalog) -> dict[int, Place]:
    """Of all subscriptions of a catalog, by id."""
    found = {item.id: place(lake, item.id) for item in catalog.items.values() if item.kind == SUBSCRIPTION}
    return {id: there for id, there in found.items() if there is not None}


def retentions(catalog: Catalog) -> dict[str, int]:
    """How long each subscription may hold what it has not acknowledged, in ms, by reader."""
    return {reader(i.id): int(i.options[RETENTION]) for i in catalog.items.values() if i.kind == SUBSCRIPTION}


def release_dropped(lake: Lake) -> None:
    """Places of subscriptions that are no more go, and hold nothing. A place is made before its item, which has the next id."""
    there = [name for name in os.listdir(lake.path / "readers") if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isdecimal()]
    catalog = lake.catalog()
    for name in there:
        id = int(name.removeprefix(_PREFIX))
        item = catalog.items.get(id)
        if id < catalog.next_id and (item is None or item.kind != SUBSCRIPTION):
            readers.release(lake, name)


def _write(lake: Lake, id: int, at: Place) -> None:
    said = {"n": at.n, "time": at.time, "snapshot": at.snapshot, "since": at.time}
    files.replace(lake.path / "readers" / reader(id), json.dumps(said).encode() + b"\n")


@contextmanager
def _locked(lake: Lake) -> Iterator[None]:
    """One acknowledgement at a time, of this process and of others."""
    descriptor = os.open(lake.path / "readers" / _LOCK, os.O_RDWR | os.O_CREAT, files.PRIVATE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
