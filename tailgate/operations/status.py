"""The status of a lake's processes, for `tailgate status`: the processes, their lag, and problems with hints.

    the folder ──► disk, newest entry ─┐
    engine.json ──► GET /status        ├─► report ──► one screen or JSON; exit code 0 if nothing is broken
    gateways/*.json ──► processes      ┘

Problems are in the order of causes: a full disk stops the engine, and an engine that does not run stops sources. The report contains no
error text, because that may quote a row.
"""

from __future__ import annotations

import http.client
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tailgate.lake import control, peers
from tailgate.lake.folder import Lake
from tailgate.lake.readers import sinks_process
from tailgate.lake.writer import engines

ANSWER_S = 5.0  # the engine waits up to three seconds for a broker
DISK_FREE_MIN = 0.10  # of the file system
CLOCK_AHEAD_MAX_MS = 60_000  # a log that is further ahead of the clock than this is reported
WAITING = "waiting for tailgate sinks"
SICK = {  # the states of items that do not work
    "sources": ("stalled", "failed"),
    "views": ("failing", "failed"),
    "sinks": ("stopped", "retrying", WAITING),
}
RELATIONS = {"sources": "tailgate.sources", "views": "tailgate.materialized_views", "sinks": "tailgate.sinks"}
KINDS = {"sources": "source", "views": "view", "sinks": "sink"}


@dataclass(frozen=True, slots=True)
class Problem:
    """A part that is broken, and what to do."""

    what: str
    hint: str


Report = dict[str, Any]  # a JSON object


def report(lake: Lake) -> Report:
    """Returns the status of a lake and its problems."""
    engine, answer = _engine(lake)
    newest = lake.log.newest()
    disk = shutil.disk_usage(lake.local.location(""))
    fields: Report = {"data": lake.location, "disk_free": round(disk.free / disk.total, 3), "engine": engine}
    fields["entry"] = None if newest is None else {"n": newest.n, "time": newest.time, "age_ms": max(0, _now() - newest.time)}
    fields["gateways"] = [
        {"pid": peer.pid, "listens": [f"{host}:{port}" for host, port in sorted(peer.listens)]} for peer in peers.announced(lake)
    ]
    for what in SICK:
        fields[what] = {name: _without_errors(item) for name, item in answer.get(what, {}).items()}
    fields["sinks_ended"] = sinks_process.ended_unexpectedly(lake)
    fields |= {"ticks": answer.get("ticks"), "tick_ms": answer.get("tick_ms")}
    return {**fields, "problems": [asdict(problem) for problem in _problems(fields)]}


def text(fields: Report) -> Iterator[str]:
    """Yields the lines of a report for people."""
    engine, entry = fields["engine"], fields["entry"]
    yield f"data      {fields['data']}, {fields['disk_free']:.0%} of the disk free"
    yield f"log       entry {entry['n']}, {entry['age_ms'] / 1000:.1f} s ago" if entry else "log       empty"
    yield f"engine    {engine['state']}" + (f", process {engine['pid']}, epoch {engine['epoch']}" if "pid" in engine else "")
    for gateway in fields["gateways"]:
        yield f"gateway   process {gateway['pid']}, {', '.join(gateway['listens'])}"
    for what, kind in KINDS.items():
        for name, item in fields[what].items():
            lag = f", {item['lag']} records behind" if item.get("lag") else ""
            percent = f", {item['percent']} % of the backfill" if item.get("percent") is not None else ""
            yield f"{kind:<9} {name}: {item['status']}{lag}{percent}"
    for problem in fields["problems"]:
        yield f"PROBLEM:  {problem['what']}"
        yield f"HINT:     {problem['hint']}"
    if not fields["problems"]:
        yield "no problems"


def _engine(lake: Lake) -> tuple[dict[str, Any], control.Answer]:
    """Returns the state of the engine, and its answer; empty if it does not answer."""
    announcement = engines.announced(lake)
    if announcement is None:
        return {"state": "not running"}, {}
    engine = {"pid": announcement.process.pid, "epoch": announcement.epoch, "host": announcement.host}
    try:
        answer = engines.ask(announcement, control.STATUS, ANSWER_S)
    except (OSError, http.client.HTTPException, ValueError):
        return {"state": "not answering" if announcement.process.lives() else "ended unexpectedly", **engine}, {}
    return {"state": "running", **engine}, answer


def _problems(fields: Report) -> Iterator[Problem]:
    if fields["disk_free"] < DISK_FREE_MIN:
        yield Problem(
            f"only {fields['disk_free']:.0%} of the disk is free", "Free space, or move the data folder: ticks fail when the disk is full."
        )
    if fields["entry"] is not None and fields["entry"]["time"] - _now() > CLOCK_AHEAD_MAX_MS:
        yield Problem("the log is ahead of the clock of this machine", "Correct the clock, for example with NTP.")
    match fields["engine"]["state"]:
        case "not running":
            yield Problem("the engine is not running: views do not change", "Start it: tailgate up, or tailgate engine.")
        case "ended unexpectedly":
            yield Problem("the engine has ended unexpectedly", "Look at the end of its log (logs/engine.log), and start it again.")
        case "not answering":
            yield Problem("the engine does not answer", "Look at its log and at the load of the machine; restart it if it stays so.")
    if not fields["gateways"]:
        yield Problem("no gateway runs on this machine: clients cannot connect", "Start one: tailgate up, or tailgate gateway.")
    if fields["sinks_ended"]:
        yield Problem(
            "tailgate sinks has ended unexpectedly: sinks write nothing",
            "Look at the end of its log (logs/sinks.log), and start it again: tailgate up, or tailgate sinks.",
        )
    for what, states in SICK.items():
        yield from _sick(what, fields[what], states)


def _sick(what: str, items: Mapping[str, Mapping[str, Any]], states: tuple[str, ...]) -> Iterator[Problem]:
    for name, item in items.items():
        if item["status"] in states:
            hint = f"Read the error: SELECT name, status, error FROM {RELATIONS[what]}."
            if item["status"] == WAITING:
                hint = "Start the process that writes sinks: tailgate up, or tailgate sinks."
            yield Problem(f"{KINDS[what]} {name} is {item['status']}", hint)


def _without_errors(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("error", "last_error")}


def _now() -> int:
    return time.time_ns() // 1_000_000
