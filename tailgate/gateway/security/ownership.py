"""The ownership and the privileges that a change of the catalog needs.

    CREATE            CREATE in the schema, USAGE on the connections and secrets that it names
    CREATE OR REPLACE also ownership of the item that is replaced
    DROP, GRANT, …    ownership; RENAME and SET SCHEMA also need CREATE in the schema
    GRANT role        the ADMIN OPTION of the role
    CREATE ROLE, …    superusers; a role changes its own password

The engine checks SELECT on the relations that a definition reads, while it holds the lock of the catalog (`engine.ddl.definitions`).
Gateway and engine resolve names by the same `lake.resolution`. A name that does not exist passes here; the engine reports it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import InsufficientPrivilege, TailgateError
from tailgate.lake.names import Name
from tailgate.lake.roles import Role
from tailgate.lake.routines import find as find_function
from tailgate.lake.routines import matching
from tailgate.lake.schemas import Schema
from tailgate.sql import statements as s
from tailgate.sql.authorization import kind_of
from tailgate.sql.definitions import reached_by


def check_change(statement: Any, role: Role, catalog: Catalog, database: str) -> None:
    """Raises 42501 if the role may not run the statement. Kinds of statements that are not listed here need a superuser.

    `catalog`: that of `Resolution.over`.
    """
    if not role.superuser:
        _Check(role, catalog, database).statement(statement)


class _Check:
    """The checks for one role. Every method raises 42501 if a privilege is missing."""

    def __init__(self, role: Role, catalog: Catalog, database: str) -> None:
        self._role, self._catalog, self._database = role, catalog, database

    def statement(self, statement: Any) -> None:
        match statement:
            case s.CreateView(name=name, replace=replaces):
                self._new(name)
                if replaces and (old := self._target(name)) is not None:
                    self._owner(old)
            case s.CreateFunction(name=name, replace=replaces):
                self._new(name)
                types = [argument.type for argument in statement.arguments]
                if replaces and (old := matching(self._functions(name), types)) is not None:
                    self._owner(old)
            case s.CreateIndex(relation=name):
                self._owners(name)
            case s.CreateSink() | s.CreateSource() | s.CreateConnection():
                self._new(statement.name)
                self._usage(reached_by(statement))
                if isinstance(statement, s.CreateSource) and statement.transactions is not None:
                    self._privilege("SELECT", [statement.transactions.source])
            case s.CreateTable() | s.CreateSecret() | s.CreateSubscription():
                self._new(statement.name)
            case s.ValidateConnection(name=name):
                self._usage([name])
            case s.AlterItem(name=name, schema=schema):
                self._owners(name)
                self._new(Name(name.name, schema) if schema else name, beside=not schema)
            case s.AlterSecret() | s.Comment(kind=None) | s.RefreshSchema() | s.ResumeSource():
                self._owners(statement.name)
            case s.RetryDeadLetters() | s.DeleteDeadLetters():
                self._owners(statement.name)
            case s.Comment(kind=kind, name=name):
                if kind == "schema":
                    self._schema_owner(name)
                else:
                    self._owners(name)
            case s.DropFunction(functions=functions):
                for named in functions:
                    self._function_owner(named)
            case s.CommentOnFunction(function=named):
                self._function_owner(named)
            case s.Drop(names=names) | s.Pause(names=names):
                self._owners(*names)
            case s.Explain(target=target):
                self._explain(target)
            case _:
                self._roles_and_schemas(statement)

    def _roles_and_schemas(self, statement: Any) -> None:
        match statement:
            case s.CreateSchema():
                self._database_create()
            case s.AlterSchema(name=name):  # a schema with the name of a role comes first in that role's search_path ($user)
                self._schema_owner(name)
                self._database_create()
            case s.DropSchema(names=names):
                for name in names:
                    self._schema_owner(name)
            case s.Grant():
                self._grant(statement)
            case s.GrantRole(roles=names):
                for role in filter(None, (self._catalog.find_role(name.name) for name in names)):
                    self._administers(role)
            case s.AlterRole(name=name, options=options):
                if name.name != self._role.name or not options.sets_password or options.login is not None or options.superuser is not None:
                    raise InsufficientPrivilege("permission denied to alter role")
            case s.CreateRole():
                raise InsufficientPrivilege("permission denied to create role")
            case s.DropRole():
                raise InsufficientPrivilege("permission denied to drop role")
            case _:
                raise InsufficientPrivilege("must be superuser", hint="This statement changes the catalog.")

    def _explain(self, target: Any) -> None:
        """Checks EXPLAIN, which shows the plan of a view or sink. The engine checks the relations that the query of a CREATE reads."""
        match target:
            case Name() as name:
                item = self._catalog.find(name)
                if item is not None and item.is_relation:
                    self._privilege("SELECT", [name])
                else:
                    self._owners(name)
            case s.CreateSink():
                self.statement(target)

    # ---- existing items

    def _target(self, name: Name) -> Item | None:
        """Returns the item that a new item with this name would replace, or None."""
        return self._catalog.find(Name(name.name, self._catalog.home(name).name))

    def _functions(self, name: Name) -> tuple[Item, ...]:
        return self._catalog.functions(Name(name.name, self._catalog.home(name).name))

    # ---- ownership

    def _owns(self, thing: Item | Schema) -> bool:
        return thing.owner in self._catalog.acting(self._role.id)

    def _owner(self, item: Item) -> None:
        if not self._owns(item):
            raise InsufficientPrivilege(f"must be owner of {kind_of(item)} {item.name}")

    def _owners(self, *names: Name) -> None:
        for item in self._found(names):
            self._owner(item)

    def _function_owner(self, named: s.FunctionName) -> None:
        try:
            self._owner(find_function(named.name, named.types, self._catalog))
        except InsufficientPrivilege:
            raise
        except TailgateError:
            return

    def _schema_owner(self, name: Name) -> None:
        schema = self._catalog.find_schema(name.name)
        if schema is not None and not self._owns(schema):
            raise InsufficientPrivilege(f"must be owner of schema {schema.name}")

    # ---- privileges

    def _found(self, names: Iterable[Name]) -> list[Item]:
        return [item for name in names if (item := self._catalog.find(name)) is not None]

    def _usage(self, names: Iterable[Name]) -> None:
        self._privilege("USAGE", names)

    def _privilege(self, privilege: str, names: Iterable[Name]) -> None:
        for item in self._found(names):
            self._schema("USAGE", self._catalog.schema_of(item))
            if not self._catalog.may(self._role, privilege, item.id):
                raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")

    def _schema(self, privilege: str, schema: Schema) -> None:
        if not self._catalog.may(self._role, privilege, schema.id):
            raise InsufficientPrivilege(f"permission denied for schema {schema.name}")

    def _database_create(self) -> None:
        """Raises 42501: only superusers have CREATE on the database."""
        raise InsufficientPrivilege(f"permission denied for database {self._database}")

    def _new(self, name: Name, *, beside: bool = False) -> None:
        """Checks CREATE in the schema of a new item. With `beside`, in the schema of the existing item with this name."""
        if beside:
            for item in self._found([name]):
                self._schema("CREATE", self._catalog.schema_of(item))
        elif name.schema is None or self._catalog.find_schema(name.schema) is not None:
            self._schema("CREATE", self._catalog.home(name))

    # ---- roles

    def _administers(self, role: Role) -> None:
        if role.superuser:
            raise InsufficientPrivilege("must be superuser to alter superusers")
        if not self._catalog.administers(self._role, role.id):
            raise InsufficientPrivilege(f'must have admin option on role "{role.name}"')

    def _grant(self, statement: s.Grant) -> None:
        if statement.kind in ("schema", "relations of a schema"):
            for schema in (self._catalog.find_schema(name.name) for name in statement.objects):
                if schema is not None and (not self._owns(schema) or statement.kind != "schema"):
                    raise InsufficientPrivilege(f"permission denied for schema {schema.name}")
            return
        for item in self._found(statement.objects):
            some = "SELECT" if item.is_relation else "USAGE"
            if not self._catalog.may(self._role, some, item.id) and not self._owns(item):
                raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")
            self._owner(item)
