"""The rows of the relation tailgate.alerts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from tailgate.operations.watch.alerts import Alert, Notification, alerts


def alert_rows(notifications: Iterable[Notification]) -> list[dict[str, Any]]:
    """Returns a row for each alert that notifications describe."""
    return [_row(alert) for alert in alerts(notifications)]


def _row(alert: Alert) -> dict[str, Any]:
    condition = alert.condition
    return {
        **{name: getattr(condition, name) for name in ("alert", "key", "severity", "summary", "hint")},
        "state": "firing" if alert.resolved_at is None else "resolved",
        "fields": json.dumps(dict(condition.fields), ensure_ascii=False, default=str),
        "since": _moment(alert.since),
        "updated_at": _moment(alert.updated_at),
        "resolved_at": None if alert.resolved_at is None else _moment(alert.resolved_at),
        "silenced": alert.silenced,
        "first_notification": alert.first,
        "last_notification": alert.last,
    }


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
