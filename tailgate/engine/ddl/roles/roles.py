"""CREATE, ALTER and DROP ROLE, settings, tokens, and GRANT and REVOKE of roles: changes of the catalog.

The gateway checks who may execute these statements; `privileges` and `owned` check it themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tailgate.engine.ddl.roles.default_privileges import alter_default_privileges
from tailgate.engine.ddl.roles.owned import drop_owned, reassign_owned
from tailgate.engine.ddl.roles.privileges import change_privileges
from tailgate.lake.catalog import Catalog, Change, Item
from tailgate.lake.catalog.dropping import described
from tailgate.lake.catalog.roles import ATTRIBUTES, BUILT_IN, PUBLIC_ID, Access, DefaultPrivileges, Role, in_effect, mentions
from tailgate.lake.errors import (
    ConfigurationLimitExceeded,
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InvalidGrantOperation,
    ObjectInUse,
    ObjectNotInPrerequisiteState,
    ReservedName,
    UndefinedObject,
)
from tailgate.lake.passwords import kept
from tailgate.lake.types import TIMESTAMPTZ
from tailgate.sql.drop import Notice, notice
from tailgate.sql.statements import (
    AlterDefaultPrivileges,
    AlterRole,
    AlterSettings,
    Comment,
    CreateRole,
    CreateToken,
    DropOwned,
    DropRole,
    DropToken,
    Grant,
    GrantRole,
    Name,
    ReassignOwned,
    RoleOptions,
)
from tailgate.values.registry import read_text

RoleStatement = (
    CreateRole
    | AlterRole
    | AlterSettings
    | AlterDefaultPrivileges
    | DropRole
    | Grant
    | GrantRole
    | CreateToken
    | DropToken
    | DropOwned
    | ReassignOwned
)

TOKENS_MAX = 100  # of one role
SETTINGS_MAX = 100  # of one role, and of the database


def change_roles(statement: RoleStatement, acting: Role, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change of the catalog by the role `acting`, and notices."""
    match statement:
        case CreateRole(name=name, options=options):
            return _created(name, options, catalog)
        case AlterRole(name=name, rename=Name() as new):
            return Change(put_roles=(_renamed(catalog.role(name.name, name.position), new, acting, catalog),)), []
        case AlterRole(name=name, options=options):
            role = _changed(catalog.role(name.name, name.position), options)
            if role.id in BUILT_IN and not (role.login and role.superuser):
                raise FeatureNotSupported(f'role "{role.name}" must be a superuser who may log in', position=name.position)
            return Change(put_roles=(role,)), []
        case AlterSettings():
            role = _with_setting(statement, catalog)
            return Change(put_roles=(role,) if role != catalog.all_roles()[role.id] else ()), []
        case AlterDefaultPrivileges():
            _check_roles("default privileges", catalog)
            return alter_default_privileges(statement, acting, catalog), []
        case DropRole():
            return _drop(statement, acting, catalog)
        case CreateToken():
            return Change(put_roles=(_with_token(statement, catalog),)), []
        case DropToken():
            return _without_token(statement, catalog)
        case GrantRole():
            return _members(statement, catalog)
        case Grant():
            return change_privileges(statement, acting, catalog)
        case DropOwned():
            return drop_owned(statement, acting, catalog)
        case ReassignOwned():
            return reassign_owned(statement, acting, catalog), []


