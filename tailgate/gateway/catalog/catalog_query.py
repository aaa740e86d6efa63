"""Reads queries of the system catalog: recognizes them, describes them, and makes DuckDB SQL.

All of this depends only on the text and the catalog, so it can run in a worker process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tailgate.gateway.catalog.functions.catalog_functions import Functions
from tailgate.gateway.catalog.functions.privileges import SECRET
from tailgate.gateway.catalog.output_names import WRITTEN, output_name
from tailgate.gateway.catalog.relations import database, item_status
from tailgate.gateway.catalog.rewrite import REG, rewrite
from tailgate.gateway.catalog.tables import LISTED, TEMPORARY, other_relations
from tailgate.gateway.catalog.trees import folded, is_word, type_name
from tailgate.gateway.catalog.typing import columns_of, type_of
from tailgate.lake import errors
from tailgate.lake.catalog import SYSTEM_RELATIONS, Catalog
from tailgate.lake.catalog.schemas import TAILGATE
from tailgate.lake.system_relations import COLUMNS
from tailgate.lake.types import BY_OID, Field, Type
from tailgate.sql.authorization import SELECT, SUPERUSER, Demand
from tailgate.sql.binder.types.parameters import parameter_number
from tailgate.sql.functions.advisory_locks import ACTIONS
from tailgate.sql.plan.session_calls import SEQUENCE_FUNCTIONS

# Of a query of the system catalog. The longest one seen from a client has 9,000 characters.
CHARACTERS_MAX = 65_536
JOINS_MAX = 50  # of any query: DuckDB plans 50 joins in less than a second, 100 in a minute


def catalog_tree(text: str) -> exp.Query | None:
    """Parses a text that may be a query of the system catalog; otherwise returns None.

    Texts that cannot be one, such as most polls, cost only a regular expression search.
    """
    if not WORDS_OF_IT.search(text) or len(text) > CHARACTERS_MAX:
        return None
    try:
        return parsed(text)
    except errors.SyntaxError_:
        return None


def is_catalog_query(tree: exp.Expr, catalog: Catalog) -> bool:
    """Tells whether a query reads a relation of pg_catalog or information_schema.

    Also true if it calls functions or casts that only the catalog has, and reads no relation or only those of the schema tailgate.
    """
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    reads_other_relation = False
    for table in tree.find_all(exp.Table):
        schema = folded(table.args.get("db"))
        if isinstance(table.this, exp.Identifier):
            name = folded(table.this)
            if schema in ("pg_catalog", "information_schema") or (
                not schema and name not in ctes and f"pg_catalog.{name}" in database.relations()
            ):
                return True
            if name not in ctes and schema != TAILGATE:
                reads_other_relation = True
    return not reads_other_relation and not _calls_of_session(tree) and any(_is_system(node) for node in tree.walk())


def _calls_of_session(tree: exp.Expr) -> bool:
    """Tells whether a query calls a function of advisory locks or of sequences, whose argument may be cast to regclass, or pg_typeof."""
    return any(call.name.lower() in SESSION_FUNCTIONS for call in tree.find_all(exp.Anonymous))


def _listed(tree: exp.Expr) -> set[str]:
    tables = (table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier))
    return {folded(table.this) for table in tables if folded(table.args.get("db")) == TAILGATE} & COLUMNS.keys()


def _is_system(node: exp.Expr) -> bool:
    """Tells whether a node is a function, word or cast that only the system catalog has."""
    match node:
        case exp.Anonymous():
            return (node.name.lower(), len(node.expressions)) in NAMES and node.name.lower() not in (
                "quote_ident",
                "quote_literal",
                "parse_ident",
            )
        case (
            exp.CurrentSchema() | exp.CurrentUser() | exp.SessionUser() | exp.CurrentDatabase() | exp.CurrentVersion()
            | exp.CurrentCatalog() | exp.CurrentSchemas()
        ):  # fmt: skip
            return True
        case exp.Column():
            return is_word(node)
        case exp.Cast():
            return type_name(node.to) in REG or type_name(node.to) == "oid"
        case _:
            return False


SESSION_FUNCTIONS = {*SEQUENCE_FUNCTIONS, *ACTIONS, "pg_typeof"}
SIGNATURES = {key: (types, result) for key, (types, result, _) in Functions().all.items()}
NAMES = frozenset(SIGNATURES) | {(name, 0) for name in LISTED}


WORDS_OF_IT = re.compile(
    r"pg_|information_schema|\btailgate\s*\.|\breg(class|type|proc|procedure|namespace|role)\b|\b(session_)?user\b|\b("
    + "|".join(sorted({name for name, _ in NAMES if not name.startswith("pg_")}))
    + r")\b|\bcurrent_(role|catalog)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """A query of the system catalog.

    - `sql`: for DuckDB; `limited`: the same for zero rows, to find its columns
    - `parameters`: types of $1, $2, …; `used`: numbers of those that the SQL still has
    - `relations`: names of the relations it reads, in lower case; `tables`: their names in DuckDB
    - `listed`: the names of those of them that belong to the schema tailgate, without the schema
    - `others`: ids of relations that are not in the system catalog
    """

    tree: exp.Query = field(repr=False)
    sql: str
    limited: str
    parameters: tuple[Type, ...]
    used: frozenset[int]
    relations: frozenset[str]
    tables: frozenset[str]
    listed: frozenset[str]
    others: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """Returns the approximate size in bytes, for caches."""
        return 100 * len(self.sql)

    @property
    def asks_engine(self) -> bool:
        """Tells whether the query needs the engine's status."""
        return any(SYSTEM_RELATIONS[name].id in item_status.ASK_ENGINE for name in self.listed)

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns the required privileges: superuser for `SECRET`, and SELECT on the relations of the schema tailgate."""
        secret = (f"{SECRET[name]} {name}" for name in sorted(self.relations.intersection(SECRET)))
        demands = (Demand(SELECT, SYSTEM_RELATIONS[name].id) for name in sorted(self.listed))
        others = (Demand(SELECT, id) for id in sorted(self.others))
        return (*(Demand(SUPERUSER, 0, what=what) for what in secret), *demands, *others)


@dataclass(frozen=True, slots=True)
class Described:
    """The columns of a query's result. `kinds` has the names of their types in pg_type."""

    fields: tuple[Field, ...]
    kinds: tuple[str, ...]


