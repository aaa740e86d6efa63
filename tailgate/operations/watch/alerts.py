"""Alerts and their notifications, as values.

    Condition: holds now ──► Event: an alert fires, is updated, is resolved ──► Notification: an event with an id and a time

An alert is identified by its name and its key, such as `source_stalled` and the name of the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Kind = Literal["fired", "updated", "resolved"]
Identity: TypeAlias = tuple[str, str]  # the name of an alert and its key

PAGE, WARNING = "page", "warning"  # severities of the default alerts


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is wrong now. `summary` and `hint` have no value of a row in them; `fields` may, for alerts of queries."""

    alert: str
    key: str
    severity: str
    summary: str
    hint: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    webhooks_of: int = 0  # the id of the alert whose webhooks and programs receive it; 0 for the webhooks of the process

    @property
    def identity(self) -> Identity:
        return self.alert, self.key


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check: the conditions of an alert that hold, or None if this cannot be known now.

    `hold_s`: how long a condition must hold before the alert fires.
    """

    alert: str
    conditions: tuple[Condition, ...] | None
    hold_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """A change of an alert. `since`: when it fired, in ms since the epoch; 0 for one that fires now."""

    kind: Kind
    condition: Condition
    since: int = 0


@dataclass(frozen=True, slots=True)
class Notification:
    """An event with its id and time, in ms since the epoch. Ids have no gaps."""

    n: int
    at: int
    kind: Kind
    condition: Condition
    since: int
    silenced: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns the notification as a JSON object."""
        condition = self.condition
        names = ("alert", "key", "severity", "summary", "hint", "webhooks_of")
        fields = {name: getattr(condition, name) for name in names} | {"fields": dict(condition.fields)}
        return {"n": self.n, "at": self.at, "event": self.kind, "since": self.since, "silenced": self.silenced, **fields}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Notification:
        """Returns the notification of a JSON object."""
        names = ("alert", "key", "severity", "summary", "hint", "fields", "webhooks_of")
        condition = Condition(**{name: data[name] for name in names})
        return Notification(data["n"], data["at"], data["event"], condition, data["since"], data["silenced"])


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert from firing until it is resolved. `resolved_at` is None while it is active. `first` and `last`: ids of notifications."""

    condition: Condition
    since: int
    updated_at: int
    resolved_at: int | None
    silenced: bool
    first: int
    last: int


def alerts(notifications: Iterable[Notification]) -> list[Alert]:
    """Returns the alerts that notifications describe, in the order in which they fired."""
    result: list[Alert] = []
    active: dict[Identity, int] = {}
    for notification in notifications:
        identity, n, at = notification.condition.identity, notification.n, notification.at
        place = active.get(identity)
        if place is None:
            place = active[identity] = len(result)
            result.append(Alert(notification.condition, notification.since, at, None, notification.silenced, n, n))
        alert = result[place]
        result[place] = alert = replace(alert, condition=notification.condition, updated_at=at, silenced=notification.silenced, last=n)
        if notification.kind == "resolved":
            result[place] = replace(alert, resolved_at=at)
            del active[identity]
    return result