def _created(name: Name, options: RoleOptions, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that creates a role with its memberships, and notices."""
    _check_name(name, catalog)
    role = _changed(Role(catalog.next_id, name.name), options)
    roles, notices = {role.id: role}, list[Notice]()
    grants = [(options.in_roles, (name,), False), ((name,), options.members, False), ((name,), options.admins, True)]
    for groups, members, admin in grants:
        change, more = _members(GrantRole(True, groups, members, admin), catalog.apply(Change(put_roles=tuple(roles.values()))))
        roles |= {each.id: each for each in change.put_roles}
        notices += more
    return Change(put_roles=tuple(roles.values())), notices


def _renamed(role: Role, name: Name, acting: Role, catalog: Catalog) -> Role:
    """Returns the role with another name. Raises 0A000 for the session's role and a built-in one."""
    if role.id == acting.id:
        raise FeatureNotSupported("current user cannot be renamed")
    if role.id in BUILT_IN:
        raise FeatureNotSupported(f'role "{role.name}" cannot be renamed', position=name.position)
    _check_name(name, catalog)
    return replace(role, name=name.name)


def _check_name(name: Name, catalog: Catalog) -> None:
    """Raises 42939 for a reserved name, 42710 for that of a role."""
    if name.name in ("public", "none"):
        raise ReservedName(f'role name "{name.name}" is reserved', position=name.position)
    if name.name.startswith("pg_"):
        raise ReservedName(f'role name "{name.name}" is reserved', detail='Role names starting with "pg_" are reserved.')
    if catalog.find_role(name.name) is not None:
        raise DuplicateObject(f'role "{name.name}" already exists', position=name.position)


def _changed(role: Role, options: RoleOptions) -> Role:
    """Returns the role with these options."""
    values = {name: getattr(options, name) for name in (*ATTRIBUTES, "connection_limit")}
    changes: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if options.sets_password:
        changes["verifier"] = kept(options.password) if options.password else None
    if options.until is not None:
        changes["valid_until"] = _moment(options.until)
    return replace(role, **changes)


def _moment(text: str) -> int:
    """Returns a timestamp in µs since the epoch. The gateway has written its time zone into the text."""
    moment = read_text(text, TIMESTAMPTZ)
    assert isinstance(moment, int)
    return moment


def comment_on_role(statement: Comment, catalog: Catalog) -> Change:
    """Returns the change that sets the comment of a role or of the database."""
    role = _bearer(None if statement.kind == "database" else statement.name, "comments on a role", catalog)
    return Change(put_roles=(replace(role, comment=statement.text or ""),))


def _check_roles(what: str, catalog: Catalog) -> None:
    """Raises 55000 in a lake without roles, which properties of a built-in role would end."""
    if not catalog.has_roles:
        hint = "CREATE ROLE first. Until then every client on this machine may do everything, and no other client anything."
        raise ObjectNotInPrerequisiteState(f"{what} need roles", hint=hint)


def _bearer(name: Name | None, properties: str, catalog: Catalog) -> Role:
    """Returns the role with this name or, for the database, PUBLIC. Raises 55000 for properties of a role in a lake without roles."""
    if name is None:
        return catalog.all_roles()[PUBLIC_ID]
    role = catalog.role(name.name)
    _check_roles(properties, catalog)
    return role


def _with_setting(statement: AlterSettings, catalog: Catalog) -> Role:
    """Returns the role with the setting, or PUBLIC with that of the database or of all roles."""
    role = _bearer(statement.role, "settings of a role", catalog)
    own = bool(statement.database) == (statement.role is None)
    before = role.settings if own else role.other_settings
    settings = {name: value for name, value in before.items() if name != (statement.setting or name)}
    if statement.setting is not None and statement.values:
        settings[statement.setting] = ", ".join(statement.values)
    if len(settings) > SETTINGS_MAX:
        raise ConfigurationLimitExceeded("too many settings", detail=f"A role can have {SETTINGS_MAX}.")
    return replace(role, settings=settings) if own else replace(role, other_settings=settings)


def _drop(statement: DropRole, acting: Role, catalog: Catalog) -> tuple[Change, list[Notice]]:
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
        if role.id == acting.id:
            raise ObjectInUse("current user cannot be dropped")
        if role.id in BUILT_IN:
            raise ObjectNotInPrerequisiteState(f'role "{role.name}" is required by the system and cannot be dropped')
        if details := _objects(role, catalog):
            raise DependentObjectsStillExist(
                f'role "{role.name}" cannot be dropped because some objects depend on it', detail="\n".join(details)
            )
        dropped_ids.append(role.id)
    remaining = (r for r in catalog.roles.values() if r.id not in dropped_ids and not r.member_of.keys().isdisjoint(dropped_ids))
    members = tuple(replace(r, member_of={g: admin for g, admin in r.member_of.items() if g not in dropped_ids}) for r in remaining)
    return Change(put_roles=members, drop_roles=tuple(dropped_ids)), notices


def _objects(role: Role, catalog: Catalog) -> list[str]:
    """Returns descriptions of the objects that a role owns, and of those on which it has or has granted privileges."""
    lines: list[str] = []
    schemas = catalog.all_schemas()
    for owner in catalog.roles.values():
        for defaults in in_effect(owner, schemas):
            if owner.id == role.id:
                lines.append(f"owner of {_described(defaults, owner, catalog)}")
            elif mentions(defaults.entries, role.id):
                lines.append(f"privileges for {_described(defaults, owner, catalog)}")
    for id, object in sorted(catalog.objects().items()):
        access = catalog.access.get(id, Access(id))
        if object.owner == role.id:
            lines.append(f"owner of {described(catalog, object)}")
        elif mentions(access.entries or (), role.id):
            lines.append(f"privileges for {described(catalog, object)}")
        for place, entries in sorted(access.columns.items()):
            if isinstance(object, Item) and object.owner != role.id and mentions(entries, role.id) and not object.columns[place].is_dropped:
                lines.append(f"privileges for column {object.columns[place].name} of {described(catalog, object)}")
    return lines


def _described(defaults: DefaultPrivileges, owner: Role, catalog: Catalog) -> str:
    inside = f" in schema {catalog.all_schemas()[defaults.schema].name}" if defaults.schema else ""
    return f"default privileges on new {defaults.kind}s belonging to role {owner.name}{inside}"


def _with_token(statement: CreateToken, catalog: Catalog) -> Role:
    """Returns the role with a new token. Raises 42710 for an existing name, 55000 in a lake without roles."""
    _check_roles("tokens", catalog)
    assert statement.hash is not None  # the gateway adds it
    role = catalog.role(statement.role.name, statement.role.position)
    if statement.name in role.tokens:
        raise DuplicateObject(f'role "{role.name}" already has a token "{statement.name}"')
    if len(role.tokens) >= TOKENS_MAX:
        raise ConfigurationLimitExceeded("too many tokens", detail=f"A role can have {TOKENS_MAX}.", hint="Drop those that are not used.")
    ends = dict(role.token_ends_ms)
    if statement.until is not None:
        ends[statement.name] = _moment(statement.until) // 1000
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
