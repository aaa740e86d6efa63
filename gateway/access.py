"""What a session may do: its role's privileges, asked before every statement, ready bytes included.

The role is that of the sign-in, or the one that SET ROLE names. Names of everything can be seen by everybody, as in PostgreSQL; rows,
and what changes the catalog, need a privilege:

    SELECT, TAIL, SUBSCRIBE, COPY, cursors, EXPLAIN    SELECT on each relation that is named, USAGE of the schema
    INSERT, COPY FROM, UPDATE, DELETE, TRUNCATE        that on the table, SELECT on what they read besides
    CREATE                                             CREATE in the schema, SELECT on what the new item reads, and USAGE on the
                                                       connections and secrets that it names
    DROP, GRANT, REVOKE                                to own it
    FETCH FROM SUBSCRIPTION, ACKNOWLEDGE               to own the subscription, and SELECT on its relation
    CREATE, ALTER, DROP ROLE                           to be a superuser; one's own password is one's own to change
    GRANT role, REVOKE role                            to have its ADMIN OPTION
    SET ROLE                                           to be a member of it; who is a superuser is anybody
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lake.catalog import Catalog, Item
from lake.errors import InsufficientPrivilege, InvalidAuthorizationSpecification, InvalidParameterValue, TailgateError
from lake.roles import OPERATOR, Role
from lake.schemas import Schema
from sql import statements as s
from sql.bind import bind_query
from sql.definitions import reached_by

if TYPE_CHECKING:
    from gateway.serving import Prepared
    from gateway.session import Session


class Access:
    """Of one session. `identity`: the id of the role that signed in."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.identity = OPERATOR.id
        self._known: tuple[Catalog | None, str] = (None, "")
        self._role = OPERATOR
        self._readable: dict[tuple[int, ...], bool] = {}
        self._names: tuple[s.QueryText | None, Catalog | None, tuple[int, ...]] = (None, None, ())  # of a query, in a catalog

    @property
    def role(self) -> Role:
        """As the catalog has it now."""
        catalog, wanted = self._session.serving.catalog, self._session.settings["role"]
        if self._known[0] is not catalog or self._known[1] != wanted:
            self._role = self.find(wanted)
            self._known, self._readable = (catalog, wanted), {}
        return self._role

    def find(self, wanted: str) -> Role:
        """The role that SET ROLE is to name; "none" is that of the sign-in. Raises 22023, 42501."""
        catalog = self._session.serving.catalog
        signed_in = catalog.all_roles().get(self.identity)
        if signed_in is None:
            raise InvalidAuthorizationSpecification(f'role "{self._session.user}" does not exist')
        if wanted in ("none", "", signed_in.name):
            return signed_in
        if not catalog.has_roles:
            return OPERATOR
        role = catalog.find_role(wanted)
        if role is None:
            raise InvalidParameterValue(f'role "{wanted}" does not exist')
        if not signed_in.superuser and role.id not in catalog.acting(signed_in.id):
            raise InsufficientPrivilege(f'permission denied to set role "{wanted}"')
        return role

    # --- questions

    def reads(self, prepared: Prepared) -> bool:
        """Whether all that a query names may be read: what is asked before ready bytes are given."""
        try:
            role = self.role
        except TailgateError:
            return False  # whoever asks in earnest is told
        if role.superuser:
            return True
        known = self._readable.get(prepared.depends)
        if known is None:
            known = self._readable[prepared.depends] = all(
                self._may("SELECT", item) and self._session.serving.catalog.may(role, "USAGE", item.schema)
                for item in self._items(prepared.depends)
            )
        return known

    def _may(self, privilege: str, item: Item) -> bool:
        return self._session.serving.catalog.may(self.role, privilege, item.id)

    def _items(self, ids: Iterable[int]) -> list[Item]:
        """The relations of these items: who calls a function reads what it reads, and everybody may call it.

        A session's temporary views are its own, and were asked about when they were made.
        """
        items = self._session.serving.catalog.items
        found: dict[int, Item] = {}
        queue = [i for i in ids if i in items]
        while queue:
            item = items[queue.pop()]
            if item.kind == "function":
                queue += [i for i in item.depends if i in items]
            else:
                found[item.id] = item
        return list(found.values())

    # --- demands

    def check_query(self, prepared: Prepared) -> None:
        if not self.role.superuser and not self.reads(prepared):
            for item in self._items(prepared.depends):
                self.check("SELECT", item)

    def check(self, privilege: str, item: Item) -> None:
        """42501 unless the role has a privilege on a relation."""
        if self.role.superuser:
            return
        self.check_schema("USAGE", self._session.serving.catalog.schema_of(item))
        if not self._may(privilege, item):
            raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")

    def reads_rows(self, item: Item) -> bool:
        """Whether the role may see what is in a relation, its errors among it."""
        return self.role.superuser or self._may("SELECT", item)

    def check_write(self, privilege: str, tables: Iterable[Item], read: Iterable[int]) -> None:
        """Of a statement that writes tables, and reads other relations for it."""
        if not self.role.superuser:
            for item in tables:
                self.check(privilege, item)
            for item in self._items(read):
                self.check("SELECT", item)

    def check_schema(self, privilege: str, schema: Schema) -> None:
        if not self._session.serving.catalog.may(self.role, privilege, schema.id):
            raise InsufficientPrivilege(f"permission denied for schema {schema.name}")

    def check_new(self, name: s.Name) -> None:
        """Whether an item of this name may be made; a schema that is not there is for the engine to say."""
        catalog = self._session.catalog
        if name.schema is None or catalog.find_schema(name.schema) is not None:
            self.check_schema("CREATE", catalog.home(name))

    def _owns(self, thing: Item | Schema) -> bool:
        """Whether it is the role's own, or that of a role it is a member of."""
        return self.role.superuser or thing.owner in self._session.serving.catalog.acting(self.role.id)

    def check_owner(self, item: Item) -> None:
        if not self._owns(item):
            raise InsufficientPrivilege(f"must be owner of {kind_of(item)} {item.name}")

    def check_superuser(self, what: str) -> None:
        if not self.role.superuser:
            raise InsufficientPrivilege(f"permission denied to {what}")

    def check_change(self, statement: Any) -> None:
        """Of a statement that changes the catalog. One that is not known here is a superuser's."""
        if self.role.superuser:
            return
        match statement:
            case s.CreateView(query=query):
                self.check_new(statement.name)
                for item in self._named((statement.name,)) if statement.replace else ():
                    self.check_owner(item)
                self.check_read(query)
            case s.CreateIndex(relation=name):
                for item in self._named((name,)):
                    self.check_owner(item)
            case s.CreateSink(from_item=what) | s.CreateSubscription(from_item=what):
                self.check_new(statement.name)
                if isinstance(what, s.Name):
                    self._check_names((what,))
                else:
                    self.check_read(what)
                self._check_usage(reached_by(statement))
            case s.CreateSource() | s.CreateConnection():
                self.check_new(statement.name)
                if isinstance(statement, s.CreateSource) and statement.transactions is not None:
                    self._check_names((statement.transactions.source,))
                self._check_usage(reached_by(statement))
            case s.CreateTable() | s.CreateFunction() | s.CreateSecret():
                self.check_new(statement.name)
            case s.ValidateConnection(name=name):
                self._check_usage((name,))
            case s.CreateSchema():
                raise InsufficientPrivilege(f"permission denied for database {self._session.database}")
            case s.AlterSchema(name=name) | s.Comment(kind="schema", name=name):
                self._check_schema_owner(name)
            case s.DropSchema(names=names):
                for name in names:
                    self._check_schema_owner(name)
            case s.AlterItem(name=name, schema=schema) if schema:
                for item in self._named((name,)):
                    self.check_owner(item)
                self.check_new(s.Name(name.name, schema))
            case s.AlterItem() | s.Comment() | s.RetryDeadLetters() | s.AlterSecret() | s.RefreshSchema():
                for item in self._named((statement.name,)):
                    self.check_owner(item)
            case s.DropFunction(functions=functions):
                for named in functions:
                    self._check_functions(named)
            case s.CommentOnFunction(function=named):
                self._check_functions(named)
            case s.Drop(names=names) | s.Pause(names=names):
                for item in self._named(names):
                    self.check_owner(item)
            case s.Grant():
                self._check_grant(statement)
            case s.GrantRole(roles=names):
                for role in filter(None, (self._session.serving.catalog.find_role(name.name) for name in names)):
                    self._check_administers(role)
            case s.AlterRole(name=name, options=options):
                mine = name.name == self.role.name and options.sets_password and options.login is None and options.superuser is None
                if not mine:
                    self.check_superuser("alter role")
            case s.CreateRole():
                self.check_superuser("create role")
            case s.DropRole():
                self.check_superuser("drop role")
            case _:
                raise InsufficientPrivilege("must be superuser", hint="This statement changes the catalog.")

    def _check_usage(self, names: Iterable[s.Name]) -> None:
        for item in self._named(tuple(names)):
            self.check("USAGE", item)

    def _check_functions(self, named: s.FunctionName) -> None:
        for item in self._session.catalog.functions(named.name):
            self.check_owner(item)

    def check_explain(self, target: s.Name | s.CreateView | s.CreateSink) -> None:
        """Of EXPLAIN, whose lines tell what is inside a view, and what a sink sends."""
        if not self.role.superuser:
            if isinstance(target, s.CreateSink):
                self.check_change(target)
            elif isinstance(target, s.Name):
                self._check_names((target,))
            else:
                self.check_read(target.query)

    def _check_schema_owner(self, name: s.Name) -> None:
        schema = self._session.serving.catalog.find_schema(name.name)
        if schema is not None and not self._owns(schema):
            raise InsufficientPrivilege(f"must be owner of schema {schema.name}")

    async def prepare(self, statement: Any) -> None:
        """Finds out what the query of a statement names, which may take long; `check_read` remembers it."""
        query = next((q for name in ("query", "from_item") if isinstance(q := getattr(statement, name, None), s.QueryText)), None)
        if query is not None and not self.role.superuser:
            catalog = self._session.catalog
            self._names = query, catalog, await self._session.serving.workers.aside(names_of, query, catalog)

    def check_read(self, query: s.QueryText) -> None:
        known, catalog, depends = self._names
        if known is not query or catalog is not self._session.catalog:
            depends = names_of(query, self._session.catalog)
        for item in self._items(depends):
            self.check("SELECT", item)

    def _check_names(self, names: Sequence[s.Name]) -> None:
        for item in self._named(names):
            self.check("SELECT", item)

    def _named(self, names: Sequence[s.Name]) -> list[Item]:
        """Those that are there; the others are for the engine to say."""
        found = [self._session.catalog.find(name) for name in names]
        return [item for item in found if item is not None]

    def _check_administers(self, role: Role) -> None:
        if role.superuser and not self.role.superuser:
            raise InsufficientPrivilege("must be superuser to alter superusers")
        if not self._session.serving.catalog.administers(self.role, role.id):
            raise InsufficientPrivilege(f'must have admin option on role "{role.name}"')

    def _check_grant(self, statement: s.Grant) -> None:
        if statement.kind in ("schema", "relations of a schema"):
            catalog = self._session.serving.catalog
            for schema in (catalog.find_schema(name.name) for name in statement.objects):
                if schema is not None and (not self._owns(schema) or statement.kind != "schema"):
                    raise InsufficientPrivilege(f"permission denied for schema {schema.name}")
            return
        for item in self._named(statement.objects):
            some = "SELECT" if item.is_relation else "USAGE"
            if not self._session.serving.catalog.may(self.role, some, item.id) and not self._owns(item):
                raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")
            self.check_owner(item)


def names_of(query: s.QueryText, catalog: Catalog) -> tuple[int, ...]:
    """Ids of what the query of a view names."""
    return bind_query(query, catalog, view=True).depends


def kind_of(item: Item) -> str:
    """What PostgreSQL's messages call it."""
    return item.kind if item.kind in ("view", "materialized view") else "table" if item.is_relation else item.kind
