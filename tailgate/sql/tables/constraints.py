"""The constraints of a statement as values of the catalog: their names, columns and conditions.

Source: PostgreSQL 15, src/backend/parser/parse_utilcmd.c (transformIndexConstraint), src/backend/commands/tablecmds.c
(ATAddForeignKeyConstraint, transformFkeyCheckAttrs), src/backend/catalog/heap.c (AddRelationNewConstraints).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tailgate.lake import constraints as defined
from tailgate.lake.catalog import Catalog, Index, Item, Table, check_not_system
from tailgate.lake.catalog.formats import CheckConstraint, ForeignKeyConstraint
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import is_temporary
from tailgate.lake.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidForeignKey,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    SyntaxError_,
    TailgateError,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from tailgate.lake.types import Field, Type
from tailgate.sql.binder.types.comparability import SEVERAL_FORMS
from tailgate.sql.binder.writes.targets import check_of
from tailgate.sql.functions.comparison import INCOMPARABLE
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.statements.tables import Check, ForeignKey, Unique
from tailgate.sql.tables.names import columns_part, free_name, without_table
from tailgate.sql.tables.storage.access_methods import without_default_class

INTEGERS, FLOATS, TEXTS = frozenset(("int2", "int4", "int8")), frozenset(("float4", "float8")), frozenset(("text", "varchar"))
PERMANENT_ONLY = "constraints on permanent tables may reference only permanent tables"
TEMPORARY_ONLY = "constraints on temporary tables may reference only temporary tables"
DATES = frozenset(("date", "timestamp", "timestamptz"))


def constraint_names(table: Table, catalog: Catalog) -> set[str]:
    """Returns the names of a table's constraints."""
    keys = {key.name for key in defined.keys_of(table, catalog) if key.constraint}
    return {*keys, *(check.name for check in table.checks), *(key.name for key in table.foreign_keys)}


def commented(item: Item, name: str, text: str, catalog: Catalog) -> Item:
    """Returns the item that holds a constraint of a table, with the comment on the constraint. Raises 42704."""
    if isinstance(item, Table):
        if name in [c.name for c in item.checks]:
            return replace(item, checks=tuple(replace(c, comment=text) if c.name == name else c for c in item.checks))
        if name in [k.name for k in item.foreign_keys]:
            return replace(item, foreign_keys=tuple(replace(k, comment=text) if k.name == name else k for k in item.foreign_keys))
        for key in defined.keys_of(item, catalog):
            if key.name == name and key.constraint and not key.index:
                return replace(item, key_comment=text)
            if key.name == name and key.constraint:
                index = catalog.expect(Index, key.index)
                others = {part: comment for part, comment in index.comments.items() if part != "constraint"}
                return replace(index, comments={**others, "constraint": text} if text else others)
    raise UndefinedObject(f'constraint "{name}" for table "{item.name}" does not exist')


def check_constraint(check: Check, table: Table, names: set[str], schema: str) -> CheckConstraint:
    """Returns a check of a table in a schema, whose constraints have these names. Raises 42710, and the errors of the expression."""
    try:
        read = columns_of(check_of(table.name, table.columns, without_table(check.text, table.name, schema, blank=True)))
    except TailgateError as error:
        if error.position is not None:
            error.position += check.position
        raise
    single = table.columns[next(iter(read))].name if len(read) == 1 else ""
    name = check.name or free_name(table.name, single, "check", names.__contains__)
    if name in names:
        raise _duplicate(name, table)
    text = without_table(check.text, table.name, schema)
    return CheckConstraint(name=name, text=text, columns=tuple(sorted(read)), valid=check.valid)


def _duplicate(name: str, table: Table) -> TailgateError:
    return DuplicateObject(f'constraint "{name}" for relation "{table.name}" already exists')


def key_columns(unique: Unique, columns: Sequence[Field]) -> tuple[int, ...]:
    """Returns the positions of the columns of a key. Raises 42703, 42701, and 42704 or 0A000 for their types."""
    names = [column.name for column in columns]
    for name in unique.columns:
        if name not in names:
            raise UndefinedColumn(f'column "{name}" named in key does not exist', position=unique.position)
        if unique.columns.count(name) > 1:
            what = "primary key" if unique.primary else "unique"
            raise DuplicateColumn(f'column "{name}" appears twice in {what} constraint', position=unique.position)
    positions = tuple(map(names.index, unique.columns))
    check_key_types((columns[i].type for i in positions), "a primary key" if unique.primary else "a unique constraint")
    return positions


