"""Roles: who may log in, and the privileges that they have on objects. Part of the catalog.

A lake without roles trusts every client on its machine. The first CREATE ROLE ends that. From then on there
are the created roles and OPERATOR, a superuser that always exists. The grants of PUBLIC apply to everyone.

    catalog.may(role, privilege, object)   superusers: all privileges; others: those granted to them, to a role that they
                                           are members of, or to PUBLIC, on the object or on its columns

A member has the ownership and privileges of its roles, at any depth, but not their SUPERUSER and LOGIN attributes.

Source: PostgreSQL 15, chapter 22, "Database Roles"; section 5.7, "Privileges".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from tailgate.lake.catalog.formats import Record, option

SCHEMA_ID = 2200  # PostgreSQL's oid of the schema public
PUBLIC_ID, OPERATOR_ID = 0, 10

ATTRIBUTES = ("login", "superuser", "createrole", "createdb", "replication", "bypassrls")  # of a role; each option has an opposite with NO

# letters in PostgreSQL's access lists, in its order, by kind of object
RELATION_PRIVILEGES = {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t"}
COLUMN_PRIVILEGES = {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "REFERENCES": "x"}
SCHEMA_PRIVILEGES = {"USAGE": "U", "CREATE": "C"}
SEQUENCE_PRIVILEGES = {"SELECT": "r", "UPDATE": "w", "USAGE": "U"}
DATABASE_PRIVILEGES = {"CREATE": "C", "TEMPORARY": "T", "CONNECT": "c"}
CONNECTION_PRIVILEGES = {"USAGE": "U"}  # also of secrets
TYPE_PRIVILEGES = {"USAGE": "U"}  # which every role has until it is revoked from PUBLIC
ENDPOINT_PRIVILEGES = {"EXECUTE": "X"}
PRIVILEGES_OF: Mapping[str, Mapping[str, str]] = {  # by kind of object; others are relations
    "database": DATABASE_PRIVILEGES,
    "schema": SCHEMA_PRIVILEGES,
    "secret": CONNECTION_PRIVILEGES,
    "connection": CONNECTION_PRIVILEGES,
    "endpoint": ENDPOINT_PRIVILEGES,
    "type": TYPE_PRIVILEGES,
    "enum": TYPE_PRIVILEGES,
    "composite": TYPE_PRIVILEGES,
    "domain": TYPE_PRIVILEGES,
    "sequence": SEQUENCE_PRIVILEGES,
}


@dataclass(frozen=True, slots=True)
class Granted(Record):
    """An entry of an access list: the privileges that one role has granted to another one.

    `options`: those of `privileges` that the grantee may grant, too.
    """

    grantee: int
    grantor: int
    privileges: frozenset[str]
    options: frozenset[str] = frozenset()


AccessList: TypeAlias = tuple[Granted, ...]


@dataclass(frozen=True, slots=True)
class Access(Record):
    """The privileges on an item, a schema or the database after GRANT or REVOKE. Other objects have none of these: see `default_entries`.

    - `id`: of the object. `entries`: None while only privileges on columns were granted.
    - `columns`: by the position of the column.
    """

    id: int
    entries: AccessList | None = None
    columns: Mapping[int, AccessList] = field(default_factory=dict)

    def mentions(self, role: int) -> bool:
        """Returns whether a role has or has granted privileges on the object or its columns."""
        return any(mentions(entries, role) for entries in (self.entries or (), *self.columns.values()))


def mentions(entries: AccessList, role: int) -> bool:
    """Returns whether a role has or has granted privileges of a list."""
    return any(role in (entry.grantee, entry.grantor) for entry in entries)


class Object(Protocol):
    """An item, a schema or the database.

    `privileges`: those that can be granted, with their letters. `privileges_of_everyone`: those that PUBLIC has by default.
    """

    @property
    def id(self) -> int: ...
    @property
    def owner(self) -> int: ...
    @property
    def privileges(self) -> Mapping[str, str]: ...
    @property
    def privileges_of_everyone(self) -> frozenset[str]: ...


def default_entries(object: Object) -> AccessList:
    """Returns the access list of an object before the first GRANT or REVOKE on it: of its owner, and maybe of PUBLIC."""
    own = Granted(object.owner, object.owner, frozenset(object.privileges))
    if not object.privileges_of_everyone:
        return (own,)
    everyone = Granted(PUBLIC_ID, object.owner, object.privileges_of_everyone)
    return (own, everyone) if object.id == SCHEMA_ID else (everyone, own)


DefaultKind: TypeAlias = Literal["relation", "sequence", "type", "schema"]


@dataclass(frozen=True, slots=True)
class DefaultPrivileges(Record):
    """The privileges on objects of a kind that a role will create, after ALTER DEFAULT PRIVILEGES.

    - `schema`: in which they are created; then `entries` are added to those of all schemas. 0 for all schemas.
    - `entries`: for all schemas, the whole access list.
    """

    schema: int
    kind: DefaultKind
    entries: AccessList


@dataclass(frozen=True, slots=True)
class Role(Record):
    """A user or group.

    - `createrole`: it may create, alter and drop roles that are not superusers, and grant them. `createdb`, `replication` and
      `bypassrls` have no effect: there is one database, no replication protocol and no row security.
    - `connection_limit`: of its sessions at once, -1 for none. `valid_until`: the end of its password, in µs since the epoch.
    - `verifier`: of the password, in PostgreSQL's form of SCRAM-SHA-256; None without a password.
    - `tokens`: hashes of bearer tokens, by name (`lake.passwords`). `token_ends_ms`: when tokens end, in ms since the epoch.
    - `member_of`: ids of roles, with whether this role may add members to them (ADMIN OPTION).
    - `settings`: of its sessions, from ALTER ROLE … SET. `comment`: from COMMENT ON ROLE. Those of PUBLIC are the database's.
    - `other_settings`: from ALTER ROLE … IN DATABASE …; those of PUBLIC are from ALTER ROLE ALL.
    - `default_privileges`: on objects that it creates. A list of a schema that was dropped has no effect.
    - `grants`, `column_grants`: as earlier versions stored privileges: by object, and by relation and position of the column. None
      in roles of this version.
    """

    id: int
    name: str
    login: bool = field(default=False, metadata=option(always=True))
    superuser: bool = field(default=False, metadata=option(always=True))
    verifier: str | None = field(default=None, repr=False, metadata=option(always=True))
    grants: Mapping[int, frozenset[str]] | None = None
    member_of: Mapping[int, bool] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    token_ends_ms: Mapping[str, int] = field(default_factory=dict)
    column_grants: Mapping[int, Mapping[int, frozenset[str]]] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    other_settings: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    default_privileges: tuple[DefaultPrivileges, ...] = ()
    createrole: bool = False
    createdb: bool = False
    replication: bool = False
    bypassrls: bool = False
    connection_limit: int = -1
    valid_until: int | None = None


def in_effect(role: Role, schemas: Collection[int]) -> tuple[DefaultPrivileges, ...]:
    """Returns the default privileges of a role for all schemas, and for those that exist."""
    return tuple(each for each in role.default_privileges if not each.schema or each.schema in schemas)


def includes(entries: AccessList, roles: Collection[int], privilege: str, *, grant: bool = False) -> bool:
    """Returns whether one of the roles or PUBLIC has a privilege, or with `grant` may grant it."""
    return any(privilege in (e.options if grant else e.privileges) and (e.grantee in roles or e.grantee == PUBLIC_ID) for e in entries)


def without_grants(
    roles: Mapping[int, Role], access: Mapping[int, Access], objects: Collection[Object]
) -> tuple[Mapping[int, Role], Mapping[int, Access]]:
    """Returns roles without the privileges that earlier versions stored in them, and the privileges on objects with these."""
    if all(role.grants is None for role in roles.values()):
        return roles, access
    after = dict(access)
    for role, grants in ((role, role.grants) for role in roles.values() if role.grants is not None):
        of_columns = role.column_grants or {}
        for object in (o for o in objects if o.id in {*after, *grants, *of_columns, SCHEMA_ID} and o.owner != role.id):
            old, whole = after.get(object.id, Access(object.id)), grants.get(object.id, frozenset())
            if role.id == PUBLIC_ID and object.id != SCHEMA_ID:
                whole |= object.privileges_of_everyone  # on types: nobody could revoke them
            entries = _with_grant(old.entries or default_entries(object), role.id, object.owner, whole)
            granted = of_columns.get(object.id, {})
            words = {column: granted.get(column, frozenset()) for column in (*old.columns, *granted)}
            lists = {c: _with_grant(old.columns.get(c, ()), role.id, object.owner, of) for c, of in words.items()}
            changed = None if set(entries) == set(default_entries(object)) else entries
            after[object.id] = Access(object.id, changed, {c: entries for c, entries in lists.items() if entries})
    return (
        {id: replace(role, grants=None, column_grants=None) for id, role in roles.items()},
        {id: each for id, each in after.items() if each.entries is not None or each.columns},
    )


def _with_grant(entries: AccessList, role: int, owner: int, privileges: frozenset[str]) -> AccessList:
    others = tuple(entry for entry in entries if entry.grantee != role)
    return (*others, Granted(role, owner, privileges)) if privileges else others


def given(access: Access, old: int, new: int) -> Access:
    """Returns the privileges on an object with another owner, which has those of the old owner and has granted what that had granted."""
    entries = None if access.entries is None else _given(access.entries, old, new)
    return replace(access, entries=entries, columns={column: _given(of, old, new) for column, of in access.columns.items()})


def _given(entries: AccessList, old: int, new: int) -> AccessList:
    """Returns the entries with a role in the place of another one; those of the same roles become one."""
    after: dict[tuple[int, int], Granted] = {}
    for entry in entries:
        grantee, grantor = (new if role == old else role for role in (entry.grantee, entry.grantor))
        other = after.get((grantee, grantor), Granted(grantee, grantor, frozenset()))
        after[grantee, grantor] = replace(other, privileges=other.privileges | entry.privileges, options=other.options | entry.options)
    return tuple(after.values())


def following(access: Mapping[int, Access], before: Mapping[int, Object], after: Mapping[int, Object]) -> dict[int, Access]:
    """Returns the privileges on objects that remain, with the new owners of those that were given to another role.

    A change may have a new owner and no privileges: ALTER DOMAIN, a change of an earlier version, or a block, if others have granted some
    before it was committed.
    """
    remaining = ((each, before[id].owner, after[id].owner) for id, each in access.items() if id in before and id in after)
    return {each.id: each if old == new else given(each, old, new) for each, old, new in remaining}


def with_new_ids(access: Access, ids: Mapping[int, int]) -> Access:
    """Returns the privileges on an object that gets another id."""
    return replace(access, id=ids.get(access.id, access.id))


OPERATOR = Role(OPERATOR_ID, "tailgate", login=True, superuser=True)
PUBLIC = Role(PUBLIC_ID, "public")
BUILT_IN: Mapping[int, Role] = {PUBLIC_ID: PUBLIC, OPERATOR_ID: OPERATOR}
