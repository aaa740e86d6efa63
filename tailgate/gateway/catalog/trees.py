"""Helpers for the syntax trees of catalog queries: names, types, literals and calls."""

from __future__ import annotations

from sqlglot import exp

MADE = "made"
VECTORS = frozenset(
    {"indkey", "indoption", "indclass", "indcollation", "proargtypes", "tgattr", "partattrs", "partclass", "i_indoption", "keys"}
)
WORDS = frozenset({"current_user", "session_user", "user", "current_catalog", "current_schema", "current_role"})
TEXTS = (exp.Format, exp.DPipe, exp.CurrentUser, exp.SessionUser, exp.CurrentSchema, exp.CurrentDatabase, exp.CurrentCatalog)
T = exp.DataType.Type
SPELLED = {
    T.TEXT: "text",
    T.VARCHAR: "varchar",
    T.NAME: "name",
    T.INT: "int4",
    T.BIGINT: "int8",
    T.SMALLINT: "int2",
    T.BOOLEAN: "bool",
    T.CHAR: "bpchar",
    T.FLOAT: "float4",
    T.DOUBLE: "float8",
    T.DECIMAL: "numeric",
    T.VARBINARY: "bytea",
}


def folded(identifier: exp.Expr | None) -> str:
    if identifier is None:
        return ""
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Returns a call of a DuckDB function, which the rewrite leaves unchanged."""
    node = exp.Anonymous(this=name, expressions=list(arguments))
    node.meta[MADE] = True
    return node


def elements(text: str) -> exp.Array:
    """Parses an array literal such as '{a,b}'.

    >>> elements('{r,p}').sql("duckdb")
    "['r', 'p']"
    """
    inner = text.strip().removeprefix("{").removesuffix("}")
    return exp.Array(expressions=[exp.Literal.string(part.strip().strip('"')) for part in inner.split(",")] if inner else [])


def is_vector(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in VECTORS


def is_word(node: exp.Expr) -> bool:
    """Tells whether a node is a word such as `user`, which sqlglot takes for a column and which calls a function."""
    return isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted") and node.name.lower() in WORDS


def is_integer(node: exp.Expr) -> bool:
    """Tells whether an expression is known to be an integer: a literal or a cast."""
    node = node.unnest()
    return (isinstance(node, exp.Literal) and node.is_int) or (
        isinstance(node, exp.Cast) and type_name(node.to) in ("int2", "int4", "int8")
    )


def is_text(node: exp.Expr) -> bool:
    """Tells whether an expression is known to be text: a literal, a cast, a concatenation or a function that returns a name."""
    node = node.unnest()
    node = node.expression if isinstance(node, exp.Dot) else node  # pg_catalog.f(x)
    if isinstance(node, exp.Cast):
        return type_name(node.to) in ("text", "varchar", "name", "bpchar")
    called = isinstance(node, exp.Anonymous) and node.name.lower() in ("pg_get_serial_sequence", "quote_ident", "format")
    return called or is_word(node) or isinstance(node, TEXTS) or (isinstance(node, exp.Literal) and bool(node.is_string))


def are_texts(node: exp.Expr) -> bool:
    """Tells whether an array is known to have texts: a literal, a cast, a parameter, or ARRAY[…] of texts."""
    node = node.unnest()
    if isinstance(node, exp.Array):
        return bool(node.expressions) and all(map(is_text, node.expressions))
    return isinstance(node, exp.Parameter) or (isinstance(node, exp.Cast) and type_name(node.to) in ("text[]", "varchar[]", "name[]"))


def type_name(type: exp.Expr) -> str:
    """Returns the PostgreSQL name of a type.

    >>> type_name(exp.maybe_parse("x::pg_catalog.regclass", dialect="postgres").to)
    'regclass'
    """
    if isinstance(type, exp.ObjectIdentifier):
        return str(type.name or type.this).lower()
    assert isinstance(type, exp.DataType)
    if type.this == exp.DataType.Type.ARRAY and type.expressions:
        return f"{type_name(type.expressions[0])}[]"
    kind = type.args.get("kind")
    if kind is not None:
        text = kind.sql("postgres") if isinstance(kind, exp.Expr) else str(kind)
        name = str(text).removeprefix("pg_catalog.").lower()
        return f"{name[1:]}[]" if name.startswith("_") else name
    return SPELLED.get(type.this) or str(type.this.value).lower()


def tables_of(column: exp.Column) -> list[exp.Table]:
    """Returns the relations in FROM that may have a system column."""
    select = column.find_ancestor(exp.Select)
    return [t for t in (select.find_all(exp.Table) if select else ()) if not column.table or t.alias_or_name == column.table]
