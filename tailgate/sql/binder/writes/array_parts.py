"""Assignments to elements and slices of array columns, and to parts of jsonb columns.

    UPDATE … SET a[1] = value, INSERT INTO t (a[1:2]), UPDATE … SET j['key'][0] = value

Source: PostgreSQL 15, src/backend/parser/parse_target.c (transformAssignmentSubscripts); src/backend/utils/adt/arrayfuncs.c
(array_set_element, array_set_slice), jsonbsubs.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from sqlglot import exp

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported
from tailgate.lake.types import INT4, JSONB, Field, Type
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.expressions.syntax_calls import jsonb_subscript, whole_subscript
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.types.coercion import bare_type, coerce
from tailgate.sql.binder.types.overloads import fixed
from tailgate.sql.binder.writes.targets import assigned, without_modifiers
from tailgate.sql.functions.entry import Function, duckdb_error
from tailgate.sql.functions.multidimensional.templates import DUCKDB
from tailgate.sql.plan import Call, Literal, Scalar
from tailgate.sql.statements.writes import Expression
from tailgate.values.composites import dimensions
from tailgate.values.composites.arrays import MULTIDIMENSIONAL, MULTIDIMENSIONAL_HINT

ASSIGNING = ("[] =", "[:] =")  # names of the functions that replace a part
ARRAY = "coalesce({0}, CAST([] AS {type}))"
IS_EMPTY = f"len({ARRAY}) = 0"
NULL_SUBSCRIPT = duckdb_error("22004", "array subscript in assignment must not be null")
OTHER_BOUND = duckdb_error("0A000", MULTIDIMENSIONAL)
MISSING_BOUND = duckdb_error("2202E", "array slice subscript must provide both boundaries")
WRONG_NUMBER = duckdb_error("2202E", "wrong number of array subscripts")
TOO_LARGE = duckdb_error("54000", f"array size exceeds the maximum allowed ({dimensions.ASSIGNED_MAX})")


def with_element(
    column: Field, before: Scalar, path: Sequence[Expression], bind: Callable[[Type], Scalar], binder: Expressions, at: int | None
) -> Scalar:
    """Returns the array or jsonb `before` with a value in place of the element or slice with these subscripts.

    `bind`: binds the value, which will be cast to a type. Raises 42804, and 0A000 for several subscripts.
    """
    type = column.type
    is_jsonb = type.name == "jsonb" and not type.is_array
    if not type.is_array and not is_jsonb:
        raise DatatypeMismatch(f"cannot subscript type {bare_type(type)} because it does not support subscripting", position=at)
    if len(path) > 1 and not type.multidimensional and not is_jsonb:
        raise FeatureNotSupported(MULTIDIMENSIONAL, hint=MULTIDIMENSIONAL_HINT, position=at)
    subscripts = [subscript.tree for subscript in path]
    subscript = subscripts[0]
    type = without_modifiers(type)
    part = type if is_jsonb or any(isinstance(s, exp.Slice) for s in subscripts) else type.element
    value = bind(part)
    new = coerce(value, part, binder.parameters, "assignment", at)
    if new is None:
        shown = f"{bare_type(type.element)}{'[]' * part.is_array}"
        raise DatatypeMismatch(
            f'subscripted assignment to "{column.name}" requires type {shown} but expression is of type {bare_type(value.type)}',
            hint="You will need to rewrite or cast the expression.",
            position=at,
        )
    if is_jsonb:
        return assigned(column, _with_jsonb(before, subscripts, new, binder), binder.parameters, at)
    new = new if type.general else fixed(new, part)
    if type.multidimensional:
        return assigned(column, _with_dimensions(before, subscripts, new, binder), binder.parameters, at)
    if isinstance(subscript, exp.Slice):
        low, high = subscript.this, subscript.args.get("expression")
        bounds = (Literal(1, INT4) if bound is None else whole_subscript(binder, bound) for bound in (low, high))
        whole = Call(_slice(low is not None, high is not None), (before, *bounds, new), type)
    else:
        whole = Call(ELEMENT, (before, whole_subscript(binder, subscript), new), type)
    return assigned(column, whole, binder.parameters, at)


def _with_jsonb(before: Scalar, subscripts: list[exp.Expr], new: Scalar, binder: Expressions) -> Scalar:
    """Returns a jsonb with a value at a path. Raises 42804."""
    for subscript in subscripts:
        if isinstance(subscript, exp.Slice):
            bound = subscript.args.get("expression") or subscript.this
            raise DatatypeMismatch("jsonb subscript does not support slices", position=None if bound is None else leftmost(bound))
    steps = [jsonb_subscript(binder, subscript) for subscript in subscripts]
    empty = Literal("[]" if steps[0][1] else "{}", JSONB)
    return Call(_jsonb_element(len(steps)), (before, empty, new, *(step for step, _ in steps)), JSONB)


@cache
def _jsonb_element(count: int) -> Function:
    """Returns the function that assigns to a part of a jsonb. Arguments: the jsonb, one in place of NULL, the new part, the path."""
    path = ", ".join(f"{{{n}}}" for n in range(3, 3 + count))
    old, new = (f"coalesce({{{n}}} || '', {other})" for n, other in ((0, "{1}"), (2, "'null'")))  # copies, as in `render.dialects`
    duckdb = f"tg_jsonb_assigned({old}, [{path}], {new})"
    return Function("[] =", ("jsonb", "jsonb", "jsonb", *("text",) * count), "jsonb", duckdb=duckdb, strict=False)


def _with_dimensions(before: Scalar, subscripts: list[exp.Expr], new: Scalar, binder: Expressions) -> Scalar:
    """Returns a multidimensional array with a value in place of an element or slice. A subscript next to a slice is a slice from 1."""
    is_slice = new.type.is_array
    lows: list[Scalar] = []
    highs: list[Scalar] = []
    for subscript in subscripts:
        bounds = (subscript.this, subscript.args.get("expression")) if isinstance(subscript, exp.Slice) else (None, subscript)
        low, high = (None if bound is None else whole_subscript(binder, bound) for bound in bounds)
        highs.append(high or Literal(dimensions.LAST, INT4))
        lows.append(low or (Literal(dimensions.FIRST if isinstance(subscript, exp.Slice) else 1, INT4) if is_slice else highs[-1]))
    return Call(_replacement(len(subscripts), is_slice=is_slice), (before, new, *lows, *highs), before.type)


def _replaced(first: str, last: str, new: str) -> str:
    """Returns SQL for the array with new elements from one position to another; NULLs fill a gap before them."""
    before = f"list_resize({ARRAY}[1:{first} - 1], {first} - 1)"
    return f"list_concat(list_concat({before}, {new}), {ARRAY}[{last} + 1:])"


ELEMENT = Function(
    "[] =",
    ("anyarray", "int4", "anyelement"),
    "anyarray",
    duckdb=f"(CASE WHEN {{1}} IS NULL THEN {NULL_SUBSCRIPT} WHEN {{1}} < 1 OR ({{1}} > 1 AND {IS_EMPTY}) THEN {OTHER_BOUND}"
    f" WHEN {{1}} > {dimensions.ASSIGNED_MAX} THEN {TOO_LARGE} ELSE {_replaced('{1}', '{1}', 'CAST([{2}] AS {type})')} END)",
    strict=False,
)


@cache
def _replacement(count: int, *, is_slice: bool) -> Function:
    """Returns the function that assigns to an element or slice of a multidimensional array. The last arguments are the bounds."""
    bounds = [f"{{{n}}}" for n in range(2, 2 + 2 * count)]
    lows, highs = (f"[{', '.join(part)}]" for part in (bounds[:count], bounds[count:]))
    old = f"coalesce({DUCKDB.dimensions('{0}')}, [0])"
    new = DUCKDB.elements("{1}") if is_slice else "[{1}]"
    wrong = f"WHEN {old}[1] NOT IN (0, {count}) THEN {WRONG_NUMBER} " if not is_slice else "WHEN {1} IS NULL THEN {0} "
    shape, sources = (f"tg_dimensions_{name}({old}, {lows}, {highs})" for name in ("assigned", "sources"))
    element = f"CASE WHEN tg_n > 0 THEN CAST({DUCKDB.elements('{0}')}[tg_n] AS {{element}})"
    element += f" WHEN tg_n < 0 THEN CAST({new}[- tg_n] AS {{element}}) END"
    small = f"WHEN len({new}) < - list_min(tg_s) THEN {duckdb_error('2202E', 'source array too small')} " if is_slice else ""
    whole = f"{{'elements': list_transform(tg_s, lambda tg_n: {element}), 'dimensions': {shape}}}"
    limited = f"CASE {small}ELSE {whole} END" if small else whole
    return Function(
        ASSIGNING[is_slice],
        ("anyarray", "anyarray" if is_slice else "anyelement", *("int4",) * (2 * count)),
        "anyarray",
        duckdb=f"CAST((CASE WHEN {' OR '.join(f'{b} IS NULL' for b in bounds)} THEN {NULL_SUBSCRIPT} {wrong}"
        f"ELSE list_transform([{sources}], lambda tg_s: {limited})[1] END) AS {{type}})",
        strict=False,
    )


def _slice(has_low: bool, has_high: bool) -> Function:
    """Returns the function that assigns to a slice. A bound that is not given is that of the array."""
    low, high = "{1}" if has_low else "1", "{2}" if has_high else f"len({ARRAY})"
    both = (
        ""
        if has_low and has_high
        else f" WHEN {IS_EMPTY} THEN {duckdb_error('2202E', 'array slice subscript must provide both boundaries')}"
    )
    return Function(
        "[:] =",
        ("anyarray", "int4", "int4", "anyarray"),
        "anyarray",
        duckdb=f"(CASE WHEN {{1}} IS NULL OR {{2}} IS NULL THEN {NULL_SUBSCRIPT} WHEN {{3}} IS NULL THEN {ARRAY}{both}"
        f" WHEN {low} > {high} THEN {duckdb_error('2202E', 'upper bound cannot be less than lower bound')}"
        f" WHEN {low} < 1 OR ({low} > 1 AND {IS_EMPTY}) THEN {OTHER_BOUND} WHEN {high} > {dimensions.ASSIGNED_MAX} THEN {TOO_LARGE}"
        f" WHEN len({{3}}) < {high} - {low} + 1 THEN {duckdb_error('2202E', 'source array too small')}"
        f" ELSE {_replaced(low, high, f'{{3}}[1:{high} - {low} + 1]')} END)",
        strict=False,
    )
