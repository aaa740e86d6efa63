"""Calls: functions, aggregates, casts written as functions, and COALESCE and its like.

Source: PostgreSQL 15, src/backend/parser/parse_func.c, parse_agg.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lake.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    InvalidParameterValue,
    TailgateError,
    UndefinedFunction,
    WrongObjectType,
)  # fmt: skip
from lake.types import FACTS, UNKNOWN, Type
from sql.binding import subqueries
from sql.binding.aggregates import bind_aggregate, is_aggregate, printed
from sql.binding.coercion import cast, plain
from sql.binding.places import leftmost
from sql.binding.resolution import function
from sql.functions import catalogue
from sql.functions.datetime import SPELLINGS
from sql.functions.entry import Function
from sql.grammar.names import position
from sql.plan import Call, Case, Coalesce, Extreme, Literal, Scalar

if TYPE_CHECKING:
    from sql.binding.expressions import Expressions

NO_MATCH = "No function matches the given name and argument types. You might need to add explicit type casts."
SCHEMAS = ("pg_catalog", "public")  # of functions


def bind_call(binder: Expressions, node: exp.Anonymous) -> Scalar:
    name, nodes, at = str(node.this), list(node.expressions), position(node)
    schema = node.meta.get("schema")
    if name == "array" and isinstance(nodes[0], exp.Subquery):
        return subqueries.bind_array(binder, nodes[0], at)
    if schema is not None and schema not in SCHEMAS:
        raise UndefinedFunction(f"function {schema}.{name} does not exist", position=at)
    if name in ("coalesce", "greatest", "least"):
        return _coalesce(binder, name, nodes)
    if name == "nullif":
        return _nullif(binder, nodes, at)
    if name in ("+", "~", "@", "|/", "||/", "!!") and len(nodes) == 1:
        return binder.prefix(name, nodes[0], at)
    for argument in nodes:
        if isinstance(argument, (exp.Kwarg, exp.Variadic)):
            raise FeatureNotSupported("named and VARIADIC arguments are not supported", position=position(argument))
    if name in catalogue.UNITS:
        return _with_unit(binder, name, nodes, at)
    rows = catalogue.calls(name)
    if is_aggregate(name) or (nodes and isinstance(nodes[-1], (exp.Distinct, exp.Order))):
        return bind_aggregate(binder, node)
    if any(isinstance(n, exp.Star) for n in nodes):
        function(name, (), at)
        raise WrongObjectType(f"{name}(*) specified, but {name} is not an aggregate function", position=at)
    given = [binder.bind(n) for n in nodes]
    if not rows and len(given) == 1 and (type := _type_of(name)) is not None:
        # a type's name as a function is a cast, where such a cast exists
        return cast(given[0], type, binder.parameters, at)
    if name in ("concat", "concat_ws"):
        given = [printed(binder, g, n) for g, n in zip(given, nodes, strict=True)]
    found = function(name, tuple(s.type for s in given), at)
    if found.kind == "set":
        raise FeatureNotSupported(
            f"set-returning functions are not supported in {binder.clause}",
            hint=f"Put it into FROM, as in FROM t, {name}(t.x).",
            position=at,
        )
    _check_volatility(binder, found, at)
    return binder.call(found, given, at)


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
