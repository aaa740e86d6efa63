"""Operands of general numerics as columns of subqueries, which DuckDB computes once.

    a * (1 - b) * (1 + b)   ──►   π_{x * y}(π_{a * z as x, 1 + b as y}(π_{1 - b as z, …}(…)))

A macro uses its arguments several times. An operand that is an operation itself is otherwise a variable of a lambda, which takes ten
times as long as a column. Only operands are moved that the node computes for each row, and that are not volatile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tailgate.lake.types import INT4, Field
from tailgate.sql.functions.arithmetic import INTEGERS
from tailgate.sql.functions.general.templates import DIVIDE, QUOTIENT_SCALE, is_division
from tailgate.sql.plan import AggregateCall, Call, Column, Project, Reduce, Relation, Scalar
from tailgate.sql.plan.rewriting import columns_of, columns_of_all, rebuild, walk
from tailgate.sql.plan.traversal import bottom_up, column, scalars_of, with_inputs, with_scalars

DEPTH_MAX = 16  # subqueries for one node; operands below them are variables


def with_general_columns(plan: Relation) -> Relation:
    """Returns the plan with such operands as columns, or the same object if it has none."""
    return bottom_up(plan, lambda node: _with_columns(node, DEPTH_MAX))


def _with_columns(node: Relation, depth: int) -> Relation:
    if isinstance(node, Project):
        scaled = Project(node.input, tuple(map(_with_scale, node.expressions)), node.columns)
        operands = [operand for expression in scaled.expressions for operand in _operands(expression)]
        return _over_columns(scaled, operands, depth) if operands and depth else node
    if isinstance(node, Reduce):
        operands = [argument for call in node.aggregates for argument in _arguments(call)]
        return _over_columns(node, operands, depth) if operands and depth else node
    return node


def _over_columns(node: Project | Reduce, operands: Iterable[Scalar], depth: int) -> Relation:
    """Returns a node over a projection with these operands, which are objects of its scalars."""
    kept = sorted(columns_of_all(scalars_of(node)))
    places = {index: Column(i, node.input.columns[index].type) for i, index in enumerate(kept)}
    moved = {id(operand): operand for operand in operands}
    results = {key: Column(len(kept) + i, operand.type) for i, (key, operand) in enumerate(moved.items())}

    def over(scalar: Scalar) -> Scalar:
        if id(scalar) in results:
            return results[id(scalar)]
        return places[scalar.index] if isinstance(scalar, Column) else rebuild(scalar, over)

    fields = (*(node.input.columns[index] for index in kept), *(Field("operand", operand.type) for operand in moved.values()))
    wide = Project(node.input, (*(column(node.input, index) for index in kept), *moved.values()), fields)
    return with_inputs(with_scalars(node, over), (_with_columns(wide, depth - 1),))


def _operands(scalar: Scalar) -> Iterator[Scalar]:
    """Yields the operands of general functions that a scalar always computes."""
    if isinstance(scalar, Call) and scalar.function.name != "try":
        for argument in scalar.arguments:
            if scalar.function.takes_general and isinstance(argument, Call) and _is_operation(argument):
                yield argument
            else:
                yield from _operands(argument)


def _arguments(call: AggregateCall) -> Iterator[Scalar]:
    """Yields the arguments of an aggregate that are operations, unless it computes them for some rows only, or sorts them."""
    if call.function.takes_general and call.filter is None and not call.order:
        yield from (a for a in call.arguments if not isinstance(a, Column) and _is_operation(a))


def _is_operation(scalar: Scalar) -> bool:
    if not scalar.type.general and not (isinstance(scalar, Call) and scalar.function is QUOTIENT_SCALE):
        return False
    if isinstance(scalar, Call) and scalar.function.kind == "cast" and scalar.arguments[0].type.name in INTEGERS:
        scalar = scalar.arguments[0]  # the SQL of the cast is short
    return not isinstance(scalar, Column) and bool(columns_of(scalar)) and not _is_volatile(scalar)


def _is_volatile(scalar: Scalar) -> bool:
    return any(isinstance(part, Call) and part.function.volatility == "volatile" for part in walk(scalar))


def _with_scale(scalar: Scalar) -> Scalar:
    """Makes the scale of a quotient that a scalar always computes an operand."""
    if not isinstance(scalar, Call) or scalar.function.name == "try" or _is_volatile(scalar):
        return scalar
    call = rebuild(scalar, _with_scale)
    if not isinstance(call, Call) or not is_division(call.function) or not columns_of(call):
        return call
    return replace(call, function=DIVIDE, arguments=(*call.arguments, Call(QUOTIENT_SCALE, call.arguments, INT4)))