def check_key_types(types: Iterable[Type], what: str) -> None:
    """Raises 42704 for a type without an order, and 0A000 for one whose equal values have several stored forms."""
    for type in types:
        if type.name in INCOMPARABLE:
            raise without_default_class(type, "btree")
        if type.name in SEVERAL_FORMS | {"record"} or type.is_array:
            raise FeatureNotSupported(f"{what} of type {type} is not supported")


def unique_index(unique: Unique, table: Table, catalog: Catalog, id: int) -> Index:
    """Returns the index of a UNIQUE constraint, or of a primary key that is added to a table. `id`: of a new index."""
    if unique.index is not None:
        return _adopted(unique, unique.index, table, catalog)
    columns = key_columns(unique, table.columns)
    names = constraint_names(table, catalog)
    if unique.name is not None and unique.name in names:
        raise _duplicate(unique.name, table)
    schema = catalog.schema_of(table)
    if unique.name is not None:
        catalog.check_new(unique.name, schema)
        name = unique.name
    else:
        part, label = ("", "pkey") if unique.primary else (columns_part(unique.columns), "key")
        name = free_name(table.name, part, label, lambda n: n in names or n == table.name or catalog.at(n, schema) is not None)
    ascending = (False,) * len(columns)
    return Index(
        id=id,
        name=name,
        depends=(table.id,),
        owner=table.owner,
        schema=table.schema,
        positions=columns,
        descending=ascending,
        nulls_first=ascending,
        unique=True,
        enforced=True,
        constraint=True,
        primary=unique.primary,
        deferrable=unique.deferrable,
        deferred=unique.deferred,
        nulls_distinct=unique.nulls_distinct,
    )


def _adopted(unique: Unique, name: str, table: Table, catalog: Catalog) -> Index:
    """Returns an existing index as that of a constraint, with its name. Raises 42704, 42809, 55000, 42710, 42P07."""
    index, at = catalog.at(name, catalog.schema_of(table)), unique.position
    if index is None:
        raise UndefinedObject(f'index "{name}" does not exist', position=at)
    if not isinstance(index, Index):
        raise WrongObjectType(f'"{name}" is not an index')
    if index.constraint:
        raise ObjectNotInPrerequisiteState(f'index "{name}" is already associated with a constraint', position=at)
    if index.depends != (table.id,):
        raise ObjectNotInPrerequisiteState(f'index "{name}" does not belong to table "{table.name}"', position=at)
    unusual = next((n for n, order in enumerate(zip(index.descending, index.nulls_first, strict=True), 1) if any(order)), 0)
    for unusable, message in (
        (not index.unique, f'"{name}" is not a unique index'),
        (bool(index.expressions), f'index "{name}" contains expressions'),
        (index.condition is not None, f'"{name}" is a partial index'),
        (unusual > 0, f'index "{name}" column number {unusual} does not have default sorting behavior'),
    ):
        if unusable:
            detail = "Cannot create a primary key or unique constraint using such an index."
            raise WrongObjectType(message, detail=detail, position=at)
    new = unique.name or name
    if new != name:
        catalog.check_new(new, catalog.schema_of(table))
    if new in constraint_names(table, catalog):
        raise _duplicate(new, table)
    return replace(index, name=new, constraint=True, primary=unique.primary, deferrable=unique.deferrable, deferred=unique.deferred)


# ---- foreign keys


def foreign_key(key: ForeignKey, table: Table, catalog: Catalog, names: set[str]) -> ForeignKeyConstraint:
    """Returns a foreign key of a table whose constraints have these names. `catalog`: contains the table with its keys.

    Raises 42P01, 42809, 42P16, 42703, 42830, 42704, 42804, 42710, 42P10.
    """
    referenced = _referenced(key, table, catalog)
    if is_temporary(table.id) != is_temporary(referenced.id):
        raise InvalidTableDefinition(TEMPORARY_ONLY if is_temporary(table.id) else PERMANENT_ONLY)
    columns = _positions(key.columns, table)
    name = key.name or free_name(table.name, columns_part(key.columns), "fkey", names.__contains__)
    if name in names:
        raise _duplicate(name, table)
    if key.references:
        references = _positions(key.references, referenced)
    else:
        primary = defined.primary_key(referenced, catalog)
        if primary is None:
            raise UndefinedObject(f'there is no primary key for referenced table "{referenced.name}"')
        if primary.deferrable:
            raise ObjectNotInPrerequisiteState(f'cannot use a deferrable primary key for referenced table "{referenced.name}"')
        references = primary.columns
    if len(columns) != len(references):
        raise InvalidForeignKey("number of referencing and referenced columns for foreign key disagree")
    constraint = ForeignKeyConstraint(
        name=name,
        columns=columns,
        table=referenced.id,
        references=references,
        on_delete=key.on_delete,
        on_update=key.on_update,
        deferrable=key.deferrable,
        deferred=key.deferred,
        valid=key.valid,
        match_full=key.match_full,
        set_columns=_positions(key.set_columns, table),
    )
    if (foreign := next((i for i in constraint.set_columns if i not in columns), None)) is not None:
        shown = f'column "{table.columns[foreign].name}" referenced in ON DELETE SET action must be part of foreign key'
        raise InvalidColumnReference(shown)
    _check_actions(constraint, table)
    if len(set(references)) < len(references) or defined.referenced_key(constraint, referenced, catalog) is None:
        if any(set(k.columns) == set(references) and k.deferrable for k in defined.keys_of(referenced, catalog)):
            message = f'cannot use a deferrable unique constraint for referenced table "{referenced.name}"'
            raise ObjectNotInPrerequisiteState(message)
        raise InvalidForeignKey(f'there is no unique constraint matching given keys for referenced table "{referenced.name}"')
    for mine, other in zip(columns, references, strict=True):
        check_reference_types(name, table.columns[mine], referenced.columns[other])
    return constraint


