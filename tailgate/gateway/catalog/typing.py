"""Finds the PostgreSQL types of a catalog query's columns, which DuckDB cannot tell: name and "char" are text there.

A column is traced through subqueries and CTEs to its relation; functions and casts have known types.
Otherwise DuckDB's type decides.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from tailgate.gateway.catalog.output_names import output_name
from tailgate.gateway.catalog.relations.database import relations
from tailgate.gateway.catalog.tables import LISTED
from tailgate.gateway.catalog.trees import folded, is_word, type_name
from tailgate.lake.types import FACTS, Type
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX

# Types whose values are encoded like those of another type: oid, size, that other type.
TOLD = {
    "regproc": (24, 4, "text"),
    "regclass": (2205, 4, "text"),
    "regtype": (2206, 4, "text"),
    "regnamespace": (4089, 4, "text"),
    "regrole": (4096, 4, "text"),
    "int2vector": (22, -1, "text"),
    "oidvector": (30, -1, "text"),
    "pg_node_tree": (194, -1, "text"),
    "xid": (28, 4, "oid"),
    "aclitem": (1033, 12, "text"),
    "inet": (869, -1, "text"),
    "pg_lsn": (3220, 8, "text"),
    "anyarray": (2277, -1, "text"),
    "void": (2278, 4, "text"),
    "record": (2249, -1, "text"),
}
TOLD_ARRAYS = {"aclitem": 1034, "regclass": 2210, "regtype": 2211, "record": 2287}


@dataclass(frozen=True, slots=True)
class CatalogType(Type):
    """A catalog type. `name` decides the encoding of values, `client_oid` is the oid that clients see."""

    client_oid: int = 0
    client_size: int = -1

    @property
    def oid(self) -> int:
        return self.client_oid

    @property
    def size(self) -> int:
        return self.client_size


def type_of(name: str) -> Type:
    """Returns the type with a name of pg_type.

    >>> type_of("char").oid, type_of("_text").oid, type_of("int4").oid, type_of("_char").oid
    (18, 1009, 23, 1002)
    """
    if name.startswith("_"):
        element = name[1:]
        if element in TOLD_ARRAYS:
            return CatalogType(TOLD[element][2], is_array=True, client_oid=TOLD_ARRAYS[element])
        return Type(element, is_array=True) if element in FACTS else Type("text", is_array=True)
    if name in TOLD:
        oid, size, encoded = TOLD[name]
        return CatalogType(encoded, client_oid=oid, client_size=size)
    return Type(name) if name in FACTS else Type("text")


BY_DUCKDB = {
    "BOOLEAN": "bool",
    "TINYINT": "int2",
    "SMALLINT": "int2",
    "INTEGER": "int4",
    "BIGINT": "int8",
    "UINTEGER": "oid",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "VARCHAR": "text",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP": "timestamp",
    "DATE": "date",
    "JSON": "json",
    "INTERVAL": "interval",
    "BLOB": "bytea",
    "HUGEINT": "numeric",
}

RESULTS = {
    "pg_get_userbyid": "name",
    "current_schema": "name",
    "current_database": "name",
    "current_user": "name",
    "session_user": "name",
    "current_schemas": "_name",
    "pg_encoding_to_char": "name",
    "getdatabaseencoding": "name",
    "pg_client_encoding": "name",
    "to_regclass": "regclass",
    "to_regtype": "regtype",
    "to_regproc": "regproc",
    "to_regnamespace": "regnamespace",
    "array_length": "int4",
    "array_upper": "int4",
    "array_lower": "int4",
    "cardinality": "int4",
    "generate_subscripts": "int4",
    "generate_series": "int4",
    "length": "int4",
    "strpos": "int4",
    "json_build_object": "json",
    "pg_advisory_unlock_all": "void",
    "pg_notify": "void",
    "pg_listening_channels": "text",
    "pg_partition_ancestors": "regclass",
    "pg_notification_queue_usage": "float8",
    "pg_relation_size": "int8",
    "oidvectortypes": "text",
    "regexp_replace": "text",
    "substring": "text",
    "count": "int8",
    "row_number": "int8",
}

XIDS = {"xmin": "xid", "xmax": "xid"}  # system columns
OF_CLASS = {
    exp.CurrentTimestamp: "timestamptz",
    exp.CurrentDatabase: "name",
    exp.CurrentCatalog: "name",
    exp.CurrentSchemas: "_name",
    exp.ArraySize: "int4",
}


def columns_of(tree: exp.Expr, duckdb_types: list[str]) -> list[tuple[str | None, str]]:
    """Returns the names, None if unknown, and the type names of the result columns."""
    before = _OUTPUTS.set({})
    try:
        scope = build_scope(tree)
        outputs = _outputs(scope) if scope is not None else []
    except Exception:  # noqa: BLE001  # sqlglot cannot build scopes of some trees; DuckDB's types are good enough then
        outputs = []
    finally:
        _OUTPUTS.reset(before)
    if len(outputs) != len(duckdb_types):
        outputs = [(None, None)] * len(duckdb_types)
    return [(name, type or by_duckdb(theirs)) for (name, type), theirs in zip(outputs, duckdb_types, strict=True)]


def by_duckdb(theirs: str) -> str:
    if theirs.startswith("STRUCT") and theirs.endswith("[]"):
        return "_record"
    if theirs.endswith("[]"):
        return "_" + BY_DUCKDB.get(theirs[:-2], "text")
    if theirs.startswith("STRUCT"):
        return "record"
    return "numeric" if theirs.startswith("DECIMAL") else BY_DUCKDB.get(theirs, "text")


Output: TypeAlias = "tuple[str | None, str | None]"  # a column's name and type, None if unknown


# the scopes of the query with their outputs, by the id of the scope
_OUTPUTS: ContextVar[dict[int, tuple[Scope, list[Output]]]] = ContextVar("outputs")
UNKNOWN = "unknown"  # NULL or a string literal: takes its type from the other branch of a UNION, or is text


def _outputs(scope: Scope) -> list[Output]:
    return [(name, "text" if type == UNKNOWN else type) for name, type in _branch(scope)]


def _branch(scope: Scope) -> list[Output]:
    """Returns the outputs of one branch of a UNION, before types of all branches are combined."""
    memo = _OUTPUTS.get()
    if id(scope) not in memo:
        memo[id(scope)] = scope, _computed(scope)
    return memo[id(scope)][1]


def _computed(scope: Scope) -> list[Output]:
    if scope.set_operation_scopes:
        left = _branch(scope.set_operation_scopes[0])
        _OUTPUTS.get()[id(scope)] = scope, left  # a recursive query reads these columns
        right = _branch(scope.set_operation_scopes[1])
        united = [(name, b if a in (None, UNKNOWN) else a) for (name, a), (_, b) in zip(left, right, strict=True)]
        return [(name, "text" if type == UNKNOWN else type) for name, type in united]
    if isinstance(scope.expression, exp.Unnest):
        alias = scope.expression.args.get("alias")
        columns = [folded(c) for c in alias.columns] if isinstance(alias, exp.TableAlias) else []
        name = columns[0] if columns else folded(alias.this) if isinstance(alias, exp.TableAlias) else "unnest"
        if len(scope.expression.expressions) > 1:
            shown = [*columns, folded(scope.expression.args["offset"])] if scope.expression.args.get("offset") else columns
            types = [*(_element(_type(array, scope)) for array in scope.expression.expressions), "int8"]
            return list(zip(shown, types, strict=False))
        return [(name, _type(scope.expression, scope))]
    if isinstance(scope.expression, exp.Lateral):
        return _lateral(scope)
    out: list[Output] = []
    assert isinstance(scope.expression, exp.Query)
    for item in scope.expression.selects:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            alias_of_star = item.table if isinstance(item, exp.Column) else ""
            for alias, source in scope.selected_sources.items():
                if not alias_of_star or alias == alias_of_star:
                    out.extend(_source(source[1]))
        else:
            inner = item.this if isinstance(item, exp.Alias) else item
            out.append((item.alias_or_name.lower(), UNKNOWN if _plain(inner) else _type(item, scope)))
    return out


def _lateral(scope: Scope) -> list[Output]:
    """Returns names and types of the columns of a LATERAL subquery; nothing for a function."""
    query, alias = scope.expression.this.unnest(), scope.expression.args.get("alias")
    inner = build_scope(query) if isinstance(query, exp.Query) else None
    if inner is None:
        return []
    inner.parent = scope.parent
    names = [folded(column) for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return [(names[i] if i < len(names) else name, type) for i, (name, type) in enumerate(_outputs(inner))]


def _source(source: exp.Table | Scope) -> list[Output]:
    """Returns names and types of the columns of an item of FROM."""
    if isinstance(source, Scope):
        outputs = _outputs(source)
        alias = source.expression.parent.args.get("alias") if isinstance(source.expression.parent, (exp.Subquery, exp.CTE)) else None
        names = [c.name.lower() for c in alias.columns] if isinstance(alias, exp.TableAlias) else []
        return [(names[i] if i < len(names) else name, type) for i, (name, type) in enumerate(outputs)]
    if isinstance(source.this, exp.Identifier):
        schema = folded(source.args.get("db")) or "pg_catalog"
        return list(relations().get(f"{schema}.{folded(source.this)}", {}).items())
    if isinstance(source.this, exp.Anonymous) and source.this.name.lower() in LISTED:
        return list(relations()[f"pg_catalog.{LISTED[source.this.name.lower()]}"].items())
    if isinstance(source.this, (exp.Unnest, exp.Explode)) or "unnest" in type(source.this).__name__.lower():
        inner = source.this.expressions[0] if source.this.expressions else source.this.this
        array = RESULTS.get(inner.sql_name().lower()) if isinstance(inner, exp.Func) else None
        return [(source.alias.lower() or "unnest", array[1:] if array else None)]
    if "series" in type(source.this).__name__.lower():
        columns = source.args["alias"].columns if source.args.get("alias") else []
        return [(columns[0].name.lower() if columns else source.alias.lower(), "int4")]
    if isinstance(source.this, exp.Func):
        return [(source.alias.lower() or output_name(source.this), _of_function(source.this))]
    return [(None, None)]


def _of_function(node: exp.Func) -> str | None:
    return RESULTS.get(str(output_name(node))) or OF_CLASS.get(type(node))


def _element(array: str | None) -> str | None:
    """Returns the type of an array's or vector's elements, None if unknown."""
    return {"int2vector": "int2", "oidvector": "oid"}.get(array or "", array[1:] if array and array.startswith("_") else None)


def _type(node: exp.Expr | None, scope: Scope) -> str | None:
    """Returns the type name of an expression, None if unknown."""
    match node:
        case exp.Alias() | exp.Paren() | exp.Collate():
            return _type(node.this, scope)
        case exp.Cast():
            name = type_name(node.to).strip('"').removeprefix("information_schema.")
            name = {"sql_identifier": "name", "character_data": "varchar", "cardinal_number": "int4"}.get(name, name)
            return f"_{name[:-2]}" if name.endswith("[]") else name
        case exp.Column():
            return "name" if is_word(node) else _column(node, scope) or XIDS.get(node.name.lower())
        case exp.Literal():
            return "text" if node.is_string else _of_number(node.name)
        case exp.Null() | exp.DPipe() | exp.JSONExtractScalar():
            return "text"
        case exp.Boolean() | exp.Connector() | exp.Predicate() | exp.Not():
            return "bool"
        case exp.Case():
            branches = [_type(i.args["true"], scope) for i in node.args["ifs"] if not _plain(i.args["true"])]
            if node.args.get("default") is not None and not _plain(node.args["default"]):
                branches.insert(0, _type(node.args["default"], scope))
            return _common(branches) if branches else _common([_type(i.args["true"], scope) for i in node.args["ifs"]])
        case exp.Coalesce():
            parts = [p for p in [node.this, *node.expressions] if not _plain(p)]
            return _common([_type(p, scope) for p in parts])
        case exp.Nullif() | exp.Max() | exp.Min() | exp.Neg():
            return _type(node.this, scope)
        case exp.ArrayAgg():
            inner = node.this.this if isinstance(node.this, exp.Order) else node.this
            element = _type(inner.expressions[0] if isinstance(inner, exp.Distinct) else inner, scope)
            return f"_{element}" if element else None
        case exp.Array() if len(node.expressions) == 1:
            element = _type(node.expressions[0], scope)
            return f"_{element}" if element else None
        case exp.Subquery() | exp.Select():
            inner = next((s for s in scope.subquery_scopes if s.expression is node.unnest()), None) or build_scope(node.unnest())
            if inner is None:
                return None
            inner.parent = scope  # for references to outer queries
            return _outputs(inner)[0][1]
        case exp.Bracket():
            element = _element(_type(node.this, scope))
            return f"_{element}" if element and isinstance(node.expressions[0], exp.Slice) else element
        case exp.Dot():
            return _type(node.expression, scope) if isinstance(node.this, exp.Identifier) else None
        case exp.Anonymous():
            name = node.name.lower()
            if name in ("unnest", "array_remove") and node.expressions:
                array = _type(node.expressions[0], scope)
                if name == "array_remove":
                    return array
                return _element(array)
            return RESULTS.get(name)
        case exp.Unnest() | exp.Explode():
            inner = node.expressions[0] if isinstance(node, exp.Unnest) else node.this
            return _element(_type(inner, scope))
        case exp.Func():
            return _of_function(node)
        case _:
            return None


def _of_number(text: str) -> str | None:
    """Returns the type name of an integer literal, None if it is not an int4."""
    return "int4" if text.isdigit() and len(text) <= INTEGER_DIGITS_MAX and int(text) < 1 << 31 else None


def _plain(node: exp.Expr) -> bool:
    """Tells whether the node is NULL or a string literal, which takes the type of its context."""
    return isinstance(node, (exp.Null,)) or (isinstance(node, exp.Literal) and node.is_string)


def _common(types: list[str | None]) -> str | None:
    kinds = set(types)
    if len(kinds) == 1:
        return types[0]
    if (types[0] in (None, "char") and None in kinds) or not kinds <= {"name", "text", "char", "varchar", None}:
        return None
    return next(t for t in types if t != "char")  # the first: texts and names are cast to each other, "char" to them


def _column(node: exp.Column, scope: Scope | None) -> str | None:
    """Returns the type of a column reference, looked up in its query and outer queries."""
    name, inside = node.name.lower(), None
    while scope is not None:
        for alias, source in scope.sources.items():
            if source is not inside and (not node.table or alias == node.table):
                for column, type in _source(source):
                    if column == name:
                        return type
        # a subquery in FROM does not see other items of FROM
        inside, scope = scope, scope.parent.parent if scope.is_derived_table and scope.parent is not None else scope.parent
    return None
