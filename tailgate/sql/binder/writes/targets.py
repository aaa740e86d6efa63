"""Targets of writes: the table, its columns, defaults and checks, and casts to the columns' types.

Source: PostgreSQL 15, src/backend/parser/parse_target.c (transformAssignedExpr,
checkInsertTargets), rewriteHandler.c (defaults).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Item, Table, check_not_system
from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.constraints import references_to
from tailgate.lake.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    FeatureNotSupported,
    GeneratedAlways,
    NumericValueOutOfRange,
    TailgateError,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.lake.types import INT8, Field, Type
from tailgate.sql.authorization import SELECT, SESSION, Demand
from tailgate.sql.binder import domains
from tailgate.sql.binder import scope as scopes
from tailgate.sql.binder.context import Level
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.expressions.rows import bind_as
from tailgate.sql.binder.queries.queries import Queries
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Scope
from tailgate.sql.binder.types.coercion import MODIFIED, bare_type, coerce, common_numeric
from tailgate.sql.binder.types.overloads import fixed
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.functions import catalogue
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.parser import parse_expression
from tailgate.sql.numeric_types import WITH_GENERAL, typed_by, without_general
from tailgate.sql.plan import AggregateCall, Column, Literal, Reduce, Relation, Scalar, Scan
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import ColumnName, Default, Insert, InsertValue
from tailgate.sql.time_zones import UTC, in_zone
from tailgate.values.numbers.integers import RANGES


def check_writable(item: Item) -> None:
    """Raises 42501 for a relation of the schema tailgate, whose rows are computed, and 42809 for the inserted rows of a derived stream."""
    if is_system(item.id):
        check_not_system(item)
    if isinstance(item, Table) and item.of_stream:
        raise WrongObjectType(
            f'cannot change table "{item.name}"', hint="It has the rows of INSERT into a derived stream: insert into the stream."
        )


def scope_of(table: Item, alias: str | None, width: int | None = None, readers: tuple[int, ...] = (SESSION,)) -> Scope:
    """Returns the scope of a written table: its columns, without those that were dropped.

    `width`: the number of those that are known. `readers`: of the demands for the columns.
    """
    fields = table.columns[:width]
    demands = [Demand(SELECT, table.id, readers, columns=(i,)) for i in range(len(fields))]
    scope = scopes.of(alias or table.name, fields, relation=table.name, item=0 if alias else table.id, demands=demands)
    columns = tuple(visible for visible, column in zip(scope.columns, table.columns, strict=False) if not column.is_dropped)
    return Scope(columns, tuple(replace(t, columns=columns, oid=table.id) for t in scope.tables))


def columns_named(table: Table, columns: tuple[ColumnName, ...]) -> tuple[int, ...]:
    """Returns the indexes of the columns that a statement names, or of all if it names none.

    Raises 42703, 42701.
    """
    if not columns:
        return tuple(i for i, column in enumerate(table.columns) if not column.is_dropped)
    names = [c.name for c in table.columns]
    indexes: list[int] = []
    parts: set[int] = set()  # of which only parts are assigned
    for column in columns:
        if column.name not in names:
            raise UndefinedColumn(f'column "{column.name}" of relation "{table.name}" does not exist', position=column.position)
        index = names.index(column.name)
        if index in indexes and not (column.path and index in parts):
            raise DuplicateColumn(f'column "{column.name}" specified more than once', position=column.position)
        indexes.append(index)
        if column.path:
            parts.add(index)
    return tuple(indexes)


def identity_columns(table: Table, targets: tuple[int, ...], statement: Insert) -> frozenset[int]:
    """Returns the numbers of the statement's columns whose values OVERRIDING USER VALUE ignores.

    Raises 428C9 for the value of a column that is GENERATED ALWAYS.
    """
    for i, target in enumerate(targets):
        if (name := table.columns[target].name) in table.generated and _is_given(statement, i):
            raise GeneratedAlways(
                f'cannot insert a non-DEFAULT value into column "{name}"', detail=f'Column "{name}" is a generated column.'
            )
    identity = {i: table.columns[t].name for i, t in enumerate(targets) if table.columns[t].name in table.identity}
    if statement.overriding == "user":
        return frozenset(identity)
    for i, name in identity.items():
        if table.identity[name] == "always" and statement.overriding != "system" and _is_given(statement, i):
            raise GeneratedAlways(
                f'cannot insert a non-DEFAULT value into column "{name}"',
                detail=f'Column "{name}" is an identity column defined as GENERATED ALWAYS.',
                hint="Use OVERRIDING SYSTEM VALUE to override.",
            )
    return frozenset()


def _is_given(statement: Insert, column: int) -> bool:
    """Returns whether an INSERT has a value for one of its columns that is not DEFAULT."""
    match statement.rows:
        case None:
            return False
        case QueryText():
            return (
                bool(statement.columns) or not isinstance(statement.rows.tree, exp.Select) or len(statement.rows.tree.expressions) > column
            )
        case rows:
            return any(column < len(row) and not isinstance(row[column], Default) for row in rows)


def with_defaults(rows: Sequence[tuple[InsertValue, ...]], columns: frozenset[int]) -> tuple[tuple[InsertValue, ...], ...]:
    """Returns the rows of VALUES with DEFAULT in these columns."""
    return tuple(tuple(Default() if i in columns else value for i, value in enumerate(row)) for row in rows)


def check_truncated(tables: Sequence[Table], catalog: Catalog) -> None:
    """Raises 0A000 if a table that is not truncated references one that is."""
    ids = {table.id for table in tables}
    for reference in (r for table in tables for r in references_to(table, catalog) if r.table.id not in ids):
        other, table = reference.table.name, reference.referenced.name
        raise FeatureNotSupported(
            "cannot truncate a table referenced in a foreign key constraint",
            detail=f'Table "{other}" references "{table}".',
            hint=f'Truncate table "{other}" at the same time, or use TRUNCATE ... CASCADE.',
        )


def only_default(table: Table, column: str) -> TailgateError:
    """Returns the error for the UPDATE of a column that is GENERATED ALWAYS."""
    kind = "a generated column" if column in table.generated else "an identity column defined as GENERATED ALWAYS"
    return GeneratedAlways(f'column "{column}" can only be updated to DEFAULT', detail=f'Column "{column}" is {kind}.')


@typed_by(WITH_GENERAL)
def default_of(column: Field, text: str | None, names: Names | None = None) -> Scalar:
    """Returns the value of a column that a statement does not set: its DEFAULT, that of its domain, or NULL.

    `names`: records the privileges that it needs. Raises 0A000, 42804.
    """
    if text is None and column.domain is not None:
        text = column.domain.default
    if text is None:
        return Literal(None, column.type)
    tree = parse_expression(text)
    if (node := next(tree.find_all(exp.Column), None)) is not None:
        raise FeatureNotSupported("cannot use column reference in DEFAULT expression", position=position(node))
    if next(tree.find_all(exp.Select), None) is not None:
        raise FeatureNotSupported("cannot use subquery in DEFAULT expression")
    parameters = Parameters()
    level = empty_level(parameters, domains.types_of((column,)))
    with in_zone(UTC):
        scalar = bind_as(Expressions(Scope(), level, "DEFAULT expressions", aggregates=False), tree, column.type)
    if names is not None:
        names.demands.update(level.names.demands)
    try:
        return assigned(column, scalar, parameters, None)
    except DatatypeMismatch as error:
        error.message = error.message.replace("but expression is", "but default expression is")
        raise


@typed_by(WITH_GENERAL)
def check_of(table: str, columns: tuple[Field, ...], text: str) -> Scalar:
    """Returns the condition of a CHECK over the table's columns. Raises 0A000."""
    level = empty_level(Parameters(), domains.types_of(columns))
    return domains.condition(Expressions(scopes.of(table, columns), level, domains.CLAUSE, aggregates=False), text)