def _check_actions(constraint: ForeignKeyConstraint, table: Table) -> None:
    """Raises 42601 for an action that would change a generated column."""
    if not any(table.columns[i].name in table.generated for i in constraint.columns):
        return
    for event, action, changing in (
        ("UPDATE", constraint.on_update, ("set null", "set default", "cascade")),
        ("DELETE", constraint.on_delete, ("set null", "set default")),
    ):
        if action in changing:
            raise SyntaxError_(f"invalid ON {event} action for foreign key constraint containing generated column")


def _referenced(key: ForeignKey, table: Table, catalog: Catalog) -> Table:
    """Returns the table that a foreign key references; it may be the table itself, which is new."""
    name = Name(key.table.name, key.table.schema)
    here = catalog.schema_of(table).name
    if (name.schema or here, name.name) == (here, table.name) and (name.schema is not None or catalog.find(name) in (None, table)):
        return table
    item: Item = catalog.named(name)
    if not isinstance(item, Table):
        raise WrongObjectType(f'referenced relation "{item.name}" is not a table')
    check_not_system(item)
    return item


def _positions(names: Sequence[str], table: Table) -> tuple[int, ...]:
    own = [column.name for column in table.columns]
    for name in names:
        if name not in own:
            raise UndefinedColumn(f'column "{name}" referenced in foreign key constraint does not exist')
    return tuple(map(own.index, names))


def check_reference_types(name: str, column: Field, referenced: Field) -> None:
    """Raises 42804 if PostgreSQL does not compare values of the columns, 0A000 if their stored forms cannot be compared."""
    mine, other = column.type, referenced.type
    families = [next((f for f in (INTEGERS, FLOATS, TEXTS) if type.name in f), frozenset((type.name,))) for type in (mine, other)]
    if mine.is_array == other.is_array and (families[0] == families[1] or (families[0] == INTEGERS and other.name == "numeric")):
        return
    shown = f'Key columns "{column.name}" and "{referenced.name}" are of incompatible types: {column.type} and {referenced.type}.'
    comparable = (
        (mine.name == "numeric" or mine.name in INTEGERS) and other.name in FLOATS,
        mine.facts.category == other.facts.category == "S",
        mine.name in DATES and other.name in DATES,
    )
    if mine.is_array == other.is_array and any(comparable):
        raise FeatureNotSupported(f'foreign key constraint "{name}" between columns of different types is not supported', detail=shown)
    raise DatatypeMismatch(f'foreign key constraint "{name}" cannot be implemented', detail=shown)


def with_foreign_keys(table: Table, keys: Sequence[ForeignKey], catalog: Catalog) -> Table:
    """Returns the table with more foreign keys. `catalog`: contains the table with its keys."""
    names = constraint_names(table, catalog) | {key.name for key in keys if key.name is not None}
    for key in keys:
        own = names - {key.name} if key.name is not None and key.name not in constraint_names(table, catalog) else names
        constraint = foreign_key(key, table, catalog, own)
        _check_triggers(table, catalog.expect(Table, constraint.table))
        names.add(constraint.name)
        table = replace(table, foreign_keys=(*table.foreign_keys, constraint))
    return table


def _check_triggers(*tables: Table) -> None:
    """Raises 0A000 if the triggers of a table are disabled: those of a new foreign key would not be."""
    for table in tables:
        if table.storage.triggers_disabled:
            raise FeatureNotSupported(
                f'a foreign key of table "{table.name}", whose triggers are disabled, is not supported',
                hint=f"Use ALTER TABLE {table.name} ENABLE TRIGGER ALL before.",
            )
