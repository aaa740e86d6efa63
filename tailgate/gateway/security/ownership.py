"""The ownership and the privileges that a change of the catalog needs.

    statement ──► sql.statements.kinds: its needs ──► check_change: 42501 if the role lacks one

While it holds the lock of the catalog, the engine checks SELECT on the relations that a definition reads (`engine.ddl.definitions`),
and who may GRANT and REVOKE privileges (`engine.ddl.roles`).
Gateway and engine resolve names by the same `lake.catalog.resolution`. A name that does not exist passes here; the engine reports it.
"""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import assert_never

from tailgate.lake.catalog import Catalog, Function, Item, check_not_system
from tailgate.lake.catalog.functions import find as find_function
from tailgate.lake.catalog.functions import matching
from tailgate.lake.catalog.item_fields import Namespace
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import Role
from tailgate.lake.catalog.schemas import DATABASE, Schema
from tailgate.lake.constraints import references_of, references_to, table_of_key
from tailgate.lake.errors import InsufficientPrivilege, InvalidCatalogName, TailgateError
from tailgate.sql import statements as s
from tailgate.sql.authorization import kind_of
from tailgate.sql.statements import kinds
from tailgate.sql.statements import needs as n
from tailgate.sql.statements.needs import Need


def check_change(statement: s.Statement, role: Role, catalog: Catalog, database: str) -> None:
    """Raises 42501 if the role may not run the statement. Statements that do not list their needs require a superuser.

    `catalog`: that of `Resolution.over`.
    """
    kind = kinds.kind_of(statement)
    needs = kind.needs(statement)
    _check_exists(needs, database)
    _check_not_system(needs, catalog)
    if role.superuser:
        return
    if kind.needs is kinds.nothing:
        raise _must_be_superuser()
    _Check(role, catalog, database).needs(needs)


def _check_exists(needs: Iterable[Need], database: str) -> None:
    """Raises 3D000 for another database than that of the session."""
    for need in needs:
        if isinstance(need, n.OwnDatabase | n.ExistingDatabase) and need.name != database:
            raise InvalidCatalogName(f'database "{need.name}" does not exist')


def _check_not_system(needs: Iterable[Need], catalog: Catalog) -> None:
    """Raises 42501 for a relation of a system schema, which nobody may change."""
    for changed in (need for need in needs if isinstance(need, n.OwnItems)):
        for item in (catalog.find(name, changed.namespace) for name in changed.names):
            if item is not None:
                check_not_system(item)


def _must_be_superuser() -> TailgateError:
    return InsufficientPrivilege("must be superuser", hint="This statement changes the catalog.")


