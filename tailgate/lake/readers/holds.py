"""Holds: what sinks and subscriptions still have to read. The owner of a reader writes readers/<id>.

readers/<id>            {"n": …, "since": …}: the entries after n are needed, and rows at times from `since` on, if present
readers/<id>.stopped    {"n": …, "reason": …}: written by the engine when a reader held more than allowed. A reader at entry n
                        or before may not continue. A later one had moved on before the engine noticed, and continues.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailgate.lake.folder import Lake
from tailgate.lake.host import files

AGE_MAX_MS = 7 * 24 * 3_600_000  # age of the oldest entry that a reader may hold
BYTES_MAX = 20 << 30
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
    files.replace(lake.path / "readers" / reader, json.dumps(content).encode() + b"\n")


def release(lake: Lake, reader: str) -> None:
    """Removes the hold of a dropped reader, and its stop."""
    for name in (reader, reader + _STOPPED):
        files.discard(lake.path / "readers" / name)


def start(lake: Lake, reader: str) -> None:
    """Allows a stopped reader to continue, after its owner has handled the gap."""
    files.remove(lake.path / "readers" / (reader + _STOPPED))


def holds(lake: Lake) -> list[Hold]:
    """Returns all holds, including those of stopped readers."""
    result: list[Hold] = []
    for name in sorted(os.listdir(lake.path / "readers")):
        if name.startswith(".") or name.endswith(_STOPPED):
            continue
        content = read(lake, name)
        if content is not None:  # None if it has just been released
            result.append(Hold(name, content["n"], content.get("since"), _reason(lake, name, content["n"])))
    return result


def stopped(lake: Lake, reader: str) -> str | None:
    """Returns why a reader was stopped, or None if it was not."""
    content = read(lake, reader)
    return None if content is None else _reason(lake, reader, content["n"])


def stop(lake: Lake, reader: str, n: int, reason: str) -> None:
    """Stops a reader at entry n, so that entries it has not read may be removed."""
    content = {"n": n, "reason": reason}
    files.replace(lake.path / "readers" / (reader + _STOPPED), json.dumps(content).encode() + b"\n")


def _reason(lake: Lake, reader: str, n: int) -> str | None:
    content = read(lake, reader + _STOPPED)
    return content["reason"] if content is not None and n <= content["n"] else None


def sink(id: int) -> str:
    """Returns the reader name of a sink."""
    return f"sink-{id}"


def held(lake: Lake, at: Hold, age_max_ms: int) -> float:
    """Returns the share, from 0 to 1, of its limit that a reader holds: by the age of the oldest entry that it needs, or by bytes."""
    newest, next_ = lake.log.newest(), max(at.n + 1, lake.log.first())
    if newest is None or next_ > newest.n:
        return 0.0
    age = newest.age - lake.log.header(next_).age
    return max(age / min(age_max_ms, AGE_MAX_MS), size_after(lake, at.n) / BYTES_MAX)


def size_after(lake: Lake, n: int) -> int:
    """Returns the bytes of the entries after n, rounded up to whole segments."""
    segments = [lake.log.segments.folder / r.name for r in lake.log.segments.ranges() if r.last > n]
    entries = [p for p in map(Path, os.scandir(lake.log.folder)) if p.name.split(".")[0].isdecimal() and int(p.name.split(".")[0]) > n]
    return sum(p.stat().st_size for p in [*segments, *entries])


def read(lake: Lake, name: str) -> dict[str, Any] | None:
    """Returns the content of a reader's file, or None if there is none."""
    try:
        content = json.loads((lake.path / "readers" / name).read_bytes())
    except FileNotFoundError:
        return None
    return content if isinstance(content, dict) else None
