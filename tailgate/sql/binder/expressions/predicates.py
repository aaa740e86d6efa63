"""Binds operators and conditions: AND, OR, NOT, IS, BETWEEN, IN, LIKE, SIMILAR TO.

Source: PostgreSQL 15, src/backend/parser/{parse_expr,parse_oper}.c.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
)  # fmt: skip
from tailgate.lake.types import BOOL, UNKNOWN
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.expressions import rows, subqueries, syntax_calls
from tailgate.sql.binder.expressions.ctid_ranges import bind_range
from tailgate.sql.binder.types.coercion import coerce, common
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import (
    And,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Scalar,
)  # fmt: skip
from tailgate.sql.plan.rows import is_null, is_row
from tailgate.sql.plan.sort_keys import EQUAL_FORMS


def bind_and(binder: ExpressionBinder, node: exp.And) -> Scalar:
    sides = [binder.boolean(side, "AND") for side in (node.this, node.args["expression"])]
    return And(tuple(a for s in sides for a in (s.arguments if isinstance(s, And) else (s,))))


def bind_or(binder: ExpressionBinder, node: exp.Or) -> Scalar:
    sides = [binder.boolean(side, "OR") for side in (node.this, node.args["expression"])]
    return Or(tuple(a for s in sides for a in (s.arguments if isinstance(s, Or) else (s,))))


def bind_not(binder: ExpressionBinder, node: exp.Not) -> Scalar:
    if node.meta.get("word"):  # NOT LIKE, NOT IN and NOT BETWEEN are separate operators
        match node.this:
            case exp.Like() | exp.ILike():
                return bind_like(binder, node.this, "!", position(node))
            case exp.SimilarTo():
                return bind_similar(binder, node.this, None, position(node), "!")
            case exp.Escape():
                return bind_escape(binder, node.this, "!", position(node))
            case exp.Between():
                return bind_between(binder, node.this, position(node), negated=True)
            case exp.In():
                return bind_in(binder, node.this, position(node), negated=True)
    return Not(binder.boolean(node.this, "NOT"))


def bind_is(binder: ExpressionBinder, node: exp.Is) -> Scalar:
    test = node.args["expression"]
    if isinstance(test, exp.Null):
        if isinstance(node.this, exp.Tuple):
            return rows.bind_null(binder, node.this, negated=bool(node.meta.get("negated")))
        inner = binder.bind(node.this)
        if is_row(inner.type):
            return is_null(inner, negated=bool(node.meta.get("negated")))
        # IS NULL gives a parameter no type. If nothing else does, the result is 42P18.
        return IsNull(inner if isinstance(inner, Parameter) else binder.known(inner))
    if isinstance(test, exp.Boolean):
        word = f"IS{' NOT' if node.meta.get('negated') else ''} {'TRUE' if test.this else 'FALSE'}"
        return Not(IsDistinct(binder.boolean(node.this, word), Literal(bool(test.this), BOOL)))
    if test.name == "unknown":
        return IsNull(binder.boolean(node.this, f"IS{' NOT' if node.meta.get('negated') else ''} UNKNOWN"))
    raise FeatureNotSupported(f"IS {test.name.upper()} is not supported", position=position(node))


def bind_distinct(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    left, right = node.this, node.args["expression"]
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
        test = rows.bind_distinct(binder, left, right, position(node))
    else:
        test = binder.distinct([binder.bind(left), binder.bind(right)], position(node))
    return Not(test) if isinstance(node, exp.NullSafeEQ) else test


def bind_between(binder: ExpressionBinder, node: exp.Between, at: int | None = None, *, negated: bool = False) -> Scalar:
    at = position(node) if at is None else at
    if not negated and (pages := bind_range(binder, node)) is not None:
        return pages
    value, low = (binder.bind(node.args[k]) for k in ("this", "low"))

    def compare(sign: str, bound: Scalar) -> Scalar:
        return binder.operate(sign, [value, bound], at)

    def pair(first: Scalar, second: Scalar) -> Scalar:
        return Or((first, compare(">", second))) if negated else And((first, compare("<=", second)))

    sign = "<" if negated else ">="
    first = compare(sign, low)  # before the other bound, which may have the same parameter
    high = binder.bind(node.args["high"])
    if not node.args.get("symmetric"):
        return pair(first, high)
    both = pair(first, high), pair(compare(sign, high), low)
    return And(both) if negated else Or(both)


def bind_in(binder: ExpressionBinder, node: exp.In, at: int | None = None, *, negated: bool = False) -> Scalar:
    at = position(node) if at is None else at
    if node.args.get("query"):
        return subqueries.bind_in(binder, node, at, negated=negated)
    sign = "<>" if negated else "="
    if isinstance(node.this, exp.Tuple):
        return rows.bind_in(binder, node.this, node.expressions, at, negated=negated)
    value = binder.bind(node.this)
    items = [binder.bind(e) for e in node.expressions]
    if value.type.composite is not None and len(items) > 1:
        items = [coerce(item, value.type, binder.parameters) or item for item in items]
    if len(items) > 1 and (in_list := _in_list(binder, value, items)) is not None:
        return Not(in_list) if negated else in_list
    tests = tuple(binder.operate(sign, [value, i], at) for i in items)
    if len(tests) == 1:
        return tests[0]
    return And(tests) if negated else Or(tests)


def _in_list(binder: ExpressionBinder, value: Scalar, items: list[Scalar]) -> InList | None:
    """Returns IN as one node, or None if it must be a list of comparisons.

    The items must be literals of one type whose stored forms are equal if its values are.
    """
    if not all(isinstance(i, Literal) for i in items) or all(s.type == UNKNOWN for s in (value, *items)):
        return None
    try:
        type = common([value, *items], [None] * (len(items) + 1), "IN")
    except DatatypeMismatch:
        return None
    if type.general or type.name in EQUAL_FORMS | {"json", "record"} or type.is_array:
        return None
    casts = [coerce(s, type, binder.parameters) for s in (value, *items)]
    if None in casts:
        return None
    left, *rest = (m for m in casts if m is not None)
    return InList(left, tuple(rest))


def bind_like(binder: ExpressionBinder, node: exp.Expr, negation: str = "", at: int | None = None) -> Scalar:
    return bind_operator(binder, negation + ("~~*" if isinstance(node, exp.ILike) else "~~"), node, at)


def bind_similar(
    binder: ExpressionBinder, node: exp.Expr, escape: exp.Expr | None = None, at: int | None = None, negation: str = ""
) -> Scalar:
    return binder.operate(negation + "~", list(syntax_calls.escaped(binder, node, escape)), position(node) if at is None else at)


def bind_escape(binder: ExpressionBinder, node: exp.Escape, negation: str = "", at: int | None = None) -> Scalar:
    inner, character = node.this, node.args["expression"]
    if isinstance(inner, exp.SimilarTo):
        return bind_similar(binder, inner, character, at, negation)
    sign = negation + ("~~*" if isinstance(inner, exp.ILike) else "~~")
    return binder.operate(sign, list(syntax_calls.escaped(binder, inner, character)), position(inner) if at is None else at)


def bind_operator(binder: ExpressionBinder, sign: str, node: exp.Expr, at: int | None = None) -> Scalar:
    left, right = node.this, node.args["expression"]
    at = position(node) if at is None else at
    if isinstance(right, (exp.Any, exp.All)):
        bind = subqueries.bind_quantified if isinstance(right.this, exp.Subquery) else syntax_calls.bind_quantified
        return bind(binder, sign, left, right, at)
    if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
        return rows.bind_comparison(binder, sign, left, right, at)
    return binder.operate(sign, [binder.bind(left), binder.bind(right)], at)