def catalog_query(tree: exp.Query, oids: Sequence[int], catalog: Catalog) -> CatalogQuery:
    """Makes the DuckDB SQL of a query. Raises 42P01, 42883, 0A000.

    `oids` are the parameter types from the client, 0 if unspecified.
    """
    if len(list(tree.find_all(exp.Join))) > JOINS_MAX:
        raise too_many_joins()
    limited = exp.select("*").from_(tree.copy().subquery("q")).limit(0)
    rewritten = rewrite(tree, SIGNATURES, catalog)
    others = other_relations(rewritten)
    if others:
        _check_with_others(tree)
    types = parameters(tree, oids)
    return CatalogQuery(
        tree,
        rewritten.sql("duckdb"),
        rewrite(limited, SIGNATURES, catalog).sql("duckdb"),
        types,
        frozenset(number for p in rewritten.find_all(exp.Parameter) if 0 < (number := int(p.this.name)) <= len(types)),
        frozenset(table.name.lower() for table in tree.find_all(exp.Table)),
        frozenset(f"{table.db}.{table.name}" for table in rewritten.find_all(exp.Table) if table.db and table.db != TEMPORARY),
        frozenset(_listed(tree)),
        others,
    )


def _check_with_others(tree: exp.Query) -> None:
    """Raises 0A000 for locks, and for division, which DuckDB does in floats, in a query that also reads other relations."""
    for kind, what in ((exp.Lock, "FOR UPDATE and FOR SHARE"), (exp.Div, "/"), (exp.Mod, "%")):
        if tree.find(kind) is not None:
            raise errors.FeatureNotSupported(f"{what} in a query of the system catalog and of other relations at once is not supported")


def too_many_joins() -> errors.TailgateError:
    return errors.StatementTooComplex(
        "statement is too complex",
        detail=f"A query can join {JOINS_MAX + 1} relations.",
        hint="Create a materialized view of a part of it.",
    )


def described(query: CatalogQuery, description: Sequence[tuple[str, str]]) -> Described:
    """Returns the result columns; `description` has DuckDB's names and types of them."""
    columns = columns_of(query.tree, [type for _, type in description])
    return Described(_fields(query.tree, description, columns), tuple(kind for _, kind in columns))


