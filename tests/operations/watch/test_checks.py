"""Tests the default alerts: which observations make them fire."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.folder import Lake
from tailgate.lake.readers.sinks_process import SinksProcess
from tailgate.operations.watch import observation
from tailgate.operations.watch.checks import CHECKS, LETTERS_S, NO_ENTRY_S, NO_LEASE_S, NO_PROGRESS_S, TICK_MAX_S, Memory, checked, differ
from tailgate.operations.watch.observation import Engine, Gateway, Observation, Observer, Reader
from tests.docs.pages import DOCS

HEALTH: dict[str, Any] = {
    "sources": {"orders": {"status": "running", "dead_letters": 3}},
    "views": {"totals": {"status": "running", "ready": True}, "new": {"status": "filling", "ready": False}},
    "ticks": {"failing": False, "running_s": 0.1},
}
RENEWED = "renewed"  # in each observation
SINK = Reader("out", "sink", 100, "running", 0.1, False)
WELL = Observation(
    at_s=1000.0,
    now=1_800_000_000_000,
    n=100,
    entry_time=1_800_000_000_000,
    engine=Engine("running", 1, HEALTH),
    lease=RENEWED,
    gateways=(Gateway("7", {"rows": []}),),
    not_reached=0,
    sinks_ended=False,
    sinks_silent=False,
    readers=(SINK, Reader("shop.sub", "subscription", 90, "", 0.1, False)),
    disk_free=0.5,
    memory_used=0.5,
    catalog=Catalog(),
)


def found(at: Observation, memory: Memory | None = None) -> list[tuple[str, str]]:
    """Returns the alerts and keys of the conditions that hold."""
    at = replace(at, lease=at.at_s) if at.lease == RENEWED else at
    return [(c.alert, c.key) for check in checked(at, memory or Memory()) for c in check.conditions or ()]


def unknown(at: Observation) -> list[str]:
    return [check.alert for check in checked(at, Memory()) if check.conditions is None]


def health(**parts: Any) -> Observation:
    return replace(WELL, engine=Engine("running", 1, {**HEALTH, **parts}))


def test_a_healthy_lake_has_no_conditions() -> None:
    assert (found(WELL), unknown(WELL)) == ([], [])


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (replace(WELL, disk_free=0.09), [("disk_full", "")]),
        (replace(WELL, memory_used=0.91), [("memory_full", "")]),
        (replace(WELL, entry_time=WELL.now + 61_000), [("clock_ahead", "")]),
        (replace(WELL, engine=Engine("not running")), [("engine_unavailable", "")]),
        (replace(WELL, engine=Engine("not answering", 1)), [("engine_unavailable", "")]),
        (replace(WELL, engine=Engine("ended unexpectedly", 1)), [("engine_unavailable", "")]),
        (health(ticks={"failing": True, "running_s": 0.0}), [("tick_failing", "")]),
        (health(ticks={"failing": False, "running_s": TICK_MAX_S + 0.1}), [("ticks_stopped", "")]),
        (replace(WELL, gateways=()), [("gateway_unavailable", "")]),
        (replace(WELL, gateways=(Gateway("7", None), Gateway("8", {}))), [("gateway_unavailable", "7")]),
        (replace(WELL, gateways=None), []),
        (replace(WELL, sinks_ended=True), [("sinks_unavailable", "")]),
        (replace(WELL, sinks_silent=True), [("sinks_unavailable", "")]),
        (health(sources={"orders": {"status": "stalled", "dead_letters": 0}}), [("source_stalled", "orders")]),
        (health(sources={"orders": {"status": "paused", "dead_letters": 0}}), []),
        (health(views={"totals": {"status": "failing", "ready": True}}), [("view_failing", "totals")]),
        (health(views={"totals": {"status": "failed", "ready": True}}), [("view_failing", "totals")]),
        (health(views={"totals": {"status": "filling", "ready": True}}), [("view_backfilled_again", "totals")]),
        (health(views={"totals": {"status": "replacing", "ready": True}}), []),
        (replace(WELL, readers=(replace(SINK, status="retrying"),)), [("sink_failing", "out")]),
        (replace(WELL, readers=(replace(SINK, status="stopped"),)), [("sink_failing", "out")]),
        (replace(WELL, readers=(replace(SINK, held=0.81),)), [("reader_near_limit", "out")]),
        (replace(WELL, readers=(replace(SINK, held=2.0, stopped=True),)), [("reader_stopped", "out")]),
    ],
)
def test_a_condition(at: Observation, expected: list[tuple[str, str]]) -> None:
    assert found(at) == expected


OF_ITEMS = ("source_stalled", "view_failing", "view_backfilled_again", "dead_letters")


def test_what_the_engine_does_not_say_is_unknown() -> None:
    at = replace(WELL, engine=Engine("not answering", 1))
    assert unknown(at) == ["tick_failing", "ticks_stopped", "lease_not_renewed", *OF_ITEMS]


def test_an_engine_that_answers_and_appends_nothing() -> None:
    memory = Memory()
    assert found(WELL, memory) == []
    assert found(replace(WELL, at_s=WELL.at_s + NO_ENTRY_S), memory) == []
    later = replace(WELL, at_s=WELL.at_s + NO_ENTRY_S + 1)
    assert found(later, memory) == [("ticks_stopped", "")]
    assert found(replace(later, n=101), memory) == []


@pytest.mark.parametrize("lease", [(1, 7), None])
def test_a_lease_that_is_not_renewed(lease: tuple[int, int] | None) -> None:
    memory, at = Memory(), replace(WELL, lease=lease)
    assert found(at, memory) == []
    assert found(replace(at, at_s=at.at_s + NO_LEASE_S, n=101), memory) == []
    later = replace(at, at_s=at.at_s + NO_LEASE_S + 1, n=102)
    assert found(later, memory) == [("lease_not_renewed", "")]
    assert "lease_not_renewed" not in [alert for alert, _ in found(replace(later, engine=Engine("not answering", 1)), memory)]
    assert found(replace(later, lease=(1, 8)), memory) == []


def test_sinks_that_do_not_renew_their_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "SILENT_S", 0.0)
    monkeypatch.setattr(observation, "SILENT_RENEWALS", 0)
    lake = Lake.create(tmp_path / "lake")
    observer = Observer(lake)
    assert not any(observer.observe(0).sinks_silent for _ in range(2)), "there is no process"
    process = SinksProcess(lake)
    assert [observer.observe(0).sinks_silent for _ in range(2)] == [False, True]
    time.sleep(0.02)  # times of files have a resolution of some milliseconds
    process.renew()
    assert [observer.observe(0).sinks_silent for _ in range(2)] == [False, True]
    process.end()
    assert not observer.observe(0).sinks_silent


def test_a_sink_that_does_not_read_on() -> None:
    memory = Memory()
    assert found(WELL, memory) == []
    # after a minute, an entry that the sink has not read yet
    assert found(replace(WELL, at_s=1060.0), memory) == [("ticks_stopped", "")]
    assert found(replace(WELL, at_s=1060.0, n=101), memory) == []
    assert found(replace(WELL, at_s=1060.0 + NO_PROGRESS_S, n=102), memory) == []
    assert found(replace(WELL, at_s=1061.0 + NO_PROGRESS_S, n=103), memory) == [("sink_failing", "out")]
    moved = replace(WELL, at_s=1070.0, n=103, readers=(replace(SINK, n=101),))
    assert found(moved, memory) == []


def test_dead_letters_that_grow() -> None:
    def at(letters: int, at_s: float) -> Observation:
        return replace(health(sources={"orders": {"status": "running", "dead_letters": letters}}), at_s=at_s, n=round(at_s), readers=())

    memory = Memory()
    assert found(at(3, 0), memory) == []
    assert found(at(4, 1), memory) == [("dead_letters", "orders")]
    assert found(at(4, LETTERS_S), memory) == [("dead_letters", "orders")]
    assert found(at(4, LETTERS_S + 2), memory) == []
    # an engine that was started again counts from 0
    assert found(at(0, LETTERS_S + 3), memory) == []
    assert found(at(1, LETTERS_S + 4), memory) == [("dead_letters", "orders")]


def test_the_page_lists_the_alerts() -> None:
    text = (DOCS / "operations" / "alerts.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \|", text, re.MULTILINE)
    assert [row for row in listed if row[0] in {check.alert for check in CHECKS}] == [(check.alert, check.severity) for check in CHECKS]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (replace(WELL, at_s=WELL.at_s + NO_ENTRY_S + 1, memory_used=0.6), False),
        (replace(WELL, memory_used=0.91), True),
        (replace(WELL, engine=Engine("not answering")), True),
        (replace(WELL, gateways=(Gateway("7", None),)), True),
        (health(ticks={"failing": False, "running_s": TICK_MAX_S + 1}), True),
        (health(sources={"orders": {"status": "stalled", "dead_letters": 3}}), True),
        (health(sources={"orders": {"status": "running", "dead_letters": 4}}), True),
        (health(views={"totals": {"status": "failing", "ready": True}}), True),
    ],
)
def test_answers_of_processes_that_differ(after: Observation, expected: bool) -> None:
    """`tailgate watch` looks at a bucket at once if they differ. The content of the lake is not compared."""
    assert (differ(WELL, after), differ(after, after)) == (expected, False)


def test_gateways_on_other_machines_that_cannot_be_asked() -> None:
    """Such gateways may serve clients, so the alert does not say that clients cannot connect."""
    alone, elsewhere = (
        next(c for check in checked(replace(WELL, gateways=(), not_reached=n), Memory()) for c in check.conditions or ()) for n in (0, 1)
    )
    assert alone.summary == "no gateway runs on this machine: clients cannot connect"
    assert elsewhere.summary == "no gateway runs on this machine, and the state of those on other machines is not known here"
    assert elsewhere.hint == "Start those with --control-listen, or one on this machine."
