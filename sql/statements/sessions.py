"""What statements about a session say: blocks, settings, prepared statements; and those about roles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from lake.names import Name
from lake.types import Type
from sql.statements.values import QueryText

if TYPE_CHECKING:
    from sql.statements.every import Statement


@dataclass(frozen=True, slots=True)
class Begin:
    """`modes`: words of the transaction mode, in lower case: 'isolation level serializable', 'read only', …

    `start`: START TRANSACTION was written, which has a tag of its own."""

    modes: tuple[str, ...] = ()
    start: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class Release:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class Set:
    """SET [SESSION | LOCAL] name {= | TO} value, … . `values`: empty is DEFAULT. SET TRANSACTION is Set('transaction', modes),
    SET TRANSACTION SNAPSHOT Set('transaction snapshot', (name,))."""

    name: str
    values: tuple[str, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """`name`: None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    what: Literal["all", "plans", "sequences", "temp"]


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name [(types)] AS statement; `text` is the statement's, from the word after AS."""

    name: str
    types: tuple[Type, ...]
    statement: Statement
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name [(arguments)]; `arguments` is a query of one row that computes them."""

    name: str
    arguments: QueryText | None = None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """`name`: None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """`login`, `superuser`: None if not said. `password`: None without one, or to take it away; `sets_password`: whether anything is
    said of it; `password_at`: where it stands in the text, quotes included, so that it can be kept out of what is passed on."""

    login: bool | None = None
    superuser: bool | None = None
    password: str | None = field(default=None, repr=False)
    sets_password: bool = False
    password_at: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CreateRole:
    name: Name
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True, slots=True)
class AlterRole:
    name: Name
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True, slots=True)
class DropRole:
    names: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class GrantRole:
    """GRANT role, … TO member, …; REVOKE if not `grants`. `admin`: WITH ADMIN OPTION, or ADMIN OPTION FOR, which alone is revoked."""

    grants: bool
    roles: tuple[Name, ...]
    members: tuple[Name, ...]
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT, or REVOKE if not `grants`. `objects` are of the `kind`, or schemas; `roles` may be the name public, for everybody."""

    grants: bool
    privileges: tuple[str, ...]
    kind: Literal["relation", "relations of a schema", "schema", "secret", "connection"]
    objects: tuple[Name, ...]
    roles: tuple[Name, ...]
