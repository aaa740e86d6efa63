"""Observations of a lake by `tailgate watch`: the machine, the log, and the answers of the processes.

    file system, /proc ─┐
    log, readers/        ├─► Observation
    engine: GET /health ─┤
    gateways: freshness ─┘

Nothing here waits longer than ANSWER_S for a process, asks a broker, or needs a process to be alive.
"""

from __future__ import annotations

import http.client
import shutil
import time
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tailgate.lake import control, peers
from tailgate.lake.catalog import Catalog, Sink, Subscription
from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds, sinks_process, subscriptions
from tailgate.lake.store import announcements
from tailgate.lake.store.documents import Document
from tailgate.lake.writer import engines

ANSWER_S = 2.5  # with the time for which `checks` waits, an engine that does not answer is reported within 10 s
HELD_S = 10.0
SILENT_S = 3.0  # without a renewal of its lease, `tailgate sinks` hangs; the time of SILENT_RENEWALS if that is longer
SILENT_RENEWALS = 3


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine: running, not running, ended unexpectedly, or not answering. `health`: its answer, empty if there is none."""

    state: str
    epoch: int = 0
    health: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway. `name`: its process id, with the machine if that is another one.

    `answer`: its steps of the history of freshness lag; None if it does not answer.
    """

    name: str
    answer: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reader:
    """A sink or subscription that holds the log. `status` is that of a sink's last report, empty for a subscription.

    `held`: the share of its limit, from 0 to 1. `stopped`: the engine has ended its hold.
    """

    name: str
    kind: str
    n: int
    status: str
    held: float
    stopped: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a lake and its machine at a moment. `at_s`: by the monotonic clock. `now`: by the wall clock, in ms since the epoch.

    `n` and `entry_time`: of the newest entry of the log; 0 if there is none. `disk_free` and `memory_used`: shares from 0 to 1.
    `gateways`: those that this process may reach, or None if none has ever run. `not_reached`: the number of those on other machines that
    run without --control-listen. `lease`: a value that differs after each renewal of the engine's lease; None if it has none, or if it
    cannot be read. `sinks_ended`: whether `tailgate sinks` was killed; `sinks_silent`: whether it does not renew its lease.
    """

    at_s: float
    now: int
    n: int
    entry_time: int
    engine: Engine
    lease: Hashable
    gateways: tuple[Gateway, ...] | None
    not_reached: int
    sinks_ended: bool
    sinks_silent: bool
    readers: tuple[Reader, ...]
    disk_free: float
    memory_used: float
    catalog: Catalog


@dataclass
class Since:
    """The time since which a value has not changed, by the monotonic clock."""

    value: Hashable
    at_s: float


def unchanged_s(before: Since | None, value: Hashable, at_s: float) -> tuple[Since, float]:
    """Returns since when there is this value, and for how many seconds."""
    since = before if before is not None and before.value == value else Since(value, at_s)
    return since, at_s - since.at_s


class Observer:
    """Observes a lake and its processes. Shares of holds are read once in HELD_S seconds, because they list the log.

    Each observation looks at the log once.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        lake.log.looks = False
        self._announced: engines.Announcement | None = None  # of the last known engine
        self._peers: list[peers.Peer] | None = None  # the gateways then, None if none has ever run
        self._not_reached = 0
        self._held: dict[str, float] = {}
        self._held_at = -HELD_S
        self._sinks: Since | None = None  # the renewal of the lease of `tailgate sinks`
        self._silent_s = max(SILENT_S, SILENT_RENEWALS * sinks_process.lease_s(lake))

    def observe(self, step: int) -> Observation:
        """Returns the present state. `step`: the newest step of the history of freshness lag that is recorded."""
        lake = self._lake
        newest, sinks = lake.log.look(), sinks_process.lease(lake)
        catalog = lake.catalog() if newest is not None else Catalog()
        engine = self._engine()
        if self._peers is not None or lake.store.names(peers.FOLDER):
            listed = peers.listed(lake)
            self._peers = [peer for peer in listed if peer.is_reached]
            self._not_reached = len(listed) - len(self._peers)
        return Observation(
            at_s=time.monotonic(),
            now=time.time_ns() // 1_000_000,
            n=0 if newest is None else newest.n,
            entry_time=0 if newest is None else newest.time,
            engine=engine,
            lease=_lease(lake),
            gateways=self._gateways(step),
            not_reached=self._not_reached,
            sinks_ended=sinks is not None and announcements.ended(sinks[0]),
            sinks_silent=self._is_silent(sinks),
            readers=tuple(self._readers(catalog)),
            disk_free=self._disk_free(),
            memory_used=_memory_used(),
            catalog=catalog,
        )

    def again(self, last: Observation, step: int) -> Observation:
        """Returns the last observation with the present state of the machine, the engine and the gateways. Does not read the lake."""
        return replace(
            last,
            at_s=time.monotonic(),
            engine=_engine(self._announced),
            gateways=self._gateways(step),
            disk_free=self._disk_free(),
            memory_used=_memory_used(),
        )

    def _engine(self) -> Engine:
        """Returns the engine. Reads its announcement only if the last known engine does not answer."""
        engine = _engine(self._announced)
        if engine.state != "running":
            announced = engines.announced(self._lake)
            if announced != self._announced:
                self._announced = announced
                engine = _engine(announced)
        return engine

    def _is_silent(self, sinks: tuple[Document, Hashable] | None) -> bool:
        renewal = None if sinks is None else sinks[1]
        self._sinks, seconds = unchanged_s(self._sinks, renewal, time.monotonic())
        return renewal is not None and seconds > self._silent_s

    def _disk_free(self) -> float:
        disk = shutil.disk_usage(self._lake.local.location(""))
        return disk.free / disk.total

    def _gateways(self, step: int) -> tuple[Gateway, ...] | None:
        request = {"do": "freshness", "after": step}
        return None if self._peers is None else tuple(Gateway(peer.process, peers.ask(peer, request, ANSWER_S)) for peer in self._peers)

    def _readers(self, catalog: Catalog) -> Iterator[Reader]:
        """Yields the sinks and subscriptions with a hold. Those whose item was dropped are left out."""
        lake, items = self._lake, {holds.sink(item.id): item for item in catalog.each(Sink)}
        names: dict[str, Sink | Subscription] = {**items, **{subscriptions.reader(i.id): i for i in catalog.each(Subscription)}}
        all_holds = [hold for hold in holds.holds(lake) if hold.reader in names]
        if time.monotonic() - self._held_at >= HELD_S:
            retentions, limits = subscriptions.retentions(catalog), holds.Limits(lake)
            self._held_at = time.monotonic()
            self._held = {h.reader: limits.share(h, retentions.get(h.reader, holds.AGE_MAX_MS)) for h in all_holds}
        for hold in all_holds:
            item = names[hold.reader]
            content = holds.read(lake, hold.reader) if isinstance(item, Sink) else None
            status = (content or {}).get("status", "")
            held = self._held.get(hold.reader, 0.0)
            yield Reader(str(catalog.stored.name_of(item)), item.kind, hold.n, status, held, hold.stopped is not None)


def _engine(announcement: engines.Announcement | None) -> Engine:
    if announcement is None:
        return Engine("not running")
    try:
        answer = engines.ask(announcement, control.HEALTH, ANSWER_S)
    except (OSError, http.client.HTTPException, ValueError):
        return Engine("ended unexpectedly" if announcement.has_ended else "not answering", announcement.epoch)
    return Engine("running", announcement.epoch, answer)


def _lease(lake: Lake) -> Hashable:
    try:
        return engines.lease(lake)
    except (OSError, ValueError):  # a file that no engine has written
        return None


def _memory_used(path: Path = Path("/proc/meminfo")) -> float:
    """Returns the share of the machine's memory that is not available; 0 if the system does not say."""
    try:
        lines = dict(line.split(":", 1) for line in path.read_text().splitlines())
        total, available = (int(lines[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return 0.0
    return 1 - available / total
