"""Holds: how far each sink and subscription has read. readers/<id> is written by its owner and says what must stay.

readers/<id>            {"n": …, "since": …}: the entries after n are still to be read, and rows at times from `since` on, if given
readers/<id>.stopped    {"n": …, "reason": …}: written by the engine when a reader held more than it may. A reader that stood at n
                        or before goes no further. One that has moved on is not stopped: the engine did not see that in time.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake import files

if TYPE_CHECKING:
    from lake.folder import Lake

AGE_MAX_MS = 7 * 24 * 3_600_000  # what a reader may hold back
BYTES_MAX = 20 << 30
_STOPPED = ".stopped"


@dataclass(frozen=True, slots=True)
class Hold:
    """`since`: the time from which on the reader reads rows, or None without any. `stopped`: why it may not continue, or None."""

    reader: str
    n: int
    since: int | None
    stopped: str | None


def hold(lake: Lake, reader: str, n: int, since: int | None = None) -> None:
    """Keeps the entries after n, and what the rows at times from `since` on are read from."""
    assert reader and "/" not in reader and not reader.startswith(".") and not reader.endswith(_STOPPED), reader
    content = {"n": n} if since is None else {"n": n, "since": since}
    files.replace(lake.path / "readers" / reader, json.dumps(content).encode() + b"\n")


def release(lake: Lake, reader: str) -> None:
    """The reader is no more; what said that it was stopped goes too."""
    for name in (reader, reader + _STOPPED):
        files.discard(lake.path / "readers" / name)


def start(lake: Lake, reader: str) -> None:
    """A stopped reader goes on: its owner has seen to what it missed."""
    files.remove(lake.path / "readers" / (reader + _STOPPED))


def holds(lake: Lake) -> list[Hold]:
    """All holds, those of stopped readers too."""
    found: list[Hold] = []
    for name in sorted(os.listdir(lake.path / "readers")):
        if name.startswith(".") or name.endswith(_STOPPED):
            continue
        content = _read(lake, name)
        if content is not None:  # otherwise it was released just now
            found.append(Hold(name, content["n"], content.get("since"), _reason(lake, name, content["n"])))
    return found


def stopped(lake: Lake, reader: str) -> str | None:
    """Why a reader was stopped, None if it was not."""
    content = _read(lake, reader)
    return None if content is None else _reason(lake, reader, content["n"])


def stop(lake: Lake, reader: str, n: int, reason: str) -> None:
    """Stops a reader that stands at entry n: entries it has not read may go."""
    content = {"n": n, "reason": reason}
    files.replace(lake.path / "readers" / (reader + _STOPPED), json.dumps(content).encode() + b"\n")


def _reason(lake: Lake, reader: str, n: int) -> str | None:
    content = _read(lake, reader + _STOPPED)
    return content["reason"] if content is not None and n <= content["n"] else None


def _read(lake: Lake, name: str) -> dict[str, Any] | None:
    try:
        content = json.loads((lake.path / "readers" / name).read_bytes())
    except FileNotFoundError:
        return None
    return content if isinstance(content, dict) else None
