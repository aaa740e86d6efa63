"""Reports failures in the time when `tailgate watch` did not run, once after it has started again.

watch/seen    {"at": ms, "n": entry, "epoch": engine's epoch}: the last observation, every SEEN_S
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tailgate.lake.errors import Gone
from tailgate.lake.folder import Lake
from tailgate.lake.store import documents
from tailgate.operations.watch.alerts import WARNING, Condition
from tailgate.operations.watch.notifications import FOLDER
from tailgate.operations.watch.observation import Observation
from tailgate.operations.watch.payloads import moment

NAME = f"{FOLDER}/seen"
ALERT = "watch_was_stopped"
SEEN_S = 5.0
OUTAGE_MS = 30_000  # a shorter stop is a restart, which the alerts survive
NO_ENTRY_MS = 15_000  # an idle engine appends an entry every 10 s
ENTRIES_MAX = 100_000  # that are read; of a longer outage, the newest ones


@dataclass(frozen=True, slots=True)
class Seen:
    """The last observation: when, of which entry and of which epoch of the engine."""

    at: int
    n: int
    epoch: int


def seen(lake: Lake) -> Seen | None:
    """Returns the last observation of an earlier process, or None before the first."""
    data = documents.read(lake.store, NAME)
    return None if data is None else Seen(data["at"], data["n"], data["epoch"])


def record(lake: Lake, at: Observation) -> None:
    """Records an observation."""
    documents.write(lake.store, NAME, {"at": at.now, "n": at.n, "epoch": at.engine.epoch})


def outage(lake: Lake, last: Seen | None, now: int | None = None) -> Condition | None:
    """Returns a report on the time since the last observation of an earlier process, or None after a short stop."""
    now = time.time_ns() // 1_000_000 if now is None else now
    if last is None or now - last.at < OUTAGE_MS:
        return None
    findings = list(_findings(lake, last)) or ["the log shows no failure of the engine"]
    summary = f"tailgate watch did not run from {moment(last.at)} to {moment(now)}: {'; '.join(findings)}"
    return Condition(ALERT, moment(last.at), WARNING, summary, "Failures of other processes in this time are not known.")


def _findings(lake: Lake, last: Seen) -> Iterator[str]:
    newest = lake.log.newest()
    if newest is None or newest.n <= last.n:
        return
    starts, longest, before, epoch = 0, 0, last.at, last.epoch
    first = max(lake.log.first(), last.n + 1, newest.n - ENTRIES_MAX)
    for n in range(first, newest.n + 1):
        try:
            header = lake.log.header(n)
        except Gone:
            continue
        starts += header.epoch > epoch
        epoch = max(epoch, header.epoch)
        if n > first or first == last.n + 1:
            longest = max(longest, header.time - before)
        before = header.time
    if starts:
        yield f"the engine was started {starts} time{'s' * (starts > 1)}"
    if longest > NO_ENTRY_MS:
        yield f"no entry was appended to the log for {longest / 1000:.0f} s"
