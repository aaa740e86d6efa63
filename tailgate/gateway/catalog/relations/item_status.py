"""Lists of items with their status in the engine: SHOW SOURCES, SHOW SINKS, …, and the relations tailgate.sources, ….

A relation contains the items of all schemas. It has a column for the schema, followed by the columns of SHOW. Errors may quote values
of rows, so only roles that may read the rows see them; other roles see the status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from tailgate.lake.catalog import (
    Catalog,
    Connection,
    Endpoint,
    Item,
    MaterializedView,
    Objective,
    Secret,
    Sink,
    Source,
    Subscription,
    Table,
    View,
)
from tailgate.lake.catalog.schemas import TEMPORARY_ID
from tailgate.lake.types import BOOL, FLOAT8, INT8, JSONB, TEXT, TIMESTAMPTZ, Field

SCHEMA = "tailgate"  # the schema of the relations
NAME = Field("name", TEXT)
STATUS = (Field("status", TEXT), Field("error", TEXT))

# by the words after SHOW: (class of item, columns)
LISTS: dict[str, tuple[type[Item], tuple[Field, ...]]] = {
    "sources": (
        Source,
        (
            NAME,
            Field("type", TEXT),
            Field("topic", TEXT),
            *STATUS,
            Field("records", INT8),
            Field("dead_letters", INT8),
            Field("bytes", INT8),
            Field("lag", INT8),
            Field("per_second", FLOAT8),
            Field("last_message", TIMESTAMPTZ),
            Field("last_error", TEXT),
        ),
    ),
    "views": (View, (NAME,)),
    "materialized views": (MaterializedView, (NAME, *STATUS, Field("rows", INT8), Field("percent", FLOAT8))),
    "sinks": (Sink, (NAME, Field("type", TEXT), Field("topic", TEXT), *STATUS)),
    "subscriptions": (
        Subscription,
        (NAME, Field("on_name", TEXT), Field("acknowledged", INT8), Field("lag_ms", INT8), Field("retention_ms", INT8), *STATUS),
    ),
    "tables": (Table, (NAME,)),
    "secrets": (Secret, (NAME,)),
    "connections": (Connection, (NAME, Field("type", TEXT))),
    "objectives": (
        Objective,
        (
            NAME,
            Field("on_name", TEXT),
            Field("goals", TEXT),
            Field("state", TEXT),
            Field("since", TIMESTAMPTZ),
            Field("above_ms", INT8),
            Field("reason", TEXT),
            *(Field(name, FLOAT8) for name in ("burn_rate_5_minutes", "burn_rate_1_hour", "burn_rate_6_hours", "budget_left_percent")),
        ),
    ),
    "endpoints": (Endpoint, (NAME, Field("method", TEXT), Field("path", TEXT))),
}
ERRORS = ("error", "last_error")  # columns that may quote values of rows
MaySee = Callable[[Item], bool]  # whether the role may see the rows of an item, or of the relations that it reads

# the lists that contain the engine's status, with its key there
TOLD = {"sources": "sources", "sinks": "sinks", "materialized views": "views"}

INTERNAL_ERRORS = f"{SCHEMA}.internal_errors"  # errors of the engine and the gateways, for superusers only
KINDS = (
    Field("process", TEXT),
    Field("sqlstate", TEXT),
    Field("error", TEXT),
    Field("statement", TEXT),
    Field("version", TEXT),
    Field("count", INT8),
    Field("first_at", TIMESTAMPTZ),
    Field("last_at", TIMESTAMPTZ),
)


FRESHNESS = f"{SCHEMA}.freshness"  # how fresh the relations are that the role may read
FRESHNESS_FIELDS = (
    Field("schema", TEXT),
    NAME,
    Field("kind", TEXT),
    Field("lag_ms", INT8),
    Field("unknown", TEXT),
    Field("slowest_source", TEXT),
    *(Field(f"{phase}_ms", INT8) for phase in ("kafka", "wait", "tick", "commit", "mirror")),
    *(Field(f"{figure}_{window}_ms", INT8) for window in ("minute", "hour", "day") for figure in ("p50", "p95", "p99", "max")),
)

HISTORY = f"{SCHEMA}.freshness_history"  # the lag of the same relations in the last 7 days
HISTORY_FIELDS = (
    Field("schema", TEXT),
    NAME,
    Field("kind", TEXT),
    Field("at", TIMESTAMPTZ),
    *(Field(name, INT8) for name in ("samples", "unknown", "p50_ms", "p95_ms", "p99_ms", "max_ms")),
)

STATEMENTS = f"{SCHEMA}.statements"  # what clients send, of the roles whose sessions the role may see
STATEMENT_FIELDS = (
    Field("gateway", INT8),
    *(Field(name, TEXT) for name in ("role", "lane", "statement")),
    *(Field(name, INT8) for name in ("calls", "rows", "errors")),
    *(Field(f"{figure}_ms", FLOAT8) for figure in ("total", "p50", "p95", "max")),
    Field("slowest_parameters", TEXT),
    Field("first_at", TIMESTAMPTZ),
    Field("last_at", TIMESTAMPTZ),
)

ALERTS = f"{SCHEMA}.alerts"  # the alerts of the last 7 days
ALERT_FIELDS = (
    *(Field(name, TEXT) for name in ("alert", "key", "severity", "state", "summary", "hint")),
    Field("fields", JSONB),
    *(Field(name, TIMESTAMPTZ) for name in ("since", "updated_at", "resolved_at")),
    Field("silenced", BOOL),
    *(Field(name, INT8) for name in ("first_notification", "last_notification")),
)

DEPENDENCIES = f"{SCHEMA}.dependencies"  # which objects read or use which others
DEPENDENCY_FIELDS = tuple(Field(f"{side}{name}", TEXT) for side in ("", "on_") for name in ("schema", "name", "kind"))

OTHERS = {  # relations other than lists of items
    DEPENDENCIES: DEPENDENCY_FIELDS,
    INTERNAL_ERRORS: KINDS,
    FRESHNESS: FRESHNESS_FIELDS,
    HISTORY: HISTORY_FIELDS,
    STATEMENTS: STATEMENT_FIELDS,
    ALERTS: ALERT_FIELDS,
}


def relations() -> dict[str, dict[str, str]]:
    """Returns the columns of each relation as {qualified name: {column: type}}."""
    result = {
        f"{SCHEMA}.{what.replace(' ', '_')}": {"schema": "text", **{f.name: f.type.name for f in fields}}
        for what, (_, fields) in LISTS.items()
    }
    return {**result, **{name: {f.name: f.type.name for f in fields} for name, fields in OTHERS.items()}}


def dependencies(catalog: Catalog) -> list[dict[str, str]]:
    """Returns the rows of DEPENDENCIES."""
    shown = {item.id: item for item in catalog.visible if item.schema != TEMPORARY_ID}
    pairs = [(item, shown[other]) for item in shown.values() for other in item.depends if other in shown]
    return [{**_named(item, "", catalog), **_named(other, "on_", catalog)} for item, other in pairs]


def _named(item: Item, side: str, catalog: Catalog) -> dict[str, str]:
    return {f"{side}schema": catalog.schema_of(item).name, f"{side}name": item.name, f"{side}kind": item.kind}


def internal_errors(gateways: Iterable[Mapping[str, Any]], engine: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of INTERNAL_ERRORS."""
    of = [*(("gateway", row) for row in gateways), *(("engine", row) for row in engine)]
    return with_moments({"process": process, **row} for process, row in of)


