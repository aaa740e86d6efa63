"""pg_catalog and information_schema: real relations, computed from the catalog, in a DuckDB of their own.

What happens to one query of a client's:

1. `is_catalog_query` sees that it names a relation or function of the system catalog and nothing of the user's.
2. `database` holds PostgreSQL 15's fixed rows (`postgres15.zip`, `relations.json`) and our items' (`rows`), brought to the catalog of
   the moment; `views.sql` has the relations that are queries over others.
3. `rewrite` turns the tree into DuckDB's SQL over them, `tables` what stands in FROM; `functions` are PostgreSQL's functions, in
   Python, `native` those that DuckDB has.
4. `typing` finds the PostgreSQL types of the columns.

The oracle is PostgreSQL: tests/gateway/catalog compares the statements of real clients.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from gateway import lists
from gateway.catalog import database
from gateway.catalog.facts import Facts, Session
from gateway.catalog.functions import Functions
from gateway.catalog.privileges import SECRET
from gateway.catalog.rewrite import REG, WORDS, rewrite
from gateway.catalog.trees import folded, type_name
from gateway.catalog.typing import columns_of, type_of
from lake import errors
from lake.catalog import Catalog
from lake.roles import OPERATOR_ID
from lake.types import FACTS, Field, Type, arrow_schema
from sql.authorization import SUPERUSER, Authorized, Demand

__all__ = ["CatalogQuery", "SystemCatalog", "asks_engine", "catalog_tree", "is_catalog_query", "parsed"]

ACTIVITY = "pg_stat_activity"  # its rows are those of the moment
SUBSCRIPTIONS = f"{lists.SCHEMA}.subscriptions"

# Opens a closed DuckDB instance in memory after calling the function with it: gateway.serving.sandbox.
Opener = Callable[[Callable[[duckdb.DuckDBPyConnection], None]], duckdb.DuckDBPyConnection]


@functools.lru_cache(2000)
def catalog_tree(text: str) -> exp.Expression | None:
    """The tree of a text that may be a query of the system catalog; None if it cannot be one. Cheap for what users poll."""
    if not WORDS_OF_IT.search(text):
        return None
    try:
        return parsed(text)
    except errors.SyntaxError_:
        return None


def is_catalog_query(tree: exp.Expression, catalog: Catalog) -> bool:
    """Whether a query reads the system catalog: a relation of it, or nothing but functions and casts that only it has."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found = False
    for table in tree.find_all(exp.Table):
        schema = folded(table.args.get("db"))
        if isinstance(table.this, exp.Identifier):
            name = folded(table.this)
            if (
                schema in ("pg_catalog", "information_schema")
                or f"{schema}.{name}" in database.relations()
                or (not schema and name not in ctes and f"pg_catalog.{name}" in database.relations())
            ):
                return True
            if name not in ctes:
                found = True
    return not found and any(_is_system(node) for node in tree.walk())


def asks_engine(tree: exp.Expression) -> bool:
    """Whether what the engine says of itself is part of the answer."""
    told = {f"{lists.SCHEMA}.{what.replace(' ', '_')}" for what in lists.TOLD} | {lists.INTERNAL_ERRORS}
    return not told.isdisjoint(_listed(tree))


def _listed(tree: exp.Expression) -> set[str]:
    named = {f"{folded(t.args.get('db'))}.{folded(t.this)}" for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)}
    return named & set(lists.relations())


