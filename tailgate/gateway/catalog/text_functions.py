"""Rewrites functions of texts and vectors in a catalog query that DuckDB has in another form, or lacks.

substring(x FROM 'n=([0-9]*)')   → the group of the first match, or NULL
oidvectortypes(proargtypes)      → the names of the types, with commas
bpchar(x), text(x), int4(x)      → casts
generate_series(1, 3) in SELECT  → its rows
information_schema._pg_…         → the macro of views.sql
age(xmin)                        → transactions since then: the largest integer, as for all rows of pg_catalog in a new cluster
CASE … acldefault(…) ELSE '{}'   → an array without elements
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.time import format_time

from tailgate.gateway.catalog.output_names import output_name
from tailgate.gateway.catalog.relations.database import scalar_columns
from tailgate.gateway.catalog.trees import MADE, call, elements, folded, is_text, is_vector, type_name

CASTS = {
    **dict.fromkeys(("bpchar", "text", "varchar", "name"), "VARCHAR"),
    "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "oid": "UINTEGER", "bool": "BOOLEAN",
}  # fmt: skip

# Functions of information_schema about a type's oid and modifier. The macros of views.sql have these names without the first character.
OF_TYPES = (
    "_pg_char_max_length", "_pg_char_octet_length", "_pg_numeric_precision", "_pg_numeric_scale", "_pg_datetime_precision",
    "_pg_interval_type",
)  # fmt: skip
# Those about rows of pg_attribute and pg_type: the column of a domain's type, and of others.
OF_COLUMNS = {"_pg_truetypid": ("typbasetype", "atttypid"), "_pg_truetypmod": ("typtypmod", "atttypmod")}
XIDS = frozenset(("xmin", "xmax", "transactionid", "backend_xid", "backend_xmin", "datfrozenxid", "relfrozenxid"))  # columns of type xid
AGE_OF_FROZEN = 2147483647


def of_types(name: str, arguments: list[exp.Expr]) -> exp.Expr | None:
    """Returns the call of a function of information_schema about types, or None for other functions."""
    if name in OF_TYPES and len(arguments) == 2:
        return call(name[1:], *arguments)
    if name in OF_COLUMNS and len(arguments) == 2:
        attribute, type = (a.table if isinstance(a, exp.Column) else "" for a in arguments)
        of_domain, of_attribute = OF_COLUMNS[name]
        domain = exp.EQ(this=exp.column("typtype", type), expression=exp.Literal.string("d"))
        return exp.Case(ifs=[exp.If(this=domain, true=exp.column(of_domain, type))], default=exp.column(of_attribute, attribute))
    return None


def age(argument: exp.Expr) -> exp.Expr | None:
    """Returns the age of a transaction, or None for the age of a time."""
    inner = argument.unnest()
    if (isinstance(inner, exp.Column) and inner.name.lower() in XIDS) or (isinstance(inner, exp.Cast) and type_name(inner.to) == "xid"):
        is_set = exp.Not(this=exp.Is(this=argument, expression=exp.Null()))
        number = exp.cast(exp.Literal.number(AGE_OF_FROZEN), "INTEGER", dialect="duckdb")
        return exp.Case(ifs=[exp.If(this=is_set, true=number)])
    return None


def special(name: str, arguments: list[exp.Expr]) -> exp.Expr | None:
    """Returns the expression that stands for a call of some functions, or None."""
    if (types := of_types(name, arguments)) is not None:
        return types
    if name in CASTS and len(arguments) == 1:  # a type's name
        return exp.Cast(this=arguments[0], to=exp.DataType.build(CASTS[name], dialect="duckdb"))
    match name:
        case "age" if len(arguments) == 1:
            return age(arguments[0])
        case "encode" if len(arguments) == 2 and arguments[1].name == "escape":  # of pg_trigger.tgargs
            return exp.Cast(this=arguments[0], to=exp.DataType.build("VARCHAR", dialect="duckdb"))
        case "oidvectortypes":
            return type_names(arguments[0])
        case "json_array_elements" | "jsonb_array_elements":
            return call("unnest", exp.Cast(this=arguments[0], to=exp.DataType.build("JSON[]", dialect="duckdb")))
        case _:
            return None


def matches_any(text: exp.Expr, patterns: exp.Expr) -> exp.Expr:
    """Returns whether a text matches one of an array's patterns."""
    pattern = exp.to_identifier("p")
    matches = exp.Lambda(this=call("regexp_matches", text, exp.column("p"), exp.Literal.string("s")), expressions=[pattern])
    return call("list_bool_or", call("list_transform", patterns.unnest(), matches))


def lateral(node: exp.Lateral) -> exp.Lateral:
    """Names the column of `LATERAL unnest(a) AS n` by the alias, too."""
    alias = node.args.get("alias")
    if isinstance(node.this, exp.Unnest | exp.Explode) and isinstance(alias, exp.TableAlias) and not alias.columns:
        alias.set("columns", [alias.this.copy()])
    return node


def json_part(node: exp.JSONExtract | exp.JSONExtractScalar) -> exp.Expr:
    """Rewrites -> and ->>, because DuckDB takes x -> y for a lambda in arguments."""
    name = "json_extract_string" if isinstance(node, exp.JSONExtractScalar) else "json_extract"
    path = node.expression
    if isinstance(path, exp.Literal):
        path = exp.Literal.string(f"$[{path.name}]" if not path.is_string else f'$."{path.name}"')
    return call(name, node.this, exp.maybe_parse(path.sql("duckdb"), dialect="duckdb") if isinstance(path, exp.JSONPath) else path)


