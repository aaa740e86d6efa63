"""Silences: until when notifications of alerts are not sent.

watch/silences    {alert: ms since the epoch}, written by gateways under watch/silences.lock
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping

from tailgate.lake.folder import Lake
from tailgate.lake.host import files
from tailgate.operations.watch.notifications import FOLDER


def silence(lake: Lake, alert: str, until: int) -> None:
    """Silences an alert until a time, in ms since the epoch. A time in the past ends the silence. Several processes may call this."""
    folder = lake.path / FOLDER
    files.make_folder(folder)
    lock = os.open(folder / "silences.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        now = time.time_ns() // 1_000_000
        content = {name: end for name, end in {**read(lake), alert: until}.items() if end > now}
        files.replace(folder / "silences", json.dumps(content).encode())
    finally:
        os.close(lock)


def read(lake: Lake) -> Mapping[str, int]:
    """Returns the end of the silence of each alert, also of silences that have ended."""
    try:
        content: Mapping[str, int] = json.loads((lake.path / FOLDER / "silences").read_bytes())
    except FileNotFoundError:
        return {}
    return content


def silenced(lake: Lake) -> frozenset[str]:
    """Returns the names of the alerts that are silenced now."""
    now = time.time_ns() // 1_000_000
    return frozenset(name for name, end in read(lake).items() if end > now)
