"""CREATE, ALTER and DROP ROLE, GRANT and REVOKE: changes of the catalog.

The gateway checks who may execute these statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tailgate.engine.ddl.drop import Notice, find_of_kind, notice
from tailgate.lake.catalog import Catalog, Change, Item, Sequence
from tailgate.lake.catalog.dropping import described
from tailgate.lake.catalog.roles import BUILT_IN, PUBLIC_ID, RELATION_PRIVILEGES, SEQUENCE_PRIVILEGES, Role
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import (
    ConfigurationLimitExceeded,
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InvalidGrantOperation,
    ObjectNotInPrerequisiteState,
    ReservedName,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from tailgate.lake.passwords import kept
from tailgate.lake.types import TIMESTAMPTZ
from tailgate.sql.statements import AlterRole, CreateRole, CreateToken, DropRole, DropToken, Grant, GrantRole, Name, RoleOptions
from tailgate.values.registry import read_text

RoleStatement = CreateRole | AlterRole | DropRole | Grant | GrantRole | CreateToken | DropToken

TOKENS_MAX = 100  # of one role


def change_roles(statement: RoleStatement, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change of the catalog, and notices."""
    match statement:
        case CreateRole(name=name, options=options):
            return Change(put_roles=(_create(name, options, catalog),)), []
        case AlterRole(name=name, options=options):
            role = _changed(catalog.role(name.name, name.position), options)
            if role.id in BUILT_IN and not (role.login and role.superuser):
                raise FeatureNotSupported(f'role "{role.name}" must be a superuser who may log in', position=name.position)
            return Change(put_roles=(role,)), []
        case DropRole():
            return _drop(statement, catalog)
        case CreateToken():
            return Change(put_roles=(_with_token(statement, catalog),)), []
        case DropToken():
            return _without_token(statement, catalog)
        case GrantRole():
            return _members(statement, catalog)
        case Grant():
            return _granted(statement, catalog)


def _create(name: Name, options: RoleOptions, catalog: Catalog) -> Role:
    """Returns a new role. Raises 42939 for a reserved name, 42710 for an existing one."""
    if name.name in ("public", "none"):
        raise ReservedName(f'role name "{name.name}" is reserved', position=name.position)
    if name.name.startswith("pg_"):
        raise ReservedName(f'role name "{name.name}" is reserved', detail='Role names starting with "pg_" are reserved.')
    if catalog.find_role(name.name) is not None:
        raise DuplicateObject(f'role "{name.name}" already exists', position=name.position)
    return _changed(Role(catalog.next_id, name.name), options)


def _changed(role: Role, options: RoleOptions) -> Role:
    """Returns the role with these options."""
    login = role.login if options.login is None else options.login
    superuser = role.superuser if options.superuser is None else options.superuser
    verifier = role.verifier
    if options.sets_password:
        verifier = kept(options.password) if options.password else None
    return replace(role, login=login, superuser=superuser, verifier=verifier)