def coalesced(node: exp.Coalesce) -> exp.Expr:
    """Rewrites the literal '{}' behind an array, or behind an expression of unknown type."""
    if not is_text(node.this) and not (isinstance(node.this, exp.Column) and node.this.name.lower() in scalar_columns()):
        for part in node.expressions:
            if isinstance(part, exp.Literal) and part.name == "{}":
                part.replace(exp.Array(expressions=[]))
    return node


def array_slice(array: exp.Expr, part: exp.Slice) -> exp.Expr:
    """Returns a part of an array, or of a vector, whose subscripts begin at 0."""

    def bound(of: exp.Expr | None, missing: exp.Expr) -> exp.Expr:
        if of is None:
            return missing
        return exp.Add(this=exp.Paren(this=of), expression=exp.Literal.number(1)) if is_vector(array) else of

    return call("list_slice", array, bound(part.this, exp.Literal.number(1)), bound(part.expression, call("len", array.copy())))


def append_elements(tree: exp.Expr) -> None:
    """Rewrites `path || x` if a query in WITH has a column `path` that is an array: DuckDB concatenates arrays only."""
    arrays = set[str]()
    for cte in tree.find_all(exp.CTE):
        first = cte.this.find(exp.Select)
        columns = reversed(cte.args["alias"].columns)
        arrays |= {
            folded(c) for c, item in zip(columns, reversed(first.selects if first else []), strict=False) if isinstance(item, exp.Array)
        }
    for node in list(tree.find_all(exp.DPipe)):
        if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column) and folded(node.this.this) in arrays:
            node.replace(call("list_append", node.this.copy(), node.expression.copy()))


def fold_names(tree: exp.Expr) -> None:
    """Writes names without quotes in lower case, as PostgreSQL does."""
    for identifier in tree.find_all(exp.Identifier):
        if not identifier.args.get("quoted"):
            identifier.set("this", identifier.name.lower())


def json_operators(tree: exp.Expr) -> None:
    """Makes -> an operator of JSON in arguments, too, where sqlglot takes x -> 'a' for a lambda."""
    for node in list(tree.find_all(exp.Lambda)):
        first = node.this
        while isinstance(first, exp.JSONExtract | exp.JSONExtractScalar):
            first = first.this
        column = exp.JSONExtract(this=exp.column(node.expressions[0].copy()), expression=first.copy())
        if first is node.this:
            node.replace(column)
        else:
            first.replace(column)
            node.replace(node.this)


def name_columns(tree: exp.Expr) -> None:
    """Gives names to the columns of subqueries that have none, as PostgreSQL does, and columns to `EXISTS (SELECT FROM …)`."""
    for select in tree.find_all(exp.Select):
        if not select.expressions and isinstance(select.parent, exp.Exists):
            select.set("expressions", [exp.Literal.number(1)])
        if select is tree or not isinstance(select.parent, exp.Subquery | exp.CTE):
            continue
        for item in select.expressions:
            if isinstance(item, exp.Func | exp.Cast | exp.Dot) and (name := output_name(item)) not in (None, "?column?"):
                item.replace(exp.alias_(item.copy(), str(name), quoted=True))


def type_names(vector: exp.Expr) -> exp.Expr:
    """Returns the names of the types in an oidvector, with commas."""
    oid = exp.Cast(this=exp.column("o"), to=exp.DataType.build("BIGINT", dialect="duckdb"))
    name = exp.Lambda(this=call("pg_format_type_2", oid, exp.Null()), expressions=[exp.to_identifier("o")])
    return call("array_to_string", call("list_transform", vector, name), exp.Literal.string(", "))


def substring(node: exp.Substring) -> exp.Expr:
    """Rewrites substring with a pattern; leaves one with positions."""
    pattern = node.args.get("start")
    if isinstance(pattern, exp.Literal) and pattern.is_string:
        return call("pg_matched_part_2", node.this, pattern)
    return node


def time_pattern(node: exp.TimeToStr) -> exp.Expr:
    """Returns the pattern of to_char as it was written; sqlglot has translated it."""
    pattern = node.args["format"]
    if not isinstance(pattern, exp.Literal):
        assert isinstance(pattern, exp.Expr)
        return pattern
    written = format_time(pattern.name, Postgres.INVERSE_TIME_MAPPING, Postgres.INVERSE_TIME_TRIE)
    return exp.Literal.string(written or pattern.name)


def series(node: exp.GenerateSeries | exp.ExplodingGenerateSeries) -> exp.Expr:
    """Rewrites generate_series in a select list, which is a list in DuckDB; leaves one in FROM."""
    if node.meta.get(MADE) or isinstance(node.parent, exp.Table | exp.Unnest | exp.Lateral | exp.From):
        return node
    bounds = [node.args[key] for key in ("start", "end", "step") if node.args.get(key) is not None]
    return call("unnest", call("generate_series", *bounds))


def case(node: exp.Case) -> exp.Expr:
    """Rewrites the array literals of a CASE that has an access list in another branch."""
    branches = [(branch, "true") for branch in node.args["ifs"]] + ([(node, "default")] if node.args.get("default") is not None else [])
    results = [of.args[key] for of, key in branches]
    if any(isinstance(result, exp.Anonymous) and result.name.lower() == "acldefault" for result in results):
        for of, key in branches:
            if isinstance(literal := of.args[key], exp.Literal) and literal.is_string:
                of.set(key, exp.Cast(this=elements(literal.name), to=exp.DataType.build("VARCHAR[]", dialect="duckdb")))
    return node
