"""CREATE VIEW and CREATE MATERIALIZED VIEW: the view's item."""

from __future__ import annotations

from dataclasses import replace

from engine.ddl.names import check_new
from engine.plan.change import leaves
from engine.plan.keys import key
from engine.plan.plans import Streams, bound
from lake.catalog import Catalog, Change, Item
from lake.errors import FeatureNotSupported, InvalidObjectDefinition, ObjectNotInPrerequisiteState
from sql.bind import bind_view
from sql.statements import CreateView


def create_view(statement: CreateView, text: str, catalog: Catalog) -> Item:
    """The item of a view; `text` is the statement as typed. A materialized view is compiled, so what cannot be kept is refused here."""
    check_new(statement.name, catalog)
    for name, _ in statement.options:
        raise FeatureNotSupported(f'option "{name}" of a view is not supported')
    query = bind_view(statement, catalog)
    id, named = catalog.next_id, statement.name.name
    item = Item(id, "view", named, query.columns, depends=query.depends, sql=text, query=statement.query.text)
    if not statement.materialized:
        return item
    if not query.columns:
        raise InvalidObjectDefinition("a materialized view needs a column at least")
    view = replace(item, kind="materialized view", key=key(query.plan), stored=True, errors=id + 1)
    after = catalog.apply(Change(put=(view,)))
    stream = Streams(after, lambda i, c: query.plan if i.id == id else bound(i, c))(view)
    for leaf in leaves(stream):
        base = catalog[leaf.item]
        if not base.ready:
            raise ObjectNotInPrerequisiteState(f'{base.kind} "{base.name}" is still being filled', hint="Create the view when it is ready.")
    return view