def checks_of(table: Table) -> tuple[tuple[str, Scalar], ...]:
    """Returns the names and conditions of a table's checks, in the order of their evaluation."""
    return tuple((c.name, check_of(table.name, table.columns, c.text)) for c in table.checks)


@typed_by(WITH_GENERAL)
def domain_conditions(column: Field) -> tuple[tuple[str, Scalar], ...]:
    """Returns the names and conditions of the checks of a column's domain, over a relation with the column alone."""
    if column.domain is None:
        return ()
    binder = Expressions(Scope(), empty_level(Parameters()), domains.CLAUSE, aggregates=False)
    return domains.conditions(binder, column.domain, column.type)


def without_modifiers(type: Type) -> Type:
    """Returns the type to which an assignment casts a value, before the modifiers are applied to the stored row."""
    if type.name == "record":
        return replace(type, fields=tuple(replace(f, type=without_length(f.type)) for f in type.fields))
    if type.general:
        return replace(type, modifiers=())
    if type.name not in MODIFIED or (type.is_array and type.name == "numeric"):
        return type
    return replace(type, modifiers=(), declared=True)


def without_length(type: Type) -> Type:
    """Returns the type to which an assignment casts a value inside of another one, in which all numerics have one scale."""
    return type if type.name == "numeric" else without_modifiers(type)


