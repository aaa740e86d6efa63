"""A client's query of the system catalog, read: whether it is one, what it asks for, and its SQL for the catalog's DuckDB.

All of it follows from the text and the catalog, so it can be found out in another process; what is left is to run it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from gateway import lists
from gateway.catalog import database
from gateway.catalog.functions import Functions
from gateway.catalog.privileges import SECRET
from gateway.catalog.rewrite import REG, WORDS, rewrite
from gateway.catalog.trees import folded, type_name
from gateway.catalog.typing import columns_of, type_of
from lake import errors
from lake.catalog import Catalog
from lake.types import FACTS, Field, Type
from sql.authorization import SUPERUSER, Demand

# Of a query of the system catalog. The longest that a client was seen to send has 9,000.
CHARACTERS_MAX = 65_536
JOINS_MAX = 50  # of one query, of any relations: DuckDB plans 50 in less than a second, 100 in a minute
PARAMETERS_MAX = 65_535  # that a Bind message can give
TOLD = frozenset(f"{lists.SCHEMA}.{what.replace(' ', '_')}" for what in lists.TOLD) | {lists.INTERNAL_ERRORS}  # by the engine


def catalog_tree(text: str) -> exp.Expression | None:
    """The tree of a text that may be a query of the system catalog; None if it cannot be one. Cheap for what users poll."""
    if not WORDS_OF_IT.search(text) or len(text) > CHARACTERS_MAX:
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


def _listed(tree: exp.Expression) -> set[str]:
    named = {f"{folded(t.args.get('db'))}.{folded(t.this)}" for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)}
    return named & set(lists.relations())


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


SIGNATURES = {key: (types, result) for key, (types, result, _) in Functions().all.items()}
NAMES = frozenset(SIGNATURES) | {("pg_get_keywords", 0)}


WORDS_OF_IT = re.compile(
    r"pg_|information_schema|\btailgate\s*\.|\breg(class|type|proc|procedure|namespace|role)\b|\b(session_)?user\b|\b("
    + "|".join(sorted({name for name, _ in NAMES if not name.startswith("pg_")}))
    + r")\b|\bcurrent_(role|catalog)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """A query of the system catalog. `sql`: for DuckDB; `limited`: the same without rows, to see its columns. `parameters`: types of $1,
    $2, …; `used`: numbers of those that the SQL still has. `relations`: names of what it reads, in lower case; `listed`: of those which
    say something of items."""

    tree: exp.Expression = field(repr=False)
    sql: str
    limited: str
    parameters: tuple[Type, ...]
    used: frozenset[int]
    relations: frozenset[str]
    listed: frozenset[str]

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return 100 * len(self.sql)

    @property
    def asks_engine(self) -> bool:
        """Whether what the engine says of itself is part of the answer."""
        return not self.listed.isdisjoint(TOLD)

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Everybody may read it, but for internal errors and what `SECRET` names."""
        secret = [f"{SECRET[name]} {name}" for name in sorted(self.relations.intersection(SECRET))]
        if lists.INTERNAL_ERRORS in self.listed:
            secret.append(f"table {lists.INTERNAL_ERRORS.partition('.')[2]}")
        return tuple(Demand(SUPERUSER, 0, what=what) for what in secret)


@dataclass(frozen=True, slots=True)
class Described:
    """The columns of a query's result. `kinds`: names of their types in PostgreSQL's catalog."""

    fields: tuple[Field, ...]
    kinds: tuple[str, ...]


def catalog_query(tree: exp.Expression, oids: Sequence[int], catalog: Catalog) -> CatalogQuery:
    """`oids`: types of parameters that the client gave, 0 where it did not. Raises 42P01, 42883, 0A000."""
    if len(list(tree.find_all(exp.Join))) > JOINS_MAX:
        raise too_many_joins()
    limited = exp.select("*").from_(tree.copy().subquery("q")).limit(0)  # type: ignore[attr-defined]
    made = rewrite(tree, SIGNATURES, catalog)
    types = parameters(tree, oids)
    return CatalogQuery(
        tree,
        made.sql("duckdb"),
        rewrite(limited, SIGNATURES, catalog).sql("duckdb"),
        types,
        frozenset(number for p in made.find_all(exp.Parameter) if 0 < (number := int(p.this.name)) <= len(types)),
        frozenset(table.name.lower() for table in tree.find_all(exp.Table)),
        frozenset(_listed(tree)),
    )


def too_many_joins() -> errors.TailgateError:
    return errors.StatementTooComplex(
        "statement is too complex",
        detail=f"A query can join {JOINS_MAX + 1} relations.",
        hint="Make a part of it a materialized view.",
    )


def described(query: CatalogQuery, description: Sequence[tuple[str, str]]) -> Described:
    """`description`: names and types of the columns, as DuckDB tells them."""
    kinds = columns_of(query.tree, [type for _, type in description])
    return Described(_fields(query.tree, description, kinds), tuple(kinds))


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
    most = max([len(oids), *found])
    if most > PARAMETERS_MAX or min(found, default=1) < 1:
        raise errors.UndefinedParameter(f"there is no parameter ${most if most > PARAMETERS_MAX else min(found)}")
    return tuple(given.get(n) or type_of(found.get(n, "text")) for n in range(1, most + 1))


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