def _listing(relation: str, session: Session, catalog: Catalog, status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a relation of the schema tailgate."""
    if relation == lists.INTERNAL_ERRORS:
        return lists.internal_errors(session.internal_errors(), status.get("internal_errors", ()))
    said = {"subscriptions": session.subscriptions()} if relation == SUBSCRIPTIONS else status
    return lists.table(relation, catalog, said, session.may_see)


def _is_system(node: exp.Expression) -> bool:
    match node:
        case exp.Anonymous():
            return (node.name.lower(), len(node.expressions)) in NAMES and node.name.lower() not in (
                "quote_ident",
                "quote_literal",
                "parse_ident",
            )
        case exp.CurrentSchema() | exp.CurrentUser() | exp.SessionUser() | exp.CurrentDatabase() | exp.CurrentVersion() | exp.CurrentCatalog() | exp.CurrentSchemas():  # noqa: E501  # fmt: skip
            return True
        case exp.Column():
            return not node.table and node.name.lower() in WORDS and not node.this.args.get("quoted")
        case exp.Cast():
            return type_name(node.to) in REG or type_name(node.to) == "oid"
        case _:
            return False


NAMES = frozenset(Functions(Facts()).all) | {("pg_get_keywords", 0)}


WORDS_OF_IT = re.compile(
    r"pg_|information_schema|\btailgate\s*\.|\breg(class|type|proc|procedure|namespace|role)\b|\b(session_)?user\b|\b("
    + "|".join(sorted({name for name, _ in NAMES if not name.startswith("pg_")}))
    + r")\b|\bcurrent_(role|catalog)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class CatalogQuery:
    """A query of the system catalog. Everybody may read it, but for internal errors and what `SECRET` names."""

    tree: exp.Expression

    @property
    def demands(self) -> tuple[Demand, ...]:
        named = (table.name.lower() for table in self.tree.find_all(exp.Table))
        secret = [f"{SECRET[name]} {name}" for name in named if name in SECRET]
        if lists.INTERNAL_ERRORS in _listed(self.tree):
            secret.append(f"table {lists.INTERNAL_ERRORS.partition('.')[2]}")
        return tuple(Demand(SUPERUSER, 0, what=what) for what in secret)


class SystemCatalog:
    """The catalog's database, opened at its first query. One query at a time: they are short and few."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._lock = threading.Lock()
        self._facts = Facts()
        self.functions = Functions(self._facts)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._catalog: Catalog | None = None

    def run(
        self,
        query: Authorized[CatalogQuery],
        values: Sequence[object],
        session: Session,
        catalog: Catalog,
        status: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[Field, ...], pa.Table]:
        """Columns and rows of a query. `values` of its parameters may be text. `status`: what the engine says of itself, for a query
        that `asks_engine`. Raises SQL errors."""
        tree = query.plan.tree
        with self._lock:
            connection = self._at(catalog)
            self.functions.session, self.functions.catalog = session, catalog
            self._facts.roles[OPERATOR_ID] = self.functions.privileges.operator()
            if any(table.name.lower() == ACTIVITY for table in tree.find_all(exp.Table)):
                database.fill(connection, f"pg.{ACTIVITY}", session.sessions())
            for relation in _listed(tree):
                database.fill(connection, relation, _listing(relation, session, catalog, status or {}))
            return self._run(connection, tree, values, catalog)

    def describe(
        self, query: Authorized[CatalogQuery], oids: Sequence[int], session: Session, catalog: Catalog
    ) -> tuple[tuple[Field, ...], tuple[Type, ...]]:
        """Columns and types of the parameters: it runs, for no rows. `oids`: types that the client gave, 0 where it did not."""
        tree = query.plan.tree
        types = parameters(tree, oids)
        limited = exp.select("*").from_(tree.copy().subquery("q")).limit(0)  # type: ignore[attr-defined]
        with self._lock:
            connection = self._at(catalog)
            self.functions.session, self.functions.catalog = session, catalog
            made = rewrite(limited, self.functions.all, catalog)
            theirs = self._execute(connection, made, [None] * len(types))
            return _fields(tree, theirs.description, columns_of(tree, [str(d[1]) for d in theirs.description])), types

    def _at(self, catalog: Catalog) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = self._opener(self._prepare)
        # a session sees the same catalog along a path of its own
        if self._catalog is None or self._catalog.items is not catalog.items:
            database.replace(self._connection, catalog)
            self._facts.load(self._connection, catalog)
            self._catalog = catalog
        return self._connection

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.functions.install(connection)
        database.build(connection)

    def _run(
        self, connection: duckdb.DuckDBPyConnection, tree: exp.Expression, values: Sequence[object], catalog: Catalog
    ) -> tuple[tuple[Field, ...], pa.Table]:
        made = rewrite(tree, self.functions.all, catalog)
        result = self._execute(connection, made, values)
        kinds = columns_of(tree, [str(d[1]) for d in result.description])
        fields = _fields(tree, result.description, kinds)
        return fields, self._shown(result.to_arrow_table(), fields, kinds)

    def _execute(self, connection: duckdb.DuckDBPyConnection, made: exp.Expression, values: Sequence[object]) -> duckdb.DuckDBPyConnection:
        """A parameter may be gone with what it stood in (the dimension of an array function), and DuckDB takes no value for it then."""
        used = {number for p in made.find_all(exp.Parameter) if 0 < (number := int(p.this.name)) <= len(values)}
        given = {str(n): values[n - 1] for n in used}
        try:
            return connection.execute(made.sql("duckdb"), given) if given else connection.execute(made.sql("duckdb"))
        except duckdb.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: duckdb.Error) -> Exception:
        text = str(error)
        if "Python exception occurred while executing the UDF" in text:
            return self.functions.raised.pop() if self.functions.raised else error
        if column := re.search(r'Referenced column "([^"]*)" (?:was )?not found|does not have a column named "([^"]*)"', text):
            return errors.UndefinedColumn(f'column "{column[1] or column[2]}" does not exist')
        if "Ambiguous reference" in text:
            return errors.AmbiguousColumn(text.split("Error: ", 1)[-1].split("\n")[0].lower())
        if isinstance(error, duckdb.ConversionException):
            return errors.InvalidTextRepresentation(text.split("Error: ", 1)[-1].split("\n")[0])
        return error

    def _shown(self, table: pa.Table, fields: tuple[Field, ...], kinds: Sequence[str]) -> pa.Table:
        """Values in stored form: reg types by name, vectors as text."""
        outputs = []
        for column, field, kind in zip(table.columns, fields, kinds, strict=True):
            out = REGISTERED.get(kind)
            if out is not None:
                function = self.functions.all[out, 1][2]
                column = pa.chunked_array([pa.array([None if v is None else function(int(v)) for v in column.to_pylist()], pa.string())])
            elif pa.types.is_list(column.type) and not field.type.is_array:
                texts = [None if v is None else " ".join(map(str, v)) for v in column.to_pylist()]
                column = pa.chunked_array([pa.array(texts, pa.string())])
            elif column.type != field.type.arrow:
                column = column.cast(field.type.arrow)
            outputs.append(column)
        return pa.Table.from_arrays(outputs, schema=arrow_schema(fields))


