"""Holds: how far each sink and subscription has read. readers/<id> is written by its owner and says what must stay.

readers/<id>            {"n": …}: the entries after n are still to be read
readers/<id>.stopped    written by the engine when a reader held more than it may; its owner goes on no further
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake import files

if TYPE_CHECKING:
    from lake.folder import Lake

AGE_MAX_MS = 7 * 24 * 3_600_000  # what a reader may hold back
BYTES_MAX = 20 << 30
_STOPPED = ".stopped"


@dataclass(frozen=True, slots=True)
class Hold:
    """`stopped`: why its reader may go no further, or None."""

    reader: str
    n: int
    stopped: str | None


def hold(lake: Lake, reader: str, n: int) -> None:
    """Keeps the entries after n."""
    assert reader and "/" not in reader and not reader.startswith(".") and not reader.endswith(_STOPPED), reader
    files.replace(lake.path / "readers" / reader, json.dumps({"n": n}).encode() + b"\n")


def release(lake: Lake, reader: str) -> None:
    """The reader is no more; what said that it was stopped goes too."""
    for name in (reader, reader + _STOPPED):
        (lake.path / "readers" / name).unlink(missing_ok=True)


def start(lake: Lake, reader: str) -> None:
    """A stopped reader goes on: its owner has seen to what it missed."""
    (lake.path / "readers" / (reader + _STOPPED)).unlink(missing_ok=True)


def holds(lake: Lake) -> list[Hold]:
    """All holds, those of stopped readers too."""
    found: list[Hold] = []
    for name in sorted(os.listdir(lake.path / "readers")):
        if name.startswith(".") or name.endswith(_STOPPED):
            continue
        try:
            n = json.loads((lake.path / "readers" / name).read_bytes())["n"]
        except FileNotFoundError:
            continue  # released just now
        found.append(Hold(name, n, stopped(lake, name)))
    return found


def stopped(lake: Lake, reader: str) -> str | None:
    """Why a reader was stopped, None if it was not."""
    try:
        return (lake.path / "readers" / (reader + _STOPPED)).read_text().strip()
    except FileNotFoundError:
        return None


def stop(lake: Lake, reader: str, reason: str) -> None:
    """Marks a reader as stopped: entries it has not read may go."""
    files.replace(lake.path / "readers" / (reader + _STOPPED), reason.encode() + b"\n")
