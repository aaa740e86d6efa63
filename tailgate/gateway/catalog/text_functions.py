"""Rewrites functions of texts and vectors in a catalog query that DuckDB has in another form, or lacks.

substring(x FROM 'n=([0-9]*)')   → the group of the first match, or NULL
oidvectortypes(proargtypes)      → the names of the types, with commas
bpchar(x), text(x), int4(x)      → casts
generate_series(1, 3) in SELECT  → its rows
CASE … acldefault(…) ELSE '{}'   → an array without elements
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.gateway.catalog.trees import MADE, call, elements

CASTS = {
    **dict.fromkeys(("bpchar", "text", "varchar", "name"), "VARCHAR"),
    "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "oid": "UINTEGER", "bool": "BOOLEAN",
}  # fmt: skip


def cast_call(name: str, arguments: list[exp.Expr]) -> exp.Expr | None:
    """Returns the cast that a call of a type's name stands for, or None."""
    if len(arguments) != 1 or name not in CASTS:
        return None
    return exp.Cast(this=arguments[0], to=exp.DataType.build(CASTS[name], dialect="duckdb"))


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