def parameters(tree: exp.Expression, oids: Sequence[int]) -> tuple[Type, ...]:
    """Types of $1, $2, …: what a cast says or what it is compared with, text otherwise."""
    found: dict[int, str] = {}
    for parameter in tree.find_all(exp.Parameter):
        number, kind = int(parameter.this.name), "text"
        parent = parameter.parent
        if isinstance(parent, exp.Cast):
            kind = type_name(parent.to).strip('"')
            kind = f"_{kind[:-2]}" if kind.endswith("[]") else kind
        else:
            side: exp.Expression = parameter
            while isinstance(side.parent, (exp.Any, exp.Paren)):
                side = side.parent
            if isinstance(side.parent, exp.Binary):
                other = side.parent.expression if side.parent.this is side else side.parent.this
                kind = COMPARED.get(other.name.lower(), "text") if isinstance(other, exp.Column) else "text"
            kind = f"_{kind}" if isinstance(side, exp.Any) else kind
        if found.get(number, "text") == "text":
            found[number] = kind
    given = {n: BY_OID[oid] for n, oid in enumerate(oids, 1) if oid in BY_OID}
    return tuple(given.get(n) or type_of(found.get(n, "text")) for n in range(1, max([len(oids), *found]) + 1))


BY_OID = {f.oid: Type(f.name) for f in FACTS.values()} | {f.array_oid: Type(f.name, is_array=True) for f in FACTS.values() if f.array_oid}
COMPARED = {
    **dict.fromkeys(
        ("oid", "relnamespace", "attrelid", "atttypid", "indrelid", "indexrelid", "typelem", "typarray", "typrelid", "conrelid"), "oid"
    ),
    **dict.fromkeys(
        ("nspname", "relname", "typname", "attname", "datname", "rolname", "table_name", "table_schema", "table_catalog"), "name"
    ),
    "attnum": "int2",
}

