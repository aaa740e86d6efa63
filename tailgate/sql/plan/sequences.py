"""Calls of nextval, currval, lastval and setval in a plan, and their separation from it.

No engine evaluates these calls. The gateway does, before the query that uses their values:

    evaluated once (VALUES, SELECT without FROM)   each call becomes a parameter behind those of the statement
    evaluated for each row of a source             the rows of the source get a column for each call

A call elsewhere stays in the plan, and the renderer refuses it by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tailgate.lake.types import INT8, Field
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan.grouping import ONE_ROW
from tailgate.sql.plan.relations import Project, Relation, Scan, Values
from tailgate.sql.plan.rewriting import rebuild, walk
from tailgate.sql.plan.scalars import Call, Case, Coalesce, Column, Literal, Parameter, Scalar
from tailgate.sql.plan.writes import INCOMING, PLACE

# by name, with the number of arguments: the functions as plans contain them
SEQUENCE_FUNCTIONS = {
    name: Function(name, arguments, "int8", volatility="volatile")
    for name, arguments in {
        "nextval": ("regclass",),
        "currval": ("regclass",),
        "lastval": (),
        "setval": ("regclass", "int8", "bool"),
    }.items()
}


@dataclass(frozen=True, slots=True)
class SequenceCall:
    """A call. `sequence`: the id, 0 for lastval. `arguments`: those of setval after the sequence."""

    name: str
    sequence: int
    arguments: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbered:
    """A plan whose calls are separated.

    `relation` reads their values from parameters or, with a `source`, from the columns of INCOMING behind those of the source.
    """

    relation: Relation
    calls: tuple[SequenceCall, ...] = ()
    source: Relation | None = None


def separated(relation: Relation, first: int) -> Numbered:
    """Returns the plan without calls of sequences. `first`: the number of the first new parameter."""
    calls: list[SequenceCall] = []
    match relation:
        case Values(rows=rows) if _calls(*(s for row in rows for s in row)):
            to_parameter = _parameters(calls, first)
            return Numbered(replace(relation, rows=tuple(tuple(map(to_parameter, row)) for row in rows)), tuple(calls))
        case Project(input=input, expressions=expressions) if input == ONE_ROW and _calls(*expressions):
            return Numbered(replace(relation, expressions=tuple(map(_parameters(calls, first), expressions))), tuple(calls))
        case Project(input=input, expressions=expressions) if _calls(*expressions):
            columns = tuple(c for c in input.columns if c is not PLACE)
            to_column = _replaced(calls, lambda number: Column(len(columns) + number, INT8))
            outputs = tuple(map(to_column, expressions))
            numbers = tuple(Field(f"number{i}", INT8, False) for i in range(len(calls)))
            width = len(columns) + len(numbers)
            incoming = Scan(INCOMING, (*columns, *numbers, PLACE), (width,), "incoming")
            return Numbered(replace(relation, input=incoming, expressions=outputs), tuple(calls), input)
        case Project(input=Project() as input):
            inner = separated(input, first)
            return replace(inner, relation=replace(relation, input=inner.relation)) if inner.calls else Numbered(relation)
    return Numbered(relation)


def positions(plan: Relation, calls: tuple[SequenceCall, ...]) -> tuple[Relation, tuple[int, ...]] | None:
    """Returns the plan of the arguments of setval for SELECT setval(…), … FROM …, and the ids of the sequences.

    `calls`: of the plan's rows. Returns None if the plan has other outputs than calls of setval.
    """
    if not isinstance(plan, Project) or not all(_is_call(e) for e in plan.expressions) or any(call.name != "setval" for call in calls):
        return None
    arguments = tuple(argument for call in calls for argument in call.arguments)
    fields = tuple(Field(f"argument{i}", argument.type) for i, argument in enumerate(arguments))
    return replace(plan, expressions=arguments, columns=fields), tuple(call.sequence for call in calls)


def merged(outer: Project) -> Relation:
    """Returns the projection of a projection that has calls as one projection, so that `separated` finds them."""
    inner = outer.input
    if not isinstance(inner, Project) or not _calls(*inner.expressions):
        return outer
    expressions = inner.expressions

    def over(scalar: Scalar) -> Scalar:
        return expressions[scalar.index] if isinstance(scalar, Column) else rebuild(scalar, over)

    return replace(outer, input=inner.input, expressions=tuple(map(over, outer.expressions)))


def _calls(*scalars: Scalar) -> bool:
    return any(_is_call(part) for scalar in scalars for part in walk(scalar))


def _is_call(scalar: Scalar) -> bool:
    return isinstance(scalar, Call) and scalar.function in SEQUENCE_FUNCTIONS.values()


def _parameters(calls: list[SequenceCall], first: int) -> Callable[[Scalar], Scalar]:
    return _replaced(calls, lambda number: Parameter(first + number, INT8))


def _replaced(calls: list[SequenceCall], value: Callable[[int], Scalar]) -> Callable[[Scalar], Scalar]:
    """Returns a function that appends the calls in a scalar to `calls` and replaces each by `value` of its number.

    It leaves those that may not be evaluated.
    """

    def over(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Case | Coalesce):
            return scalar
        if isinstance(scalar, Call) and _is_call(scalar):
            sequence, arguments = scalar.arguments[:1], scalar.arguments[1:]
            id = sequence[0].value if sequence and isinstance(sequence[0], Literal) else 0
            assert isinstance(id, int)
            calls.append(SequenceCall(scalar.function.name, id, arguments))
            return value(len(calls) - 1)
        return rebuild(scalar, over)

    return over
