"""The rows of the relations tailgate.alerts, tailgate.holds, tailgate.objectives and tailgate.subscriptions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from tailgate.lake.catalog import Catalog, Endpoint, Objective, Sink, Subscription
from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds, reading, subscriptions
from tailgate.operations.watch import objectives
from tailgate.operations.watch.alerts import Alert, Notification, alerts
from tailgate.operations.watch.checks import RESERVED as DEFAULT_ALERTS
from tailgate.operations.watch.history import HOUR_STEPS


def alert_rows(notifications: Iterable[Notification], *, superuser: bool) -> list[dict[str, Any]]:
    """Returns a row for each alert that notifications describe. Alerts of CREATE ALERT may have values of rows: superusers see them."""
    return [_row(alert) for alert in alerts(notifications) if superuser or alert.condition.alert in DEFAULT_ALERTS]


def objective_states(lake: Lake, catalog: Catalog) -> dict[str, dict[str, Any]]:
    """Returns the state of each objective by name, qualified if not in `public`. Reads a file."""
    states = objectives.states(lake)
    return {catalog.stored.name_of(item).sql: _objective(item, catalog, states.get(item.id)) for item in catalog.each(Objective)}


def subscription_states(lake: Lake, catalog: Catalog) -> dict[str, dict[str, Any]]:
    """Returns the progress of each subscription by name, qualified if not in `public`. Blocks."""
    newest, oldest = lake.log.newest(), reading.since(lake)
    progress_by_name: dict[str, dict[str, Any]] = {}
    for id, place in subscriptions.places(lake, catalog).items():
        item = catalog.expect(Subscription, id)
        error = place.stopped or (None if place.time >= oldest else "changes that it has not given are no longer kept")
        progress_by_name[catalog.stored.name_of(item).sql] = {
            "on_name": catalog.name_of(catalog[item.depends[0]]).sql,
            "acknowledged": None if place.snapshot else place.time,
            "lag_ms": max(newest.time - place.time, 0) if newest is not None else 0,
            "retention_ms": item.retention_ms,
            "status": "running" if error is None else "stopped",
            "error": error,
        }
    return progress_by_name


def hold_rows(lake: Lake, catalog: Catalog) -> list[dict[str, Any]]:
    """Returns what each sink and subscription holds of the log. One that was stopped holds nothing. Reads files."""
    items: dict[str, Sink | Subscription] = {holds.sink(item.id): item for item in catalog.each(Sink)}
    items |= {subscriptions.reader(item.id): item for item in catalog.each(Subscription)}
    newest, limits, retentions = lake.log.newest(), holds.Limits(lake), subscriptions.retentions(catalog)
    rows = []
    for hold in holds.holds(lake):
        item = items.get(hold.reader)
        if item is None or newest is None:
            continue
        row: dict[str, Any] = {"schema": catalog.schema_of(item).name, "name": item.name, "kind": item.kind}
        if hold.stopped is None:
            held, share = limits.held(hold), limits.share(hold, retentions.get(hold.reader, holds.AGE_MAX_MS))
            entries = max(0, newest.n - hold.n)
            row |= {"entries": entries, "bytes": held.bytes, "age_ms": held.age, "percent": round(100 * share, 1)}
        else:
            row |= {"entries": 0, "bytes": 0, "age_ms": 0, "percent": 0.0, "stopped": hold.stopped}
        rows.append(row)
    return rows


def _objective(item: Objective, catalog: Catalog, state: objectives.State | None) -> dict[str, Any]:
    measure = "LATENCY" if isinstance(catalog[item.depends[0]], Endpoint) else "FRESHNESS"
    goals = [f"{measure} {figure} '{limit} ms'" for figure, limit in item.limits_ms.items()]
    availability = f"AVAILABILITY '{item.availability_ppm / 10_000:g} %'"
    columns: dict[str, Any] = {
        "on_name": catalog.name_of(catalog[item.depends[0]]).sql,
        "goals": f"{', '.join([*goals, availability])} OVER '{item.window_ms // 1000} s'",
    }
    if state is None:
        return columns
    steps = {"5_minutes": HOUR_STEPS // 12, "1_hour": HOUR_STEPS, "6_hours": 6 * HOUR_STEPS}
    return {
        **columns,
        "state": state.state,
        "since": _moment(state.since),
        "above_ms": state.above_ms,
        "reason": state.reason or None,
        **{f"burn_rate_{time}": state.burn_rate(count, item.availability_ppm) for time, count in steps.items()},
        "budget_left_percent": state.budget_left(item.availability_ppm),
    }


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
