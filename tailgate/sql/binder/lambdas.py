"""Lambdas of ksqlDB: functions that evaluate an expression for each element of an array.

    ksqldb_transform(array, ksqldb_variable(1), to_jsonb(f(ksqldb_variable(1))))

The arguments before the last declare the variables by their numbers. A variable is visible in the last argument only.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.errors import UndefinedFunction, UndefinedParameter
from tailgate.lake.types import JSONB, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.types.coercion import coerce
from tailgate.sql.functions.ksqldb import LAMBDAS, VARIABLE, variable
from tailgate.sql.plan import Call, Scalar

NAMES = frozenset((*LAMBDAS, VARIABLE))
VARIABLES_MAX = 1000  # the greatest number of a variable


def bind_lambda(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds a call of a function with a lambda, or a variable. Raises 42883 for other arguments, and 42P02 for an unknown variable."""
    if name == VARIABLE:
        number = _number(nodes)
        if number not in binder.variables:
            raise UndefinedParameter(f"there is no variable {number}", position=at)
        return Call(variable(number), (), JSONB, at)
    row = LAMBDAS[name]
    declared = {"ksqldb_reduce": slice(2, 4)}.get(name, slice(1, 2))
    numbers = [_declared(node) for node in nodes[declared]]
    if len(nodes) != len(row.arguments) or None in numbers or len(set(numbers)) < len(numbers):
        raise UndefinedFunction(f"function {name} with these arguments does not exist", position=at)
    # neither aggregates nor set-returning functions, which would be evaluated outside
    inner = replace(binder.within("lambda"), variables=binder.variables | {n for n in numbers if n is not None})
    scalars = [(inner if n >= declared.start else binder).bind(node) for n, node in enumerate(nodes)]
    arguments = [coerce(s, Type(type), binder.parameters) for s, type in zip(scalars, row.arguments, strict=True)]
    if None in arguments:
        raise UndefinedFunction(f"function {name}({', '.join(str(s.type) for s in scalars)}) does not exist", position=at)
    return Call(row, tuple(a for a in arguments if a is not None), JSONB, at)


def _number(nodes: list[exp.Expr]) -> int:
    """Returns the number of a variable, or 0 if it has none."""
    text = nodes[0].name if len(nodes) == 1 and isinstance(nodes[0], exp.Literal) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 and int(text) <= VARIABLES_MAX else 0


def _declared(node: exp.Expr) -> int | None:
    """Returns the number of a variable that an argument declares, or None."""
    return _number(list(node.expressions)) or None if isinstance(node, exp.Anonymous) and str(node.this) == VARIABLE else None
