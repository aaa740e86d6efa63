"""CREATE SUBSCRIPTION: the subscription's catalog item. `lake.subscriptions` stores its position."""

from __future__ import annotations

from tailgate.engine.ddl.durations import bounded_milliseconds
from tailgate.engine.ddl.names import normalized, schema_for, stored_relation
from tailgate.lake.catalog import SUBSCRIPTION, Catalog, Item
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.readers import AGE_MAX_MS
from tailgate.lake.subscriptions import PROGRESS, RETENTION, RETENTION_MS, SNAPSHOT
from tailgate.sql.statements import CreateSubscription


def create_subscription(statement: CreateSubscription, text: str, catalog: Catalog) -> Item:
    """Returns the item of a subscription; `text` is the statement as typed."""
    schema = schema_for(statement.name, catalog)
    relation = stored_relation(
        statement.from_item,
        catalog,
        so="its changes are not kept",
        hint="Create a materialized view of it, and a subscription from that.",
    )
    if not relation.ready:
        raise ObjectNotInPrerequisiteState(
            f'{relation.kind} "{relation.name}" is still being filled', hint="It can be read when its CREATE statement has answered."
        )
    retention = RETENTION_MS if statement.retention is None else bounded_milliseconds("RETENTION", statement.retention, AGE_MAX_MS)
    options = {RETENTION: retention, SNAPSHOT: statement.snapshot, PROGRESS: statement.progress}
    name = statement.name.name
    item = Item(catalog.next_id, SUBSCRIPTION, name, depends=(relation.id,), sql=text, options=options, schema=schema.id)
    return normalized(item, statement, catalog)
