"""CREATE SCHEMA and ALTER SCHEMA: changes of the catalog."""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.alter import with_renamed_texts
from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import OPERATOR_ID, SCHEMA_ID, SCHEMA_PRIVILEGES, Access, Granted, Role, in_effect
from tailgate.lake.catalog.schemas import BUILT_IN, SCHEMA, Schema
from tailgate.lake.errors import DuplicateSchema, ObjectNotInPrerequisiteState, ReservedName
from tailgate.sql.drop import Notice, notice
from tailgate.sql.statements import AlterSchema, CreateSchema
from tailgate.sql.tables.owners import access_given


def create_schema(statement: CreateSchema, creator: str | None, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that creates a schema, and notices. `creator`: its owner by default."""
    owner = catalog.role(creator).id if creator else OPERATOR_ID
    if statement.owner is not None:
        owner = catalog.role(statement.owner.name).id
    name = statement.name or statement.owner
    assert name is not None
    _check_word(name)
    if catalog.find_schema(name.name) is not None:
        if statement.if_not_exists:
            return Change(), [{**notice(f'schema "{name.name}" already exists, skipping'), "sqlstate": "42P06"}]
        raise DuplicateSchema(f'schema "{name.name}" already exists')
    if name.name == SCHEMA:  # after DROP SCHEMA public. PUBLIC has no privileges on it
        own = Granted(owner, owner, frozenset(SCHEMA_PRIVILEGES))
        schema, access = Schema(SCHEMA_ID, SCHEMA, owner), Access(SCHEMA_ID, (own,))
        return Change(put_roles=_without_defaults(catalog), put_schemas=(schema,), put_access=(access,)), []
    return Change(put_schemas=(Schema(catalog.next_id, name.name, owner),)), []


def _without_defaults(catalog: Catalog) -> tuple[Role, ...]:
    """Returns the roles that had default privileges in schemas that were dropped, such as `public`, without these."""
    schemas = catalog.all_schemas()
    after = (replace(role, default_privileges=in_effect(role, schemas)) for role in catalog.roles.values())
    return tuple(role for role in after if role != catalog.roles[role.id])


def alter_schema(statement: AlterSchema, catalog: Catalog) -> Change:
    """Returns the change that sets the name or the owner of a schema.

    A change of the name includes the texts that contain it.
    """
    schema = catalog.schema(statement.name.name)
    if statement.owner is not None:
        owner = catalog.role(statement.owner.name).id
        return Change(put_schemas=(replace(schema, owner=owner),), put_access=access_given((schema,), owner, catalog))
    assert statement.rename is not None
    if catalog.find_schema(statement.rename.name) is not None:
        raise DuplicateSchema(f'schema "{statement.rename.name}" already exists')
    _check_word(statement.rename)
    if schema.id in BUILT_IN:
        raise ObjectNotInPrerequisiteState(f"cannot rename schema {schema.name} because it is required by the database system")
    change = Change(put_schemas=(replace(schema, name=statement.rename.name),))
    return with_renamed_texts(change, [i for i in catalog.visible if i.schema == schema.id], catalog)


def _check_word(name: Name) -> None:
    """Raises 42939 for a name with the prefix of system schemas."""
    if name.name.startswith("pg_"):
        raise ReservedName(f'unacceptable schema name "{name.name}"', detail='The prefix "pg_" is reserved for system schemas.')
