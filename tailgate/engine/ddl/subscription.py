"""CREATE SUBSCRIPTION: the subscription's catalog item. `lake.readers.subscriptions` stores its position."""

from __future__ import annotations

from tailgate.engine.ddl.durations import bounded_milliseconds
from tailgate.lake.catalog import Catalog, Subscription
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.readers.holds import AGE_MAX_MS
from tailgate.lake.readers.subscriptions import RETENTION_MS
from tailgate.sql.new_items import normalized, schema_for, stored_relation
from tailgate.sql.statements import CreateSubscription


def create_subscription(statement: CreateSubscription, text: str, catalog: Catalog) -> Subscription:
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
    item = Subscription(
        catalog.next_id,
        statement.name.name,
        depends=(relation.id,),
        sql=text,
        schema=schema.id,
        retention_ms=retention,
        snapshot=statement.snapshot,
        progress=statement.progress,
    )
    return normalized(item, statement, catalog)
