"""ON of a join: an equality of two expressions, each of which reads columns of one source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, InvalidColumnReference, UndefinedColumn
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expression_texts import text as ksqldb_text
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.references import sources_of
from tailgate.sql.ksqldb.queries.scope import Scope
from tailgate.sql.ksqldb.queries.translation import Translator
from tailgate.sql.ksqldb.typed.values import Typed

NO_COLUMNS = Scope({}, (), has_position=False)


def of_condition(scope: Scope) -> Translator:
    """Returns a translator for expressions of ON."""
    return Translator(scope, aggregates=False, clause="JOIN")


def check_types(join: e.JoinClause, one: Typed, other: Typed, both: Scope) -> None:
    """Raises 42804 for sides of ON with different types."""
    if one.type != other.type:
        translator = of_condition(both)
        sides = [f"{ksqldb_text(side)}{{{types.in_schema(translator.value(side).type)}}}" for side in equality(join).operands]
        listed = " = ".join(sides)
        raise DatatypeMismatch(f"Invalid join condition: types don't match. Got {listed}.", position=join.condition.position)


def equality(join: e.JoinClause) -> e.Operation:
    """Returns the condition of a join. Raises 42P10 unless it is an equality."""
    condition = join.condition
    if isinstance(condition, e.Operation) and condition.operator in ("and", "or"):
        raise FeatureNotSupported(
            f"JOINs on multiple conditions are not yet supported. Got {ksqldb_text(condition)}.", position=condition.position
        )
    if not isinstance(condition, e.Operation) or condition.operator != "=":
        raise InvalidColumnReference("Only equality join criteria is supported.", position=condition.position)
    return condition


def check_sides(join: e.JoinClause, both: Scope) -> None:
    """Raises 42P10 unless each side of ON reads columns of one source, and not of the same."""
    condition = equality(join)
    names: list[str] = []
    for operand in condition.operands:
        read = sources_of(operand, both)
        has_columns = any(isinstance(part, e.ColumnReference) for part in e.walk(operand))
        if len(read) > 1 or not has_columns:
            raise InvalidColumnReference(
                f"Invalid comparison expression '{ksqldb_text(operand)}' in join '{ksqldb_text(condition)}'."
                " Each side of the join comparision must contain references from exactly one source.",
                position=condition.position,
            )
        names += [f"`{ksqldb_name(source)}`" for source in read]
    if len(names) == 2 and names[0] == names[1]:
        raise InvalidColumnReference(
            "Each side of the join must reference exactly one source and not the same source."
            f" Left side references {names[0]} and right references {names[1]}",
            position=condition.position,
        )


def left_side(join: e.JoinClause, keys: Sequence[Typed], left: Scope, both: Scope, *, is_of_stream: bool) -> tuple[Typed, Typed]:
    """Returns the side of ON that is not the key of the right table, and the key.

    `keys`: the columns that stand for the key. `both`: the scope with the right table, `left`: without it. Raises 42P10 unless ON is an
    equality with one of these columns.
    """
    condition = equality(join)
    translator = of_condition(both)
    sides = [translator.value(operand) for operand in condition.operands]
    texts = [key.text for key in keys]
    others = [n for n, side in enumerate(sides) if side.text not in texts]
    if len(others) != 1:
        required = "the table's primary key" if is_of_stream else "the primary key of the right input table"
        kind = "stream-table" if is_of_stream else "table-table"
        got = " = ".join(map(ksqldb_text, condition.operands))
        raise InvalidColumnReference(
            f"Invalid join condition: {kind} joins require to join on {required}. Got {got}.", position=condition.position
        )
    of_condition(left).value(condition.operands[others[0]])  # reads columns of the left only
    return sides[others[0]], keys[texts.index(sides[1 - others[0]].text)]


def stream_sides(join: e.JoinClause, left: Scope, both: Scope, right: Scope) -> tuple[e.Expression, e.Expression]:
    """Returns the sides of ON, that of the left streams first. Raises 42P10 unless each reads columns of one side."""
    first, second = equality(join).operands
    for one, other in ((first, second), (second, first)):
        if _reads(one, left, both) and _reads(other, right, both):
            return one, other
    raise InvalidColumnReference(
        "Invalid join condition: a side of the equality must read columns of the joined stream.", position=join.condition.position
    )


def _reads(expression: e.Expression, scope: Scope, both: Scope) -> bool:
    """Returns whether an expression reads columns, and of a scope only. Raises 42703 or 42702 if it is wrong in the scope of the join."""
    of_condition(both).value(expression)
    return _is_valid(expression, scope) and not _is_valid(expression, NO_COLUMNS)


def _is_valid(expression: e.Expression, scope: Scope) -> bool:
    """Returns whether a scope has the columns of an expression."""
    try:
        of_condition(scope).value(expression)
    except UndefinedColumn:
        return False
    return True


def columns_of(join: e.JoinClause, left: Scope, right: Scope) -> tuple[str, ...]:
    """Returns the sides of ON that are columns, with their sources, as ksqlDB shows them; that of the left source first."""
    columns = [operand for operand in equality(join).operands if isinstance(operand, e.ColumnReference)]
    shown = []
    for side in (*left.sources, right):
        own = (c for c in columns if (c.source in side.names if c.source else c.column in side.columns))
        shown += [ksqldb_text(replace(column, source=side.names[0])) for column in own]
    return tuple(shown)