def _drop(statement: DropRole, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that removes roles, and notices.

    Raises 2BP01 if a role owns objects or has privileges, 55000 if it is built in.
    """
    notices: list[Notice] = []
    dropped_ids: list[int] = []
    for name in statement.names:
        role = catalog.find_role(name.name)
        if role is None and statement.if_exists:
            notices.append(notice(f'role "{name.name}" does not exist, skipping'))
            continue
        role = catalog.role(name.name, name.position)
        if role.id in BUILT_IN:
            raise ObjectNotInPrerequisiteState(f'role "{role.name}" is required by the system and cannot be dropped')
        objects: dict[int, Item | Schema] = {**catalog.all_schemas(), **catalog.items}
        details = [f"owner of {described(catalog, o)}" for o in objects.values() if o.owner == role.id]
        details += [f"privileges for {described(catalog, objects[o])}" for o in role.grants if o in objects]
        details += [
            f"privileges for column {column.name} of {described(catalog, item)}"
            for item in catalog.items.values()
            for column in (item.columns[position] for position in sorted(role.column_grants.get(item.id, ())))
            if not column.is_dropped
        ]
        if details:
            raise DependentObjectsStillExist(
                f'role "{role.name}" cannot be dropped because some objects depend on it', detail="\n".join(details)
            )
        dropped_ids.append(role.id)
    remaining = (r for r in catalog.roles.values() if r.id not in dropped_ids and not r.member_of.keys().isdisjoint(dropped_ids))
    members = tuple(replace(r, member_of={g: admin for g, admin in r.member_of.items() if g not in dropped_ids}) for r in remaining)
    return Change(put_roles=members, drop_roles=tuple(dropped_ids)), notices


def _with_token(statement: CreateToken, catalog: Catalog) -> Role:
    """Returns the role with a new token. Raises 42710 for an existing name, 55000 in a lake without roles."""
    if not catalog.has_roles:
        hint = "CREATE ROLE first. Until then every client on this machine may do everything, and no other client anything."
        raise ObjectNotInPrerequisiteState("tokens need roles", hint=hint)
    assert statement.hash is not None  # the gateway adds it
    role = catalog.role(statement.role.name, statement.role.position)
    if statement.name in role.tokens:
        raise DuplicateObject(f'role "{role.name}" already has a token "{statement.name}"')
    if len(role.tokens) >= TOKENS_MAX:
        raise ConfigurationLimitExceeded("too many tokens", detail=f"A role can have {TOKENS_MAX}.", hint="Drop those that are not used.")
    ends = dict(role.token_ends_ms)
    if statement.until is not None:
        until = read_text(statement.until, TIMESTAMPTZ)
        assert isinstance(until, int)
        ends[statement.name] = until // 1000
    return replace(role, tokens={**role.tokens, statement.name: statement.hash}, token_ends_ms=ends)


def _without_token(statement: DropToken, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that removes a token, and notices. Raises 42704 if it does not exist."""
    role = catalog.role(statement.role.name, statement.role.position)
    if statement.name not in role.tokens:
        message = f'token "{statement.name}" of role "{role.name}" does not exist'
        if not statement.if_exists:
            raise UndefinedObject(message)
        return Change(), [notice(f"{message}, skipping")]
    tokens = {name: hash for name, hash in role.tokens.items() if name != statement.name}
    ends = {name: end for name, end in role.token_ends_ms.items() if name in tokens}
    return Change(put_roles=(replace(role, tokens=tokens, token_ends_ms=ends),)), []


def _members(statement: GrantRole, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that grants or revokes membership in roles, and notices.

    Raises 0LP01 if two roles would be members of each other.
    """
    notices: list[Notice] = []
    changed_roles: dict[int, Role] = {}
    for group_name in statement.roles:
        if group_name.name.startswith("pg_"):
            message = f'membership in role "{group_name.name}" is not supported'
            raise FeatureNotSupported(message, hint="Grant privileges.", position=group_name.position)
        group = catalog.role(group_name.name, group_name.position)
        for name in statement.members:
            member = catalog.role(name.name, name.position)
            member = changed_roles.get(member.id, member)
            has = member.member_of.get(group.id)
            if statement.grants:
                if member.id in replace(catalog, roles={**catalog.roles, **changed_roles}).acting(group.id):
                    raise InvalidGrantOperation(f'role "{group.name}" is a member of role "{member.name}"')
                if has is not None and (has or not statement.admin):
                    notices.append(notice(f'role "{member.name}" is already a member of role "{group.name}"'))
                    continue
                changed_roles[member.id] = replace(member, member_of={**member.member_of, group.id: statement.admin})
            elif has is None:
                warning = notice(f'role "{member.name}" is not a member of role "{group.name}"')
                notices.append({**warning, "severity": "WARNING", "sqlstate": "01000"})
            else:
                memberships = {g: admin for g, admin in member.member_of.items() if g != group.id} | (
                    {group.id: False} if statement.admin else {}
                )
                changed_roles[member.id] = replace(member, member_of=memberships)
    return Change(put_roles=tuple(changed_roles.values())), notices


def _granted(statement: Grant, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that grants or revokes privileges, and warnings."""
    notices: list[Notice] = []
    objects = {id: _privileges(statement, catalog.items.get(id), notices) for id in _objects(statement, catalog)}
    of_columns = {id: _column_privileges(statement, catalog.items.get(id), privileges) for id, privileges in objects.items()}
    changed: dict[int, Role] = {}
    for name in statement.roles:
        public = catalog.all_roles()[PUBLIC_ID] if name.name == "public" else None
        role = public or catalog.role(name.name, name.position)
        columns = {id: _changed_privileges(role.column_grants.get(id, {}), of, statement.grants) for id, of in of_columns.items()}
        changed[role.id] = replace(
            role,
            grants=_changed_privileges(role.grants, objects, statement.grants),
            column_grants={id: granted for id, granted in {**role.column_grants, **columns}.items() if granted},
        )
    return Change(put_roles=tuple(changed.values())), notices


def _changed_privileges(
    before: Mapping[int, frozenset[str]], changed: Mapping[int, frozenset[str]], grants: bool
) -> dict[int, frozenset[str]]:
    """Returns privileges, by object or column, with others granted, or revoked if not `grants`."""
    after = dict(before)
    for object, privileges in changed.items():
        remaining = after.pop(object, frozenset())
        if remaining := remaining | privileges if grants else remaining - privileges:
            after[object] = remaining
    return after


def _column_privileges(statement: Grant, item: Item | None, whole: frozenset[str]) -> dict[int, frozenset[str]]:
    """Returns the privileges of a statement on columns of a relation, by position. Raises 42703, 0A000.

    As in PostgreSQL, REVOKE of privileges on the `whole` relation revokes them on its columns, too.
    """
    if item is None or not (item.is_relation or statement.of_columns):
        return {}
    if not item.is_relation:
        raise FeatureNotSupported(f"privileges on columns of a {item.kind} are not supported")
    positions = {column.name: position for position, column in enumerate(item.columns) if not column.is_dropped}
    privileges = {position: frozenset() if statement.grants else whole for position in positions.values()}
    for privilege, names in statement.of_columns:
        for name in names:
            if name not in positions:
                raise UndefinedColumn(f'column "{name}" of relation "{item.name}" does not exist')
            privileges[positions[name]] |= {privilege}
    return privileges


def _privileges(statement: Grant, item: Item | None, notices: list[Notice]) -> frozenset[str]:
    """Returns the privileges of a statement for an object. Adds a warning for those that a sequence lacks. Raises 0LP01.

    As in PostgreSQL, the relation of GRANT … ON [TABLE] may be a sequence.
    """
    privileges = frozenset(statement.privileges)
    if statement.kind not in ("relation", "relations of a schema"):
        return privileges
    if not isinstance(item, Sequence):
        if privileges <= RELATION_PRIVILEGES.keys():
            return privileges
        raise InvalidGrantOperation("invalid privilege type USAGE for table")
    if statement.all:
        return frozenset(SEQUENCE_PRIVILEGES)
    if not privileges <= SEQUENCE_PRIVILEGES.keys():
        warning = notice(f'sequence "{item.name}" only supports USAGE, SELECT, and UPDATE privileges')
        notices.append({**warning, "severity": "WARNING", "sqlstate": "0LP01"})
    return privileges & SEQUENCE_PRIVILEGES.keys()


def _objects(statement: Grant, catalog: Catalog) -> list[int]:
    """Returns the ids of the objects of a GRANT or REVOKE."""
    if statement.kind in ("type", "domain") and not statement.grants and any(name.name == "public" for name in statement.roles):
        raise FeatureNotSupported("REVOKE USAGE ON TYPE … FROM PUBLIC is not supported", hint="Every role may use all types.")
    if statement.kind in ("secret", "connection", "endpoint", "sequence", "type", "domain"):
        return [_reached(name, statement.kind, catalog).id for name in statement.objects]
    if statement.kind != "relation":
        schemas = [catalog.schema(name.name).id for name in statement.objects]
        inside = [i for i in catalog.items.values() if i.schema in schemas]
        match statement.kind:
            case "schema":
                return schemas
            case "sequences of a schema":
                return [i.id for i in inside if isinstance(i, Sequence)]
            case _:
                return [i.id for i in inside if i.is_relation]
    return [_relation(name, catalog).id for name in statement.objects]


def _reached(name: Name, kind: str, catalog: Catalog) -> Item:
    item = find_of_kind(kind, name, catalog)
    assert item is not None
    return item


def _relation(name: Name, catalog: Catalog) -> Item:
    item = catalog.find(name)
    if isinstance(item, Sequence):
        return item
    if item is not None and not item.is_relation:
        raise WrongObjectType(f'"{name.name}" is a {item.kind}', position=name.position)
    return catalog.named(name)
