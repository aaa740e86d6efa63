"""The default alerts: checks of an observation, in the order of causes. docs/operations/alerts.md lists them.

A check returns the conditions that hold, or None if the observation does not say. Nothing here has a value of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailgate.operations.watch.alerts import PAGE, WARNING, Checked, Condition
from tailgate.operations.watch.observation import Observation, Since, unchanged_s

DISK_FREE_MIN = 0.10  # of the file system
CLOCK_AHEAD_MAX_MS = 60_000  # a log that is further ahead of the clock than this is reported
MEMORY_USED_MAX = 0.90
HELD_MAX = 0.80  # of a reader's limit
NO_LEASE_S = 4.0  # an engine renews its lease every second
NO_ENTRY_S = 15.0  # an idle engine appends an entry every 10 s
TICK_MAX_S = 8.0  # a tick that runs for longer does not end soon
NO_PROGRESS_S = 6.0  # a sink records its position every second
LETTERS_S = 60.0  # an alert of dead letters is resolved after this time without a new one
LOOK = "Look at its log and at the load of the machine; restart it if it stays so."
ENGINE_STATES = {
    "not running": ("the engine is not running: views do not change", "Start it: tailgate up, or tailgate engine."),
    "ended unexpectedly": ("the engine has ended unexpectedly", "Look at the end of its log (logs/engine.log), and start it again."),
    "not answering": ("the engine does not answer", LOOK),
}
READ = "Read the error: SELECT name, status, error FROM {}."

Results = Sequence[tuple[str, str, str]]  # key, summary, hint


@dataclass
class Memory:
    """Values of earlier observations that the checks compare with."""

    entry: Since | None = None
    lease: Since | None = None
    readers: dict[str, Since] = field(default_factory=dict)  # by name: how far they have read
    letters: dict[str, Since] = field(default_factory=dict)  # by source: the number of dead letters
    grown: dict[str, float] = field(default_factory=dict)  # by source: when it grew


@dataclass(frozen=True, slots=True)
class Check:
    """A default alert. `hold_s`: how long a condition must hold before the alert fires.

    `of_lake`: whether it reads the lake, in addition to the machine and the answers of the engine and the gateways.
    """

    alert: str
    severity: str
    hold_s: float
    find: Callable[[Observation, Memory], Results | None]
    of_lake: bool = False


def checked(at: Observation, memory: Memory) -> Iterator[Checked]:
    """Yields the result of each check."""
    for check in CHECKS:
        results = check.find(at, memory)
        conditions = (
            None if results is None else tuple(Condition(check.alert, key, check.severity, what, hint) for key, what, hint in results)
        )
        yield Checked(check.alert, conditions, check.hold_s)


def differ(before: Observation, after: Observation) -> bool:
    """Returns whether the checks that do not need the lake find conditions in the second observation that the first one lacks, or fewer."""
    memory = Memory()
    _letters(before, memory)
    return _keys(before) != _keys(after) or bool(_letters(after, memory))


def _keys(at: Observation) -> list[list[str] | None]:
    """Returns the keys of the conditions of each check that does not need the lake."""
    results = [check.find(at, Memory()) for check in CHECKS if not check.of_lake]
    return [None if result is None else [key for key, _, _ in result] for result in results]


# ---- the machine -------------------------------------------------------------------------------------------------------------


def _disk(at: Observation, memory: Memory) -> Results:
    hint = "Free space, or move the data folder: ticks fail when the disk is full."
    return [("", f"only {at.disk_free:.0%} of the disk is free", hint)] if at.disk_free < DISK_FREE_MIN else []


def _memory(at: Observation, memory: Memory) -> Results:
    hint = "Stop other programs, or limit the gateways: --memory."
    return [("", f"{at.memory_used:.0%} of the memory of the machine is in use", hint)] if at.memory_used > MEMORY_USED_MAX else []


def _clock(at: Observation, memory: Memory) -> Results:
    hint = "Correct the clock, for example with NTP."
    return [("", "the log is ahead of the clock of this machine", hint)] if at.entry_time - at.now > CLOCK_AHEAD_MAX_MS else []


# ---- the processes -----------------------------------------------------------------------------------------------------------


def _engine(at: Observation, memory: Memory) -> Results:
    return [("", *ENGINE_STATES[at.engine.state])] if at.engine.state in ENGINE_STATES else []


def _failing_ticks(at: Observation, memory: Memory) -> Results | None:
    ticks = at.engine.health.get("ticks")
    if ticks is None:
        return None
    return [("", "the newest tick failed and is tried again", "Read the end of the engine's log (logs/engine.log).")] * ticks["failing"]


def _stopped_ticks(at: Observation, memory: Memory) -> Results | None:
    memory.entry, seconds = unchanged_s(memory.entry, at.n, at.at_s)
    if at.engine.state != "running":
        return None  # the alert of the engine says more
    if at.engine.health.get("ticks", {}).get("running_s", 0.0) > TICK_MAX_S:
        return [("", f"a tick has been running for more than {TICK_MAX_S:.0f} s", LOOK)]
    what = f"the engine has appended no entry to the log for more than {NO_ENTRY_S:.0f} s, although it answers"
    return [("", what, LOOK)] if seconds > NO_ENTRY_S else []


def _lease(at: Observation, memory: Memory) -> Results | None:
    memory.lease, seconds = unchanged_s(memory.lease, at.lease, at.at_s)
    if at.engine.state != "running":
        return None  # the alert of the engine says more
    hint = "Look at the end of its log (logs/engine.log): an engine that stands by replaces it."
    return [("", "the engine does not renew its lease, although it answers", hint)] if seconds > NO_LEASE_S else []


def no_gateway(not_reached: int) -> tuple[str, str]:
    """Returns the summary and the hint for a machine without a gateway. `not_reached`: see Observation."""
    if not_reached:
        what = "no gateway runs on this machine, and the state of those on other machines is not known here"
        return what, "Start those with --control-listen, or one on this machine."
    return "no gateway runs on this machine: clients cannot connect", "Start one: tailgate up, or tailgate gateway."


def _gateways(at: Observation, memory: Memory) -> Results:
    if at.gateways is None:
        return []
    if not at.gateways:
        return [("", *no_gateway(at.not_reached))]
    return [(g.name, f"the gateway with process id {g.name} does not answer", LOOK) for g in at.gateways if g.answer is None]


def _sinks_process(at: Observation, memory: Memory) -> Results:
    hint = "Look at the end of its log (logs/sinks.log), and start it again: tailgate up, or tailgate sinks."
    if at.sinks_ended:
        return [("", "tailgate sinks has ended unexpectedly: sinks write nothing", hint)]
    return [("", "tailgate sinks does not renew its lease: sinks write nothing", LOOK)] * at.sinks_silent


# ---- sources, views, sinks ---------------------------------------------------------------------------------------------------


def _items(at: Observation, what: str) -> Mapping[str, Mapping[str, Any]] | None:
    items: Mapping[str, Mapping[str, Any]] | None = at.engine.health.get(what)
    return items


def _sources(at: Observation, memory: Memory) -> Results | None:
    sources, hint = _items(at, "sources"), READ.format("tailgate.sources")
    if sources is None:
        return None
    return [(name, f"source {name} is {of['status']}", hint) for name, of in sources.items() if of["status"] in ("stalled", "failed")]


def _views(at: Observation, memory: Memory) -> Results | None:
    views, hint = _items(at, "views"), READ.format("tailgate.materialized_views")
    if views is None:
        return None
    return [(name, f"view {name} is {of['status']}", hint) for name, of in views.items() if of["status"] in ("failing", "failed")]


def _backfills(at: Observation, memory: Memory) -> Results | None:
    views, hint = _items(at, "views"), "Wait: SELECT name, percent FROM tailgate.materialized_views shows the progress."
    if views is None:
        return None
    return [(name, f"view {name} is backfilled again", hint) for name, of in views.items() if of["ready"] and of["status"] == "filling"]


def _letters(at: Observation, memory: Memory) -> Results | None:
    sources = _items(at, "sources")
    if sources is None:
        return None
    for name, of in sources.items():
        before, letters = memory.letters.get(name), of["dead_letters"]  # the number since the engine started
        if before is not None and letters != before.value and letters > 0:
            memory.grown[name] = at.at_s
        memory.letters[name] = Since(letters, at.at_s)
    memory.grown = {name: s for name, s in memory.grown.items() if name in sources and at.at_s - s < LETTERS_S}
    hint = "Read them: SELECT * FROM <source>_dead_letters."
    return [(name, f"source {name} has new dead letters: records that cannot be decoded", hint) for name in memory.grown]


def _sinks(at: Observation, memory: Memory) -> Results:
    results, hint = [], READ.format("tailgate.sinks")
    positions = {}
    for reader in at.readers:
        if reader.kind != "sink":
            continue
        positions[reader.name], seconds = unchanged_s(memory.readers.get(reader.name), reader.n, at.at_s)
        if reader.n >= at.n:
            positions[reader.name] = Since(reader.n, at.at_s)
        elif seconds > NO_PROGRESS_S and reader.status == "running":
            results.append(
                (reader.name, f"sink {reader.name} does not write", "Look at the log of tailgate sinks; restart it if it stays so.")
            )
        if reader.status in ("stopped", "retrying"):
            results.append((reader.name, f"sink {reader.name} is {reader.status}", hint))
    memory.readers = positions
    return results


def _held(at: Observation, memory: Memory) -> Results:
    what, hint = "{} {} holds more than 80 % of what it may hold of the log", "Let it read on, or drop it: it stops at the limit."
    return [(r.name, what.format(r.kind, r.name), hint) for r in at.readers if r.held > HELD_MAX and not r.stopped]


def _stopped_readers(at: Observation, memory: Memory) -> Results:
    hint = "Read the error in tailgate.sinks or tailgate.subscriptions, and create it again."
    return [(r.name, f"{r.kind} {r.name} has stopped: it held too much of the log", hint) for r in at.readers if r.stopped]


CHECKS = (
    Check("disk_full", PAGE, 0.0, _disk),
    Check("memory_full", WARNING, 5.0, _memory),
    Check("clock_ahead", WARNING, 2.0, _clock, of_lake=True),
    Check("engine_unavailable", PAGE, 3.0, _engine),
    Check("tick_failing", PAGE, 2.0, _failing_ticks),
    Check("ticks_stopped", PAGE, 0.0, _stopped_ticks),
    Check("lease_not_renewed", PAGE, 2.0, _lease, of_lake=True),
    Check("gateway_unavailable", PAGE, 3.0, _gateways),
    Check("sinks_unavailable", PAGE, 3.0, _sinks_process, of_lake=True),
    Check("source_stalled", PAGE, 2.0, _sources),
    Check("view_failing", PAGE, 0.0, _views),
    Check("view_backfilled_again", WARNING, 0.0, _backfills),
    Check("dead_letters", WARNING, 0.0, _letters),
    Check("sink_failing", PAGE, 3.0, _sinks, of_lake=True),
    Check("reader_near_limit", WARNING, 0.0, _held, of_lake=True),
    Check("reader_stopped", PAGE, 0.0, _stopped_readers, of_lake=True),
)
# names that users' alerts cannot have
RESERVED = frozenset((*(check.alert for check in CHECKS), "objective_violated", "watch_was_stopped", "alert_failing"))
