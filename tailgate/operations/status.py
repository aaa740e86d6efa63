"""The status of a lake's processes, for `tailgate status`: the processes, their lag, and problems with hints.

    the folder ──► disk, newest entry ──┐
    engine.json ──► GET /status         ├─► report ──► one screen or JSON; exit code 0 if nothing is broken
    gateways ──► freshness lags         │
    watch/ ──► alerts that are active   ┘

Problems are in the order of causes: a full disk stops the engine, and an engine that does not run stops sources. The report contains no
error text, because that may quote a row.
"""

from __future__ import annotations

import http.client
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tailgate.lake import control, peers
from tailgate.lake.folder import Lake
from tailgate.lake.readers import sinks_process
from tailgate.lake.writer import engines
from tailgate.operations.watch import missed, observation
from tailgate.operations.watch.alerts import PAGE, alerts
from tailgate.operations.watch.checks import CHECKS, CLOCK_AHEAD_MAX_MS, DISK_FREE_MIN, ENGINE_STATES, READ, no_gateway
from tailgate.operations.watch.notifications import Notifications

ANSWER_S = 5.0  # the engine waits up to three seconds for a broker
WATCHED_MS = 15_000  # alerts of a `tailgate watch` that has observed nothing for longer say nothing about the present
WAITING = "waiting for tailgate sinks"
SICK = {  # the states of items that do not work
    "sources": ("stalled", "failed"),
    "views": ("failing", "failed"),
    "sinks": ("stopped", "retrying", WAITING),
}
RELATIONS = {"sources": "tailgate.sources", "views": "tailgate.materialized_views", "sinks": "tailgate.sinks"}
KINDS = {"sources": "source", "views": "view", "sinks": "sink"}
ALERTS = {"sources": "source_stalled", "views": "view_failing", "sinks": "sink_failing"}
ORDER = {check.alert: place for place, check in enumerate(CHECKS)}  # of causes


@dataclass(frozen=True, slots=True)
class Problem:
    """A part that is broken, and what to do. `alert`: the name of the default alert that reports it."""

    what: str
    hint: str
    alert: str


Report = dict[str, Any]  # a JSON object


def report(lake: Lake) -> Report:
    """Returns the status of a lake and its problems."""
    engine, answer = _engine(lake)
    newest = lake.log.newest()
    disk = shutil.disk_usage(lake.local.location(""))
    fields: Report = {"data": lake.location, "disk_free": round(disk.free / disk.total, 3), "engine": engine}
    fields["entry"] = None if newest is None else {"n": newest.n, "time": newest.time, "age_ms": max(0, _now() - newest.time)}
    gateways = peers.listed(lake)
    reached = [peer for peer in gateways if peer.is_reached]
    fields["gateways"] = [
        {"pid": peer.pid, "process": peer.process, "listens": [f"{host}:{port}" for host, port in sorted(peer.listens)]} for peer in reached
    ]
    fields["gateways_not_reached"] = [peer.process for peer in gateways if not peer.is_reached]
    lags = _lags(reached)
    for what in SICK:
        fields[what] = {name: _without_errors(item) | lags.get(name, {}) for name, item in answer.get(what, {}).items()}
    fields["sinks_ended"] = sinks_process.ended_unexpectedly(lake)
    fields |= {"ticks": answer.get("ticks"), "tick_ms": answer.get("tick_ms"), "alerts": _active(lake)}
    problems = list(_problems(fields))
    names = {problem.alert for problem in problems}
    problems += [
        Problem(alert["summary"], alert["hint"], alert["alert"])
        for alert in fields["alerts"]
        if alert["severity"] == PAGE and alert["alert"] not in names
    ]
    return {**fields, "problems": [asdict(problem) for problem in sorted(problems, key=lambda problem: ORDER[problem.alert])]}


def _active(lake: Lake) -> list[dict[str, Any]]:
    """Returns the default alerts that `tailgate watch` reports now, in the order of causes; none if it does not run."""
    last = missed.seen(lake)
    if last is None or _now() - last.at > WATCHED_MS:
        return []
    reported = (alert.condition for alert in alerts(Notifications(lake).all()) if alert.resolved_at is None)
    active = [condition for condition in reported if condition.alert in ORDER]
    names = ("alert", "key", "severity", "summary", "hint")
    return [{name: getattr(condition, name) for name in names} for condition in sorted(active, key=lambda c: ORDER[c.alert])]


