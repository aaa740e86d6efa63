"""Rewrites the outer joins of a catalog query that DuckDB lacks.

a LEFT JOIN b ON x = (SELECT …)  →  a LEFT JOIN LATERAL (SELECT b.* FROM b WHERE x = (SELECT …)) AS b ON TRUE
"""

from __future__ import annotations

from sqlglot import exp


def move_conditions(tree: exp.Expr) -> None:
    """Moves conditions with subqueries into the joined relations."""
    for join in list(tree.find_all(exp.Join)):
        condition, table = join.args.get("on"), join.this
        if join.side != "LEFT" or condition is None or not isinstance(table, exp.Table) or not table.alias_or_name:
            continue
        if condition.find(exp.Subquery, exp.Exists, exp.Select) is None:
            continue
        name, columns = exp.to_identifier(table.alias_or_name), table.args.get("alias")
        if isinstance(columns, exp.TableAlias) and columns.columns:
            continue
        star = exp.Column(this=exp.Star(), table=name.copy())
        rows = exp.Select(expressions=[star]).from_(table.copy(), copy=False).where(condition.copy(), copy=False)
        join.set("this", exp.Lateral(this=exp.Subquery(this=rows), alias=exp.TableAlias(this=name)))
        join.set("on", exp.true())
