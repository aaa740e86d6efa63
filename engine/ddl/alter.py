"""ALTER … RENAME TO, ALTER … SET SCHEMA and COMMENT ON: the items as they are afterwards.

Definitions are kept as text, so a new name is written into the statements of all that names the item: `FROM old` becomes `FROM new AS old`,
and what follows may go on saying `old.column`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from engine.ddl.drop import Notice, found, notice
from engine.ddl.names import check_schema
from lake.catalog import COMPANIONS, Catalog, Item
from lake.errors import FeatureNotSupported, InvalidTableDefinition, ObjectNotInPrerequisiteState, UndefinedColumn
from sql.bind import names_of
from sql.statements import AlterItem, Comment, CreateFunction, CreateSink, CreateSource, CreateTable, CreateView, Name, QueryText, parse
from sql.tokens import tokens
from sql.words import RESERVED, TYPE_OR_FUNCTION

COMMENTS = "comments"  # option of an item: its comment under "", its columns' under their names
PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def alter(statement: AlterItem, catalog: Catalog) -> tuple[tuple[Item, ...], list[Notice]]:
    """The items that change, and what to tell."""
    item = found(statement.kind, statement.name, catalog, if_exists=statement.if_exists, any_relation=statement.kind == "table")
    if item is None:
        return (), [notice(f'relation "{statement.name.name}" does not exist, skipping')]
    if statement.schema:
        check_schema(Name(statement.name.name, statement.schema))
        return (), []
    if item.kind in COMPANIONS:
        owner = catalog[item.depends[0]]
        raise InvalidTableDefinition(f'"{item.name}" belongs to {owner.kind} "{owner.name}"', hint=f"Rename {owner.name}: it follows.")
    return renamed(item, statement.rename, catalog), []


def renamed(item: Item, name: str, catalog: Catalog) -> tuple[Item, ...]:
    """The item under another name, its companions likewise, and what names it."""
    if name == item.name:
        return ()
    catalog.check_new(name)
    there = catalog.dependents(item.id)
    coming = catalog.replacements()
    for other in (item, *there):
        if other.id in coming or other.replaces or not other.ready:
            raise ObjectNotInPrerequisiteState(f'{other.kind} "{other.name}" is still being filled', hint="Try again when it is ready.")
    put = [_with_text(replace(item, name=name), item.name, name, own=True)]
    for other in there:
        if other.kind in COMPANIONS:
            companion = name + other.name.removeprefix(item.name)
            catalog.check_new(companion)
            put.append(replace(other, name=companion, sql=put[0].sql))
        else:
            put.append(_with_text(other, item.name, name, own=False))
    return tuple(put)


def _with_text(item: Item, old: str, new: str, *, own: bool) -> Item:
    """The item with the name changed where its statement defines it (`own`) or where it names another."""
    statement = parse(item.sql)
    if isinstance(statement, CreateFunction):
        return _with_body(item, statement, old, new)
    edits: list[tuple[int, str]] = []
    if own:
        assert isinstance(statement, CreateView | CreateSink | CreateSource | CreateTable)
        edits = [(_position(statement.name), quoted(new))]
    elif isinstance(statement, CreateView):
        edits = _in_query(item.sql, statement.query, old, new)
    elif isinstance(statement, CreateSink):
        edits = [(_position(statement.from_item), quoted(new))]
    text = _edited(item.sql, edits)
    query = parse(text)
    return replace(item, sql=text, query=query.query.text if isinstance(query, CreateView) else item.query)


def _in_query(text: str, query: QueryText, old: str, new: str, start: int = 0) -> list[tuple[int, str]]:
    """Where a query says the old name, and what it is to say there. `start`: where the text begins, as positions of the tree count."""
    aliased = {t.meta.get("position") for t in query.tree.find_all(exp.Table) if t.alias}
    edits = []
    for named in names_of(query):
        if named.name == old and named.position is not None:
            alone = named.position in aliased or _after_table(text, named.position - start)
            edits.append((named.position - start, quoted(new) if alone else f"{quoted(new)} AS {quoted(old)}"))
    return edits


def _with_body(item: Item, statement: CreateFunction, old: str, new: str) -> Item:
    """A function whose body says the new name; it stands in the statement as it was typed, quotes around it."""
    body, begin = statement.body, statement.body.offset
    typed = body.text if item.sql[begin:].startswith(body.text) else body.text.removeprefix("SELECT ")  # after RETURN
    begin += len(body.text) - len(typed)
    if not item.sql[begin:].startswith(typed):
        hint = "Create the function with AS $$ … $$, then there are no doubled quotes in it."
        raise FeatureNotSupported(f"a new name for what function {item.shown} reads is not supported", hint=hint)
    made = _edited(typed, _in_query(typed, body, old, new, begin))
    text = item.sql[:begin] + made + item.sql[begin + len(typed) :]
    if statement.row is not None and statement.row.name == old:
        text = _edited(text, [(_position(statement.row), quoted(new))])
    again = parse(text)
    assert isinstance(again, CreateFunction)
    return replace(item, sql=text, query=again.body.text)


def _position(name: Name) -> int:
    assert name.position is not None
    return name.position


def _after_table(text: str, position: int) -> bool:
    """Whether the name stands in TABLE name, where no alias may."""
    before = [t for t in tokens(text) if t.end <= position]
    return bool(before) and before[-1].kind == "word" and before[-1].value == "table"


def _edited(text: str, edits: Iterable[tuple[int, str]]) -> str:
    """Names at these places, schemas included, replaced."""
    row = tokens(text)
    for position, new in sorted(edits, reverse=True):
        first = next(i for i, t in enumerate(row) if t.position == position)
        last = first
        while row[last + 1].kind == "operator" and row[last + 1].value == ".":
            last += 2
        text = text[:position] + new + text[row[last].end :]
    return text


def quoted(name: str) -> str:
    plain = PLAIN.fullmatch(name) and name not in RESERVED and name not in TYPE_OR_FUNCTION
    return name if plain else '"' + name.replace('"', '""') + '"'


def comment(statement: Comment, catalog: Catalog) -> Item:
    """The item with the comment."""
    if statement.kind is None:
        check_schema(statement.name)
        item = catalog.relation(statement.name.name, statement.name.position)
        if statement.column not in [c.name for c in item.columns]:
            raise UndefinedColumn(f'column "{statement.column}" of relation "{item.name}" does not exist')
    else:
        there = found(statement.kind, statement.name, catalog)
        assert there is not None
        item = there
    comments = dict(item.options.get(COMMENTS, {}))
    comments.pop(statement.column, None)
    if statement.text:
        comments[statement.column] = statement.text
    return replace(item, options={**item.options, COMMENTS: comments})