REGISTERED = {"regclass": "regclass_out", "regtype": "regtype_out", "regproc": "regproc_out", "regnamespace": "regnamespace_out"}


def _fields(tree: exp.Expression, description: Sequence[Sequence[object]], kinds: Sequence[str]) -> tuple[Field, ...]:
    """Fields with PostgreSQL's names for the columns: of an expression without a name that of its function, or ?column?."""
    names = [_name(item) for item in tree.selects]  # type: ignore[attr-defined]
    if len(names) != len(kinds) or None in names:
        names = [names[i] if len(names) == len(kinds) and names[i] else str(d[0]) for i, d in enumerate(description)]
    return tuple(Field(str(name), type_of(kind)) for name, kind in zip(names, kinds, strict=True))


def _name(item: exp.Expression) -> str | None:
    """The name PostgreSQL gives to an output column; None for a star."""
    match item:
        case exp.Star():
            return None
        case exp.Column():
            return None if isinstance(item.this, exp.Star) else folded(item.this)
        case exp.Alias():
            return folded(item.args["alias"])
        case exp.Paren() | exp.Collate() | exp.Bracket():
            return _name(item.this)
        case exp.Cast():
            base = item.this
            while isinstance(base, (exp.Cast, exp.Paren)):
                base = base.this
            inner = _name(base)
            return type_name(item.to).strip('"') if inner == "?column?" else inner
        case exp.Dot():
            return _name(item.expression) if isinstance(item.this, exp.Identifier) else item.expression.name
        case exp.Anonymous():
            return item.name.lower()
        case exp.Case():
            inner = _name(item.args["default"]) if item.args.get("default") is not None else "?column?"
            return "case" if inner == "?column?" else inner
        case exp.Subquery():
            return _name(item.unnest().selects[0])
        case exp.Array():
            return "array"
        case exp.GroupConcat():
            return "string_agg"
        case (
            exp.CurrentCatalog()
            | exp.CurrentUser()
            | exp.SessionUser()
            | exp.CurrentSchema()
            | exp.CurrentDatabase()
            | exp.CurrentSchemas()
        ):
            return item.sql("postgres").lower().split("(")[0]
        case exp.CurrentVersion():
            return "version"
        case exp.Trim():
            return {"TRAILING": "rtrim", "LEADING": "ltrim"}.get(str(item.args.get("position") or "").upper(), "btrim")
        case exp.Predicate() | exp.Connector() | exp.Not():
            return "?column?"
        case exp.Func():
            return item.sql_name().lower()
        case _:
            return "?column?"


def parsed(text: str) -> exp.Expression:
    """The tree of one query, by PostgreSQL's grammar."""
    try:
        trees = [t for t in POSTGRES.parser().parse(_names(_arrays(POSTGRES.tokenize(text))), text) if t is not None]
    except sqlglot.errors.SqlglotError as error:
        raise errors.SyntaxError_("syntax error in a query of the system catalog") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query) or trees[0].find(exp.DML, exp.DDL, exp.Command) is not None:
        raise errors.SyntaxError_("syntax error in a query of the system catalog")
    return trees[0]


def _arrays(tokens: list[Token]) -> list[Token]:
    """`oid[]` as the name `_oid`: sqlglot knows no arrays of PostgreSQL's own types, and PostgreSQL knows both names."""
    out: list[Token] = []
    for token in tokens:
        words = [t.token_type for t in (*out[-2:], token)]
        if words == [TokenType.OBJECT_IDENTIFIER, TokenType.L_BRACKET, TokenType.R_BRACKET]:
            del out[-1]
            element = out.pop()
            out.append(Token(TokenType.VAR, f"_{element.text.lower()}", element.line, element.col, element.start, element.end))
        else:
            out.append(token)
    return out


def _names(tokens: list[Token]) -> list[Token]:
    """`AS select,`: behind AS PostgreSQL takes any word for a name."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.token_type is TokenType.ALIAS and token.token_type in VERBS and after.token_type in (TokenType.COMMA, TokenType.FROM):
            token.token_type = TokenType.VAR
    return tokens


VERBS = (TokenType.SELECT, TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.TABLE)
POSTGRES = sqlglot.Dialect.get_or_raise("postgres")
