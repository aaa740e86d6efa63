"""Statements about transactions, settings, prepared statements, roles and privileges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import DefaultKind
from tailgate.sql.plpgsql.functions import Output
from tailgate.sql.plpgsql.nodes import Block
from tailgate.sql.statements.values import QueryText


@dataclass(frozen=True, slots=True)
class Begin:
    """BEGIN, or START TRANSACTION if `start`, which has a different command tag.

    `modes`: the transaction modes, in lower case: 'isolation level serializable', 'read only', …
    """

    modes: tuple[str, ...] = ()
    start: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """COMMIT [AND CHAIN]."""

    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    """ROLLBACK [AND CHAIN]."""

    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    """SAVEPOINT name."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    """RELEASE [SAVEPOINT] name."""

    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    """ROLLBACK TO [SAVEPOINT] name."""

    name: str


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """SET CONSTRAINTS {ALL | name, …} {DEFERRED | IMMEDIATE}. `names`: () for ALL."""

    names: tuple[Name, ...]
    deferred: bool


@dataclass(frozen=True, slots=True)
class Set:
    """SET [SESSION | LOCAL] name {= | TO} value, … Empty `values` mean DEFAULT.

    SET TRANSACTION is Set('transaction', modes). SET TRANSACTION SNAPSHOT is
    Set('transaction snapshot', (name,)).
    """

    name: str
    values: tuple[str, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class AlterSystem:
    """ALTER SYSTEM SET name {= | TO} value, …, ALTER SYSTEM RESET name, or RESET ALL.

    `name`: None for ALL. `values`: () for RESET and DEFAULT.
    """

    name: str | None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET {name | ALL}. A `name` of None means ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """DISCARD {ALL | PLANS | SEQUENCES | TEMP}."""

    what: Literal["all", "plans", "sequences", "temp"]


@dataclass(frozen=True, slots=True)
class Define:
    """DEFINE name = 'value', or UNDEFINE name (`value` None): a variable of ksqlDB."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class CreateExtension:
    """CREATE EXTENSION [IF NOT EXISTS] name. The extensions of `sql.grammar.extensions` exist."""

    name: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CommentOnExtension:
    """COMMENT ON EXTENSION name IS {text | NULL}."""

    name: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Unlisten:
    """UNLISTEN {name | *}. A `channel` of None means all."""

    channel: str | None


@dataclass(frozen=True, slots=True)
class Listen:
    """LISTEN channel."""

    channel: str


@dataclass(frozen=True, slots=True)
class Notify:
    """NOTIFY channel [, 'payload']."""

    channel: str
    payload: str


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name [(arguments)]. `arguments` is a query with one row that computes them."""

    name: str
    arguments: QueryText | None = None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """DEALLOCATE [PREPARE] {name | ALL}. A `name` of None means ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Do:
    """DO [LANGUAGE plpgsql] 'code'."""

    block: Block


@dataclass(frozen=True, slots=True)
class CreateTemporaryFunction:
    """CREATE [OR REPLACE] FUNCTION pg_temp.name(OUT parameter type, …) [RETURNS record] AS 'code' LANGUAGE plpgsql."""

    name: str
    outputs: tuple[Output, ...]
    block: Block
    replace: bool


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """The options of CREATE ROLE and ALTER ROLE.

    The attributes, such as `login`, are None if not given. `password`: None if not given, or for PASSWORD NULL, which
    removes it; `sets_password` tells these apart. `password_at`: start and end of the password in the text,
    including quotes, so that it can be removed. `until`: the timestamp of VALID UNTIL as typed, with its quotes at `until_at`.
    `in_roles`, `members`, `admins`: the roles of IN ROLE, ROLE and ADMIN.
    """

    login: bool | None = None
    superuser: bool | None = None
    password: str | None = field(default=None, repr=False)
    sets_password: bool = False
    password_at: tuple[int, int] | None = field(default=None, compare=False)
    createrole: bool | None = None
    createdb: bool | None = None
    replication: bool | None = None
    bypassrls: bool | None = None
    connection_limit: int | None = None
    until: str | None = None
    until_at: tuple[int, int] | None = field(default=None, compare=False)
    in_roles: tuple[Name, ...] = ()
    members: tuple[Name, ...] = ()
    admins: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateRole:
    """CREATE {ROLE | USER | GROUP} name options."""

    name: Name
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True, slots=True)
class AlterRole:
    """ALTER {ROLE | USER | GROUP} name {options | RENAME TO rename}."""

    name: Name
    options: RoleOptions = RoleOptions()
    rename: Name | None = None


