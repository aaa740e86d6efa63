"""ALTER DEFAULT PRIVILEGES, and the privileges that new objects get by it.

    ALTER DEFAULT PRIVILEGES ──► the role's access lists, by schema and kind of objects
    CREATE                   ──► the owner's list for all schemas, or else PostgreSQL's ──┐
                                 the owner's list for the schema                        ──┴─► the access list of the new object

Source: PostgreSQL 15, src/backend/catalog/aclchk.c (SetDefaultACL, get_user_default_acl).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tailgate.engine.ddl.roles.access_lists import Granting
from tailgate.lake.catalog import Catalog, Change, Companion, Item, Sequence, UserType
from tailgate.lake.catalog.roles import (
    PRIVILEGES_OF,
    PUBLIC_ID,
    RELATION_PRIVILEGES,
    TYPE_PRIVILEGES,
    Access,
    AccessList,
    DefaultKind,
    DefaultPrivileges,
    Granted,
    Role,
    default_entries,
    in_effect,
)
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import InsufficientPrivilege, InvalidGrantOperation
from tailgate.sql.statements import AlterDefaultPrivileges


def alter_default_privileges(statement: AlterDefaultPrivileges, acting: Role, catalog: Catalog) -> Change:
    """Returns the change of the access lists of roles. Raises 42704, 42501 and 0LP01."""
    if statement.schemas and statement.kind == "schema":
        raise InvalidGrantOperation("cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
    if statement.grants and statement.option and any(name.name == "public" for name in statement.grantees):
        raise InvalidGrantOperation("grant options can only be granted to roles")
    grantees = [PUBLIC_ID if name.name == "public" else catalog.role(name.name).id for name in statement.grantees]
    roles = [catalog.role(name.name) for name in statement.roles] or [acting]
    changed: dict[int, Role] = {}
    for role in roles:
        if not acting.superuser and role.id not in catalog.acting(acting.id):
            raise InsufficientPrivilege(f'must be member of role "{role.name}"')
        schemas = [catalog.schema(name.name) for name in statement.schemas]
        for schema in schemas:
            if not catalog.may(role, "CREATE", schema.id):
                raise InsufficientPrivilege(f"permission denied for schema {schema.name}")
        for id in [schema.id for schema in schemas] or [0]:
            changed[role.id] = _altered(changed.get(role.id, role), id, statement, grantees, catalog)
    return Change(put_roles=tuple(role for role in changed.values() if role != catalog.all_roles()[role.id]))


def _altered(role: Role, schema: int, statement: AlterDefaultPrivileges, grantees: list[int], catalog: Catalog) -> Role:
    """Returns the role with the list of a schema, or of all for 0, after the statement."""
    lists = in_effect(role, catalog.all_schemas())
    others = tuple(each for each in lists if (each.schema, each.kind) != (schema, statement.kind))
    initial = () if schema else _initial(role.id, statement.kind)
    old = next((each.entries for each in lists if each not in others), initial)
    granting, words = Granting(role.id, catalog), frozenset(statement.privileges)
    entries = granting.changed(old, grantees, role.id, words, grants=statement.grants, option=statement.option)
    if set(entries) == set(initial):
        return replace(role, default_privileges=others)
    return replace(role, default_privileges=(*others, DefaultPrivileges(schema, statement.kind, _sorted(entries))))


def _sorted(entries: Iterable[Granted]) -> AccessList:
    return tuple(sorted(entries, key=lambda entry: (entry.grantee, entry.grantor)))


def _initial(role: int, kind: DefaultKind) -> AccessList:
    """Returns PostgreSQL's access list of a new object of a role."""
    own = Granted(role, role, frozenset(PRIVILEGES_OF.get(kind, RELATION_PRIVILEGES)))
    return (Granted(PUBLIC_ID, role, frozenset(TYPE_PRIVILEGES)), own) if kind == "type" else (own,)


def without_roles(ids: Collection[int], catalog: Catalog) -> tuple[Role, ...]:
    """Returns the roles whose default privileges change if those of some roles, and those that some roles have, are removed."""
    changed = []
    for role in catalog.roles.values():
        remaining = [] if role.id in ids else [_without_grantees(each, role, ids) for each in role.default_privileges]
        after = tuple(each for each in remaining if set(each.entries) != set(() if each.schema else _initial(role.id, each.kind)))
        if after != role.default_privileges:
            changed.append(replace(role, default_privileges=after))
    return tuple(changed)


def _without_grantees(defaults: DefaultPrivileges, role: Role, ids: Collection[int]) -> DefaultPrivileges:
    entries = tuple(entry for entry in defaults.entries if entry.grantee not in ids or entry.grantee == role.id)
    return replace(defaults, entries=entries)


def with_default_privileges(change: Change, catalog: Catalog) -> Change:
    """Returns the change of one statement with the privileges that the owners of its new objects have defined for them."""
    roles = catalog.all_roles()
    if not any(role.default_privileges for role in roles.values()):
        return change
    granted = {access.id for access in change.put_access}
    added = [
        Access(object.id, entries)
        for object, kind in _new_objects(change, catalog)
        if object.id not in granted and (entries := _entries(roles[object.owner], object, kind, catalog)) is not None
    ]
    return replace(change, put_access=(*change.put_access, *added))


def _new_objects(change: Change, catalog: Catalog) -> Iterator[tuple[Item | Schema, DefaultKind]]:
    """Yields the objects that did not exist, with their kinds. A table whose rows are rewritten gets another id, and is not new."""
    rewritten = {(old.name, old.schema, old.namespace) for id in change.drop if (old := catalog.items.get(id)) is not None}
    for item in change.put:
        if item.id in catalog.items or item.replaces or isinstance(item, Companion):
            continue
        kind: DefaultKind | None = (
            "relation" if item.is_relation else "sequence" if isinstance(item, Sequence) else "type" if isinstance(item, UserType) else None
        )
        if kind is not None and (item.name, item.schema, item.namespace) not in rewritten:
            yield item, kind
    for schema in change.put_schemas:
        if schema.id not in catalog.all_schemas():
            yield schema, "schema"


def _entries(owner: Role, object: Item | Schema, kind: DefaultKind, catalog: Catalog) -> AccessList | None:
    """Returns the access list of a new object, or None if it is PostgreSQL's."""
    lists = {each.schema: each.entries for each in owner.default_privileges if each.kind == kind}
    initial, granting = default_entries(object), Granting(owner.id, catalog)
    entries = lists.get(0, initial)
    for added in () if isinstance(object, Schema) else lists.get(object.schema, ()):
        entries = granting.granted(entries, added)
    return None if set(entries) == set(initial) else _sorted(entries)
