"""CREATE TYPE … AS ENUM and ALTER TYPE: the items of enum types, and new names of all types.

A label keeps its number, so neither a new label nor a new text of one changes a stored value (ADR 0022).

Source: PostgreSQL 15, src/backend/catalog/pg_enum.c; src/backend/commands/typecmds.c (AlterTypeOwner).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from typing_extensions import assert_never

from tailgate.engine.ddl.composites import alter_attributes
from tailgate.engine.ddl.composites import definition as composite_definition
from tailgate.lake.catalog import (
    Alert,
    Catalog,
    Change,
    Composite,
    Domain,
    Endpoint,
    Enum,
    Function,
    Index,
    Item,
    MaterializedView,
    Table,
    UserType,
    View,
)
from tailgate.lake.catalog.custom_types import LABELS_MAX, number_between, types_of
from tailgate.lake.catalog.dropping import described
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import SCHEMA
from tailgate.lake.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidName,
    InvalidParameterValue,
    ProgramLimitExceeded,
    TailgateError,
    UniqueViolation,
    WrongObjectType,
)
from tailgate.lake.keywords import quoted_text
from tailgate.sql.binder.expressions.sql_functions import tree_of
from tailgate.sql.binder.queries.function_bodies import check_body
from tailgate.sql.binder.writes.generated import values as generated_values
from tailgate.sql.binder.writes.index_expressions import stored_value
from tailgate.sql.binder.writes.targets import checks_of, default_of
from tailgate.sql.definitions import bind_definition
from tailgate.sql.drop import Notice, find_of_kind, notice
from tailgate.sql.statements import AddValue, AlterType, CreateEnum, NewOwner, RenameValue
from tailgate.sql.tables.definition import definition as table_definition
from tailgate.sql.tables.domains import definition as domain_definition
from tailgate.sql.tables.owners import access_given
from tailgate.values.strings.strings import NAME_BYTES_MAX

Labels = tuple[tuple[int, str], ...]


def create_enum(statement: CreateEnum, catalog: Catalog, owner: int) -> Change:
    """Returns the change of CREATE TYPE … AS ENUM. Raises 42710, 42602, 23505, 54000."""
    name, schema = statement.name.name, catalog.home(statement.name)
    catalog.check_new(name, schema, "type")
    labels: Labels = ()
    for label in statement.labels:
        if label in dict(labels).values():
            raise UniqueViolation(
                'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
                detail=f"Key (enumtypid, enumlabel)=({catalog.next_id}, {label}) already exists.",
            )
        labels = _with_label(labels, label, len(labels))
    item = Enum(catalog.next_id, name, schema=schema.id, owner=owner, labels=labels)
    return Change(put=(replace(item, sql=definition(item, schema.name)),))


def alter_type(statement: AlterType, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change of ALTER TYPE, and notices. Raises 42704, 42809, 42710, 22023, 42602, 54000, 0A000."""
    if isinstance(statement.action, tuple):
        return alter_attributes(statement, statement.action, catalog)
    item = find_of_kind("type", statement.name, catalog)
    assert item is not None
    if isinstance(statement.action, NewOwner):
        owner = catalog.role(statement.action.role).id
        return Change(put=(replace(item, owner=owner),), put_access=access_given((item,), owner, catalog)), []
    if not isinstance(item, Enum):
        raise WrongObjectType(f"{statement.name} is not an enum")
    texts = [text for _, text in item.labels]
    match statement.action:
        case AddValue(label=label, if_not_exists=if_not_exists, neighbor=neighbor, before=before):
            if label in texts:
                if not if_not_exists:
                    raise _duplicate(label)
                return Change(), [{**notice(f'enum label "{label}" already exists, skipping'), "sqlstate": DuplicateObject.sqlstate}]
            place = len(texts) if neighbor is None else _place(texts, neighbor) + (not before)
            labels = _with_label(item.labels, label, place)
        case RenameValue(label=label, new_label=new_label):
            place = _place(texts, label)
            if new_label in texts:
                raise _duplicate(new_label)
            _check_label(new_label)
            labels = tuple((number, new_label if i == place else text) for i, (number, text) in enumerate(item.labels))
        case _:
            assert_never(statement.action)
    after = replace(item, labels=labels)
    change = Change(put=(replace(after, sql=definition(after, catalog.schema_of(item).name)),))
    if isinstance(statement.action, RenameValue):
        _check_definitions(item, statement.action.label, catalog.stored.apply(change), catalog)
    return change, []