@dataclass(frozen=True, slots=True)
class AlterSettings:
    """ALTER ROLE {role | ALL} [IN DATABASE database] or ALTER DATABASE database: {SET setting TO value, … | RESET {setting | ALL}}.

    `role`: None for ALL, and for ALTER DATABASE, which is the same as ALL with IN DATABASE. `database`: '' for all databases.
    `setting`: None for ALL. `values`: () for RESET and DEFAULT. `from_current`: the value is that of the session.
    """

    role: Name | None
    database: str
    setting: str | None
    values: tuple[str, ...] = ()
    from_current: bool = False


@dataclass(frozen=True, slots=True)
class AlterDefaultPrivileges:
    """ALTER DEFAULT PRIVILEGES [FOR ROLE role, …] [IN SCHEMA schema, …], then GRANT or, if not `grants`, REVOKE.

    `roles`: () for the session's role. `schemas`: () for all schemas. `option`: as of `Grant`. `grantees` may contain `public`.
    """

    roles: tuple[Name, ...]
    schemas: tuple[Name, ...]
    grants: bool
    kind: DefaultKind
    privileges: tuple[str, ...]
    grantees: tuple[Name, ...]
    option: bool = False


@dataclass(frozen=True, slots=True)
class DropRole:
    """DROP {ROLE | USER | GROUP} [IF EXISTS] name, …"""

    names: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateToken:
    """CREATE TOKEN name FOR role [VALID UNTIL timestamp].

    `until`: as typed, at the positions `until_at` of the text. `hash`: of the token, added by the gateway; None as typed.
    """

    name: str
    role: Name
    until: str | None = None
    until_at: tuple[int, int] = field(default=(0, 0), compare=False)
    hash: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DropToken:
    """DROP TOKEN [IF EXISTS] name FOR role."""

    name: str
    role: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class GrantRole:
    """GRANT role, … TO member, … or, if not `grants`, REVOKE role, … FROM member, …

    `admin`: GRANT WITH ADMIN OPTION, or REVOKE ADMIN OPTION FOR, which revokes only this option.
    """

    grants: bool
    roles: tuple[Name, ...]
    members: tuple[Name, ...]
    admin: bool = False


GrantKind: TypeAlias = Literal[
    "relation", "relations of a schema", "sequence", "sequences of a schema", "schema", "database", "secret", "connection", "endpoint",
    "type", "domain"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT or, if not `grants`, REVOKE of privileges.

    `objects`: of the `kind`; schemas for 'relations of a schema' and 'sequences of a schema'. `roles` may contain `public`, which means
    every role. `all`: GRANT ALL, whose `privileges` are those of the kind. Relations may be sequences, which have other privileges.
    `of_columns`: privileges on columns of the relations, with the names of the columns. `option`: GRANT WITH GRANT OPTION, or REVOKE
    GRANT OPTION FOR, which revokes only this option. `cascade`: REVOKE CASCADE. `by`: the role of GRANTED BY.
    """

    grants: bool
    privileges: tuple[str, ...]
    kind: GrantKind
    objects: tuple[Name, ...]
    roles: tuple[Name, ...]
    all: bool = False
    of_columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    option: bool = False
    cascade: bool = False
    by: Name | None = None


@dataclass(frozen=True, slots=True)
class DropOwned:
    """DROP OWNED BY role, … [CASCADE | RESTRICT]."""

    roles: tuple[Name, ...]
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    """REASSIGN OWNED BY role, … TO role."""

    roles: tuple[Name, ...]
    to: Name
