"""The privileges that a role needs to run a statement that changes the catalog or the session.

A statement kind lists the needs of a statement (`kinds`). They name objects as the statement does;
`tailgate.gateway.security.ownership` resolves the names and checks the needs of a role. A superuser
needs nothing. The functions `of_…` return the needs of statements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tailgate.lake.catalog.item_fields import Namespace, namespace_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.types import Type
from tailgate.sql.ksqldb.statements import CreateAs, InsertQuery
from tailgate.sql.statements import definitions as d
from tailgate.sql.statements import kafka_statements as k
from tailgate.sql.statements import queries as q
from tailgate.sql.statements import session_statements as s
from tailgate.sql.statements import tables as t
from tailgate.sql.statements import types as e
from tailgate.sql.statements.definitions import FunctionName
from tailgate.sql.statements.references import named_connections


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
    """The ownership of items. `keys`: names of the primary keys of tables are allowed, too."""

    names: tuple[Name, ...]
    namespace: Namespace = "relation"
    keys: bool = False


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
    """CREATE on the database."""


@dataclass(frozen=True, slots=True)
class OwnedBy:
    """The membership in a role that becomes the owner of a schema."""

    role: str


@dataclass(frozen=True, slots=True)
class AdministerRoles:
    """The ADMIN OPTION of roles, or CREATEROLE for those that are not superusers."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class ManageRoles:
    """CREATEROLE.

    `error`: the message without it. `names`: existing roles. `of_superusers`, `of_replication`: the messages for roles that are
    superusers or have REPLICATION. `refused`: the message for an attribute that only superusers may set, or empty. `own`: whether a role
    may do this to itself.
    """

    error: str
    names: tuple[Name, ...] = ()
    of_superusers: str = "must be superuser to alter superusers"
    of_replication: str = ""
    refused: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class BeRole:
    """The session's role itself: a role may change its own tokens. `action` is for the error."""

    name: Name
    action: str


@dataclass(frozen=True, slots=True)
class OwnDatabase:
    """The ownership of the database with this name, which only superusers have."""

    name: str


@dataclass(frozen=True, slots=True)
class ExistingDatabase:
    """The existence of the database with this name."""

    name: str


@dataclass(frozen=True, slots=True)
class GiveItem:
    """The membership in a role that becomes the owner of an item. The role itself needs CREATE in the schema of the item."""

    name: Name
    role: str
    namespace: Namespace = "relation"


@dataclass(frozen=True, slots=True)
class GiveFunction:
    """The membership in a role that becomes the owner of a function. The role itself needs CREATE in the schema of the function."""

    function: FunctionName
    role: str


@dataclass(frozen=True, slots=True)
class GiveSchemas:
    """CREATE on the database if one of the roles owns a schema, which `to` gets."""

    roles: tuple[Name, ...]
    to: Name


@dataclass(frozen=True, slots=True)
class SwitchForeignKeys:
    """A superuser, if the table has foreign keys or is referenced by them: their triggers are the system's."""

    table: Name


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
    | OwnedBy
    | AdministerRoles
    | ManageRoles
    | BeRole
    | OwnDatabase
    | ExistingDatabase
    | GiveItem
    | GiveFunction
    | GiveSchemas
    | SwitchForeignKeys
    | BeSuperuser
)
Needs: TypeAlias = tuple[Need, ...]


# --- needs of statements ------------------------------------------------------------------------------------------------------


def of_function(statement: d.CreateFunction) -> Needs:
    return (DefineFunction(statement.name, tuple(a.type for a in statement.arguments), statement.replace),)


def of_alter_function(statement: d.AlterFunction) -> Needs:
    return (OwnFunctions((statement.function,)), GiveFunction(statement.function, statement.owner))


def of_connected(statement: k.CreateSource | k.CreateSink | k.CreateConnection) -> Needs:
    needs: Needs = (CreateItem(statement.name), HoldPrivilege("USAGE", tuple(named_connections(statement))))
    if isinstance(statement, k.CreateSource) and statement.transactions is not None:
        needs = (*needs, HoldPrivilege("SELECT", (statement.transactions.source,)))
    return needs


def of_sequence(statement: d.CreateSequence | d.AlterSequence) -> Needs:
    owner = statement.options.owner
    own = OwnItems((statement.name,)) if isinstance(statement, d.AlterSequence) else CreateItem(statement.name)
    return (own, *((OwnItems((owner[0],)),) if owner is not None and owner[1] else ()))


def of_alter(statement: d.AlterItem) -> Needs:
    namespace = namespace_of(statement.kind)
    moved = CreateItem(Name(statement.name.name, statement.schema)) if statement.schema else CreateBeside(statement.name, namespace)
    place = GiveItem(statement.name, statement.owner, namespace) if statement.owner else moved
    return (OwnItems((statement.name,), namespace, statement.kind == "index"), place)


def of_create_table(statement: t.CreateTable) -> Needs:
    referenced = (Reference(key.table, key.references) for key in statement.foreign_keys if key.table != statement.name)
    return (CreateItem(statement.name), *referenced, HoldPrivilege("SELECT", tuple(like.relation for like in statement.likes)))