class _Check:
    """The checks for one role. Every method raises 42501 if a privilege is missing."""

    def __init__(self, role: Role, catalog: Catalog, database: str) -> None:
        self._role, self._catalog, self._database = role, catalog, database

    def needs(self, needs: Iterable[Need]) -> None:
        for need in needs:
            self._need(need)

    def _need(self, need: Need) -> None:
        match need:
            case n.CreateItem(name, replaces, namespace):
                self._new(name)
                if replaces and (old := self._target(name, namespace)) is not None:
                    self._owner(old)
            case n.DefineFunction(name, types, replaces):
                self._new(name)
                if replaces and (old := matching(self._functions(name), types)) is not None:
                    self._owner(old)
            case n.CreateBeside(name, namespace):
                for item in self._items_named([name], namespace):
                    self._schema("CREATE", self._catalog.schema_of(item))
            case n.OwnItems(names, namespace, keys):
                self._owners(*names, namespace=namespace, keys=keys)
            case n.OwnQuery(id):
                if id is not None and (maintained := self._catalog.find_query(id)) is not None:
                    self._owner(maintained)
            case n.OwnFunctions(functions):
                self._function_owners(functions)
            case n.OwnSchemas(names):
                for name in names:
                    self._schema_owner(name)
            case n.HoldPrivilege(privilege, names):
                self._privilege(privilege, names)
            case n.Reference(table, columns):
                self._reference(table, columns)
            case n.SeePlan(name):
                shown = self._catalog.find(name)
                if shown is not None and shown.is_relation:
                    self._privilege("SELECT", [name])
                else:
                    self._owners(name)
            case n.AdministerRoles(names):
                self._administers(names)
            case n.ManageRoles():
                self._manages(need)
            case n.BeRole(name, action):
                if name.name != self._role.name:
                    raise InsufficientPrivilege(f"permission denied to {action}")
            case n.GiveItem(name, owner, namespace):
                self._give(name, owner, namespace)
            case n.GiveFunction(function, owner):
                self._give_function(function, owner)
            case n.GiveSchemas(roles, to):
                self._give_schemas(roles, to)
            case n.SwitchForeignKeys(table):
                self._switches_foreign_keys(table)
            case n.BeSuperuser(action):
                raise InsufficientPrivilege(f"permission denied to {action}") if action else _must_be_superuser()
            case n.ExistingDatabase(_):
                pass  # `_check_exists` has raised the error
            case n.OwnDatabase(_):
                raise InsufficientPrivilege(f"must be owner of database {self._database}")
            case n.CreateInDatabase():
                self._create_in_database()
            case n.OwnedBy(name):
                self._member(name)
            case _:
                assert_never(need)

    # ---- existing items

    def _target(self, name: Name, namespace: Namespace) -> Item | None:
        """Returns the item that a new item with this name would replace, or None."""
        return self._catalog.find(Name(name.name, self._catalog.home(name).name), namespace)

    def _functions(self, name: Name) -> tuple[Function, ...]:
        return self._catalog.functions(Name(name.name, self._catalog.home(name).name))

    # ---- ownership

    def _owns(self, thing: Item | Schema) -> bool:
        return thing.owner in self._catalog.acting(self._role.id)

    def _owner(self, item: Item) -> None:
        if not self._owns(item):
            raise InsufficientPrivilege(f"must be owner of {kind_of(item)} {item.name}")

    def _give(self, name: Name, owner: str, namespace: Namespace) -> None:
        """Checks OWNER TO."""
        if (item := self._catalog.find(name, namespace)) is not None:
            self._give_to(item, owner)

    def _give_to(self, item: Item, owner: str) -> None:
        if (role := self._catalog.find_role(owner)) is None:
            return
        self._member(owner)
        schema = self._catalog.schema_of(item)
        if not self._catalog.may(role, "CREATE", schema.id):
            raise InsufficientPrivilege(f"permission denied for schema {schema.name}")

    def _give_function(self, reference: s.FunctionName, owner: str) -> None:
        """Checks OWNER TO of a function. The engine reports one that does not exist."""
        if (function := self._function(reference)) is not None:
            self._give_to(function, owner)

    def _function(self, reference: s.FunctionName) -> Function | None:
        try:
            return find_function(reference.name, reference.types, self._catalog)
        except TailgateError:
            return None

    def _member(self, name: str) -> None:
        role = self._catalog.find_role(name)
        if role is not None and role.id not in self._catalog.acting(self._role.id):
            raise InsufficientPrivilege(f'must be member of role "{name}"')

    def _owners(self, *names: Name, namespace: Namespace = "relation", keys: bool = False) -> None:
        for item in self._items_named(names, namespace):
            self._owner(item)
        if keys:
            self._key_owners(names)

    def _key_owners(self, names: Iterable[Name]) -> None:
        """Checks a change of the indexes of primary keys, which the catalog does not list as items."""
        for name in (name for name in names if self._catalog.find(name) is None):
            table = table_of_key(name, self._catalog)
            if table is not None and not self._owns(table):
                raise InsufficientPrivilege(f"must be owner of index {name.name}")
            if table is not None:
                self._schema("CREATE", self._catalog.schema_of(table))

    def _function_owners(self, references: Iterable[s.FunctionName]) -> None:
        for function in filter(None, map(self._function, references)):
            self._owner(function)

    def _schema_owner(self, name: Name) -> None:
        schema = self._catalog.find_schema(name.name)
        if schema is not None and not self._owns(schema):
            raise InsufficientPrivilege(f"must be owner of schema {schema.name}")

    def _give_schemas(self, roles: Iterable[Name], to: Name) -> None:
        """Checks REASSIGN OWNED. The engine refuses roles that the session's role is not a member of."""
        owners, new = (self._catalog.find_role(name.name) for name in roles), self._catalog.find_role(to.name)
        acting = self._catalog.acting(self._role.id)
        ids = {owner.id for owner in owners if owner is not None}
        gives = any(schema.owner in ids for schema in self._catalog.schemas.values())
        if gives and new is not None and {*ids, new.id} <= acting:
            self._create_in_database()

    def _switches_foreign_keys(self, name: Name) -> None:
        for table in self._items_named([name]):
            for reference in (*references_of(table, self._catalog), *references_to(table, self._catalog)):
                raise InsufficientPrivilege(f'permission denied: "{reference.name}" is a system trigger')

    # ---- privileges

    def _items_named(self, names: Iterable[Name], namespace: Namespace = "relation") -> list[Item]:
        return [item for name in names if (item := self._catalog.find(name, namespace)) is not None]

    def _privilege(self, privilege: str, names: Iterable[Name]) -> None:
        for item in self._items_named(names):
            self._schema("USAGE", self._catalog.schema_of(item))
            if not self._catalog.may(self._role, privilege, item.id):
                raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")

    def _reference(self, name: Name, columns: tuple[str, ...]) -> None:
        """Checks REFERENCES on the columns of a foreign key."""
        for item in self._items_named([name]):
            self._schema("USAGE", self._catalog.schema_of(item))
            positions = [position for position, column in enumerate(item.columns) if column.name in columns]
            if not self._catalog.may(self._role, "REFERENCES", item.id, positions if columns else item.key or ()):
                raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")

    def _schema(self, privilege: str, schema: Schema) -> None:
        if not self._catalog.may(self._role, privilege, schema.id):
            raise InsufficientPrivilege(f"permission denied for schema {schema.name}")

    def _create_in_database(self) -> None:
        if not self._catalog.may(self._role, "CREATE", DATABASE.id):
            raise InsufficientPrivilege(f"permission denied for database {self._database}")

    def _new(self, name: Name) -> None:
        """Checks CREATE in the schema of a new item."""
        if name.schema is None or self._catalog.find_schema(name.schema) is not None:
            self._schema("CREATE", self._catalog.home(name))

    # ---- roles

    def _manages(self, need: n.ManageRoles) -> None:
        roles = [role for name in need.names if (role := self._catalog.find_role(name.name)) is not None]
        if any(role.superuser for role in roles):
            raise InsufficientPrivilege(need.of_superusers)
        if need.of_replication and any(role.replication for role in roles):
            raise InsufficientPrivilege(need.of_replication)
        if need.refused:
            raise InsufficientPrivilege(need.refused)
        if not self._role.createrole and not (need.own and roles and all(role.id == self._role.id for role in roles)):
            raise InsufficientPrivilege(need.error)

    def _administers(self, names: Iterable[Name]) -> None:
        for role in filter(None, (self._catalog.find_role(name.name) for name in names)):
            if role.superuser:
                raise InsufficientPrivilege("must be superuser to alter superusers")
            if not (self._role.createrole or self._catalog.administers(self._role, role.id)):
                raise InsufficientPrivilege(f'must have admin option on role "{role.name}"')