def text(fields: Report) -> Iterator[str]:
    """Yields the lines of a report for people."""
    engine, entry = fields["engine"], fields["entry"]
    yield f"data      {fields['data']}, {fields['disk_free']:.0%} of the disk free"
    yield f"log       entry {entry['n']}, {entry['age_ms'] / 1000:.1f} s ago" if entry else "log       empty"
    yield f"engine    {engine['state']}" + (f", process {engine['pid']}, epoch {engine['epoch']}" if "pid" in engine else "")
    for gateway in fields["gateways"]:
        yield f"gateway   process {gateway['process']}, {', '.join(gateway['listens'])}"
    for process in fields["gateways_not_reached"]:
        yield f"gateway   process {process}: its state is not known here, because it runs without --control-listen"
    for what, kind in KINDS.items():
        for name, item in fields[what].items():
            lag = f", {item['lag']} records behind" if item.get("lag") else ""
            percent = f", {item['percent']} % of the backfill" if item.get("percent") is not None else ""
            freshness = f", freshness lag {_seconds(item['freshness_lag_ms'])}" if "freshness_lag_ms" in item else ""
            yield f"{kind:<9} {name}: {item['status']}{lag}{freshness}{percent}"
    for alert in fields["alerts"]:
        if alert["severity"] != PAGE:
            yield f"WARNING:  {alert['summary']}"
            yield f"HINT:     {alert['hint']}"
    for problem in fields["problems"]:
        yield f"PROBLEM:  {problem['what']}"
        yield f"HINT:     {problem['hint']}"
    if not fields["problems"]:
        yield "no problems"


def _seconds(ms: float | None) -> str:
    return "unknown" if ms is None else f"{ms / 1000:.1f} s"


def _lags(gateways: Iterable[peers.Peer]) -> dict[str, dict[str, float | None]]:
    """Returns the freshness lag of each relation, the largest that a gateway shows; unknown if one does not know it."""
    answers = [peers.ask(peer, {"do": "lags"}, observation.ANSWER_S) for peer in gateways]
    by_gateway = [answer["lags"] for answer in answers if answer is not None and "lags" in answer]
    lags: dict[str, dict[str, float | None]] = {}
    for name in {name for of_gateway in by_gateway for name in of_gateway}:
        values = [of_gateway[name] for of_gateway in by_gateway if name in of_gateway]
        lags[name] = {"freshness_lag_ms": None if None in values else round(max(values))}
    return lags


def _engine(lake: Lake) -> tuple[dict[str, Any], control.Answer]:
    """Returns the state of the engine, and its answer; empty if it does not answer."""
    announcement = engines.announced(lake)
    if announcement is None:
        return {"state": "not running"}, {}
    engine = {"pid": announcement.process.pid, "epoch": announcement.epoch, "host": announcement.machine.host}
    try:
        answer = engines.ask(announcement, control.STATUS, ANSWER_S)
    except (OSError, http.client.HTTPException, ValueError):
        return {"state": "ended unexpectedly" if announcement.has_ended else "not answering", **engine}, {}
    return {"state": "running", **engine}, answer


def _problems(fields: Report) -> Iterator[Problem]:
    if fields["disk_free"] < DISK_FREE_MIN:
        hint = "Free space, or move the data folder: ticks fail when the disk is full."
        yield Problem(f"only {fields['disk_free']:.0%} of the disk is free", hint, "disk_full")
    if fields["entry"] is not None and fields["entry"]["time"] - _now() > CLOCK_AHEAD_MAX_MS:
        yield Problem("the log is ahead of the clock of this machine", "Correct the clock, for example with NTP.", "clock_ahead")
    if (state := fields["engine"]["state"]) in ENGINE_STATES:
        yield Problem(*ENGINE_STATES[state], "engine_unavailable")
    if not fields["gateways"]:
        yield Problem(*no_gateway(len(fields["gateways_not_reached"])), "gateway_unavailable")
    if fields["sinks_ended"]:
        hint = "Look at the end of its log (logs/sinks.log), and start it again: tailgate up, or tailgate sinks."
        yield Problem("tailgate sinks has ended unexpectedly: sinks write nothing", hint, "sinks_unavailable")
    for what, states in SICK.items():
        yield from _sick(what, fields[what], states)


def _sick(what: str, items: Mapping[str, Mapping[str, Any]], states: tuple[str, ...]) -> Iterator[Problem]:
    for name, item in items.items():
        if item["status"] in states:
            hint = READ.format(RELATIONS[what])
            if item["status"] == WAITING:
                hint = "Start the process that writes sinks: tailgate up, or tailgate sinks."
            yield Problem(f"{KINDS[what]} {name} is {item['status']}", hint, ALERTS[what])


def _without_errors(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("error", "last_error")}


def _now() -> int:
    return time.time_ns() // 1_000_000
