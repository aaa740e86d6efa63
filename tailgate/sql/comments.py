"""COMMENT ON an item, a column, a constraint or a schema: the change of the catalog."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.errors import UndefinedColumn
from tailgate.sql.drop import find_of_kind
from tailgate.sql.statements import Comment
from tailgate.sql.tables.constraints import commented


def comment(statement: Comment, catalog: Catalog) -> Change:
    """Returns the change that sets a comment of an item, a column, a constraint or a schema."""
    if statement.kind == "schema":
        return Change(put_schemas=(replace(catalog.schema(statement.name.name), comment=statement.text or ""),))
    if statement.kind == "constraint":
        return Change(put=(commented(catalog.named(statement.name), statement.part, statement.text or "", catalog),))
    if statement.kind is None:
        item = catalog.named(statement.name)
        if statement.part not in [c.name for c in item.columns]:
            raise UndefinedColumn(f'column "{statement.part}" of relation "{item.name}" does not exist')
    else:
        relation = find_of_kind(statement.kind, statement.name, catalog, word="relation")
        assert relation is not None
        item = relation
    comments = dict(item.comments)
    comments.pop(statement.part, None)
    if statement.text:
        comments[statement.part] = statement.text
    return Change(put=(replace(item, comments=comments),))