def parameters(tree: exp.Expr, oids: Sequence[int]) -> tuple[Type, ...]:
    """Returns the types of $1, $2, …: from a cast or a comparison, otherwise text."""
    types_by_number: dict[int, str] = {}
    for parameter in tree.find_all(exp.Parameter):
        number, kind = parameter_number(parameter.this.name), "text"
        parent = parameter.parent
        if isinstance(parent, exp.Cast):
            kind = type_name(parent.to).strip('"')
            kind = f"_{kind[:-2]}" if kind.endswith("[]") else kind
        else:
            side: exp.Expr = parameter
            while isinstance(side.parent, (exp.Any, exp.Paren)):
                side = side.parent
            if isinstance(side.parent, exp.Binary):
                other = side.parent.expression if side.parent.this is side else side.parent.this
                kind = COMPARED.get(other.name.lower(), "text") if isinstance(other, exp.Column) else "text"
            kind = f"_{kind}" if isinstance(side, exp.Any) else kind
        if types_by_number.get(number, "text") == "text":
            types_by_number[number] = kind
    client_types = {n: BY_OID[oid] for n, oid in enumerate(oids, 1) if oid in BY_OID}
    most = max([len(oids), *types_by_number])
    return tuple(client_types.get(n) or type_of(types_by_number.get(n, "text")) for n in range(1, most + 1))


COMPARED = {
    **dict.fromkeys(
        ("oid", "relnamespace", "attrelid", "atttypid", "indrelid", "indexrelid", "typelem", "typarray", "typrelid", "conrelid"), "oid"
    ),
    **dict.fromkeys(
        ("nspname", "relname", "typname", "attname", "datname", "rolname", "table_name", "table_schema", "table_catalog"), "name"
    ),
    "attnum": "int2",
}


def _fields(tree: exp.Query, description: Sequence[Sequence[object]], columns: Sequence[tuple[str | None, str]]) -> tuple[Field, ...]:
    """Returns the result columns with PostgreSQL's names, such as a function's name or ?column?.

    Those of a star have their own names, also if DuckDB has changed one that occurs twice.
    """
    names = [output_name(item) for item in tree.selects]
    if len(names) != len(columns) or None in names:
        names = [
            names[i] if len(names) == len(columns) and names[i] else _given(str(d[0]), columns[i][0]) for i, d in enumerate(description)
        ]
    return tuple(Field(str(name), type_of(kind)) for name, (_, kind) in zip(names, columns, strict=True))


def _given(shown: str, name: str | None) -> str:
    """Returns the name of a column that DuckDB shows as `shown`, with a number if the name occurs twice."""
    return name if name and re.fullmatch(re.escape(name) + r"_\d+", shown) else shown


def parsed(text: str) -> exp.Query:
    """Parses one query with sqlglot's PostgreSQL dialect. Raises 42601."""
    try:
        row = _slices(_names(_arrays(POSTGRES.tokenize(text))))
        trees = [t for t in POSTGRES.parser().parse(row, text) if t is not None]
    except sqlglot.errors.SqlglotError as error:
        raise errors.SyntaxError_("syntax error in a query of the system catalog") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query) or trees[0].find(exp.DML, exp.DDL, exp.Command) is not None:
        raise errors.SyntaxError_("syntax error in a query of the system catalog")
    return trees[0]


def _arrays(tokens: list[Token]) -> list[Token]:
    """Replaces `oid[]` by the equivalent name `_oid`; sqlglot has no arrays of PostgreSQL's own types."""
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
    """Makes keywords into names: those after AS, as in `AS select,`, where PostgreSQL accepts any word, and `lock`."""
    for token in tokens:
        if token.token_type is TokenType.LOCK:
            token.token_type = TokenType.VAR
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.token_type is TokenType.ALIAS and token.token_type in VERBS and after.token_type in (TokenType.COMMA, TokenType.FROM):
            token.token_type = TokenType.VAR
    return tokens


def _slices(tokens: list[Token]) -> list[Token]:
    """Writes `[:n]` as `[0:n]`, because sqlglot takes `:n` for a parameter."""
    out: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.COLON and out and out[-1].token_type is TokenType.L_BRACKET:
            out.append(Token(TokenType.NUMBER, "0", token.line, token.col, token.start, token.start))
        out.append(token)
    return out


VERBS = (TokenType.SELECT, TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.TABLE)
POSTGRES = sqlglot.Dialect.get_or_raise("postgres")
POSTGRES.ORIGINAL_NAME_META_KEY = WRITTEN
