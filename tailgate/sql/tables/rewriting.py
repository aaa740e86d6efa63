"""ALTER TABLE that rewrites all rows: ALTER COLUMN … TYPE, and dropping the primary key that a table was created with.

The rows move to a new relation, whose columns and key are the new ones. The table has another id afterwards, and every item
that mentions the old one follows:

    table 16400, views, indexes, sequences, grants  ──►  the same items over table 16425; the old relation is dropped

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATPrepAlterColumnType, ATExecAlterColumnType, RememberAllDependentForRebuilding).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from tailgate.lake import constraints
from tailgate.lake.catalog import Catalog, Change, Function, Index, Sequence, Table, View
from tailgate.lake.catalog.dropping import described
from tailgate.lake.catalog.indexes import indexes
from tailgate.lake.catalog.roles import with_new_ids
from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, TailgateError
from tailgate.lake.types import UNKNOWN, Field, Type
from tailgate.lake.uncommitted import with_ids
from tailgate.sql.binder.domains import types_of
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.scope import Scope
from tailgate.sql.binder.types.coercion import coerce
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.writes.index_expressions import stored_value
from tailgate.sql.binder.writes.targets import assigned, check_of, default_of, empty_level, scope_of
from tailgate.sql.grammar.names import position as position_of
from tailgate.sql.grammar.parser import parse_expression
from tailgate.sql.numeric_types import WITH_GENERAL, typed_by
from tailgate.sql.plan import Column, Scalar
from tailgate.sql.sequence_definitions import altered
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.statements.tables import SetType
from tailgate.sql.tables.columns import readers_of
from tailgate.sql.tables.constraints import check_key_types, check_reference_types
from tailgate.sql.tables.definition import type_name
from tailgate.sql.tables.identity import check_identity_type, owned_sequence
from tailgate.sql.tables.storage.changes import with_collation, with_default_storage

CONVERSION = "Convert the values in another column: ADD COLUMN, UPDATE, DROP COLUMN and RENAME COLUMN."


@typed_by(WITH_GENERAL)
def new_value(action: SetType, before: Table, catalog: Catalog) -> Scalar:
    """Returns the new value of a column, over the columns of the table before the statement. Raises 42804, 0A000, 42803."""
    position = next(i for i, column in enumerate(before.columns) if column.name == action.column)
    old = before.columns[position]
    scalar: Scalar = Column(position, old.type)
    if action.using is not None:
        scalar = _transformed(action, before, catalog)
    try:
        return assigned(replace(old, type=action.type), scalar, Parameters(), None)
    except DatatypeMismatch:
        shown = action.type.facts.sql + "[]" * action.type.is_array
        if action.using is not None:
            message = f'result of USING clause for column "{old.name}" cannot be cast automatically to type {shown}'
            raise DatatypeMismatch(message, hint="You might need to add an explicit cast.") from None
        raise DatatypeMismatch(
            f'column "{old.name}" cannot be cast automatically to type {shown}',
            hint=f'You might need to specify "USING {old.name}::{action.type}".',
        ) from None


def _transformed(action: SetType, before: Table, catalog: Catalog) -> Scalar:
    assert action.using is not None
    try:
        tree = parse_expression(action.using)
        if (inner := next(tree.find_all(exp.Select), None)) is not None:
            raise FeatureNotSupported("cannot use subquery in transform expression", position=position_of(inner.parent or inner))
        binder = Expressions(scope_of(before, None), empty_level(Parameters(), catalog), "transform expressions", aggregates=False)
        return binder.bind(tree)
    except TailgateError as error:
        if error.position is not None:
            error.position += action.position
        raise


def retyped_column(table: Table, position: int, action: SetType, catalog: Catalog) -> Change:
    """Returns the change that gives a column another type. Raises 0A000, 42804, 42704, 22023."""
    column = table.columns[position]
    new = replace(column, type=action.type, domain=action.domain)
    readers = readers_of(table, position, catalog)
    if readers:
        raise FeatureNotSupported(
            "cannot alter type of a column used by a view or rule",
            detail=f'rule _RETURN on {described(catalog, readers[0])} depends on column "{column.name}"',
        )
    put: list[Sequence] = []
    if column.name in table.identity:
        check_identity_type(action.type)
        put.append(altered(owned_sequence(column, table, catalog), SequenceOptions(type=action.type)))
    columns = tuple(new if i == position else other for i, other in enumerate(table.columns))
    after = replace(table, columns=columns, defaults=dict(table.defaults) | _default(table, column, new))
    after = with_collation(with_default_storage(after, position), position, action.collation)
    _check_constraints(after, position, action, catalog.apply(Change(put=(after,))))
    return Change(put=(after, *put))


def _default(table: Table, old: Field, new: Field) -> dict[str, str]:
    """Returns the default of a column with another type, by the column's name. Raises 42804."""
    text = table.defaults.get(old.name)
    if text is None:
        return {}
    level = empty_level(Parameters(), types_of((old,)))
    own = Expressions(Scope(), level, "DEFAULT expressions", aggregates=False).bind(parse_expression(text)).type
    value, bare = Column(0, old.type if own == UNKNOWN else own), replace(new.type, modifiers=(), declared=True)
    if coerce(value, bare, Parameters(), "assignment") is None:
        shown = new.type.facts.sql + "[]" * new.type.is_array
        raise DatatypeMismatch(f'default for column "{old.name}" cannot be cast automatically to type {shown}')
    try:
        default_of(new, text)
    except TailgateError:
        text = f"CAST(({text}) AS {type_name(old.type)})"
    return {old.name: text}


