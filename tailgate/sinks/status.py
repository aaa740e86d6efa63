"""The lake's copy of a sink's position and status, in readers/sink-<id>. It holds the log, and SHOW SINKS shows it.

    {"n": 17, "time": …, "since": …, "begin": [n, time], "claimed": true, "sent": 16,
     "status": "running", "error": "", "events": 4, "last": …, "at": …}

- `n`: entries after it are kept; `holds.NOTHING` for a sink over the schema `tailgate`.
- `since`: the time of the snapshot, whose rows stay readable until the snapshot is written.
- `begin`: the entry of CREATE SINK, and its time.
- `claimed`: whether Kafka has a progress record.
- `sent`: the last entry with events that Kafka has acknowledged. From there to `n` the sink has no events.
- `status`: running, retrying or stopped, with the `error`.
- `events`: the messages that this process has written, and `last`, when it wrote the newest one, in ms, or null.
- `at`: when this was written, in ms.

Only the sink's process writes it. Where it differs from Kafka, Kafka is right.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds

Status: TypeAlias = Literal["running", "retrying", "stopped"]

PREFIX = "sink-"


@dataclass(frozen=True, slots=True)
class Position:
    """A sink's position in its copy. `filled`: the snapshot is complete, or there is none. `sent`: 0 in a copy of an earlier version."""

    n: int
    time: int
    claimed: bool
    filled: bool
    sent: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The number of messages that a process has written, and the time of the newest one, in ms."""

    events: int = 0
    last: int | None = None


NO_FIGURES = Figures()


def sinks(lake: Lake) -> list[int]:
    """Returns the ids of all sinks that have a copy, including dropped ones."""
    ids = (reader.removeprefix(PREFIX) for reader in holds.readers(lake, PREFIX))
    return [int(id) for id in ids if id.isdecimal()]


def samples_folder(sink: int) -> str:
    """Returns the folder with the rows that a sink over the schema `tailgate` has sent."""
    return f"samples/{sink}"


class Copy:
    """The copy of one sink's position and status."""

    def __init__(self, lake: Lake, sink: int) -> None:
        self._lake, self._sink = lake, sink
        self._name = holds.sink(sink)

    def _read(self) -> dict[str, Any]:
        return holds.read(self._lake, self._name) or {}

    def begin(self) -> tuple[int, int] | None:
        """Returns the entry and time of CREATE SINK, or None if they are not recorded."""
        begin = self._read().get("begin")
        return None if begin is None else (begin[0], begin[1])

    def note(self, n: int, time: int, *, snapshot: bool) -> None:
        """Records where the sink begins. Holds the log from there on, and the rows at this time if the sink has a snapshot."""
        since = {"since": time} if snapshot else {}
        self._write({"n": n, "time": time, **since, "begin": [n, time], "claimed": False, "status": "retrying", "error": ""})

    def position(self) -> Position | None:
        """Returns the position, or None before the first `note` or `write`. The engine's own hold at CREATE SINK does not count."""
        data = self._read()
        if "claimed" not in data:
            return None
        return Position(data["n"], data["time"], data["claimed"], "since" not in data, data.get("sent", 0))

    def write(self, position: Position, status: Status, error: str, figures: Figures = NO_FIGURES) -> None:
        """Writes position, status and figures. The hold for the snapshot ends when it is `filled`."""
        data = {**self._read(), "n": position.n, "time": position.time, "since": position.time}
        data |= {"claimed": position.claimed, "sent": position.sent, "status": status, "error": error}
        data |= {"events": figures.events, "last": figures.last}
        if position.filled:
            del data["since"]
        self._write(data)

    def remove(self) -> None:
        """Removes the samples of a dropped sink, and its copy."""
        self._lake.store.discard_folder(samples_folder(self._sink))
        holds.release(self._lake, self._name)

    def stopped(self) -> str | None:
        """Returns why the engine no longer keeps the log for this sink; None while it does."""
        return holds.stopped(self._lake, self._name)

    def _write(self, data: dict[str, Any]) -> None:
        holds.write(self._lake, self._name, {**data, "at": time.time_ns() // 1_000_000})