def with_tables(change: Change, items: Iterable[Item], catalog: Catalog) -> Change:
    """Extends a change of names with the texts of the tables, domains and composite types that have types among the items.

    Raises 0A000 if an expression of a table or index names such a type.
    """
    types = frozenset(item.id for item in items if isinstance(item, UserType))
    after = catalog.stored.apply(change)
    tables = [table for table in after.each(Table) if types & types_of(table)]
    composites = [composite for composite in after.each(Composite) if types & {composite.id, *types_of(composite)}]
    domains = [domain for domain in after.each(Domain) if types & {domain.id, *types_of(domain)}]
    indexes = [index for index in after.each(Index) if types & types_of(after[index.depends[0]])]
    dependents: list[Item] = [*tables, *indexes]
    for item in dependents:
        message = f"another name of a type that an expression of {described(catalog, item)} names is not supported"
        _check_bound(item, after, message, "Drop the default, the check, the generated column or the index first.")
    put: dict[int, Item] = {item.id: item for item in change.put}
    put |= {table.id: replace(table, sql=table_definition(table)) for table in tables}
    put |= {domain.id: replace(domain, sql=domain_definition(domain, after.schema_of(domain).name)) for domain in domains}
    put |= {of.id: replace(of, sql=composite_definition(of, after.schema_of(of).name)) for of in composites}
    return replace(change, put=tuple(put.values()))


def definition(item: Enum, schema: str) -> str:
    """Returns the CREATE TYPE statement of an enum type. `schema`: the name of its schema."""
    labels = ", ".join(quoted_text(text) for _, text in item.labels)
    return f"CREATE TYPE {Name(item.name, None if schema == SCHEMA else schema).sql} AS ENUM ({labels})"


def _with_label(labels: Labels, label: str, place: int) -> Labels:
    """Returns the labels with another one at a place. Raises 42602, 54000."""
    _check_label(label)
    if len(labels) == LABELS_MAX:
        raise ProgramLimitExceeded(f"an enum type may have at most {LABELS_MAX} labels")
    number = number_between(labels[place - 1][0] if place else None, labels[place][0] if place < len(labels) else None)
    if number is None:
        raise ProgramLimitExceeded(
            f'there is no room for another label between "{labels[place - 1][1]}" and "{labels[place][1]}"',
            hint="Create another enum type with all labels, and convert the columns with ALTER COLUMN … TYPE … USING.",
        )
    return (*labels[:place], (number, label), *labels[place:])


def _check_label(label: str) -> None:
    if len(label.encode()) > NAME_BYTES_MAX:
        raise InvalidName(f'invalid enum label "{label}"', detail=f"Labels must be {NAME_BYTES_MAX} bytes or less.")


def _place(texts: list[str], label: str) -> int:
    if label not in texts:
        raise InvalidParameterValue(f'"{label}" is not an existing enum label')
    return texts.index(label)


def _duplicate(label: str) -> DuplicateObject:
    return DuplicateObject(f'enum label "{label}" already exists')


def _check_definitions(enum: Enum, label: str, after: Catalog, catalog: Catalog) -> None:
    """Raises 0A000 if the text of a definition names the old text of a label, which has no meaning any more."""
    for item in after.items.values():
        message = f"renaming a label that {described(catalog, item)} names is not supported"
        _check_bound(item, after, message, f"Drop the {item.kind} first, or change its definition.")


def _check_bound(item: Item, catalog: Catalog, message: str, hint: str) -> None:
    """Raises 0A000 with this message if the definition of an item cannot be bound in a catalog."""
    try:
        _bind(item, catalog)
    except TailgateError as error:
        raise FeatureNotSupported(message, detail=error.message, hint=hint) from error


def _bind(item: Item, catalog: Catalog) -> None:
    if isinstance(item, View | MaterializedView | Endpoint) or (isinstance(item, Alert) and item.query):
        bind_definition(item, catalog)
    elif isinstance(item, Function):
        check_body(item, tree_of(item.query), catalog)
    elif isinstance(item, Table) and types_of(item):
        for column in item.columns:
            default_of(column, item.defaults.get(column.name))
        checks_of(item)
        generated_values(item)
    elif isinstance(item, Index):
        for expression in item.computed:
            stored_value(catalog[item.depends[0]], expression)
