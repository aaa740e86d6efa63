"""Objectives: whether the freshness lag of relations and the latency of endpoints meet their goals.

    freshness lag, latency   ──► each step of 10 s: goals over the window met? ──► good or bad ──► burn rates, error budget of the month
                                                                              └──► alert objective_violated

    watch/objectives    {"<id>": {"state", "since", …, "marks": "ggb…", "month": "2026-11", "good": n, "bad": n}}, every step

A step is good if every figure over the window is within its limit. An unknown lag violates every objective; an endpoint without requests
violates none. Steps in
which `tailgate watch` did not run are neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from tailgate.lake.catalog import Catalog, Endpoint, Item, Objective
from tailgate.lake.folder import Lake
from tailgate.lake.store import documents
from tailgate.operations.sketch import STEP_S, Sketch
from tailgate.operations.watch.alerts import PAGE, Condition
from tailgate.operations.watch.history import HOUR_STEPS, Step
from tailgate.operations.watch.notifications import FOLDER

NAME = f"{FOLDER}/objectives"
ALERT = "objective_violated"
MET, VIOLATED = "met", "violated"
GOOD, BAD, MISSING = "g", "b", "-"
LAG, LATENCY = "freshness lag", "latency"
MARKS_MAX = 6 * HOUR_STEPS  # steps of the longest burn rate
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": None}
PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a step. `above_ms`: how far the worst figure is above its limit. `reason`: empty if the goals are met."""

    above_ms: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """The state of an objective. `since`: in ms since the epoch. `step`: the newest one. `marks`: of the last steps, up to it.

    `good`, `bad`: the steps of the `month`, in UTC.
    """

    state: str
    since: int
    step: int
    above_ms: int | None = None
    reason: str = ""
    marks: str = ""
    month: str = ""
    good: int = 0
    bad: int = 0

    def after(self, step: int, verdict: Verdict) -> State:
        """Returns the state after a step."""
        state, at = VIOLATED if verdict.reason else MET, step * STEP_S * 1000
        missing = MISSING * min(step - self.step - 1, MARKS_MAX) if self.marks else ""
        month = datetime.fromtimestamp(step * STEP_S, timezone.utc).strftime("%Y-%m")
        good, bad = (self.good, self.bad) if month == self.month else (0, 0)
        return State(
            state,
            self.since if state == self.state else at,
            step,
            verdict.above_ms,
            verdict.reason,
            (self.marks + missing + (BAD if verdict.reason else GOOD))[-MARKS_MAX:],
            month,
            good + (not verdict.reason),
            bad + bool(verdict.reason),
        )

    def burn_rate(self, steps: int, availability_ppm: int) -> float | None:
        """Returns how fast the last steps use up the error budget: 1 uses it up in exactly its time. None without steps."""
        marks = self.marks[-steps:].replace(MISSING, "")
        return round(marks.count(BAD) / len(marks) / (1 - availability_ppm / PPM), 2) if marks else None

    def budget_left(self, availability_ppm: int) -> float:
        """Returns the rest of the month's error budget, in percent; negative if more than the budget is used up."""
        first = datetime.strptime(self.month, "%Y-%m").replace(tzinfo=timezone.utc)
        following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
        budget = (following - first).total_seconds() / STEP_S * (1 - availability_ppm / PPM)
        return round(100 * (1 - self.bad / budget), 1)


class Objectives:
    """The objectives of a lake. `tailgate watch` gives the steps of the history to `judge`."""

    def __init__(self, lake: Lake, recent: Iterable[tuple[int, Step]] = ()) -> None:
        self._lake = lake
        self._states = states(lake)
        self._steps: deque[tuple[int, Step]] = deque(recent, maxlen=HOUR_STEPS)

    def judge(self, catalog: Catalog, recorded: Sequence[tuple[int, Step]]) -> None:
        """Judges the objectives after each step, and writes their states. Raises OSError if they cannot be written."""
        items = catalog.each(Objective)
        for step, of in recorded:
            self._steps.append((step, of))
            for item in items:
                before = self._states.get(item.id) or State("", 0, step - 1)
                if step > before.step:
                    self._states[item.id] = before.after(step, verdict(item, self._window(item, step), _measure(catalog[item.depends[0]])))
        existing = {item.id for item in items}
        dropped = self._states.keys() - existing
        self._states = {id: state for id, state in self._states.items() if id in existing}
        if dropped or (recorded and items):
            documents.write(self._lake.store, NAME, {str(id): asdict(state) for id, state in self._states.items()})

    def violated(self, catalog: Catalog) -> dict[int, Condition]:
        """Returns the conditions of the objectives that are violated, by id."""
        states = ((item, self._states.get(item.id)) for item in catalog.each(Objective))
        return {item.id: _condition(item, catalog, s) for item, s in states if s is not None and s.state == VIOLATED}

    def _window(self, item: Objective, step: int) -> Sketch:
        """Returns the durations of the objective's relation or endpoint in the window that ends with a step."""
        total, first = Sketch(), step - item.window_ms // 1000 // STEP_S
        for at, of in reversed(self._steps):
            if at <= first:
                break
            if item.depends[0] in of:
                total.merge(of[item.depends[0]])
        return total


def verdict(item: Objective, lags: Sketch, measure: str = LAG) -> Verdict:
    """Returns whether the lags, or the durations of another measure, in a window meet the goals."""
    if lags.missing:
        return Verdict(None, f"its freshness lag was unknown {lags.missing} times of {lags.missing + sum(lags.counts.values())}")
    worst = Verdict()
    for figure, limit in item.limits_ms.items():
        quantile = QUANTILES[figure]
        value = lags.max if quantile is None else lags.quantile(quantile)
        above = round((value or 0) - limit)
        if above > (worst.above_ms or 0):
            worst = Verdict(above, f"the {figure} of its {measure} is above {limit} ms")
    return worst


def states(lake: Lake) -> dict[int, State]:
    """Returns the states of all objectives that have been judged, by id."""
    return {int(id): State(**fields) for id, fields in (documents.read(lake.store, NAME) or {}).items()}


def _measure(item: Item) -> str:
    return LATENCY if isinstance(item, Endpoint) else LAG


def _condition(item: Objective, catalog: Catalog, state: State) -> Condition:
    name, relation = catalog.stored.name_of(item).sql, catalog.stored.name_of(catalog[item.depends[0]]).sql
    reason = state.reason if state.above_ms is not None else "its freshness lag is unknown"
    hint = f"SELECT * FROM tailgate.freshness WHERE name = '{catalog[item.depends[0]].name}' says where the time goes."
    if isinstance(catalog[item.depends[0]], Endpoint):
        hint = "SELECT * FROM tailgate.statements WHERE lane = 'endpoint' shows the latency of all endpoints."
    return Condition(ALERT, name, PAGE, f"objective {name} of {relation} is violated: {reason}", hint)
