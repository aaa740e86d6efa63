"""Syntax that PostgreSQL's parser turns into calls.

These are subscripts, ANY and ALL of arrays, OVERLAPS, AT TIME ZONE, SIMILAR TO and ESCAPE.

Source: PostgreSQL 15, src/backend/parser/{gram.y,parse_expr.c}.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, SyntaxError_, UndefinedFunction, WrongObjectType
from tailgate.lake.types import BOOL, INT4, TEXT, UNKNOWN, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.types.coercion import bare_type, catalogue_name, coerce
from tailgate.sql.binder.types.dimensions import elements_of, with_dimensions
from tailgate.sql.binder.types.overloads import NO_MATCH, function, operator
from tailgate.sql.compute.text.strings import like_escape, similar_to
from tailgate.sql.functions import arrays, catalogue
from tailgate.sql.functions.multidimensional import templates
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import And, Call, GreatestLeast, Literal, Or, Scalar
from tailgate.values.composites import dimensions

# --- arrays ----------------------------------------------------------------------------------------------------------------------


def bind_subscript(binder: ExpressionBinder, node: exp.Bracket) -> Scalar:
    """Binds the subscripts of an array, the subscript of jsonb, or the slices of an array.

    Raises 42804, 54000, 0A000.
    """
    at = position(node)
    whole, indexes = _subscripts(node)
    array = binder.typed(whole)
    if array.type.is_array:
        return _part(binder, array, indexes, at)
    value = binder.typed(node.this) if node.this is not whole else array
    (index,) = node.expressions
    if value.type.name == "jsonb":
        if isinstance(index, exp.Slice):
            raise DatatypeMismatch("jsonb subscript does not support slices", position=at)
        path = Call(catalogue.calls("ARRAY")[0], (jsonb_subscript(binder, index)[0],), TEXT.array())
        return binder.operate("#>", [value, path], at)
    message = f"cannot subscript type {bare_type(value.type)} because it does not support subscripting"
    raise DatatypeMismatch(message, position=leftmost(node.this))


def _subscripts(node: exp.Bracket) -> tuple[exp.Expr, list[exp.Expr]]:
    """Returns the expression before all subscripts, and the subscripts."""
    indexes: list[exp.Expr] = []
    whole: exp.Expr = node
    while isinstance(whole, exp.Bracket):
        indexes.insert(0, whole.expressions[0])
        whole = whole.this
    return whole, indexes


def _part(binder: ExpressionBinder, array: Scalar, indexes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds an element of an array, or a slice if any of the subscripts is one."""
    if len(indexes) > dimensions.DIMENSIONS_MAX:
        raise dimensions.too_many(len(indexes))
    if len(indexes) > 1:
        array = with_dimensions(array)
    if not any(isinstance(index, exp.Slice) for index in indexes):
        subscripts = [whole_subscript(binder, index) for index in indexes]
        if isinstance(array, Literal) and array.value is None:
            return Literal(None, array.type.element, at)
        if array.type.multidimensional:
            return Call(templates.subscript(len(indexes)), (array, *subscripts), array.type.element, at)
        return binder.call(function("[]", (array.type, INT4), at), [array, *subscripts], at)
    # next to a slice, a subscript is the upper bound of a slice from 1
    one = exp.Literal.number(1)
    bounds = [(i.this, i.args.get("expression")) if isinstance(i, exp.Slice) else (one, i) for i in indexes]
    first = dimensions.FIRST if array.type.multidimensional else 1
    lows = [Literal(first, INT4) if low is None else whole_subscript(binder, low) for low, _ in bounds]
    highs = [Literal(dimensions.LAST, INT4) if high is None else whole_subscript(binder, high) for _, high in bounds]
    if array.type.multidimensional:
        return Call(templates.slices(len(indexes)), (array, *lows, *highs), array.type, at)
    return binder.call(function("[:]", (array.type, INT4, INT4), at), [array, *lows, *highs], at)


def jsonb_subscript(binder: ExpressionBinder, node: exp.Expr) -> tuple[Scalar, bool]:
    """Binds a subscript of jsonb as text. Returns it, and whether it is an integer. Raises 42804."""
    index = binder.bind(node)
    if index.type != UNKNOWN:
        fitting = [cast for target in (INT4, TEXT) if (cast := coerce(index, target, binder.parameters)) is not None]
        if len(fitting) != 1:
            choice = "only one type, integer or text" if fitting else "either integer or text"
            raise DatatypeMismatch(
                f"subscript type {bare_type(index.type)} is not supported",
                hint=f"jsonb subscript must be coercible to {choice}.",
                position=leftmost(node),
            )
        (index,) = fitting
    key = coerce(index, TEXT, binder.parameters, "explicit")
    assert key is not None
    return key, index.type == INT4


