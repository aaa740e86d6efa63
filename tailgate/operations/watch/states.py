"""The state of alerts: from conditions that hold now to events.

    holds ──► pending ── hold_s ──► fires ── changes ──► updated ── does not hold for QUIET_S ──► resolved

If a check cannot know its conditions, its alerts keep their state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tailgate.operations.watch.alerts import Alert, Checked, Condition, Event, Identity, Notification

QUIET_S = 3.0  # a condition that returns within this time continues the same alert
UPDATE_S = 10.0  # between two updates of an alert
SOON_S = 15.0  # a condition that has held for longer, and has not fired, may wait for the next regular observation
ACTIVE_MAX = 1_000  # active alerts; conditions of further ones wait until others are resolved


@dataclass
class Active:
    """An alert that has fired. Times are of the monotonic clock, in seconds; `since` in ms since the epoch."""

    condition: Condition
    since: int
    seen_at: float
    updated_at: float
    silenced: bool = False  # its last notification was not sent


class States:
    """The alerts that are pending or active. Give the notifications of `events` to `apply` when they are durable."""

    def __init__(self, active: Iterable[Alert], now_s: float) -> None:
        self._pending: dict[Identity, float] = {}  # since when the condition holds
        self._at_s = now_s  # of the last conditions
        self.active = {
            a.condition.identity: Active(a.condition, a.since, now_s, now_s, a.silenced) for a in active if a.resolved_at is None
        }

    def events(self, checks: Iterable[Checked], now_s: float, silenced: Collection[str] = ()) -> list[Event]:
        """Returns the events of the results of all checks. An alert without a check is resolved: it does not exist any more.

        An alert that fired while it was `silenced` is updated when the silence ends.
        """
        self._at_s = now_s
        unknown: set[str] = set()
        holding: set[Identity] = set()
        events: list[Event] = []
        for checked in checks:
            if checked.conditions is None:
                unknown.add(checked.alert)
                continue
            for condition in checked.conditions:
                if condition.identity not in holding:
                    holding.add(condition.identity)
                    audible = condition.alert not in silenced
                    events += self._held(condition, checked.hold_s, now_s, len(events), audible)
        for identity in [i for i in self._pending if i not in holding and i[0] not in unknown]:
            del self._pending[identity]
        for identity, active in self.active.items():
            if identity[0] in unknown:
                active.seen_at = now_s
            elif identity not in holding and now_s - active.seen_at >= QUIET_S:
                events.append(Event("resolved", active.condition, active.since))
        return events

    @property
    def changes_soon(self) -> bool:
        """Returns whether an alert fires or is resolved within seconds if the last conditions stay as they are."""
        pending = any(self._at_s - since < SOON_S for since in self._pending.values())
        return pending or any(active.seen_at < self._at_s for active in self.active.values())

    def apply(self, notification: Notification, now_s: float) -> None:
        """Changes the state by a notification that is durable."""
        identity = notification.condition.identity
        match notification.kind:
            case "fired":
                del self._pending[identity]
                self.active[identity] = Active(notification.condition, notification.since, now_s, now_s, notification.silenced)
            case "updated":
                active = self.active[identity]
                active.condition, active.updated_at, active.silenced = notification.condition, now_s, notification.silenced
            case "resolved":
                del self.active[identity]

    def _held(self, condition: Condition, hold_s: float, now_s: float, coming: int, audible: bool) -> list[Event]:
        active = self.active.get(condition.identity)
        if active is None:
            since = self._pending.setdefault(condition.identity, now_s)
            full = len(self.active) + coming >= ACTIVE_MAX
            return [Event("fired", condition)] if now_s - since >= hold_s and not full else []
        active.seen_at = now_s
        changed = condition != active.condition and now_s - active.updated_at >= UPDATE_S
        changed = changed or (active.silenced and audible)
        return [Event("updated", condition, active.since)] if changed else []