def assigned(column: Field, scalar: Scalar, parameters: Parameters, place: int | None) -> Scalar:
    """Casts a scalar to a column's type without modifiers, as an assignment does.

    Raises 42804, 22003.

    The modifiers, such as a length, are applied when the row is stored.
    """
    # the fields of an interval type are the units of a literal
    has_units = bool(column.type.fields_of_interval) and not column.type.is_array and isinstance(scalar, Literal)
    target = column.type if has_units else without_modifiers(column.type)
    if isinstance(scalar, Literal) and isinstance(scalar.value, int) and {scalar.type.name, target.name} <= RANGES.keys():
        low, high = RANGES[target.name]
        if not low <= scalar.value <= high:
            raise NumericValueOutOfRange(f"{target} out of range")
    value = coerce(scalar, target, parameters, "assignment", place)
    if value is None:
        shown = column.type.facts.sql + "[]" * column.type.is_array if column.domain is None else column.domain.sql
        raise DatatypeMismatch(
            f'column "{column.name}" is of type {shown} but expression is of type {bare_type(scalar.type)}',
            hint="You will need to rewrite or cast the expression.",
            position=place,
        )
    return value if column.type.general else fixed(value, column.type)


def fields_of(columns: tuple[Field, ...], rows: Sequence[tuple[Scalar, ...]]) -> tuple[Field, ...]:
    """Returns the columns with the types that their values have before modifiers are applied."""
    fields = []
    for i, column in enumerate(columns):
        types = [row[i].type for row in rows]
        type = types[0] if types else column.type
        if types and type.name == "numeric" and not type.is_array:
            with without_general():
                type = common_numeric(types)
        fields.append(Field(column.name, type, column.nullable))
    return tuple(fields)


def empty_level(parameters: Parameters, types: Catalog | None = None) -> Level:
    """Returns a level in which no relation can be named. `types`: has the types that can be named."""
    return Level(Queries(parameters), Names(types or Catalog(), types_only=True))


def counted(table: Table) -> tuple[Relation, Scalar]:
    """Returns the table's distinct rows and, as a scalar, the number of copies of each row."""
    scan = Scan(table.id, table.columns, table.key, table.name)
    if table.key is not None:
        return scan, Literal(1, INT8)
    every = tuple(Column(i, f.type) for i, f in enumerate(table.columns))
    count = next(f for f in catalogue.calls("count") if not f.arguments)
    return Reduce(scan, every, (AggregateCall(count, (), INT8),)), Column(len(every), INT8)
