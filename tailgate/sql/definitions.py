"""Defining statements of catalog items: binds them, and edits their names after a rename.

The stored text of an item resolves its names along the search path `public` (`Catalog.stored`).
A statement that a user typed with another search path is edited when the item is created. ALTER …
RENAME and SET SCHEMA edit the texts of all items that refer to the renamed item: `FROM old` becomes
`FROM new AS old`, so `old.column` stays valid in the rest of the query.

    text, catalog that resolves it ──► positions and ids of its names ──► their names in another catalog
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace

from sqlglot import exp

from tailgate.lake.catalog import Alert, Catalog, Endpoint, Function, Item, MaterializedView, Sink, Source, View, known_columns
from tailgate.lake.catalog.items import ItemType
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.bind import bind_query, bind_write
from tailgate.sql.binder.queries.function_bodies import check_body
from tailgate.sql.definition_cache import DefinitionCache
from tailgate.sql.grammar.names import position
from tailgate.sql.lexer.tokens import tokens
from tailgate.sql.numeric_types import EXACT
from tailgate.sql.plan import Query
from tailgate.sql.statements import (
    CreateAlert,
    CreateComposite,
    CreateConnection,
    CreateDomain,
    CreateEndpoint,
    CreateEnum,
    CreateFunction,
    CreateObjective,
    CreateSecret,
    CreateSink,
    CreateSource,
    CreateSubscription,
    CreateTable,
    CreateView,
    Delete,
    Insert,
    QueryText,
    Update,
    parse,
)
from tailgate.sql.statements.references import named_connections
from tailgate.sql.statements.writes import WriteText

Creation = (
    CreateSource | CreateTable | CreateView | CreateSink | CreateFunction | CreateSubscription | CreateSecret | CreateConnection
    | CreateEndpoint | CreateObjective | CreateAlert | CreateEnum | CreateComposite | CreateDomain
)  # fmt: skip


_bound: DefinitionCache[Query] = DefinitionCache()


def bind_definition(item: Item, catalog: Catalog) -> Query:
    """Returns the plan of a view or endpoint, bound from its stored text once for all catalogs in which it means the same."""
    stored = catalog.stored
    return _bound.get(definition_key(item), stored, lambda: _bind(item.query, item, stored), lambda query: query.depends, item.query)


def _bind(query: QueryText | WriteText | str, item: Item, catalog: Catalog) -> Query:
    """Returns the plan of an item's query. Only the query of an endpoint has parameters, and may write."""
    if isinstance(item, Endpoint) and item.method != "GET":
        return bind_write(write_of(query), catalog, item.types, known_columns(item))
    assert not isinstance(query, WriteText)
    if isinstance(item, Alert):
        return bind_query(query, catalog, (), widths=known_columns(item))
    if isinstance(item, Endpoint):
        return bind_query(query, catalog, item.types, widths=known_columns(item))
    return bind_query(query, catalog, view=True, widths=known_columns(item), numeric_rules=_numeric_rules(item))


def write_of(query: QueryText | WriteText | str) -> Insert | Update | Delete:
    """Returns the statement of an endpoint that writes, which is parsed if it is a string."""
    statement = query.statement if isinstance(query, WriteText) else parse(query) if isinstance(query, str) else None
    assert isinstance(statement, Insert | Update | Delete)
    return statement


def _numeric_rules(item: Item) -> int:
    """Returns the rules by which the numerics of an item's query are typed."""
    return item.numeric_rules if isinstance(item, View | MaterializedView) else EXACT


def definition_key(item: Item) -> Hashable:
    """Returns what an item itself contributes to the meaning of its definition."""
    types = item.types if isinstance(item, Endpoint) else None
    return item.query, frozenset(known_columns(item).items()), types, _numeric_rules(item)


def stored_view(statement: CreateView, text: str) -> tuple[CreateView, str]:
    """Returns the statement and the text that are stored for a view: for a RECURSIVE view, the same view WITH RECURSIVE.

    Its own name would otherwise change the query when the view is renamed.
    """
    if not statement.plain:
        return statement, text
    plain = parse(statement.plain)
    assert isinstance(plain, CreateView)
    return plain, statement.plain


