"""CREATE VIEW and CREATE MATERIALIZED VIEW: the view's catalog item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tailgate.engine.ddl.history import split_retention
from tailgate.engine.ddl.names import normalized, schema_for
from tailgate.engine.plan.change import SingleRow, leaves
from tailgate.engine.plan.keys import key
from tailgate.engine.plan.streams import Streams, bound_plan
from tailgate.lake.catalog import ERRORS, ON_ERROR, Catalog, Change, Item, skips
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, InvalidParameterValue, ObjectNotInPrerequisiteState
from tailgate.lake.failed import failure
from tailgate.sql.bind import bind_view
from tailgate.sql.statements import CreateView


def create_view(statement: CreateView, text: str, catalog: Catalog, *, replacing: Item | None = None) -> Item:
    """Returns the item of a view; `text` is the statement as typed.

    A materialized view is compiled, so a query that cannot be maintained raises 0A000 here.
    """
    schema = catalog.home(statement.name) if replacing is not None else schema_for(statement.name, catalog)
    options = _options(statement)
    query = bind_view(statement, catalog)
    id, name = catalog.next_id, statement.name.name
    item = Item(id, "view", name, query.columns, depends=query.depends, sql=text, query=statement.query.text, schema=schema.id)
    item = normalized(item, statement, catalog)
    if not statement.materialized:
        return item
    if not query.columns:
        raise InvalidObjectDefinition("a materialized view needs a column at least")
    if replacing is None:
        catalog.check_new(errors_name(name), schema)
    view = replace(item, kind="materialized view", key=key(query.plan), stored=True, errors=id + 1, options=options)
    after = catalog.stored.apply(Change(put=(view,)))
    stream = Streams(after, lambda i, c: query.plan if i.id == id else bound_plan(i, c))(view)
    replacements = catalog.replacements()
    for replaced in (catalog[i] for i in sorted(catalog.below(item)) if i in replacements):
        message = f'{replaced.kind} "{replaced.name}" is still being replaced'
        raise ObjectNotInPrerequisiteState(message, hint="Create the view when it is ready.")
    for base in (catalog[leaf.item] for leaf in leaves(stream) if not isinstance(leaf, SingleRow)):
        if skips(base) and not skips(view):
            raise FeatureNotSupported(
                f'a view that fails over "{base.name}", which skips rows that fail, is not supported',
                hint="Create it WITH (on_error = 'skip'), too.",
            )
        if (why := failure(base)) is not None:
            raise ObjectNotInPrerequisiteState(why.message, hint="Make it run again first: CREATE OR REPLACE MATERIALIZED VIEW.")
        if not base.ready:
            raise ObjectNotInPrerequisiteState(f'{base.kind} "{base.name}" is still being filled', hint="Create the view when it is ready.")
    return view


def errors_item(view: Item) -> Item:
    """Returns the relation of a view's errors. Its rows are in the log; the item gives them a name."""
    name = errors_name(view.name)
    item = Item(view.errors, "view errors", name, ERRORS, stored=True, depends=(view.id,), sql=view.sql, owner=view.owner)
    return replace(item, schema=view.schema)


def errors_name(view: str) -> str:
    """Returns the name of the relation of a view's errors."""
    return f"{view}_errors"


def _options(statement: CreateView) -> dict[str, Any]:
    """Returns the options of a view's item. Raises 0A000 or 22023."""
    options, others = split_retention(statement.options) if statement.materialized else ({}, statement.options)
    for name, value in others:
        if name != ON_ERROR or not statement.materialized:
            raise FeatureNotSupported(f'option "{name}" of a {"materialized " * statement.materialized}view is not supported')
        if value not in ("fail", "skip"):
            raise InvalidParameterValue(f'invalid value for option "on_error": "{value}"', hint="Use 'fail' or 'skip'.")
        options[name] = str(value)
    return options
