"""PostgreSQL's names for the columns of a catalog query without AS."""

from __future__ import annotations

from sqlglot import exp

from tailgate.gateway.catalog.trees import folded, type_name

WRITTEN = "written"  # the key of a function's name, as the query has it, in the `meta` of its node

# The names of functions that sqlglot parses by special rules.
SYNTAX: dict[type[exp.Expr], str] = {
    exp.GroupConcat: "string_agg", exp.Explode: "unnest", exp.CurrentVersion: "version", exp.StrPosition: "position",
}  # fmt: skip


def output_name(item: exp.Expr) -> str | None:
    """Returns PostgreSQL's name for an output column; None for a star."""
    if isinstance(item, exp.Func) and WRITTEN in item.meta:
        return str(item.meta[WRITTEN]).lower()
    match item:
        case exp.Star():
            return None
        case exp.Column():
            return None if isinstance(item.this, exp.Star) else folded(item.this)
        case exp.Alias():
            return folded(item.args["alias"])
        case exp.Paren() | exp.Collate() | exp.Bracket():
            return output_name(item.this)
        case exp.Cast():
            base = item.this
            while isinstance(base, (exp.Cast, exp.Paren)):
                base = base.this
            inner = output_name(base)
            return type_name(item.to).strip('"').removesuffix("[]") if inner == "?column?" else inner
        case exp.Dot():
            return output_name(item.expression) if isinstance(item.this, exp.Identifier) else item.expression.name
        case exp.Anonymous():
            return item.name.lower()
        case exp.Case():
            inner = output_name(item.args["default"]) if item.args.get("default") is not None else "?column?"
            return "case" if inner == "?column?" else inner
        case exp.Subquery():
            query = item.unnest()
            assert isinstance(query, exp.Query)
            return output_name(query.selects[0])
        case exp.Array():
            return "array"
        case exp.Pad():
            return "lpad" if item.args.get("is_left") else "rpad"
        case exp.Window() | exp.Filter() | exp.WithinGroup():
            return output_name(item.this)
        case (
            exp.CurrentCatalog()
            | exp.CurrentUser()
            | exp.SessionUser()
            | exp.CurrentSchema()
            | exp.CurrentDatabase()
            | exp.CurrentSchemas()
        ):
            return item.sql("postgres").lower().split("(")[0]
        case exp.Trim():
            return {"TRAILING": "rtrim", "LEADING": "ltrim"}.get(str(item.args.get("position") or "").upper(), "btrim")
        case exp.Exists():
            return "exists"
        case exp.Predicate() | exp.Connector() | exp.Not() | exp.JSONExtract() | exp.JSONExtractScalar():
            return "?column?"
        case exp.Func():
            return SYNTAX.get(type(item)) or item.sql_name().lower()
        case _:
            return "?column?"
