"""The lake's copy of where a sink is, in readers/sink-<id>: it keeps the log, and tells SHOW SINKS.

    {"n": 17, "time": …, "since": …, "begin": [n, time], "claimed": true, "status": "running", "error": "", "at": …}

`n`: entries after it are kept. `since`: until the snapshot is sent, its time, whose rows stay readable. `begin`: the entry of the
sink's CREATE. `claimed`: Kafka has a progress record. `status`: running, retrying or stopped, with the `error`. `at`: when this was
written, ms. The sink's process is the only writer; where the two differ, Kafka is right.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lake import Lake, files, readers

Status: TypeAlias = Literal["running", "retrying", "stopped"]

PREFIX = "sink-"


@dataclass(frozen=True, slots=True)
class Position:
    """`filled`: the snapshot is sent, or there is none."""

    n: int
    time: int
    claimed: bool
    filled: bool


def sinks(lake: Lake) -> list[int]:
    """The ids of all sinks that have a copy, also of dropped ones."""
    names = (path.name for path in (lake.path / "readers").iterdir())
    return [int(name.removeprefix(PREFIX)) for name in names if name.startswith(PREFIX) and name.removeprefix(PREFIX).isdecimal()]


class Copy:
    def __init__(self, lake: Lake, sink: int) -> None:
        self._lake = lake
        self._name = f"{PREFIX}{sink}"
        self._path = lake.path / "readers" / self._name

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        return data if isinstance(data, dict) else {}

    def begin(self) -> tuple[int, int] | None:
        """The entry and time of the sink's CREATE, if they were noted."""
        begin = self._read().get("begin")
        return None if begin is None else (begin[0], begin[1])

    def note(self, n: int, time: int, *, snapshot: bool) -> None:
        """The sink begins here; the log is kept from here on, and the rows of this time if it has a snapshot."""
        since = {"since": time} if snapshot else {}
        self._write({"n": n, "time": time, **since, "begin": [n, time], "claimed": False, "status": "retrying", "error": ""})

    def position(self) -> Position | None:
        """None before the first `note` or `write`; a hold that the engine made at the CREATE is none."""
        data = self._read()
        return Position(data["n"], data["time"], data["claimed"], "since" not in data) if "claimed" in data else None

    def write(self, n: int, time: int, status: Status, error: str, *, claimed: bool, filled: bool) -> None:
        data = {**self._read(), "n": n, "time": time, "since": time, "claimed": claimed, "status": status, "error": error}
        if filled:
            del data["since"]
        self._write(data)

    def remove(self) -> None:
        """The sink is no more."""
        self._lake.release(self._name)

    def stopped(self) -> str | None:
        """Why the engine no longer keeps the log for this sink; None while it does."""
        return readers.stopped(self._lake, self._name)

    def _write(self, data: dict[str, Any]) -> None:
        files.replace(self._path, json.dumps({**data, "at": time.time_ns() // 1_000_000}).encode())
