"""Calls: functions, aggregates, casts written as functions, and COALESCE and its like.

Source: PostgreSQL 15, src/backend/parser/parse_func.c, parse_agg.c.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lake.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    GroupingError,
    InvalidParameterValue,
    TailgateError,
    UndefinedFunction,
    WrongObjectType,
)  # fmt: skip
from lake.types import FACTS, TEXT, UNKNOWN, Type
from sql.binding.coercion import cast, check_comparable, coerce, plain
from sql.binding.grouping import has_aggregates, placeholder
from sql.binding.places import aggregate_place, leftmost
from sql.binding.resolution import arguments, function, result
from sql.functions import catalogue
from sql.functions.datetime import SPELLINGS
from sql.functions.entry import Function
from sql.grammar.names import position
from sql.plan import AggregateCall, Call, Case, Coalesce, Extreme, Literal, Not, Scalar

if TYPE_CHECKING:
    from sql.binding.expressions import Expressions

NO_MATCH = "No function matches the given name and argument types. You might need to add explicit type casts."
SCHEMAS = ("pg_catalog", "public")  # of functions


def bind_call(binder: Expressions, node: exp.Anonymous) -> Scalar:
    name, nodes, at = str(node.this), list(node.expressions), position(node)
    schema = node.meta.get("schema")
    if schema is not None and schema not in SCHEMAS:
        raise UndefinedFunction(f"function {schema}.{name} does not exist", position=at)
    if name in ("coalesce", "greatest", "least"):
        return _coalesce(binder, name, nodes)
    if name == "nullif":
        return _nullif(binder, nodes, at)
    if name in ("+", "~", "@", "|/", "||/", "!!") and len(nodes) == 1:
        return binder.prefix(name, nodes[0], at)
    if len(nodes) == 1 and isinstance(nodes[0], exp.Distinct):
        return _aggregate(binder, name, nodes[0].expressions, at, distinct=True)
    if nodes and isinstance(nodes[-1], exp.Order):
        raise FeatureNotSupported(f"ORDER BY in the arguments of {name} is not supported", position=at)
    for argument in nodes:
        if isinstance(argument, (exp.Kwarg, exp.Variadic)):
            raise FeatureNotSupported("named and VARIADIC arguments are not supported", position=position(argument))
    if name in catalogue.UNITS:
        return _with_unit(binder, name, nodes, at)
    rows = catalogue.calls(name)
    if any(r.kind == "aggregate" for r in rows):
        return _aggregate(binder, name, nodes, at)
    if any(isinstance(n, exp.Star) for n in nodes):
        function(name, (), at)
        raise WrongObjectType(f"{name}(*) specified, but {name} is not an aggregate function", position=at)
    given = [binder.bind(n) for n in nodes]
    if not rows and len(given) == 1 and (type := _type_of(name)) is not None:
        # a type's name as a function is a cast, where such a cast exists
        return cast(given[0], type, binder.parameters, at)
    if name in ("concat", "concat_ws"):
        given = [_printed(binder, g, n) for g, n in zip(given, nodes, strict=True)]
    found = function(name, tuple(s.type for s in given), at)
    if found.kind == "set":
        raise FeatureNotSupported(
            f"set-returning functions are not supported in {binder.clause}",
            hint=f"Put it into FROM, as in FROM t, {name}(t.x).",
            position=at,
        )
    _check_volatility(binder, found, at)
    return binder.call(found, given, at)


def _printed(binder: Expressions, scalar: Scalar, node: exp.Expr) -> Scalar:
    """An argument of concat as text."""
    if scalar.type.name == "bool":
        t, f, none = (Literal(v, TEXT) for v in ("t", "f", None))
        return Case(((scalar, t), (Not(scalar), f)), none, TEXT)
    found = coerce(scalar, TEXT, binder.parameters, "assignment", leftmost(node))
    if found is None:
        raise FeatureNotSupported(f"concat of type {scalar.type} is not supported", position=leftmost(node))
    return found


def _check_volatility(binder: Expressions, found: Function, at: int | None) -> None:
    if found.volatility == "volatile" and binder.view:
        raise FeatureNotSupported(
            f"{found.name} in a view is not supported", hint="A view's rows must not change by themselves.", position=at
        )


def _with_unit(binder: Expressions, name: str, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """date_trunc('hour', x), extract(hour FROM x): the unit says which row; encode(x, 'hex') has it behind."""
    index = 1 if name in ("encode", "decode") else 0
    given = [binder.bind(n) for n in nodes]
    if len(given) != 2:
        raise UndefinedFunction(
            f"function {name}({', '.join(str(plain(g.type)) for g in given)}) does not exist",
            hint=NO_MATCH,
            position=at,
        )
    unit = given[index]
    if not isinstance(unit, Literal) or not isinstance(unit.value, str):
        raise FeatureNotSupported(f"{name} with a unit that is no literal is not supported", position=at)
    value = given[1 - index]
    if value.type == UNKNOWN and index == 0:
        raise _ambiguous(name, at)
    if index == 0 and value.type.facts.category not in "DT":
        shown = "pg_catalog.extract" if name == "extract" else name
        raise UndefinedFunction(f"function {shown}(unknown, {plain(value.type)}) does not exist", hint=NO_MATCH, position=at)
    word = unit.value.lower()
    canonical = SPELLINGS.get(word, word)
    rows = catalogue.calls(f"{name}:{canonical}")
    if name == "date_trunc" and value.type.name == "date":
        value = cast(value, Type("timestamptz"), binder.parameters, at)
    if rows and value.type.name in ("date", "timestamp", "timestamptz", "bytea", "text"):
        return binder.call(function(f"{name}:{canonical}", (value.type,), at), [value], at)
    if value.type.name not in ("date", "timestamp", "timestamptz"):
        raise FeatureNotSupported(f"{name} of type {plain(value.type)} is not supported", position=at)
    if canonical in SPELLINGS.values() and not rows:
        raise FeatureNotSupported(f"unit {unit.value} of {name} is not supported", position=at)
    if index == 1:
        raise InvalidParameterValue(f'unrecognized encoding: "{unit.value}"')
    known = "not supported" if canonical in SPELLINGS.values() else "not recognized"
    if known == "not supported":
        raise FeatureNotSupported(f'unit "{unit.value}" not supported for type {plain(value.type)}')
    raise InvalidParameterValue(f'unit "{unit.value}" not recognized for type {plain(value.type)}')


def _ambiguous(name: str, at: int | None) -> TailgateError:
    return AmbiguousFunction(
        f"function {name}(unknown, unknown) is not unique",
        hint="Could not choose a best candidate function. You might need to add explicit type casts.",
        position=at,
    )


def _aggregate(
    binder: Expressions, name: str, nodes: list[exp.Expr], at: int | None, *, distinct: bool = False, where: exp.Expr | None = None
) -> Scalar:
    rows = catalogue.calls(name)
    if distinct and rows and not any(r.kind == "aggregate" for r in rows):
        raise WrongObjectType(f"DISTINCT specified, but {name} is not an aggregate function", position=at)
    if not binder.aggregates:
        raise GroupingError(f"aggregate functions are not allowed in {binder.clause}", position=at)
    star = len(nodes) == 1 and isinstance(nodes[0], exp.Star)
    if not nodes and name == "count":
        raise WrongObjectType("count(*) must be used to call a parameterless aggregate function", position=at)
    given = [] if star else [binder.bind(n) for n in nodes]
    found = function(name, tuple(s.type for s in given), at)
    made = tuple(binder.known(a) for a in arguments(found, given, binder.parameters))
    if any(has_aggregates(a) for a in made):
        inner = next(p for p in map(aggregate_place, nodes) if p is not None)
        raise GroupingError("aggregate function calls cannot be nested", position=inner)
    if distinct:
        for argument in made:
            check_comparable(argument.type, "DISTINCT", at)
    condition = None
    if where is not None:
        condition = replace(binder, clause="FILTER", aggregates=False).boolean(where, "FILTER")
    return placeholder(AggregateCall(found, made, result(found, made), distinct, condition, position=at))


def bind_filtered(binder: Expressions, node: exp.Filter) -> Scalar:
    inner = node.this
    if not isinstance(inner, exp.Anonymous):
        raise FeatureNotSupported("FILTER of an ordered-set aggregate is not supported", position=position(node))
    name, at = str(inner.this), position(inner)
    if not any(r.kind == "aggregate" for r in catalogue.calls(name)):
        raise WrongObjectType(f"FILTER specified, but {name} is not an aggregate function", position=at)
    nodes, distinct = list(inner.expressions), False
    if len(nodes) == 1 and isinstance(nodes[0], exp.Distinct):
        nodes, distinct = nodes[0].expressions, True
    return _aggregate(binder, name, nodes, at, distinct=distinct, where=node.args["expression"].this)


def _coalesce(binder: Expressions, name: str, nodes: list[exp.Expr]) -> Scalar:
    made, type = binder.unify(nodes, [binder.bind(n) for n in nodes], name.upper())
    if name == "coalesce":
        return made[0] if len(made) == 1 else Coalesce(made, type)
    if type.name in ("jsonb", "interval") or type.is_array:
        raise FeatureNotSupported(f"{name.upper()} of type {type} is not supported", position=leftmost(nodes[0]))
    return Extreme("greatest" if name == "greatest" else "least", made, type)


def _nullif(binder: Expressions, nodes: list[exp.Expr], at: int | None) -> Scalar:
    given = [binder.bind(n) for n in nodes]
    equal = binder.operate("=", given, at)
    assert isinstance(equal, Call)
    value = binder.known(given[0])
    return Case(((equal, Literal(None, value.type)),), value, value.type)


def _type_of(name: str) -> Type | None:
    return Type(name) if name in FACTS and name not in ("record", "unknown") else None
