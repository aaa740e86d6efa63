"""The privileges that a role needs to run a statement that changes the catalog or the session.

A statement kind lists the needs of a statement (`kinds`). They name objects as the statement does;
`tailgate.gateway.security.ownership` resolves the names and checks the needs of a role. A superuser
needs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tailgate.lake.catalog.item_fields import Namespace
from tailgate.lake.catalog.names import Name
from tailgate.lake.types import Type
from tailgate.sql.statements.definitions import FunctionName


@dataclass(frozen=True, slots=True)
class CreateItem:
    """CREATE in the schema of a new item. `replaces`: also the ownership of an item with this name."""

    name: Name
    replaces: bool = False
    namespace: Namespace = "relation"


@dataclass(frozen=True, slots=True)
class DefineFunction:
    """CREATE in the schema of a new function. `replaces`: also the ownership of a function with these arguments."""

    name: Name
    types: tuple[Type, ...]
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class CreateBeside:
    """CREATE in the schema of the existing item with this name, for a new name of it."""

    name: Name
    namespace: Namespace = "relation"


@dataclass(frozen=True, slots=True)
class OwnItems:
    """The ownership of items."""

    names: tuple[Name, ...]
    namespace: Namespace = "relation"


@dataclass(frozen=True, slots=True)
class OwnQuery:
    """The ownership of the item that a persistent query of ksqlDB maintains. `id`: of the query; None for queries that the role owns."""

    id: str | None


@dataclass(frozen=True, slots=True)
class OwnFunctions:
    """The ownership of functions."""

    functions: tuple[FunctionName, ...]


@dataclass(frozen=True, slots=True)
class OwnSchemas:
    """The ownership of schemas."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class HoldPrivilege:
    """A privilege on items, and USAGE on their schemas."""

    privilege: Literal["SELECT", "USAGE"]
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """REFERENCES on columns of a table, and USAGE on its schema. `columns`: () for its primary key."""

    table: Name
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeePlan:
    """SELECT on a relation, or the ownership of another item, whose plan EXPLAIN shows."""

    name: Name


@dataclass(frozen=True, slots=True)
class CreateInDatabase:
    """CREATE on the database, which only superusers have."""


@dataclass(frozen=True, slots=True)
class AdministerRoles:
    """The ADMIN OPTION of roles."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class BeRole:
    """The session's role itself: a role may change its own password and tokens. `action` is for the error."""

    name: Name
    action: str


@dataclass(frozen=True, slots=True)
class GiveItem:
    """The membership in a role that becomes the owner of an item. The role itself needs CREATE in the schema of the item."""

    name: Name
    role: str
    namespace: Namespace = "relation"


@dataclass(frozen=True, slots=True)
class GiveSchemas:
    """CREATE on the database, which only superusers have, if one of the roles owns a schema, which `to` gets."""

    roles: tuple[Name, ...]
    to: Name


@dataclass(frozen=True, slots=True)
class BeSuperuser:
    """A superuser. `action` is for the error: "permission denied to …"."""

    action: str = ""


Need: TypeAlias = (
    CreateItem
    | DefineFunction
    | CreateBeside
    | OwnItems
    | OwnQuery
    | OwnFunctions
    | OwnSchemas
    | HoldPrivilege
    | Reference
    | SeePlan
    | CreateInDatabase
    | AdministerRoles
    | BeRole
    | GiveItem
    | GiveSchemas
    | BeSuperuser
)
