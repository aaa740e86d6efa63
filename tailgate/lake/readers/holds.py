"""Holds: what sinks and subscriptions still have to read. The owner of a reader writes readers/<id>.

readers/<id>            {"n": …, "since": …}: the entries after n are needed, and rows at times from `since` on, if present
holds.json              {"bytes_max": …}: how many bytes of the log a reader may hold, written by the engine
readers/<id>.stopped    {"n": …, "reason": …}: written by the engine when a reader held more than allowed. A reader at entry n
                        or before may not continue. A later one had moved on before the engine noticed, and continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tailgate.lake.folder import Lake
from tailgate.lake.log import segments
from tailgate.lake.log.entry import LOG
from tailgate.lake.store import documents

AGE_MAX_MS = 7 * 24 * 3_600_000  # age of the oldest entry that a reader may hold
BYTES_MAX = 20 << 30  # of the log, unless `limit_bytes` sets another limit
NOTHING = 1 << 62  # the position of a reader that needs no entry of the log
FOLDER = "readers"
_LIMIT = "holds.json"
_STOPPED = ".stopped"


@dataclass(frozen=True, slots=True)
class Hold:
    """A reader's hold. `since`: the time from which it needs rows, or None. `stopped`: why it may not continue, or None."""

    reader: str
    n: int
    since: int | None
    stopped: str | None


def hold(lake: Lake, reader: str, n: int, since: int | None = None) -> None:
    """Holds the entries after n, and the rows at times from `since` on. Only the reader's owner calls this."""
    assert reader and "/" not in reader and not reader.startswith(".") and not reader.endswith(_STOPPED), reader
    content = {"n": n} if since is None else {"n": n, "since": since}
    write(lake, reader, content)


def release(lake: Lake, reader: str) -> None:
    """Removes the hold of a dropped reader, and its stop."""
    lake.store.discard(name(file) for file in (reader, reader + _STOPPED))


def start(lake: Lake, reader: str) -> None:
    """Allows a stopped reader to continue, after its owner has handled the gap."""
    lake.store.remove(name(reader + _STOPPED))


def limit_bytes(lake: Lake, size: int) -> None:
    """Sets how many bytes of the log a reader may hold. Only the engine calls this."""
    documents.write(lake.store, _LIMIT, {"bytes_max": size})


def bytes_max(lake: Lake) -> int:
    """Returns how many bytes of the log a reader may hold."""
    document = documents.read(lake.store, _LIMIT)
    return BYTES_MAX if document is None else int(document["bytes_max"])


def holds(lake: Lake) -> list[Hold]:
    """Returns all holds, including those of stopped readers."""
    result: list[Hold] = []
    names = set(lake.store.names(FOLDER))
    for reader in sorted(name for name in names if not name.endswith(_STOPPED)):
        content = read(lake, reader)
        if content is not None:  # None if it has just been released
            reason = _reason(lake, reader, content["n"]) if reader + _STOPPED in names else None
            result.append(Hold(reader, content["n"], content.get("since"), reason))
    return result


def readers(lake: Lake, prefix: str = "") -> list[str]:
    """Returns the names of all readers with a hold that begin with `prefix`."""
    return [file for file in lake.store.names(FOLDER) if file.startswith(prefix) and not file.endswith(_STOPPED)]


def stopped(lake: Lake, reader: str) -> str | None:
    """Returns why a reader was stopped, or None if it was not."""
    content = read(lake, reader)
    return None if content is None else _reason(lake, reader, content["n"])


def stop(lake: Lake, reader: str, n: int, reason: str) -> None:
    """Stops a reader at entry n, so that entries it has not read may be removed."""
    write(lake, reader + _STOPPED, {"n": n, "reason": reason})


def _reason(lake: Lake, reader: str, n: int) -> str | None:
    content = read(lake, reader + _STOPPED)
    return content["reason"] if content is not None and n <= content["n"] else None


def sink(id: int) -> str:
    """Returns the reader name of a sink."""
    return f"sink-{id}"


class Limits:
    """The limits of what readers may hold, and the objects of the log, both as they are when they are first needed."""

    def __init__(self, lake: Lake, first: int | None = None) -> None:
        """Reads nothing. `first`: the oldest entry, if the caller knows it."""
        self._lake, self._known_first = lake, first

    @cached_property
    def _first(self) -> int:
        """Returns the oldest entry."""
        return self._lake.log.first() if self._known_first is None else self._known_first

    @cached_property
    def bytes_max(self) -> int:
        return bytes_max(self._lake)

    @cached_property
    def _sizes(self) -> list[tuple[int, int]]:
        """Returns the last entry and the bytes of each object."""
        store = self._lake.store
        of_segments = [(segments.range_of(file), size) for file, size in store.sizes(segments.FOLDER).items()]
        of_log = [(file.split(".")[0], size) for file, size in store.sizes(LOG).items()]  # an entry, or a section in a separate object
        return [*((r.last, size) for r, size in of_segments if r), *((int(n), size) for n, size in of_log if n.isdecimal())]

    def size_after(self, n: int) -> int:
        """Returns the bytes of the entries after n, rounded up to whole segments."""
        return sum(size for last, size in self._sizes if last > n)

    def held(self, hold: Hold) -> Held:
        """Returns the part of the log that a reader holds."""
        newest, next_ = self._lake.log.newest(), max(hold.n + 1, self._first)
        if newest is None or next_ > newest.n:
            return Held(0, 0)
        return Held(newest.age - self._lake.log.header(next_).age, self.size_after(hold.n))

    def share(self, hold: Hold, age_max_ms: int) -> float:
        """Returns the share, from 0 to 1, of its limit that a reader holds: by age, or by bytes."""
        held = self.held(hold)
        return max(held.age / min(age_max_ms, AGE_MAX_MS), held.bytes / self.bytes_max)


@dataclass(frozen=True, slots=True)
class Held:
    """The part of the log that a reader holds: the age in ms of the oldest entry that it needs, and the bytes of these entries."""

    age: int
    bytes: int


def read(lake: Lake, reader: str) -> dict[str, Any] | None:
    """Returns the content of a reader's object, or None if there is none."""
    return documents.read(lake.store, name(reader))


def write(lake: Lake, reader: str, content: Mapping[str, Any]) -> None:
    """Writes the content of a reader's object. Only the reader's owner calls this."""
    documents.write(lake.store, name(reader), content)


def name(reader: str) -> str:
    """Returns the name of a reader's object in the store."""
    return f"{FOLDER}/{reader}"
