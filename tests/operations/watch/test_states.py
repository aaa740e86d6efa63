"""Tests the state of alerts: when they fire, are updated and are resolved."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tailgate.operations.watch.alerts import Alert, Checked, Condition, Event, Notification, alerts
from tailgate.operations.watch.states import ACTIVE_MAX, QUIET_S, SOON_S, UPDATE_S, States

STALLED = Condition("source_stalled", "orders", "page", "source orders is stalled")
OTHER = replace(STALLED, key="visits")


def step(states: States, now_s: float, *conditions: Condition, hold_s: float = 0.0) -> list[tuple[str, str]]:
    """Checks conditions at a time, applies the events, and returns the kind and key of each."""
    return applied(states, states.events([Checked("source_stalled", conditions, hold_s)], now_s), now_s)


def applied(states: States, events: list[Event], now_s: float, silenced: Collection[str] = ()) -> list[tuple[str, str]]:
    for event in events:
        at = round(now_s * 1000)
        silent = event.condition.alert in silenced
        states.apply(Notification(1, at, event.kind, event.condition, event.since or at, silent), now_s)
    return [(event.kind, event.condition.key) for event in events]


def test_an_alert_fires_once_and_is_resolved_after_a_quiet_time() -> None:
    states = States([], 0)
    assert step(states, 1, STALLED) == [("fired", "orders")]
    assert step(states, 2, STALLED) == []
    assert step(states, 3) == []
    assert step(states, 3 + QUIET_S - 1.5) == []
    assert step(states, 2 + QUIET_S) == [("resolved", "orders")]
    assert step(states, 20) == []


def test_a_condition_that_returns_soon_continues_the_alert() -> None:
    states = States([], 0)
    step(states, 1, STALLED)
    assert [step(states, at) for at in (2.0, 3.0)] == [[], []]
    assert step(states, 3.5, STALLED) == []
    assert step(states, 5) == []


def test_a_condition_must_hold_without_a_break() -> None:
    states = States([], 0)
    assert step(states, 0, STALLED, hold_s=3) == []
    assert step(states, 2, hold_s=3) == []
    assert step(states, 3, STALLED, hold_s=3) == []
    assert step(states, 5.9, STALLED, hold_s=3) == []
    assert step(states, 6, STALLED, hold_s=3) == [("fired", "orders")]


def test_conditions_are_checked_again_soon_while_an_alert_is_about_to_change() -> None:
    states = States([], 0)
    assert not states.changes_soon
    step(states, 1, STALLED, hold_s=3)
    assert states.changes_soon
    step(states, 4, STALLED, hold_s=3)
    assert not states.changes_soon
    step(states, 5)
    assert states.changes_soon
    step(states, 4 + QUIET_S)
    assert not states.changes_soon
    for at in (20.0, 20 + SOON_S):
        step(states, at, OTHER, hold_s=3600)
        assert states.changes_soon == (at == 20)


def test_each_key_is_an_alert() -> None:
    states = States([], 0)
    assert step(states, 0, STALLED) == [("fired", "orders")]
    assert step(states, 1, STALLED, OTHER, OTHER) == [("fired", "visits")]
    assert step(states, 1 + QUIET_S, OTHER) == [("resolved", "orders")]


def test_an_alert_is_updated_at_most_once_in_some_seconds() -> None:
    states, changed = States([], 0), replace(STALLED, summary="source orders is failed")
    step(states, 0, STALLED)
    assert step(states, UPDATE_S - 1, changed) == []
    assert step(states, UPDATE_S, changed) == [("updated", "orders")]
    assert step(states, 3 * UPDATE_S, changed) == []
    assert states.active["source_stalled", "orders"].condition == changed


def test_a_check_that_does_not_know_changes_nothing() -> None:
    states = States([], 0)
    step(states, 0, STALLED)
    step(states, 0, STALLED, OTHER, hold_s=5)
    unknown = [Checked("source_stalled", None, 5)]
    assert applied(states, states.events(unknown, 60), 60) == []
    # a pending condition continues to wait
    assert step(states, 61, STALLED, OTHER, hold_s=5) == [("fired", "visits")]
    assert step(states, 61 + QUIET_S - 0.1) == []


def test_an_alert_without_a_check_is_resolved() -> None:
    states = States([], 0)
    step(states, 0, STALLED)
    assert applied(states, states.events([], QUIET_S), QUIET_S) == [("resolved", "orders")]


def test_alerts_survive_a_restart() -> None:
    fired = Notification(1, 1000, "fired", STALLED, 1000)
    states = States(alerts([fired]), 100)
    assert step(states, 100, STALLED) == []
    (event,) = states.events([Checked("source_stalled", ())], 100 + QUIET_S)
    assert (event.kind, event.since) == ("resolved", 1000)


def test_events_that_were_not_applied_come_again() -> None:
    states = States([], 0)
    checks = [Checked("source_stalled", (STALLED,))]
    assert states.events(checks, 0) == states.events(checks, 1) == [Event("fired", STALLED)]


def test_an_alert_is_updated_when_its_silence_ends() -> None:
    states, checks = States([], 0), [Checked("source_stalled", (STALLED,))]
    silenced = {"source_stalled"}
    assert applied(states, states.events(checks, 0, silenced), 0, silenced) == [("fired", "orders")]
    assert states.events(checks, 1, silenced) == []
    assert applied(states, states.events(checks, 2), 2) == [("updated", "orders")]
    assert states.events(checks, 3) == []
    # an alert that fired before the silence
    assert states.events(checks, 4, silenced) == states.events(checks, 5) == []


def test_the_number_of_active_alerts_is_limited() -> None:
    states = States([], 0)
    many = [replace(STALLED, key=str(number)) for number in range(ACTIVE_MAX + 10)]
    assert len(step(states, 0, *many)) == ACTIVE_MAX
    assert step(states, 1, *many) == []
    assert len(step(states, 1 + QUIET_S, *many[10:])) == 10
    assert len(step(states, 2 + QUIET_S, *many[10:])) == 10


def test_notifications_describe_alerts() -> None:
    changed = replace(STALLED, summary="another")
    history = [
        Notification(4, 1000, "fired", STALLED, 1000),
        Notification(5, 2000, "fired", OTHER, 2000),
        Notification(6, 3000, "updated", changed, 1000),
        Notification(7, 4000, "resolved", changed, 1000),
        Notification(8, 5000, "fired", STALLED, 5000),
    ]
    assert alerts(history) == [
        Alert(changed, 1000, 4000, 4000, False, 4, 7),
        Alert(OTHER, 2000, 2000, None, False, 5, 5),
        Alert(STALLED, 5000, 5000, None, False, 8, 8),
    ]
    assert [Notification.from_json(n.to_json()) for n in history] == history
