"""REASSIGN OWNED and DROP OWNED: all objects of roles, and their privileges.

Source: PostgreSQL 15, src/backend/catalog/pg_shdepend.c (shdepDropOwned, shdepReassignOwned).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.roles.default_privileges import without_roles
from tailgate.engine.ddl.roles.privileges import revoked_from
from tailgate.lake.catalog import Catalog, Change, DroppedWithOwner, Item, Sink
from tailgate.lake.catalog.roles import BUILT_IN, SCHEMA_ID, Access, Role
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import DependentObjectsStillExist, InsufficientPrivilege, ObjectNotInPrerequisiteState
from tailgate.sql.drop import Notice, removal
from tailgate.sql.statements import DropOwned, Name, ReassignOwned
from tailgate.sql.tables.owners import access_given, given


def drop_owned(statement: DropOwned, acting: Role, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that drops the objects of roles and revokes their privileges on other objects, and notices. Raises 2BP01."""
    roles = _roles(statement.roles, acting, catalog, "drop objects", "drop objects owned by")
    after, notices = catalog, list[Notice]()
    for role in roles:
        objects = [object for id, object in after.objects().items() if id in after.access and after.access[id].mentions(role.id)]
        change, warnings = revoked_from(role.id, objects, acting, after)
        after, notices = after.apply(change), [*notices, *warnings]
    ids, objects_after = {role.id for role in roles}, {**after.all_schemas(), **after.items}
    owned = {id: object for id, object in objects_after.items() if object.owner in ids and not _follows(object)}
    if SCHEMA_ID in owned:
        raise DependentObjectsStillExist(f"cannot drop schema {owned[SCHEMA_ID].name} because it is required by the database system")
    dropped, cascades = removal(owned, after, [], cascade=statement.cascade)
    access = tuple(each for id, each in after.access.items() if catalog.access.get(id) is not each)
    removed = {*dropped.drop, *dropped.drop_schemas}
    put_roles = without_roles([role.id for role in roles], catalog)
    return replace(dropped, put_roles=put_roles, put_access=tuple(each for each in access if each.id not in removed)), [*notices, *cascades]


def reassign_owned(statement: ReassignOwned, acting: Role, catalog: Catalog) -> Change:
    """Returns the change that gives all objects of roles to another role. Raises 42501."""
    roles = {role.id for role in _roles(statement.roles, acting, catalog, "reassign objects", "reassign ownership of objects owned by")}
    new = catalog.role(statement.to.name, statement.to.position)
    if not acting.superuser and new.id not in catalog.acting(acting.id):
        raise InsufficientPrivilege("permission denied to reassign objects")
    put: dict[int, Item] = {}
    access: list[Access] = []
    replacements = catalog.replacements()
    for item in (item for item in catalog.items.values() if item.owner in roles and not _follows(item)):
        if item.id in replacements or item.replaces:
            raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being replaced', hint="Try again when it is ready.")
        change = given(item, new.id, catalog)
        put |= {each.id: each for each in change.put}
        access += change.put_access
    schemas = tuple(schema for schema in catalog.schemas.values() if schema.owner in roles)
    return Change(
        put=tuple(put.values()),
        put_schemas=tuple(replace(schema, owner=new.id) for schema in schemas),
        put_access=(*access, *access_given(schemas, new.id, catalog)),
    )


def _roles(names: tuple[Name, ...], acting: Role, catalog: Catalog, action: str, verb: str) -> list[Role]:
    """Returns the roles whose objects a statement concerns. Raises 42704, 42501, and 2BP01 for a built-in role."""
    roles = [catalog.role(name.name, name.position) for name in names]
    for role in roles:
        if not acting.superuser and role.id not in catalog.acting(acting.id):
            raise InsufficientPrivilege(f"permission denied to {action}")
        if role.id in BUILT_IN:
            raise DependentObjectsStillExist(f"cannot {verb} role {role.name} because they are required by the database system")
    return roles


def _follows(object: Item | Schema) -> bool:
    """Returns whether the object belongs to another one, with which it is dropped and given to another owner."""
    return (isinstance(object, DroppedWithOwner) and bool(object.depends)) or (isinstance(object, Sink) and object.of_view)
