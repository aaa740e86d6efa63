"""GRANT and REVOKE of privileges.

    objects, roles ──► for each object, and each column: the grantor ──► which privileges it may grant ──► its new access list

The acting role grants as the owner, or as a role with GRANT OPTION. Privileges that it may not grant are left out, with a warning. If
it has no privilege at all on an object, the statement fails with 42501.

Source: PostgreSQL 15, src/backend/catalog/aclchk.c (ExecGrant_Relation, ExecGrant_Attribute, restrict_and_check_grant).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailgate.engine.ddl.roles.access_lists import Granting
from tailgate.lake.catalog import Catalog, Change, Item, Sequence, check_not_system
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import (
    COLUMN_PRIVILEGES,
    PUBLIC_ID,
    RELATION_PRIVILEGES,
    SEQUENCE_PRIVILEGES,
    Access,
    AccessList,
    Role,
)
from tailgate.lake.catalog.schemas import SYSTEM, Database, Schema
from tailgate.lake.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidGrantOperation,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.sql.drop import Notice, find_of_kind, notice
from tailgate.sql.statements import Grant


def change_privileges(statement: Grant, acting: Role, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that grants or revokes privileges for a role, and warnings."""
    if statement.by is not None and catalog.role(statement.by.name, statement.by.position).id != acting.id:
        raise FeatureNotSupported("grantor must be current user")
    work = _Work(statement, acting, catalog, ())
    objects = _objects(statement, catalog)
    for object in (*objects, *(catalog.schema(name.name) for name in statement.objects if statement.kind.endswith("of a schema"))):
        work.check_reachable(object)
    grantees = tuple(PUBLIC_ID if name.name == "public" else catalog.role(name.name, name.position).id for name in statement.roles)
    return replace(work, grantees=grantees).changed(objects)