def whole_subscript(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    """Binds a subscript of an array as an integer. Raises 42804."""
    index = coerce(binder.bind(node), INT4, binder.parameters, "assignment", position(node))
    if index is None:
        raise DatatypeMismatch("array subscript must have type integer", position=leftmost(node))
    return index


def bind_quantified(binder: ExpressionBinder, sign: str, left: exp.Expr, right: exp.Any | exp.All, at: int | None) -> Scalar:
    """Binds x op ANY (array) and x op ALL (array). Raises 42809, 0A000."""
    every = isinstance(right, exp.All)
    value, array = binder.bind(left), binder.bind(right.this)
    if array.type == UNKNOWN:
        element = TEXT if value.type == UNKNOWN else bare_type(value.type)
        cast = coerce(array, element.array(), binder.parameters)
        assert cast is not None
        array = cast
    if not array.type.is_array:
        raise WrongObjectType("op ANY/ALL (array) requires array on right side", position=at)
    array = elements_of(array)
    row = operator(sign, (value.type, array.type.element), at)
    if catalogue_name(array.type.element) != row.arguments[1]:
        target = coerce(array, replace(array.type, name=row.arguments[1], modifiers=()), binder.parameters)
        if target is None:
            raise FeatureNotSupported(f"{sign} {type(right).__name__.upper()} of type {array.type} is not supported", position=at)
        array = target
    probe = binder.call(row, [value, Literal(None, array.type.element)], at)
    assert isinstance(probe, Call)
    operand = probe.arguments[0]
    if array.type.name == "numeric" and probe.arguments[1].type.array() != array.type:
        widened = coerce(array, probe.arguments[1].type.array(), binder.parameters, "explicit")
        assert widened is not None
        array = widened
    if row.result != "bool":
        raise WrongObjectType("op ANY/ALL (array) requires operator to yield boolean", position=at)
    types = catalogue_name(operand.type), catalogue_name(array.type)
    return Call(arrays.quantified(probe.function, every, types), (operand, array), BOOL, at)


# --- OVERLAPS -----------------------------------------------------------------------------------------------------------------------


def bind_overlaps(binder: ExpressionBinder, node: exp.Overlaps) -> Scalar:
    """Binds (begin, end or length) OVERLAPS (begin, end or length).

    Periods are half-open; a point is a period.
    """
    at = position(node)
    operands: list[Scalar] = []
    for side, name in ((node.this, "left"), (node.args["expression"], "right")):
        if not isinstance(side, exp.Tuple) or len(side.expressions) != 2:
            raise SyntaxError_(f"wrong number of parameters on {name} side of OVERLAPS expression", position=at)
        operands += (binder.typed(e) for e in side.expressions)
    ends: list[list[Scalar]] = []
    for begin, end in (operands[:2], operands[2:]):
        if begin.type.facts.category != "D" or (begin.type.name, end.type.name) == ("timetz", "interval"):
            shown = ", ".join(str(bare_type(value.type)) for value in operands)
            raise UndefinedFunction(f"function pg_catalog.overlaps({shown}) does not exist", hint=NO_MATCH, position=at)
        ends.append([begin, binder.operate("+", [begin, end], at) if end.type.name == "interval" else end])

    def less(a: Scalar, b: Scalar) -> Scalar:
        return binder.operate("<", [a, b], at)

    def ordered(pair: list[Scalar]) -> tuple[Scalar, Scalar]:
        """Returns the earlier and the later end. If one end is NULL, both are the other end."""
        ends_of_type, _ = _unified(binder, pair)
        return GreatestLeast("least", ends_of_type, ends_of_type[0].type), GreatestLeast("greatest", ends_of_type, ends_of_type[0].type)

    (s1, e1), (s2, e2) = ordered(ends[0]), ordered(ends[1])
    ends_of_type, _ = _unified(binder, [s1, e1, s2, e2])
    s1, e1, s2, e2 = ends_of_type
    for scalar in (*ends[0], *ends[1]):
        if isinstance(scalar, Literal) and scalar.value is None:
            raise FeatureNotSupported("OVERLAPS with NULL is not supported", position=at)
    same_begin = binder.operate("=", [s1, s2], at)
    later, earlier = And((less(s2, s1), less(s1, e2))), And((less(s1, s2), less(s2, e1)))
    return Or((same_begin, later, earlier))


def _unified(binder: ExpressionBinder, scalars: list[Scalar]) -> tuple[tuple[Scalar, ...], Type]:
    """Casts scalars to their common type, which is returned, too."""
    return binder.unify([exp.Null()] * len(scalars), scalars, "OVERLAPS")


# --- AT TIME ZONE, LIKE, SIMILAR TO ----------------------------------------------------------------------------------------------


def bind_zone(binder: ExpressionBinder, node: exp.AtTimeZone) -> Scalar:
    """Binds AT TIME ZONE, a call of timezone(zone, value)."""
    zone, value, at = binder.bind(node.args["zone"]), binder.bind(node.this), position(node)
    operands = [zone, value]
    return binder.call(function("timezone", tuple(s.type for s in operands), at), operands, at)


def escaped(binder: ExpressionBinder, like: exp.Expr, escape: exp.Expr | None) -> tuple[Scalar, Scalar]:
    """Returns both sides of LIKE or SIMILAR TO.

    The pattern of LIKE is rewritten so that its escape character is the backslash. That of SIMILAR
    TO becomes a regular expression.
    """
    pattern_node = like.args["expression"]
    pattern = binder.bind(pattern_node)
    character = binder.bind(escape) if escape is not None else None
    similar = isinstance(like, exp.SimilarTo)
    if character is None and not similar:
        return binder.bind(like.this), pattern
    operands = [pattern, character or Literal("\\", TEXT)]
    if all(isinstance(g, Literal) and isinstance(g.value, str) for g in operands):
        texts = [str(g.value) for g in operands if isinstance(g, Literal)]
        regex: Scalar = Literal(similar_to(*texts) if similar else like_escape(*texts), TEXT, position(pattern_node))
    else:
        name = "similar_to_escape" if similar else "like_escape"
        regex = binder.call(function(name, tuple(g.type for g in operands), position(like)), operands, position(like))
    return binder.bind(like.this), regex
