"""Rows as values: scalars that make a row, or read the fields of one.

A row that is made in the same expression is never stored: its fields are the scalars that it is made of.
PostgreSQL has syntax for the functions here, and compares rows of any type by record_eq() and record_lt().
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from tailgate.lake.types import BOOL, Field, Type
from tailgate.sql.functions.comparison import SIGNS
from tailgate.sql.functions.entry import Function, udf
from tailgate.sql.plan.relations import Project, Relation
from tailgate.sql.plan.scalars import And, Call, Case, Coalesce, Column, IsNull, Literal, Or, Scalar
from tailgate.sql.plan.subqueries import as_scalar, subquery

NAME = "ROW"
# the text of a row, from the texts of its fields
TO_TEXT = udf("cast", ("text[]",), "text", "row_to_text", "cast")
# the texts of the fields of a row, from its text and their number
TO_FIELDS = udf("cast", ("text", "int4"), "text[]", "text_to_fields", "cast")
# an object, from the keys, the values as json, and whether each member begins a line
TO_JSON = udf("row_to_json", ("text[]", "json[]", "bool"), "json", "row_to_json")
# an array, with each element but the first on its own line
ARRAY_LINES = udf("array_to_json", ("json",), "json", "array_lines")


@cache
def construction(width: int) -> Function:
    """Returns ROW(…) with a number of fields."""
    spark = ", ".join(f"'f{n + 1}', {{{n}}}" for n in range(width))
    duckdb = ", ".join(f"f{n + 1} := {{{n}}}" for n in range(width))
    return Function(NAME, ("any",) * width, "record", f"named_struct({spark})", f"CAST(struct_pack({duckdb}) AS {{type}})", strict=False)


@cache
def field_function(number: int) -> Function:
    """Returns the function of a row whose result is one of its fields, counted from 1."""
    return Function(f".f{number}", ("record",), "any", f"{{0}}.f{number}", f"struct_extract({{0}}, 'f{number}')")


@cache
def text_of_field(number: int) -> Function:
    """Returns the function of the result of `TO_FIELDS` whose result is the text of one field, counted from 1."""
    return Function(f"[{number}]", ("text[]",), "text", f"{{0}}[{number - 1}]", f"{{0}}[{number}]")


# comparisons of rows whose fields compare in their stored form
COMPARISONS = {
    sign: Function(sign, ("record", "record"), "bool", f"({{0}} {sign} {{1}})", f"({{0}} {sign} {{1}})", "operator") for sign in SIGNS
}


def is_row(type: Type) -> bool:
    """Returns whether values of a type are rows."""
    return type.name == "record" and not type.is_array


def row_of(type: Type, fields: Sequence[Scalar], position: int | None = None) -> Scalar:
    """Returns a row of a type."""
    return Call(construction(len(fields)), tuple(fields), type, position)


def row(fields: Sequence[Scalar], names: Sequence[str] = (), position: int | None = None) -> Scalar:
    """Returns a row. The fields are named f1, f2, … without `names`."""
    shown = names or [f"f{n}" for n in range(1, len(fields) + 1)]
    type = Type("record", fields=tuple(Field(n, f.type) for n, f in zip(shown, fields, strict=True)))
    return Call(construction(len(fields)), tuple(fields), type, position)


def row_if_any(fields: Sequence[Scalar], names: Sequence[str], position: int | None) -> Scalar:
    """Returns a row, or NULL if all its fields are NULL, as those of an outer join without a matching row."""
    whole = row(fields, names, position)
    return Case(((_all_null(fields), Literal(None, whole.type)),), whole, whole.type)


def fields(row: Scalar) -> tuple[Scalar, ...]:
    """Returns the fields of a row; those of NULL are NULL."""
    scalars = _sources(row)
    if scalars is not None:
        return scalars
    match row:
        case Case(branches=((condition, Literal(value=None)),), otherwise=Call() as made) if _is_made(made):
            return tuple(Case(((condition, Literal(None, f.type)),), f, f.type) for f in fields(made))
    return tuple(Call(field_function(n), (row,), f.type) for n, f in enumerate(row.type.fields, 1))


def of_row(row: Scalar, compute: Callable[[Scalar], Scalar]) -> Scalar:
    """Returns a scalar that is computed from a row.

    It is NULL if the row is a subquery that returns no row. In a subquery it is computed inside, once.
    """
    query = subquery(row)
    if query is None or query.kind != "scalar":
        return compute(row)
    relation: Relation = query.relation
    if isinstance(relation, Project):
        value, relation = compute(relation.expressions[query.column]), relation.input
    else:
        value = compute(Column(query.column, row.type))
    name = query.relation.columns[query.column].name
    inner = Project(relation, (value,), (Field(name, value.type),))
    return as_scalar(replace(query, relation=inner, column=0, type=value.type))


def unless_null(row: Scalar, value: Scalar) -> Scalar:
    """Returns a value, or NULL if the row is NULL."""
    if _is_made(row) or (isinstance(row, Call) and row.function.kind == "set"):
        return value
    if isinstance(row, Case) and _sources(row) is not None:
        return Case(((row.branches[0][0], Literal(None, value.type)),), value, value.type)
    return Case(((IsNull(row), Literal(None, value.type)),), value, value.type)


def _is_made(row: Scalar) -> bool:
    """Returns whether a row is made in this expression, and is not NULL."""
    return isinstance(row, Call | Literal) and _sources(row) is not None


def is_null(row: Scalar, *, negated: bool = False) -> Scalar:
    """Returns row IS NULL: whether all fields are NULL. With `negated`, whether any is, which IS NOT NULL negates."""
    test = of_row(row, lambda r: (_any_null if negated else _all_null)(fields(r)))
    return test if subquery(row) is None else Coalesce((test, Literal(True, BOOL)), BOOL)


def _all_null(fields: Sequence[Scalar]) -> Scalar:
    return IsNull(fields[0]) if len(fields) == 1 else And(tuple(map(IsNull, fields)))


def _any_null(fields: Sequence[Scalar]) -> Scalar:
    return IsNull(fields[0]) if len(fields) == 1 else Or(tuple(map(IsNull, fields)))


def _sources(row: Scalar) -> tuple[Scalar, ...] | None:
    """Returns the scalars of which a row is made in this expression, or None."""
    match row:
        case Call(function=function, arguments=arguments) if function.name == NAME:
            return arguments
        case Literal(value=tuple() as values, type=type):
            return tuple(Literal(value, f.type, row.position) for value, f in zip(values, type.fields, strict=True))
        case Case(branches=((condition, Literal(value=None)),), otherwise=otherwise):
            scalars = _sources(otherwise)
            return scalars if scalars is not None and condition == _all_null(scalars) else None
    return None
