"""Items' texts: read, and written anew when what they name gets another name.

An item's text names things as a session does whose path is `public` (`Catalog.stored`). What a user typed along another path is brought
to that when the item is made; ALTER … RENAME and SET SCHEMA bring the texts of all that name the item to its new name:
`FROM old` becomes `FROM new AS old`, and what follows may go on saying `old.column`.

    text, the catalog in which its names mean something ──► where it names what ──► the names these have in another catalog
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from sqlglot import exp

from lake.catalog import Catalog, Item
from lake.errors import FeatureNotSupported
from lake.names import Name, quoted
from sql.bind import bind_query
from sql.binding.routines import check_body
from sql.grammar.names import position
from sql.plan import Query
from sql.statements import (
    Avro,
    CreateConnection,
    CreateFunction,
    CreateSecret,
    CreateSink,
    CreateSource,
    CreateSubscription,
    CreateTable,
    CreateView,
    Options,
    Protobuf,
    QueryText,
    SecretName,
    parse,
)
from sql.tokens import tokens

Creation = (
    CreateSource | CreateTable | CreateView | CreateSink | CreateFunction | CreateSubscription | CreateSecret | CreateConnection
)  # fmt: skip


def bind_definition(item: Item, catalog: Catalog) -> Query:
    """The plan of a view, by the text that is kept of it."""
    return bind_query(item.query, catalog.stored, view=True, widths=item.widths)


def restated(item: Item, before: Catalog, after: Catalog, statement: Creation | None = None) -> Item:
    """The item, whose text is right in `before`, with the text that means the same in `after`, where the item is too.

    A name that means the same already stays as it was typed. `statement`: what `item.sql` says, if it was read before.
    """
    if statement is None:
        parsed = parse(item.sql)
        assert isinstance(parsed, Creation)
        statement = parsed
    text = _Text(item.sql, before, after)
    text.name(statement.name.position, item.id)
    if isinstance(statement, CreateSink | CreateSubscription):
        if isinstance(statement.from_item, QueryText):
            places = bind_query(statement.from_item, before, view=True, widths=item.widths).places
            text.query(statement.from_item.tree, places)
        else:
            text.name(statement.from_item.position, item.depends[0])
    if isinstance(statement, CreateSource) and statement.transactions is not None:
        text.name(statement.transactions.source.position, item.options["transactions"]["source"])
    for name in reached_by(statement):
        there = before.find(name)
        assert there is not None
        text.name(name.position, there.id)
    if isinstance(statement, CreateView):
        within = text.query(statement.query.tree, bind_query(statement.query, before, view=True, widths=item.widths).places)
        return replace(item, sql=edited(item.sql, text.edits), query=_moved(statement.query, within))
    if isinstance(statement, CreateFunction):
        return _function(item, statement, before, after, text)
    return replace(item, sql=edited(item.sql, text.edits))


def reached_by(statement: Creation) -> list[Name]:
    """The connections and secrets that a statement names."""
    if isinstance(statement, CreateConnection):
        return _secrets(statement.options)
    if not isinstance(statement, CreateSource | CreateSink):
        return []
    formats = [f for f in (statement.key_format, statement.value_format) if isinstance(f, Avro | Protobuf)]
    connections = [c for c in (statement.connection, *(f.connection for f in formats)) if c is not None]
    return connections + _secrets(statement.options) + [s for f in formats for s in _secrets(f.options)]


def _secrets(options: Options) -> list[Name]:
    return [value.name for _, value in options if isinstance(value, SecretName)]


def _function(item: Item, statement: CreateFunction, before: Catalog, after: Catalog, text: _Text) -> Item:
    """A function's body stands in its statement as it was typed, with quotes around it, or after RETURN."""
    if statement.row is not None:
        text.name(statement.row.position, before.relation(statement.row).id)
    body, begin = statement.body, statement.body.offset
    typed = body.text if item.sql[begin:].startswith(body.text) else body.text.removeprefix("SELECT ")
    begin += len(body.text) - len(typed)
    inner = _Text(typed, before, after, begin)
    plain = item.sql[begin:].startswith(typed)
    names = check_body(item, body.tree, before)
    within = inner.query(body.tree, names.places.items() if plain else ())
    if not plain and any(before.name_of(before[id]) != after.name_of(after[id]) for id in names.used):
        hint = "Create the function with AS $$ … $$, then there are no doubled quotes in it."
        raise FeatureNotSupported(f"other names for what function {item.shown} reads are not supported", hint=hint)
    return replace(item, sql=edited(item.sql, [*text.edits, *within]), query=_moved(body, within))


