"""Entries of a lake's log as `tailgate log` prints them. They contain no row of a relation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.errors import Gone, InvalidParameterValue
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Header
from tailgate.operations.labels import label

Entry = dict[str, Any]  # a JSON object


def newest(lake: Lake, count: int) -> Iterator[Entry]:
    """Yields the newest entries in order, at most `count`."""
    last = lake.log.newest()
    if last is not None:
        for n in range(max(lake.log.first(), last.n - count + 1), last.n + 1):
            yield _summary(lake.log.header(n))


def entry(lake: Lake, n: int) -> Entry:
    """Returns an entry with its offsets and the changed relations. Raises 22023 if the log does not have it."""
    last = lake.log.newest()
    try:
        if last is None or not lake.log.first() <= n <= last.n:
            raise Gone(f"entry {n}")
        header = lake.log.header(n)
    except Gone:
        limits = "is empty" if last is None else f"has entries {lake.log.first()} to {last.n}"
        raise InvalidParameterValue(f"entry {n} is not in the log", detail=f"The log {limits}.") from None
    catalog = lake.catalog_at(n)
    changes = {_name(catalog, section.relation): section.rows for section in header.relations}
    more: Entry = {"age_ms": header.age, "catalog_entry": header.catalog_version, "offsets": dict(header.offsets), "changed_rows": changes}
    return _summary(header) | more | ({} if header.catalog is None else {"catalog": _change(header.catalog)})


def _summary(header: Header) -> Entry:
    moment = datetime.fromtimestamp(header.time / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    rows = sum(section.rows for section in header.relations)
    fixed = {"n": header.n, "time": moment, "time_ms": header.time, "epoch": header.epoch, "kind": header.kind}
    return fixed | {"relations": len(header.relations), "rows": rows, "inbox": header.inbox}


def _name(catalog: Catalog, relation: int) -> str:
    """Returns the name of a relation, or its id if it belongs to another item, such as the errors of a view."""
    item = catalog.items.get(relation)
    return str(relation) if item is None else label(catalog, item)


def _change(change: Change) -> Entry:
    """Returns the names of the items, roles and schemas that an entry adds or replaces, and the ids of those that it drops.

    Privileges have the id of their object.
    """
    put = {"items": change.put, "roles": change.put_roles, "schemas": change.put_schemas}
    dropped = {"items": change.drop, "roles": change.drop_roles, "schemas": change.drop_schemas}
    names: dict[str, list[str]] = {kind: [thing.name for thing in things] for kind, things in put.items() if things}
    if change.put_access:
        names["privileges"] = [str(access.id) for access in change.put_access]
    return {
        "put": names,
        "drop": {kind: list(ids) for kind, ids in dropped.items() if ids},
    }
