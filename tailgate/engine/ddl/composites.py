"""CREATE TYPE … AS (…), and the actions of ALTER TYPE on attributes: the items of composite types.

Source: PostgreSQL 15, src/backend/commands/typecmds.c (DefineCompositeType), tablecmds.c (find_composite_type_dependencies).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from typing_extensions import assert_never

from tailgate.lake.catalog import Catalog, Change, Composite, Table
from tailgate.lake.catalog.custom_types import check_no_column, types_of
from tailgate.lake.catalog.dropping import described
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import SCHEMA
from tailgate.lake.errors import (
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidTableDefinition,
    ProgramLimitExceeded,
    UndefinedColumn,
    UndefinedTable,
)
from tailgate.lake.types import Field
from tailgate.sql.drop import Notice, notice
from tailgate.sql.new_items import check_columns, known_domain, stored_type
from tailgate.sql.statements import (
    AddAttribute,
    AlterType,
    Attribute,
    AttributeAction,
    CreateComposite,
    DropAttribute,
    RenameAttribute,
    SetAttributeType,
)
from tailgate.sql.tables.definition import column_definitions

FIELDS_MAX = 1_600  # of a composite type, with those of its attributes; PostgreSQL's limit for the attributes alone
LEVELS_MAX = 32  # of a composite type, with those of its attributes


def create_composite(statement: CreateComposite, catalog: Catalog, owner: int) -> Change:
    """Returns the change of CREATE TYPE … AS (…). Raises 42710, 42701, 42704, 54000, 0A000."""
    name, schema = statement.name.name, catalog.home(statement.name)
    catalog.check_new(name, schema, "type")
    if (relation := catalog.at(name, schema)) is not None and relation.is_relation:
        raise DuplicateObject(f'type "{name}" already exists')
    columns = tuple(_column(attribute, catalog) for attribute in statement.attributes)
    check_columns(columns)
    item = Composite(catalog.next_id, name, columns, schema=schema.id, owner=owner)
    _check_size(item)
    return Change(put=(replace(item, sql=definition(item, schema.name)),))


def alter_attributes(statement: AlterType, actions: tuple[AttributeAction, ...], catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change of ALTER TYPE … ATTRIBUTE, and notices. Raises 42P01, 42704, 42701, 42703, 42P16, 54000, 0A000."""
    item = catalog.find(statement.name, "type")
    if not isinstance(item, Composite):
        raise UndefinedTable(f'relation "{statement.name}" does not exist')
    _check_unused(item, catalog)
    notices: list[Notice] = []
    columns = list(item.columns)
    for action in actions:
        match action:
            case AddAttribute(attribute=added):
                if added.name in [c.name for c in columns]:
                    raise DuplicateColumn(f'column "{added.name}" of relation "{item.name}" already exists')
                columns.append(_column(added, catalog))
            case DropAttribute(attribute=name, if_exists=True) if name not in [c.name for c in columns]:
                notices.append(notice(f'column "{name}" of relation "{item.name}" does not exist, skipping'))
            case DropAttribute(attribute=name):
                del columns[_place(name, columns, item)]
            case SetAttributeType(attribute=changed):
                columns[_place(changed.name, columns, item)] = _column(changed, catalog)
            case RenameAttribute(attribute=name, new_name=new):
                place = _place(name, columns, item, quoted=False)
                if new in [c.name for c in columns]:
                    raise DuplicateColumn(f'column "{new}" of relation "{item.name}" already exists')
                columns[place] = replace(columns[place], name=new)
            case _:
                assert_never(action)
    if not columns:
        raise FeatureNotSupported("a composite type without attributes is not supported")
    after = replace(item, columns=tuple(columns))
    if item.id in types_of(after):
        raise InvalidTableDefinition(f"composite type {item.name} cannot be made a member of itself")
    change = Change(put=(replace(after, sql=definition(after, catalog.schema_of(item).name)),))
    for other in catalog.stored.apply(change).each(Composite):
        if item.id in (other.id, *types_of(other)):
            _check_size(other)
    return change, notices


def definition(item: Composite, schema: str) -> str:
    """Returns the CREATE TYPE statement of a composite type. `schema`: the name of its schema."""
    return f"CREATE TYPE {Name(item.name, None if schema == SCHEMA else schema).sql} AS ({column_definitions(item.columns)})"


def _column(attribute: Attribute, catalog: Catalog) -> Field:
    """Returns an attribute with its type looked up. Raises 42704, 0A000."""
    type, domain = known_domain(attribute.type, catalog)
    if domain is not None:
        hint = f"Use {type}, and check the values in a CHECK of the table."
        raise FeatureNotSupported("an attribute of a domain is not supported", hint=hint)
    return Field(attribute.name, stored_type(type))


def _place(name: str, columns: list[Field], item: Composite, *, quoted: bool = True) -> int:
    names = [column.name for column in columns]
    if name not in names:
        of = f' of relation "{item.name}"' if quoted else ""
        raise UndefinedColumn(f'column "{name}"{of} does not exist')
    return names.index(name)


def _check_size(item: Composite) -> None:
    """Raises 54000 for a composite type that has too many fields or levels."""
    for number, level in enumerate(_levels(item.columns), 1):
        if number > FIELDS_MAX:
            raise ProgramLimitExceeded(f'type "{item.name}" has more than {FIELDS_MAX} fields, with those of its attributes')
        if level > LEVELS_MAX:
            raise ProgramLimitExceeded(f'type "{item.name}" has more than {LEVELS_MAX} levels')


def _levels(columns: Sequence[Field], level: int = 1) -> Iterator[int]:
    """Yields the level of each field of rows, and of the fields in it."""
    for column in columns:
        yield level
        yield from _levels(column.type.fields, level + 1)


def _check_unused(item: Composite, catalog: Catalog) -> None:
    """Raises 0A000 if a column of a table has values of the type, or if a definition names it or a composite type that has it."""
    check_no_column(item, catalog.each(Table))
    for type in (item, *(other for other in catalog.each(Composite) if item.id in types_of(other))):
        for other in catalog.dependents(type.id):
            names = "it" if type is item else described(catalog, type)
            message = f'cannot alter type "{item.name}" because {described(catalog, other)} names {names}'
            raise FeatureNotSupported(message, hint="Drop that first.")
