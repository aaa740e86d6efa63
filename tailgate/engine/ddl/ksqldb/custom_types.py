"""CREATE TYPE and DROP TYPE of ksqlDB: the items of custom types."""

from __future__ import annotations

from tailgate.lake.catalog import Catalog, Change, CustomType
from tailgate.lake.errors import DuplicateObject, UndefinedObject
from tailgate.sql.drop import Notice, notice
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.custom_types import definition, with_types
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.types import BUILT_IN
from tailgate.sql.statements import CreateKsqldbType, DropKsqldbType


def create_type(statement: CreateKsqldbType, text: str, catalog: Catalog, owner: int) -> tuple[Change, list[Notice]]:
    """Returns the change of CREATE TYPE; `text` is the statement as typed. Raises 42710 for a name in use, and 42704 or 22023."""
    name, position = statement.name, statement.name.position
    schema = catalog.home(name)
    old = catalog.at(name.name, schema, "type")
    if isinstance(old, CustomType):
        shown = f"{ksqldb_name(name.name)} is already registered with type {types.in_schema(definition(old))}"
        if statement.statement.if_not_exists:
            return Change(), [notice(shown)]
        raise DuplicateObject(
            f"Cannot register custom type '{ksqldb_name(name.name)}' since it is already registered with type:"
            f" {types.in_schema(definition(old))}",
            position=position,
        )
    catalog.check_new(name.name, schema, "type")
    if name.name in BUILT_IN:
        raise DuplicateObject(f'type "{ksqldb_name(name.name)}" already exists', detail="It is a type of ksqlDB.", position=position)
    type = with_types(statement.statement.type, catalog)
    types.check(type)
    item = CustomType(
        catalog.next_id,
        name.name,
        sql=text,
        owner=owner,
        schema=schema.id,
        definition=types.text(type),
    )
    return Change(put=(item,)), []


def drop_type(statement: DropKsqldbType, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change of DROP TYPE. Raises 42704 if the type does not exist."""
    name = ksqldb_name(statement.name.name)
    item = catalog.find(statement.name, "type")
    if not isinstance(item, CustomType):
        item = None
    if item is None and statement.if_exists:
        return Change(), [notice(f"Type '{name}' does not exist")]
    if item is None:
        raise UndefinedObject(f"Type {name} does not exist.", position=statement.name.position)
    return Change(drop=(item.id,)), []
