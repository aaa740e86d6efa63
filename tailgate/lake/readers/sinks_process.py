"""The announcement of the process `tailgate sinks` in sinks.json, so that others notice when it was killed.

The process writes the file when it starts, and removes it when it ends normally.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict
from typing import Any

from tailgate.lake.folder import Lake
from tailgate.lake.host import files
from tailgate.lake.host.processes import Process

FILE = "sinks.json"


def announce(lake: Lake) -> None:
    """Announces this process."""
    content = {**asdict(Process.of(os.getpid())), "host": socket.gethostname()}
    files.replace(lake.path / FILE, json.dumps(content).encode())


def withdraw(lake: Lake) -> None:
    """Removes the announcement of this process, unless another process has announced itself."""
    data = _read(lake)
    if data is not None and data["pid"] == os.getpid() and data["host"] == socket.gethostname():
        files.discard(lake.path / FILE)


def ended_unexpectedly(lake: Lake) -> bool:
    """Returns whether the process that has announced itself on this machine does not exist any more."""
    data = _read(lake)
    if data is None or data["host"] != socket.gethostname():
        return False
    return not Process(data["pid"], data["started"], data["boot"]).lives()


def _read(lake: Lake) -> dict[str, Any] | None:
    try:
        data: dict[str, Any] = json.loads((lake.path / FILE).read_bytes())
    except FileNotFoundError:
        return None
    return data