def revoked_from(role: int, objects: list[Item | Schema | Database], acting: Role, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that revokes all privileges on objects from a role, with those that depend on them, and warnings."""
    statement = Grant(False, (), "relation", (), (), all=True, cascade=True)
    return _Work(statement, acting, catalog, (role,)).changed(objects)


@dataclass(frozen=True, slots=True)
class _Place:
    """An object, or the column of a relation, by its position, that has an access list."""

    object: Item | Schema | Database
    column: int | None = None

    @property
    def text(self) -> str:
        """Returns the name for messages."""
        if isinstance(self.object, Database) and not self.object.name:
            return "the database"
        if self.column is None or not isinstance(self.object, Item):
            return f'"{self.object.name}"'
        return f'column "{self.object.columns[self.column].name}" of relation "{self.object.name}"'

    def check_any_privilege(self, role: Role, catalog: Catalog) -> None:
        """Raises 42501 if the role has no privilege on it."""
        columns, words = (None, self.object.privileges) if self.column is None else ((self.column,), COLUMN_PRIVILEGES)
        if not any(catalog.may(role, word, self.object.id, columns) for word in words):
            raise InsufficientPrivilege(f"permission denied for {self.text if columns else f'{_kind(self.object)} {self.object.name}'}")


def _kind(object: Item | Schema | Database) -> str:
    """Returns the kind of an object in PostgreSQL's message, which calls every relation a table."""
    if not isinstance(object, Item):
        return "schema" if isinstance(object, Schema) else "database"
    return "table" if object.is_relation else "type" if object.namespace == "type" else object.kind


@dataclass(frozen=True, slots=True)
class _Work:
    """A statement of one role. `grantees`: ids of roles."""

    statement: Grant
    acting: Role
    catalog: Catalog
    grantees: tuple[int, ...]

    def changed(self, objects: list[Item | Schema | Database]) -> tuple[Change, list[Notice]]:
        notices: list[Notice] = []
        changed = (self._access(object, notices) for object in {object.id: object for object in objects}.values())
        return Change(put_access=tuple(each for each in changed if each != self.catalog.access.get(each.id, Access(each.id)))), notices

    def check_reachable(self, object: Item | Schema | Database) -> None:
        """Raises 42501 for a system object, and for an item in a schema that the role cannot use."""
        if isinstance(object, Database):
            return
        schema = object if isinstance(object, Schema) else self.catalog.schema_of(object)
        if isinstance(object, Item):
            check_not_system(object)
        granted = isinstance(object, Schema) and self.statement.kind == "schema"
        if schema.id in SYSTEM or not (granted or self.catalog.may(self.acting, "USAGE", schema.id)):
            raise InsufficientPrivilege(f"permission denied for schema {schema.name}")

    def _access(self, object: Item | Schema | Database, notices: list[Notice]) -> Access:
        """Returns the privileges on an object after the statement."""
        before, entries = self.catalog.access.get(object.id, Access(object.id)), self.catalog.entries(object)
        whole = self._privileges(object, notices)
        after = self._list(entries, entries, whole, _Place(object), notices) if whole else entries
        lists = dict(before.columns)
        for number, privileges in self._column_privileges(object, whole).items():
            if privileges:
                own = before.columns.get(number, ())
                lists[number] = self._list(own, (*entries, *own), privileges, _Place(object, number), notices)
        changed = before.entries if after is entries else after
        return replace(before, entries=changed, columns={number: of_column for number, of_column in lists.items() if of_column})

    def _list(self, entries: AccessList, holders: AccessList, privileges: frozenset[str], of: _Place, notices: list[Notice]) -> AccessList:
        """Returns an access list after the statement. `holders`: the entries that may have GRANT OPTION for it. Raises 42501."""
        granting = Granting(of.object.owner, self.catalog)
        grantor, options = granting.grantor(self.acting, privileges, holders)
        if not options:
            of.check_any_privilege(self.catalog.all_roles()[grantor], self.catalog)
        all = self.statement.all if of.column is None else privileges == frozenset(COLUMN_PRIVILEGES)
        if not options or (options != privileges and not all):
            notices.append(self._warning(options, of))
        grants, option = self.statement.grants, self.statement.option
        if grants and option and PUBLIC_ID in self.grantees:
            raise InvalidGrantOperation("grant options can only be granted to roles")
        grantees = self.grantees if options else ()
        return granting.changed(entries, grantees, grantor, options, grants=grants, option=option, cascade=self.statement.cascade)

    def _warning(self, options: frozenset[str], of: _Place) -> Notice:
        which = "not all" if options else "no"
        verb, sqlstate = ("were granted", "01007") if self.statement.grants else ("could be revoked", "01006")
        return {**notice(f"{which} privileges {verb} for {of.text}"), "severity": "WARNING", "sqlstate": sqlstate}

    def _privileges(self, object: Item | Schema | Database, notices: list[Notice]) -> frozenset[str]:
        """Returns the privileges of the statement for an object. Adds a warning for those that a sequence lacks. Raises 0LP01.

        As in PostgreSQL, the relation of GRANT … ON [TABLE] may be a sequence.
        """
        if self.statement.all:
            return frozenset(object.privileges)
        privileges = frozenset(self.statement.privileges)
        if self.statement.kind not in ("relation", "relations of a schema"):
            return privileges
        if not isinstance(object, Sequence):
            if privileges <= RELATION_PRIVILEGES.keys():
                return privileges
            raise InvalidGrantOperation("invalid privilege type USAGE for table")
        if not privileges <= SEQUENCE_PRIVILEGES.keys():
            warning = notice(f'sequence "{object.name}" only supports USAGE, SELECT, and UPDATE privileges')
            notices.append({**warning, "severity": "WARNING", "sqlstate": "0LP01"})
        return privileges.intersection(SEQUENCE_PRIVILEGES)

    def _column_privileges(self, object: Item | Schema | Database, whole: frozenset[str]) -> dict[int, frozenset[str]]:
        """Returns the privileges of the statement on columns of a relation, by position. Raises 42703, 0A000.

        As in PostgreSQL, REVOKE of privileges on the `whole` relation revokes them on its columns, too.
        """
        of_columns = self.statement.of_columns
        if not isinstance(object, Item) or not (object.is_relation or of_columns):
            return {}
        if not object.is_relation:
            raise FeatureNotSupported(f"privileges on columns of a {object.kind} are not supported")
        positions = {column.name: position for position, column in enumerate(object.columns) if not column.is_dropped}
        implied = frozenset[str]() if self.statement.grants else whole.intersection(COLUMN_PRIVILEGES)
        privileges = dict.fromkeys(positions.values(), implied)
        for privilege, names in of_columns:
            for name in names:
                if name not in positions:
                    raise UndefinedColumn(f'column "{name}" of relation "{object.name}" does not exist')
                privileges[positions[name]] |= {privilege}
        return privileges


def _objects(statement: Grant, catalog: Catalog) -> list[Item | Schema | Database]:
    """Returns the objects of a GRANT or REVOKE."""
    match statement.kind:
        case "database":
            return [Database(name.name) for name in statement.objects]
        case "relation":
            return [_relation(name, catalog) for name in statement.objects]
        case "schema":
            return [catalog.schema(name.name) for name in statement.objects]
        case "relations of a schema" | "sequences of a schema":
            schemas = [catalog.schema(name.name).id for name in statement.objects]
            inside = (item for item in catalog.items.values() if item.schema in schemas)
            sequences = statement.kind == "sequences of a schema"
            return [item for item in inside if (isinstance(item, Sequence) if sequences else item.is_relation)]
        case kind:
            return [_reached(name, kind, catalog) for name in statement.objects]


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
