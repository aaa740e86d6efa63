"""Set-returning functions in a select list.

Each input row is repeated for the rows that the functions return. The functions advance in step;
one that has no more rows returns NULL. Functions in the arguments of others are expanded first.

    SELECT id, unnest(a), generate_series(1, 2) + id FROM t
    π_{id, c2, c3 + id}(generate_{in_step(unnest(a), generate_series(1, 2))}(t))

During binding, such a function is a call in its expression, and its templates return an array.
Functions in GROUP BY are expanded before grouping, the others after window functions. ORDER BY and
LIMIT apply to the expanded rows.

Source: PostgreSQL 15, "SQL Functions Returning Sets"; src/backend/executor/nodeProjectSet.c,
make_scanjoin_target in planner.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field
from tailgate.sql.binder.grouping import aggregate, windowed
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.ksqldb import PREFIX
from tailgate.sql.plan import Call, Case, Coalesce, Column, Generate, Relation, Scalar
from tailgate.sql.plan.rewriting import parts, rebuild
from tailgate.sql.plan.rows import is_row, row

HINT = "You might be able to move the set-returning function into a LATERAL FROM item."


def calls_in(scalar: Scalar) -> Iterator[Call]:
    """Yields the set-returning functions in an expression.

    Those in the arguments of another one come before it. Raises 0A000 for one in CASE or COALESCE, unless it is ksqlDB's.
    """
    if aggregate(scalar) is not None or windowed(scalar) is not None:
        return
    for part in parts(scalar):
        for call in calls_in(part):
            if isinstance(scalar, Case | Coalesce) and not call.function.name.startswith(PREFIX):
                word = "CASE" if isinstance(scalar, Case) else "COALESCE"
                raise FeatureNotSupported(f"set-returning functions are not allowed in {word}", hint=HINT, position=call.position)
            yield call
    if isinstance(scalar, Call) and scalar.function.kind == "set":
        yield scalar


def refuse(scalars: Iterable[Scalar], where: str) -> None:
    """Raises 0A000 if the scalars contain a set-returning function.

    `where` names the calls that contain it.
    """
    for scalar in scalars:
        for call in calls_in(scalar):
            raise FeatureNotSupported(f"{where} calls cannot contain set-returning function calls", hint=HINT, position=call.position)


def expanded(plan: Relation, scalars: Iterable[Scalar]) -> tuple[Relation, Callable[[Scalar], Scalar]]:
    """Expands the set-returning functions in some expressions.

    Returns the plan with their columns, and a function that rewrites an expression over this plan.
    """
    levels: dict[Call, int] = {}  # 0 if a function has no other one in its arguments, else 1 more than the others have
    for call in (call for s in scalars for call in calls_in(s)):
        inner = [levels[c] for argument in call.arguments for c in calls_in(argument)]
        levels[call] = max(inner, default=-1) + 1
    columns: dict[Call, Scalar] = {}

    def over(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Call) and scalar in columns:
            return columns[scalar]
        if aggregate(scalar) is not None or windowed(scalar) is not None:
            return scalar
        return rebuild(scalar, over)

    for level in range(max(levels.values(), default=-1) + 1):
        calls = [call for call in levels if levels[call] == level]
        width = len(plan.columns)
        generate = in_step(plan, [replace(call, arguments=tuple(map(over, call.arguments))) for call in calls])
        outputs = [Column(width + n, f.type) for n, f in enumerate(generate.outputs)]
        values = [row(outputs, [f.name for f in generate.outputs])] if len(outputs) > len(calls) else outputs
        columns.update(zip(calls, values, strict=True))
        plan = generate
    return plan, over


def in_step(plan: Relation, calls: list[Call], *, ordinality: bool = False) -> Generate:
    """Returns each row of a plan with the rows that some functions return for it, in step."""
    if len(calls) == 1:
        outputs = calls[0].type.fields if is_row(calls[0].type) else (_output(calls[0]),)
        return Generate(plan, calls[0].function, calls[0].arguments, outputs, ordinality, position=calls[0].position)
    for call in calls:
        if is_row(call.type):
            shown = f"{call.function.name} of several columns next to another set-returning function is not supported"
            raise FeatureNotSupported(shown, hint=HINT, position=call.position)
    outputs = tuple(map(_output, calls))
    return Generate(plan, _together(calls), tuple(calls), outputs, ordinality, position=calls[0].position)


def _output(call: Call) -> Field:
    return Field(call.function.outputs[0][0] if call.function.outputs else call.function.name, call.type)


def _together(calls: list[Call]) -> Function:
    """Returns a function that combines the arrays of the calls into one array of structs."""
    types = [c.type for c in calls]
    spark = ", ".join(f"coalesce({{{i}}}, CAST(array() AS array<{t.spark}>))" for i, t in enumerate(types))
    duckdb = ", ".join(f"coalesce({{{i}}}, CAST([] AS {t.duckdb}[]))" for i, t in enumerate(types))
    names = [f"f{i}" for i in range(len(types))]
    struct = ", ".join(f"{n}: {t.spark}" for n, t in zip(names, types, strict=True))
    record = ", ".join(f"{n} {t.duckdb}" for n, t in zip(names, types, strict=True))
    return Function(
        "in_step",
        ("any",) * len(types),
        "record",
        f"CAST(arrays_zip({spark}) AS array<struct<{struct}>>)",
        f"CAST(list_zip({duckdb}) AS STRUCT({record})[])",
        "set",
        strict=False,
        outputs=tuple((n, "any") for n in names),
    )
