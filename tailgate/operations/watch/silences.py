"""Silences: until when notifications of alerts are not sent.

watch/silences    {alert: ms since the epoch}, replaced by gateways if it is unchanged
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from tailgate.lake.folder import Lake
from tailgate.lake.store import documents
from tailgate.operations.watch.notifications import FOLDER

NAME = f"{FOLDER}/silences"


def silence(lake: Lake, alert: str, until: int) -> None:
    """Silences an alert until a time, in ms since the epoch. A time in the past ends the silence. Several processes may call this."""
    now = time.time_ns() // 1_000_000

    def changed(before: Mapping[str, int] | None) -> Mapping[str, int]:
        return {name: end for name, end in {**(before or {}), alert: until}.items() if end > now}

    documents.update(lake.store, NAME, changed)


def read(lake: Lake) -> Mapping[str, int]:
    """Returns the end of the silence of each alert, also of silences that have ended."""
    return documents.read(lake.store, NAME) or {}


def silenced(lake: Lake) -> frozenset[str]:
    """Returns the names of the alerts that are silenced now."""
    now = time.time_ns() // 1_000_000
    return frozenset(name for name, end in read(lake).items() if end > now)
