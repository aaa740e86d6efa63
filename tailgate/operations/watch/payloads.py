"""The bodies and headers of webhook requests.

- `plain`: one JSON object with the notification.
- `alertmanager`: the format of Prometheus' Alertmanager, version 4, with one alert, for receivers that exist.

With a secret, `Tailgate-Signature: t=<seconds>,v1=<hex>` is the HMAC-SHA256 of `<seconds>.<body>`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime, timezone
from typing import Any, Literal

from tailgate.operations.watch.alerts import Notification

Format = Literal["plain", "alertmanager"]
FORMATS: tuple[Format, ...] = ("plain", "alertmanager")
NEVER = "0001-01-01T00:00:00Z"  # Go's zero time: Alertmanager's end of an alert that is firing
RECEIVER = "tailgate"


def body(notification: Notification, form: Format, lake: str) -> bytes:
    """Returns the body of the request for a notification. `lake`: the id of the lake."""
    data = _alertmanager(notification, lake) if form == "alertmanager" else _plain(notification, lake)
    return json.dumps(data, ensure_ascii=False, default=str).encode()


def headers(notification: Notification, content: bytes, secret: str | None, now_s: int) -> dict[str, str]:
    """Returns the headers of the request for a notification."""
    result = {"Content-Type": "application/json", "User-Agent": "tailgate", "Tailgate-Notification": str(notification.n)}
    if secret is not None:
        result["Tailgate-Signature"] = f"t={now_s},v1={signature(content, secret, now_s)}"
    return result


def signature(content: bytes, secret: str, now_s: int) -> str:
    """Returns the signature of a body, which was sent at a time in seconds since the epoch.

    >>> signature(b"{}", "key", 1)[:8]
    '2e8f5ba7'
    """
    return hmac.new(secret.encode(), f"{now_s}.".encode() + content, hashlib.sha256).hexdigest()


def moment(milliseconds: int) -> str:
    """Returns a time in ms since the epoch as RFC 3339 writes it.

    >>> moment(1500)
    '1970-01-01T00:00:01.500Z'
    """
    text = datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _status(notification: Notification) -> str:
    return "resolved" if notification.kind == "resolved" else "firing"


def _plain(notification: Notification, lake: str) -> dict[str, Any]:
    condition = notification.condition
    return {
        "version": 1,
        "id": notification.n,
        "lake": lake,
        "alert": condition.alert,
        "key": condition.key,
        "status": _status(notification),
        "event": notification.kind,
        "severity": condition.severity,
        "summary": condition.summary,
        "hint": condition.hint,
        "fields": dict(condition.fields),
        "since": moment(notification.since),
        "at": moment(notification.at),
    }


def _alertmanager(notification: Notification, lake: str) -> dict[str, Any]:
    condition, status = notification.condition, _status(notification)
    labels = {"alertname": condition.alert, "severity": condition.severity, "lake": lake}
    labels |= {"key": condition.key} if condition.key else {}
    annotations = {"summary": condition.summary} | ({"hint": condition.hint} if condition.hint else {})
    annotations |= {name: str(value) for name, value in condition.fields.items()}
    fingerprint = hashlib.sha256(json.dumps(sorted(labels.items())).encode()).hexdigest()[:16]
    alert = {
        "status": status,
        "labels": labels,
        "annotations": annotations,
        "startsAt": moment(notification.since),
        "endsAt": moment(notification.at) if status == "resolved" else NEVER,
        "generatorURL": "",
        "fingerprint": fingerprint,
    }
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{condition.alert}", lake="{lake}"}}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": RECEIVER,
        "groupLabels": {"alertname": condition.alert},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "",
        "alerts": [alert],
    }