def rename_references(item: ItemType, before: Catalog, after: Catalog, statement: Creation | None = None) -> ItemType:
    """Returns the item with its text edited so that its meaning in `after` is its meaning in `before`.

    Both catalogs contain the item. A name that resolves to the same object in both stays as typed.
    `statement` is the parsed `item.sql`, if the caller has it.
    """
    if statement is None:
        parsed = parse(item.sql)
        assert isinstance(parsed, Creation)
        statement = parsed
    text = _Text(item.sql, before, after)
    text.name(statement.name.position, item.id)
    if isinstance(statement, CreateSink | CreateSubscription | CreateObjective):
        if isinstance(statement.from_item, QueryText):
            places = bind_query(statement.from_item, before, view=True, widths=known_columns(item)).places
            text.query((statement.from_item.tree,), places)
        else:
            text.name(statement.from_item.position, before.relation(statement.from_item).id if _has_view(item) else item.depends[0])
    if isinstance(statement, CreateSource) and isinstance(item, Source) and statement.transactions and item.transactions:
        text.name(statement.transactions.source.position, item.transactions.source)
    if isinstance(statement, CreateAlert) and statement.objective is not None and isinstance(item, Alert):
        text.name(statement.objective.position, item.objective)
    for name in named_connections(statement):
        connection = before.find(name)
        assert connection is not None
        text.name(name.position, connection.id)
    if isinstance(statement, CreateView | CreateEndpoint | CreateAlert) and statement.query is not None:
        within = text.query(_trees(statement.query), _bind(statement.query, item, before).places, _unaliased(statement.query))
        return replace(item, sql=apply_edits(item.sql, text.edits), query=_moved(statement.query, within))
    if isinstance(statement, CreateFunction) and isinstance(item, Function):
        sql, query = _function_texts(item, statement, before, after, text)
        return replace(item, sql=sql, query=query)
    return replace(item, sql=apply_edits(item.sql, text.edits))


def _has_view(item: Item) -> bool:
    """Returns whether an item is a sink whose first input is a view that was created with it."""
    return isinstance(item, Sink) and item.has_query


def _function_texts(item: Function, statement: CreateFunction, before: Catalog, after: Catalog, text: _Text) -> tuple[str, str]:
    """Returns the edited text and the edited body of a function. The body is in quotes or follows RETURN."""
    if statement.row is not None:
        text.name(statement.row.position, before.relation(statement.row).id)
    body, begin = statement.body, statement.body.offset
    typed = body.text if item.sql[begin:].startswith(body.text) else body.text.removeprefix("SELECT ")
    begin += len(body.text) - len(typed)
    inner = _Text(typed, before, after, begin)
    plain = item.sql[begin:].startswith(typed)
    names = check_body(item, body.tree, before)
    within = inner.query((body.tree,), names.places.items() if plain else ())
    if not plain and any(before.name_of(before[id]) != after.name_of(after[id]) for id in names.used):
        hint = "Create the function with AS $$ … $$, then there are no doubled quotes in it."
        raise FeatureNotSupported(f"other names for what function {item.display_name} reads are not supported", hint=hint)
    return apply_edits(item.sql, [*text.edits, *within]), _moved(body, within)


def _trees(part: object) -> tuple[exp.Expr, ...]:
    """Returns the trees in a query or in a statement that writes."""
    if isinstance(part, exp.Expr):
        return (part,)
    if isinstance(part, QueryText):
        return (part.tree,)
    if is_dataclass(part):
        part = tuple(getattr(part, f.name) for f in fields(part))
    return tuple(tree for each in part for tree in _trees(each)) if isinstance(part, tuple) else ()


def _unaliased(query: QueryText | WriteText) -> frozenset[int | None]:
    """Returns the position of the table that a statement writes, if the table has no alias."""
    written = query.statement if isinstance(query, WriteText) else None
    return frozenset() if written is None or written.alias else frozenset({written.table.position})


def _moved(query: QueryText | WriteText, edits: Iterable[tuple[int, int, str]]) -> str:
    """Returns the query's text after edits whose positions count from the start of the statement."""
    return apply_edits(query.text, [(b - query.offset, e - query.offset, new) for b, e, new in edits])


