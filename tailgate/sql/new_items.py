"""Names of new items, and the normalized texts that are stored for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change, Item
from tailgate.lake.catalog.item_fields import Namespace
from tailgate.lake.catalog.items import ItemType
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import TAILGATE, Schema, is_system
from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, ObjectNotInPrerequisiteState, UndefinedObject, WrongObjectType
from tailgate.lake.types import GENERAL, DomainType, Field, Type
from tailgate.sql.definitions import Creation, rename_references
from tailgate.sql.statements.tables import TableColumn


def schema_for(name: Name, catalog: Catalog, namespace: Namespace = "relation") -> Schema:
    """Returns the schema for a new item of this name. Raises 3F000, 42501, 42P07, 42710."""
    schema = catalog.home(name)
    catalog.check_new(name.name, schema, namespace)
    return schema


def find_item(kind: type[ItemType], name: Name, catalog: Catalog) -> ItemType:
    """Returns the item with this name, which must be of this class. Raises 3F000, 42704, 42809."""
    item = catalog.find(name)
    if item is None:
        catalog.check_schema(name)
        raise UndefinedObject(f'{kind.kind} "{name}" does not exist', position=name.position)
    if not isinstance(item, kind):
        raise WrongObjectType(f'"{item.name}" is not {with_article(kind.kind)}', position=name.position)
    return item


def with_article(kind: str) -> str:
    """Returns the kind with its article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def stored_relation(name: Name, catalog: Catalog, *, so: str, hint: str) -> Item:
    """Returns the stored relation with this name. Raises 42P01, 55000 if it is not stored, or 0A000.

    `so`: the consequence, for the error message.
    """
    relation = catalog.relation(name)
    if is_system(relation.id):
        hint = "Its rows are not in the log. Follow it with TAIL, SUBSCRIBE or a sink."
        raise FeatureNotSupported(f"the changes of {TAILGATE}.{relation.name} cannot be stored", hint=hint, position=name.position)
    if not relation.stored:
        raise ObjectNotInPrerequisiteState(f'{relation.kind} "{relation.name}" is not stored, so {so}', hint=hint, position=name.position)
    if any(column.is_dropped for column in relation.columns):
        hint = "Create a materialized view of its columns, and use that."
        raise FeatureNotSupported("following a table with dropped columns is not supported", hint=hint, position=name.position)
    return relation


def normalized(item: ItemType, statement: Creation, catalog: Catalog) -> ItemType:
    """Returns the item with its normalized text, in which names do not depend on the search path."""
    return rename_references(item, catalog, catalog.stored.apply(Change(put=(item,))), statement)


def check_columns(columns: Iterable[Field]) -> None:
    """Raises 42701 if two columns have the same name."""
    names: set[str] = set()
    for column in columns:
        if column.name in names:
            raise DuplicateColumn(f'column "{column.name}" specified more than once')
        names.add(column.name)


def known_domain(type: Type, catalog: Catalog, position: int | None = None) -> tuple[Type, DomainType | None]:
    """Returns the type of a column, and its domain, whose base type this is. Raises 42704 if the type does not exist, 0A000."""
    if type.enum is None or type.enum.id:
        return type, None
    domain = catalog.find_domain(Name(type.enum.name, type.enum.schema or None))
    if domain is None:
        return known_type(type, catalog, position), None
    if type.is_array:
        raise FeatureNotSupported("arrays of domains are not supported", hint="Use a domain over an array.", position=position)
    return domain.base.type, domain.type(catalog.schema_of(domain).name)


def known_column(column: TableColumn, catalog: Catalog) -> TableColumn:
    """Returns the column with its type looked up in the catalog. Raises 42704, 0A000."""
    type, domain = known_domain(column.type, catalog, column.type_position)
    return replace(column, type=type, domain=domain or column.domain)


def known_type(type: Type, catalog: Catalog, position: int | None = None) -> Type:
    """Returns the type; one of a parsed statement that may be a user's type is looked up in the catalog. Raises 42704."""
    if type.enum is None or type.enum.id:
        return type
    name = Name(type.enum.name, type.enum.schema or None)
    actual = catalog.find_type(name)
    if actual is None:
        raise UndefinedObject(f'type "{name}{"[]" * type.is_array}" does not exist', position=position)
    return replace(actual, is_array=type.is_array, multidimensional=type.multidimensional)


def stored_type(type: Type) -> Type:
    """Returns the type of a new column of a table: a numeric without a declared precision is general (`lake.types`)."""
    if type.name != "numeric" or (type.modifiers and type.declared):
        return type
    return GENERAL.array(multidimensional=type.multidimensional) if type.is_array else GENERAL


def stored_column(column: TableColumn) -> TableColumn:
    """Returns a new column of a table with the type of its values."""
    return replace(column, type=stored_type(column.type))


def check_built_in(type: Type, catalog: Catalog, what: str, position: int | None) -> None:
    """Raises 0A000 for multidimensional arrays, a user's type of a parsed statement, and 42704 if it does not exist.

    `what`: the column or the parameter, for the message.
    """
    if type.multidimensional:
        hint = "Use one pair of brackets."
        raise FeatureNotSupported(f"{what} of multidimensional arrays is not supported", hint=hint, position=position)
    actual, domain = known_domain(type, catalog, position)
    if actual.named or domain is not None:
        shown = actual if domain is None else domain.sql
        raise FeatureNotSupported(f"{what} of type {shown} is not supported", hint="Use text, and cast it.", position=position)