def _check_constraints(after: Table, position: int, action: SetType, catalog: Catalog) -> None:
    """Raises an error if a check, key or foreign key is not possible with the new type of a column."""
    for check in after.checks:
        if position in check.columns:
            try:
                check_of(after.name, after.columns, check.text)
            except TailgateError as error:
                error.position = None
                raise
    for expression in (e for index in indexes(catalog, after.id) for e in index.computed):
        if position in expression.columns:
            try:
                stored_value(after, expression)
            except TailgateError as error:
                error.position = None
                raise
    for key in constraints.keys_of(after, catalog):
        if position in key.columns:
            check_key_types((after.columns[position].type,), "a primary key" if key.primary else "a unique constraint")
    for reference in constraints.references_of(after, catalog):
        for mine, other in zip(reference.constraint.columns, reference.constraint.references, strict=True):
            check_reference_types(reference.name, after.columns[mine], reference.referenced.columns[other])
    for reference in (r for r in constraints.references_to(after, catalog) if position in r.constraint.references):
        if action.using is not None:
            raise FeatureNotSupported(
                f'USING for a column that the foreign key "{reference.name}" references is not supported',
                hint="Drop the foreign key, and add it again.",
            )
        for mine, other in zip(reference.constraint.columns, reference.constraint.references, strict=True):
            check_reference_types(reference.name, reference.table.columns[mine], after.columns[other])


def check_rewritable(table: Table, catalog: Catalog) -> None:
    """Raises 0A000 if an item keeps rows or positions that were made from the table."""
    for item in catalog.items.values():
        if not isinstance(item, View | Index | Sequence | Function) and table.id in catalog.below(item):
            raise FeatureNotSupported(
                f"rewriting a table that {described(catalog, item)} reads is not supported",
                hint=f"Drop the {item.kind} first. {CONVERSION}",
            )


def rewritten(table: Table, catalog: Catalog) -> Change:
    """Returns the change that gives a table and all items that mention it a new id. `catalog`: contains the table as it will be."""
    check_rewritable(table, catalog)
    ids: Mapping[int, int] = {table.id: catalog.next_id}
    mentioning = [item for item in catalog.items.values() if item.id != table.id and _mentions(item, table.id)]
    access = tuple(with_new_ids(each, ids) for id, each in catalog.access.items() if id == table.id)
    put = tuple(with_ids(item, ids) for item in (replace(table, stored_names={}), *mentioning))
    return Change(put=put, drop=(table.id,), put_access=access)


def _mentions(item: object, table: int) -> bool:
    return table in getattr(item, "depends", ()) or (isinstance(item, Table) and any(key.table == table for key in item.foreign_keys))


def same_form(old: Type, new: Type) -> bool:
    """Returns whether values of two types have the same stored form, so that the rows need not be rewritten."""
    texts = ("text", "varchar")
    return old == new or (old.name in texts and new.name in texts and not old.is_array and not new.is_array)


def widens(old: Type, new: Type) -> bool:
    """Returns whether a cast changes no value, because the new type has the same stored form and is not shorter."""
    return same_form(old, new) and (not new.modifiers or (bool(old.modifiers) and old.modifiers <= new.modifiers))
