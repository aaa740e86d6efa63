"""json_to_record, json_populate_record, their sets and those of jsonb in FROM.

The columns are those of a column definition list or of a relation. The value of a column is read from the member of the
JSON object with the name of the column.

Source: PostgreSQL 15, src/backend/utils/adt/jsonfuncs.c (populate_record).
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, SyntaxError_
from tailgate.lake.types import JSONB, DomainType, Field, Type
from tailgate.sql.binder.domains import in_domain
from tailgate.sql.binder.enums import cast_type
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.json.records import (
    FUNCTIONS,
    POPULATE,
    Base,
    Error,
    argument,
    base,
    is_unchecked,
    members,
    object_function,
)
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Call, Column, Generate, Project, Relation


def check_definitions(name: str, definitions: list[exp.Expr], at: int | None, *, is_redundant: bool = False) -> None:
    """Raises 42601 for a column definition list of a function that needs none, or without one of a function that does."""
    column = next((d for d in definitions if isinstance(d, exp.ColumnDef)), None)
    if column is None and name in FUNCTIONS:
        raise SyntaxError_('a column definition list is required for functions returning "record"', position=at)
    if column is not None and name not in FUNCTIONS:
        about = "redundant for a function with OUT parameters" if is_redundant else 'only allowed for functions returning "record"'
        raise SyntaxError_(f"a column definition list is {about}", position=position(column.this))


def bind_record_function(call: exp.Anonymous, definitions: list[exp.Expr], binder: Expressions, input: Relation) -> Relation:
    """Binds a function with a column definition list over the rows of `input`, which has no columns.

    Raises 42601, 42701, 42883, 0A000.
    """
    defined = [_column(d, binder) for d in definitions]
    columns = tuple(column for column, _ in defined)
    repeated = next((c.name for i, c in enumerate(columns) if any(c.name == other.name for other in columns[:i])), None)
    if repeated is not None:
        raise DuplicateColumn(f'column name "{repeated}" specified more than once')
    rows = _rows(call, FUNCTIONS[str(call.this)], call.expressions, Base(Type("record", fields=columns), None), binder, input)
    if all(domain is None for _, domain in defined):
        return rows
    values = [Column(i, column.type) for i, column in enumerate(columns)]
    checked = (
        value if domain is None else in_domain(binder, value, domain, position(call))
        for value, (_, domain) in zip(values, defined, strict=True)
    )
    return Project(rows, tuple(checked), columns)


def bind_populating(call: exp.Anonymous, binder: Expressions, input: Relation) -> Relation:
    """Binds a function whose first argument is a row, which may be NULL::relation. Raises 42804, 42883, 0A000."""
    name, at = str(call.this), position(call)
    if len(call.expressions) != 2:
        raise FeatureNotSupported(f"this call of {name} is not supported", position=at)
    return _rows(call, POPULATE[name], call.expressions[1:], base(binder, name, call.expressions[0]), binder, input)


def _rows(
    call: exp.Anonymous, facts: tuple[Type, bool], nodes: list[exp.Expr], row: Base, binder: Expressions, input: Relation
) -> Relation:
    """Returns the rows of a function with one argument of JSON. Raises 42883."""
    name, at, (type, is_set) = str(call.this), position(call), facts
    json = argument(binder, name, nodes, type, at)
    objects = Generate(input, _objects(name, type, is_set=is_set), (json,), (Field("value", type),), position=at)
    value = Call(object_function(name, type, is_set=is_set), (Column(0, type),), type, at)
    columns = members(binder, value, row, at)
    return Project(objects, columns, tuple(Field(c.name, m.type) for c, m in zip(row.type.fields, columns, strict=True)))


def _column(definition: exp.Expr, binder: Expressions) -> tuple[Field, DomainType | None]:
    """Returns a column of the list, and its domain. Raises 0A000 for types whose lengths are not checked."""
    assert isinstance(definition, exp.ColumnDef)
    kind = definition.args["kind"]
    type, domain = cast_type(binder, kind)
    if is_unchecked(type):
        hint = "Use the type without a length, and a cast in the select list."
        raise FeatureNotSupported(f"type {type} in a column definition list is not supported", hint=hint, position=position(kind))
    return Field(definition.this.name, type), domain


def _objects(name: str, type: Type, *, is_set: bool) -> Function:
    """Returns the function whose rows are the objects: the argument, or its elements. It raises 22023."""
    if not is_set:
        return Function(name, (type.name,), type.name, "array({0})", "[{0}]", "set", strict=False)
    what = ("a non-array", "a non-array") if type == JSONB else ("an object", "a scalar")

    def template(error: Error) -> str:
        kind = f"tg_{type.name}_typeof({{0}})"
        of_object, of_scalar = (error("22023", f"cannot call {name} on {w}") for w in what)
        return (
            f"(CASE WHEN {kind} = 'array' THEN tg_{type.name}_elements({{0}}) WHEN {kind} = 'object' THEN {of_object}"
            f" WHEN {{0}} IS NOT NULL THEN {of_scalar} END)"
        )

    return Function(name, (type.name,), type.name, template(spark_error), template(duckdb_error), "set", strict=False)