def with_moments(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns rows whose `first_at` and `last_at`, in ms since the epoch, are moments."""
    return [{**row, **{at: _moment(row[at]) for at in ("first_at", "last_at")}} for row in rows]


def rows(what: str, items: Iterable[Item], catalog: Catalog, status: Mapping[str, Any], may_see: MaySee) -> list[list[Any]]:
    """Returns a row for each of the items that belongs to the list.

    `status`: the engine's status, empty if it is not running. For subscriptions, their progress from the lake.
    """
    kind, fields = LISTS[what]
    status_by_name = status.get(TOLD.get(what, what), {})
    lines = []
    for item in items:
        if isinstance(item, kind):
            of_item = status_by_name.get(catalog.stored.name_of(item).sql, {})
            if not of_item.keys().isdisjoint(ERRORS) and not may_see(item):
                of_item = {name: value for name, value in of_item.items() if name not in ERRORS}
            lines.append(_line(item, fields, of_item, bool(status)))
    return lines


def table(relation: str, catalog: Catalog, status: Mapping[str, Any], may_see: MaySee) -> list[dict[str, Any]]:
    """Returns the rows of a relation. `status`: as in `rows`."""
    what = relation.removeprefix(f"{SCHEMA}.").replace("_", " ")
    kind, fields = LISTS[what]
    items = [i for i in catalog.visible if isinstance(i, kind) and i.schema != TEMPORARY_ID]
    lines = rows(what, items, catalog, status, may_see)
    names = [f.name for f in fields]
    return [{"schema": catalog.schema_of(i).name, **dict(zip(names, line, strict=True))} for i, line in zip(items, lines, strict=True)]


def _line(item: Item, fields: Sequence[Field], item_status: Mapping[str, Any], engine: bool) -> list[Any]:
    unknown = "filling" if not item.ready else "running" if engine else "engine is not running"
    type = item.type if isinstance(item, Connection) else "kafka"
    topic = item.topic if isinstance(item, Source | Sink) else None
    defaults: dict[str, Any] = {"name": item.name, "type": type, "topic": topic}
    if isinstance(item, Endpoint):
        defaults |= {"method": item.method, "path": item.path}
    defaults |= {"status": unknown, "last_message": _moment(item_status.get("last_message"))}
    return [defaults[f.name] if f.name == "last_message" else item_status.get(f.name, defaults.get(f.name)) for f in fields]


def _moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc) if milliseconds else None
