"""Maps operator symbols to sqlglot's nodes. An operator without a specific node is an exp.Operator."""

from __future__ import annotations

from sqlglot import exp

from tailgate.sql.grammar.names import place

COMPARISONS = ("<", ">", "=", "<=", ">=", "<>")
NODES: dict[str, type[exp.Binary]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "%": exp.Mod, "^": exp.Pow,
    "||": exp.DPipe,
}  # fmt: skip
SIGNS: dict[type[exp.Expr], str] = {**{node: sign for sign, node in NODES.items()}, exp.Like: "~~", exp.ILike: "~~*"}


def binary(sign: str, left: exp.Expr, right: exp.Expr, position: int) -> exp.Expr:
    """Returns the node of a binary operator. `position` is that of the operator."""
    node = NODES.get(sign)
    if node is not None:
        return place(node(this=left, expression=right), position)
    return place(exp.Operator(this=left, operator=exp.Var(this=sign), expression=right), position)


def sign_of(node: exp.Expr) -> str | None:
    """Returns the symbol of a binary operator, or None if the node is not a binary operator."""
    if isinstance(node, exp.Operator):
        return str(node.args["operator"].name)
    return SIGNS.get(type(node))