def for_search_path(item: ItemType, catalog: Catalog) -> ItemType:
    """Returns the item with its text written for the search path of the catalog."""
    return item if catalog.path == catalog.stored.path or not item.sql else rename_references(item, catalog.stored, catalog)


class _Text:
    """A text whose names are edited. `edits` are (begin, end, new text)."""

    def __init__(self, text: str, before: Catalog, after: Catalog, start: int = 0) -> None:
        """Splits the text into tokens. `start` is the position of the text in its statement."""
        self._row = [replace(t, position=t.position + start) for t in tokens(text)]
        self._before, self._after = before, after
        self.edits: list[tuple[int, int, str]] = []

    def query(
        self, trees: Sequence[exp.Expr], places: Iterable[tuple[int, int]], unaliased: frozenset[int | None] = frozenset()
    ) -> list[tuple[int, int, str]]:
        """Adds and returns the edits for the names in the trees of a query.

        `places`: (position, id) of each name. `unaliased`: positions of tables outside of the trees that have no alias.
        """
        columns = {position(c) for tree in trees for c in tree.find_all(exp.Column) if c.args.get("db")}
        tables = [t for tree in trees for t in tree.find_all(exp.Table)]
        bare = {position(t) for t in tables if not t.alias and isinstance(t.this, exp.Identifier)} | unaliased
        ctes = {c.alias for tree in trees for c in tree.find_all(exp.CTE)}
        first = len(self.edits)
        for at, id in places:
            if at in columns:
                self.column(at, id)
            else:
                self.name(at, id, alias=at in bare, ambiguous=ctes)
        return self.edits[first:]

    def name(self, at: int | None, id: int, *, alias: bool = False, ambiguous: Collection[str] = ()) -> None:
        """Adds the edit for the name of a relation or function, if it needs one.

        `alias`: an alias may be added after the name. `ambiguous`: names that mean something else if they
        are not qualified.
        """
        assert at is not None
        first, last = self._parts(at)
        old = self._name_between(first, last)
        is_function = isinstance(self._after[id], Function)
        matches = self._after.functions(old) if is_function else (self._after.find(old, self._after[id].namespace),)
        if any(f is not None and f.id == id for f in matches):
            return
        new = self._after.name_of(self._after[id])
        if new.schema is None and new.name in ambiguous:
            new = self._qualified(id)
        behind = f" AS {quoted(old.name)}" if alias and new.name != old.name and not self._after_table(first) else ""
        self.edits.append((at, self._row[last].end, new.sql + behind))

    def column(self, at: int, id: int) -> None:
        """Adds the edit for `schema.relation.column`, if it needs one.

        If the relation was renamed, its old name is now an alias, which is not qualified.
        """
        first, last = self._parts(at)
        old, end = self._name_between(first, last - 2), self._row[last - 2].end
        if self._after[id].name != self._before[id].name:
            self.edits.append((at, end, quoted(old.name)))
        elif (match := self._after.find(old)) is None or match.id != id:
            self.edits.append((at, end, self._qualified(id).sql))

    def _qualified(self, id: int) -> Name:
        """Returns the new name of an item, with its schema."""
        item = self._after[id]
        return Name(item.name, self._after.schema_of(item).name)

    def _parts(self, at: int) -> tuple[int, int]:
        """Returns the indexes of the first and the last token of a name."""
        first = last = next(i for i, t in enumerate(self._row) if t.position == at)
        while self._row[last + 1].kind == "operator" and self._row[last + 1].value == ".":
            last += 2
        return first, last

    def _name_between(self, first: int, last: int) -> Name:
        """Returns the name in the text between two tokens."""
        return Name(self._row[last].value, self._row[last - 2].value if last > first else None)

    def _after_table(self, first: int) -> bool:
        """Returns whether the word TABLE precedes the name. No alias is allowed there."""
        before = self._row[first - 1]
        return first > 0 and before.kind == "word" and before.value == "table"


def apply_edits(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Returns the text after replacing each range (begin, end) by its new text.

    >>> apply_edits("FROM a, b", [(5, 6, "s.a"), (8, 9, "c AS b")])
    'FROM s.a, c AS b'
    """
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    return text