def _moved(query: QueryText, edits: Iterable[tuple[int, int, str]]) -> str:
    """The query's own text with edits at places of its statement."""
    return edited(query.text, [(b - query.offset, e - query.offset, new) for b, e, new in edits])


def shown(item: Item, catalog: Catalog) -> Item:
    """The item with its text as it is to be said along the catalog's path."""
    return item if catalog.path == catalog.stored.path or not item.sql else restated(item, catalog.stored, catalog)


class _Text:
    """A text whose names get others; `edits` are from where to where, and what stands there then."""

    def __init__(self, text: str, before: Catalog, after: Catalog, start: int = 0) -> None:
        """`start`: what places in the text count from."""
        self._row = [replace(t, position=t.position + start) for t in tokens(text)]
        self._before, self._after = before, after
        self.edits: list[tuple[int, int, str]] = []

    def query(self, tree: exp.Expr, places: Iterable[tuple[int, int]]) -> list[tuple[int, int, str]]:
        """A query's names, at their places; the edits that they need."""
        columns = {position(c) for c in tree.find_all(exp.Column) if c.args.get("db")}
        bare = {position(t) for t in tree.find_all(exp.Table) if not t.alias and isinstance(t.this, exp.Identifier)}
        ctes = {c.alias for c in tree.find_all(exp.CTE)}
        first = len(self.edits)
        for at, id in places:
            if at in columns:
                self.column(at, id)
            else:
                self.name(at, id, alias=at in bare, taken=ctes)
        return self.edits[first:]

    def name(self, at: int | None, id: int, *, alias: bool = False, taken: Collection[str] = ()) -> None:
        """A relation or function. `alias`: one may be put behind it. `taken`: names that alone mean something else."""
        assert at is not None
        first, last = self._parts(at)
        said = self._said(first, last)
        is_function = self._after[id].kind == "function"
        found = self._after.functions(said) if is_function else (self._after.find(said),)
        if any(f is not None and f.id == id for f in found):
            return
        new = self._after.name_of(self._after[id])
        if new.schema is None and new.name in taken:
            new = self._qualified(id)
        behind = f" AS {quoted(said.name)}" if alias and new.name != said.name and not self._after_table(first) else ""
        self.edits.append((at, self._row[last].end, new.sql + behind))

    def column(self, at: int, id: int) -> None:
        """`schema.relation.column`: where the relation has another name, the old one is its alias now, which has no schema."""
        first, last = self._parts(at)
        said, end = self._said(first, last - 2), self._row[last - 2].end
        if self._after[id].name != self._before[id].name:
            self.edits.append((at, end, quoted(said.name)))
        elif (found := self._after.find(said)) is None or found.id != id:
            self.edits.append((at, end, self._qualified(id).sql))

    def _qualified(self, id: int) -> Name:
        item = self._after[id]
        return Name(item.name, self._after.schema_of(item).name)

    def _parts(self, at: int) -> tuple[int, int]:
        """The first and last token of a name."""
        first = last = next(i for i, t in enumerate(self._row) if t.position == at)
        while self._row[last + 1].kind == "operator" and self._row[last + 1].value == ".":
            last += 2
        return first, last

    def _said(self, first: int, last: int) -> Name:
        return Name(self._row[last].value, self._row[last - 2].value if last > first else None)

    def _after_table(self, first: int) -> bool:
        """Whether the name stands in TABLE name, where no alias may."""
        before = self._row[first - 1]
        return first > 0 and before.kind == "word" and before.value == "table"


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with other words from one place to another.

    >>> edited("FROM a, b", [(5, 6, "s.a"), (8, 9, "c AS b")])
    'FROM s.a, c AS b'
    """
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    return text
