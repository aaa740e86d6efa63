"""CREATE SUBSCRIPTION: the subscription's catalog item. `lake.subscriptions` stores its position."""

from __future__ import annotations

from engine.ddl.names import free, kept, stored
from lake.catalog import SUBSCRIPTION, Catalog, Item
from lake.errors import InvalidParameterValue, ObjectNotInPrerequisiteState
from lake.readers import AGE_MAX_MS
from lake.subscriptions import PROGRESS, RETENTION, RETENTION_MS, SNAPSHOT
from sql.input.intervals import to_interval
from sql.statements import CreateSubscription

DAY_MS = 24 * 3_600_000
MONTH_MS = 30 * DAY_MS  # PostgreSQL's conversion of months to a duration


def create_subscription(statement: CreateSubscription, text: str, catalog: Catalog) -> Item:
    """Returns the item of a subscription; `text` is the statement as typed."""
    schema = free(statement.name, catalog)
    relation = stored(
        statement.from_item,
        catalog,
        so="its changes are not kept",
        hint="Create a materialized view of it, and a subscription from that.",
    )
    if not relation.ready:
        raise ObjectNotInPrerequisiteState(
            f'{relation.kind} "{relation.name}" is still being filled', hint="It can be read when its CREATE statement has answered."
        )
    options = {RETENTION: _retention(statement.retention), SNAPSHOT: statement.snapshot, PROGRESS: statement.progress}
    named = statement.name.name
    item = Item(catalog.next_id, SUBSCRIPTION, named, depends=(relation.id,), sql=text, options=options, schema=schema.id)
    return kept(item, statement, catalog)


def _retention(given: str | None) -> int:
    """Returns the retention in ms. Raises 22007 and 22023."""
    if given is None:
        return RETENTION_MS
    months, days, micros = to_interval(given)
    asked = months * MONTH_MS + days * DAY_MS + micros // 1000
    if not 0 < asked <= AGE_MAX_MS:
        raise InvalidParameterValue(
            f'invalid RETENTION: "{given}"', hint=f"It is more than nothing and at most {AGE_MAX_MS // DAY_MS} days."
        )
    return asked
