"""Lists of items with their status in the engine: SHOW SOURCES, SHOW SINKS, …, and the relations tailgate.sources, ….

A relation contains the items of all schemas. It has a column for the schema, followed by the columns of SHOW. Errors may quote values
of rows, so only roles that may read the rows see them; other roles see the status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from tailgate.lake.catalog import (
    SYSTEM_RELATIONS,
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
from tailgate.lake.system_relations import COLUMNS
from tailgate.lake.types import TEXT, Field

NAME = Field("name", TEXT)

# by the words after SHOW: (class of item, columns)
LISTS: dict[str, tuple[type[Item], tuple[Field, ...]]] = {
    name.replace("_", " "): (kind, COLUMNS[name][1:])
    for name, kind in {
        "sources": Source,
        "views": View,
        "materialized_views": MaterializedView,
        "sinks": Sink,
        "subscriptions": Subscription,
        "tables": Table,
        "secrets": Secret,
        "connections": Connection,
        "objectives": Objective,
        "endpoints": Endpoint,
    }.items()
}
ERRORS = ("error", "last_error")  # columns that may quote values of rows
MaySee = Callable[[Item], bool]  # whether the role may see the rows of an item, or of the relations that it reads

# the lists that contain the engine's status, with its key there
TOLD = {"sources": "sources", "sinks": "sinks", "materialized views": "views"}

# the relations whose rows contain the engine's status
ASK_ENGINE = frozenset(SYSTEM_RELATIONS[name.replace(" ", "_")].id for name in (*TOLD, "internal errors"))


def dependencies(catalog: Catalog) -> list[dict[str, str]]:
    """Returns the rows of tailgate.dependencies."""
    shown = {item.id: item for item in catalog.visible if item.schema != TEMPORARY_ID}
    pairs = [(item, shown[other]) for item in shown.values() for other in item.depends if other in shown]
    return [{**_named(item, "", catalog), **_named(other, "on_", catalog)} for item, other in pairs]


def _named(item: Item, side: str, catalog: Catalog) -> dict[str, str]:
    return {f"{side}schema": catalog.schema_of(item).name, f"{side}name": item.name, f"{side}kind": item.kind}


def internal_errors(gateways: Iterable[Mapping[str, Any]], engine: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of tailgate.internal_errors."""
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
    """Returns the rows of a relation that lists items. `status`: as in `rows`."""
    what = relation.replace("_", " ")
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