def of_alter_table(statement: t.AlterTable) -> Needs:
    added = (action.constraint for action in statement.actions if isinstance(action, t.AddConstraint))
    referenced = (Reference(constraint.table, constraint.references) for constraint in added if isinstance(constraint, t.ForeignKey))
    owners = tuple(GiveItem(statement.name, action.role) for action in statement.actions if isinstance(action, t.SetOwner))
    switches = any(isinstance(action, t.Toggle) and action.words.endswith("TRIGGER ALL") for action in statement.actions)
    return (OwnItems((statement.name,)), *referenced, *owners, *((SwitchForeignKeys(statement.name),) if switches else ()))


def of_alter_type(statement: e.AlterType | e.AlterDomain) -> Needs:
    action, own = statement.action, OwnItems((statement.name,), "type")
    return (own, GiveItem(statement.name, action.role, "type")) if isinstance(action, e.NewOwner) else (own,)


def of_comment(statement: d.Comment) -> Needs:
    match statement.kind:
        case "database":
            return (OwnDatabase(statement.name.name),)
        case "role":
            return (ManageRoles("must have CREATEROLE privilege", (statement.name,), "must be superuser"),)
        case "schema":
            return (OwnSchemas((statement.name,)),)
        case kind:
            return (OwnItems((statement.name,), namespace_of(kind)),)


def of_create_role(statement: s.CreateRole) -> Needs:
    options, refused = statement.options, ""
    if options.superuser:
        refused = "must be superuser to create superusers"
    elif options.replication:
        refused = "must be superuser to create replication users"
    elif options.bypassrls:
        refused = "must be superuser to create bypassrls users"
    return (ManageRoles("permission denied to create role", refused=refused), AdministerRoles(options.in_roles))


def of_alter_role(statement: s.AlterRole) -> Needs:
    options, names, refused = statement.options, (statement.name,), ""
    if statement.rename is not None:
        return (ManageRoles("permission denied to rename role", names, "must be superuser to rename superusers"),)
    of_superusers = "must be superuser to alter superuser roles or change superuser attribute"
    of_replication = "must be superuser to alter replication roles or change replication attribute"
    if options.superuser is not None:
        refused = of_superusers
    elif options.replication is not None:
        refused = of_replication
    elif options.bypassrls is not None:
        refused = "must be superuser to change bypassrls attribute"
    only_password = s.RoleOptions(password=options.password, sets_password=True)
    return (ManageRoles("permission denied", names, of_superusers, of_replication, refused, own=options == only_password),)


def of_drop_role(statement: s.DropRole) -> Needs:
    return (ManageRoles("permission denied to drop role", statement.names, "must be superuser to drop superusers"),)


def of_alter_settings(statement: s.AlterSettings) -> Needs:
    if statement.role is not None:
        return (
            ManageRoles("permission denied", (statement.role,), own=True),
            *((ExistingDatabase(statement.database),) if statement.database else ()),
        )
    return (OwnDatabase(statement.database),) if statement.database else (BeSuperuser("alter settings globally"),)


def of_token(statement: s.CreateToken | s.DropToken) -> Needs:
    return (BeRole(statement.role, "create or drop tokens of another role"),)


def of_schema(statement: d.CreateSchema | d.AlterSchema) -> Needs:
    """Returns the needs of a new schema, and of a schema that gets another name or owner."""
    owner = () if statement.owner is None else (OwnedBy(statement.owner.name),)
    if isinstance(statement, d.AlterSchema):
        return (OwnSchemas((statement.name,)), *owner, CreateInDatabase())
    return (CreateInDatabase(), *owner)


def of_grant(statement: s.Grant) -> Needs:
    """Returns the existence of the databases. The engine checks which privileges a role may grant."""
    return tuple(ExistingDatabase(name.name) for name in statement.objects) if statement.kind == "database" else ()


def checked_by_engine(statement: Any) -> Needs:
    """Returns no needs: the engine checks which privileges a role may grant, and whose objects it may drop."""
    return ()


def of_show(statement: q.Show) -> Needs:
    if statement.what in q.OF_CONNECTORS:
        return (BeSuperuser("use connectors"),)
    return (BeSuperuser(),) if statement.what in ("topics", "topics extended") else ()


def of_explain(statement: q.Explain) -> Needs:
    match statement.target:
        case Name() as name:
            return (SeePlan(name),)
        case q.QueryId(id):
            return (OwnQuery(id),)
        case q.KsqldbQuery(CreateAs(name=new, replace=replaces)):
            return (CreateItem(Name(new), replaces),)
        case q.KsqldbQuery(InsertQuery(name=stream)):
            return of_stream_insert(Name(stream))
        case k.CreateSink() as sink:
            return of_connected(sink)
    return ()


def of_stream_insert(stream: Name) -> Needs:
    """Returns the needs of INSERT INTO stream SELECT: the ownership of the stream, and CREATE for the view that the query is."""
    return (OwnItems((stream,)), CreateItem(stream))


def of_connection_use(statement: k.ValidateConnection) -> Needs:
    return (HoldPrivilege("USAGE", (statement.name,)),)


def of_owner(statement: Any) -> Needs:
    """Returns the need for the ownership of the item that a statement names."""
    return (OwnItems((statement.name,)),)


def of_new_item(statement: Any) -> Needs:
    """Returns the need for CREATE in the schema of a new item."""
    return (CreateItem(statement.name),)


def of_new_type(statement: Any) -> Needs:
    return (CreateItem(statement.name, namespace="type"),)
