"""CREATE OR REPLACE of objectives and alerts: the new item has the id, the owner and the comments of the old one.

Alerts on a replaced objective continue, and so do its burn rates and error budget.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.monitoring.alert import create_alert
from tailgate.engine.ddl.monitoring.objective import create_objective
from tailgate.lake.catalog import Alert, Catalog, Change, Item, Objective
from tailgate.lake.errors import WrongObjectType
from tailgate.sql.new_items import with_article
from tailgate.sql.statements import CreateAlert, CreateObjective


def replace_watched(statement: CreateObjective | CreateAlert, text: str, catalog: Catalog, old: Item) -> Objective | Alert:
    """Returns the item that replaces `old`; `text` is the statement as typed. Raises 42809 if the old one is of another kind."""
    kind = Objective if isinstance(statement, CreateObjective) else Alert
    if not isinstance(old, kind):
        raise WrongObjectType(f'"{old.name}" is not {with_article(kind.kind)}', position=statement.name.position)
    without = catalog.apply(Change(drop=(old.id,)))
    if isinstance(statement, CreateObjective):
        return replace(create_objective(statement, text, without), id=old.id, owner=old.owner, comments=old.comments)
    return replace(create_alert(statement, text, without), id=old.id, owner=old.owner, comments=old.comments)
