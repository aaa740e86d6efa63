"""VALUES, and SELECT without FROM: rows computed from the single row of a backfill."""

from __future__ import annotations

from tailgate.engine.plan.circuit.steps import NOTHING, Steps, Unnest, select
from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.change import SingleRow, Stream
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.types import BOOL, INT4, Field
from tailgate.sql.binder.types.overloads import operator
from tailgate.sql.plan import Call, Case, Column, Literal, Scalar, Values

# of a row without columns: Spark's rows need at least one
ONE_COLUMN = (Field("", NOTHING.type, False),)
EQUAL, NUMBER = operator("=", (INT4, INT4), None), Column(1, INT4)
# in one VALUES: the rows are part of an expression of the circuit
ROWS_MAX = 1000


def values(plan: Values) -> Stream:
    """Returns the stream of VALUES.

    Each row is computed separately, so an error in one row does not affect the others. Raises 54000
    for too many rows.
    """
    count, columns = len(plan.rows), plan.columns or ONE_COLUMN
    if count > ROWS_MAX:
        raise ProgramLimitExceeded(
            f"VALUES in a materialized view may have {ROWS_MAX} rows at most", hint="Insert them into a table, and read that."
        )
    if count == 0:
        return Stream(change.Union(()), Steps(), columns, True)
    if count == 1:
        return Stream(SingleRow(), Steps((select(plan.rows[0] or (NOTHING,), 1),)), columns, True)
    expressions: list[Scalar] = []
    for i, field in enumerate(plan.columns):
        cases = tuple((Call(EQUAL, (NUMBER, Literal(n, INT4)), BOOL), row[i]) for n, row in enumerate(plan.rows))
        expressions.append(Case(cases[:-1], cases[-1][1], field.type))
    numbers = Unnest(f"sequence(0, {count - 1})")
    return Stream(SingleRow(), Steps((numbers, select(expressions or (NOTHING,), 3))), columns, True)
