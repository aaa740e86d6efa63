"""The catalog: items, roles and schemas by id and by name, as one frozen value.

Each change of the catalog is a log entry (W6), so the catalog has a time like any relation. Ids are
never reused; names may be. A maintained item has two relations: its rows (`id`) and the weighted
errors of its rows (`errors`). The log treats both alike.

    CREATE … ──► Change(put=…) ──► log entry {"catalog": change} ──► Catalog.apply(change) in every process
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from tailgate.lake.catalog.custom_types import Composite, Domain, Enum, UserType, with_types
from tailgate.lake.catalog.item_fields import Namespace, is_transient
from tailgate.lake.catalog.items import Function, Index, Item, ItemType, Sequence, Table, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.resolution import Resolution, authority, changed, version
from tailgate.lake.catalog.roles import BUILT_IN, PUBLIC_ID, Access, AccessList, Role, default_entries, following, includes, without_grants
from tailgate.lake.catalog.schemas import BUILT_IN as SCHEMAS
from tailgate.lake.catalog.schemas import DATABASE, SCHEMA, SYSTEM, TAILGATE_ID, TEMPORARY, Database, Schema, is_system
from tailgate.lake.errors import (
    DuplicateObject,
    DuplicateTable,
    InsufficientPrivilege,
    InvalidSchemaName,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from tailgate.lake.system_relations import COLUMNS, SUPERUSER_RELATIONS
from tailgate.lake.types import ARRAYS_OF_NAMED, Type

FIRST_ID = 16384  # PostgreSQL's first oid for user objects, so an id can serve as an oid

# The relations of the schema `tailgate`, which every catalog has, by name and by id.
SYSTEM_RELATIONS: Mapping[str, Table] = {
    name: Table(TAILGATE_ID + number, name, columns, stored=True, schema=TAILGATE_ID)
    for number, (name, columns) in enumerate(COLUMNS.items(), 1)
}
_SYSTEM_BY_ID = {item.id: item for item in SYSTEM_RELATIONS.values()}
BUILT_IN_OBJECTS: Mapping[int, Schema | Database] = {**SCHEMAS, DATABASE.id: DATABASE}
_FOR_SUPERUSERS = frozenset(SYSTEM_RELATIONS[name].id for name in SUPERUSER_RELATIONS)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the catalog, as carried by a log entry.

    Items, roles, schemas and privileges in `put…` are added, or replace those with the same id. `drop…` are ids.
    """

    put: tuple[Item, ...] = ()
    drop: tuple[int, ...] = ()
    put_roles: tuple[Role, ...] = ()
    drop_roles: tuple[int, ...] = ()
    put_schemas: tuple[Schema, ...] = ()
    drop_schemas: tuple[int, ...] = ()
    put_access: tuple[Access, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog:
    """All items, roles and schemas at one time.

    `next_id` only grows, and so does `next_query`, the number of the next persistent query of ksqlDB. `roles` and `schemas` hold
    only those that statements created or changed, `access` the privileges on objects with GRANTs.

    `path` is the search path for names without a schema, `time_zone` that in which statements compute. They belong to a session and
    are not stored; the texts of items assume `public` and UTC, see `stored`. `resolution` holds the names of one statement if they
    are already resolved; then `find` and `functions` know only these names.
    """

    items: Mapping[int, Item] = field(default_factory=dict)
    next_id: int = FIRST_ID
    roles: Mapping[int, Role] = field(default_factory=dict)
    schemas: Mapping[int, Schema] = field(default_factory=dict)
    next_query: int = 0
    path: tuple[str, ...] = (SCHEMA,)
    resolution: Resolution | None = field(default=None, compare=False, repr=False)
    access: Mapping[int, Access] = field(default_factory=dict)
    time_zone: str = "UTC"

    def apply(self, change: Change) -> Catalog:
        """Returns the catalog after a change."""
        items = {i: item for i, item in self.items.items() if i not in change.drop} | {item.id: item for item in change.put}
        roles = {i: role for i, role in self.roles.items() if i not in change.drop_roles} | {role.id: role for role in change.put_roles}
        schemas = {i: s for i, s in self.schemas.items() if i not in change.drop_schemas} | {s.id: s for s in change.put_schemas}
        used = [max(i.id, i.errors) for i in change.put] + [r.id for r in change.put_roles] + [s.id for s in change.put_schemas]
        next_query = max([self.next_query, *(k.number + 1 for i in change.put if (k := ksqldb_of(i)) is not None)])
        next_id = max([self.next_id, *(id + 1 for id in used)])
        after = replace(self, items=items, next_id=next_id, next_query=next_query, roles=roles, schemas=schemas)
        access = following(self.access, self.objects(), after.objects()) | {a.id: a for a in change.put_access}
        after = replace(after, access=access).with_access()
        if any(isinstance(item, UserType) for item in change.put) or change.put_schemas:
            after = after.with_types()
        created = tuple(item for item in change.put if item.id not in self.items)
        return after if self.resolution is None else replace(after, resolution=self.resolution.including(created, after.all_schemas()))

    def along(self, path: tuple[str, ...], time_zone: str = "UTC") -> Catalog:
        """Returns the same catalog as a session with this search path and time zone sees it."""
        return self if (path, time_zone) == (self.path, self.time_zone) else replace(self, path=path, time_zone=time_zone)

    @property
    def stored(self) -> Catalog:
        """Returns the same catalog with the search path and the time zone that the texts of its items assume."""
        return self.along((SCHEMA,)) if self.resolution is None else replace(self, path=(SCHEMA,), resolution=None, time_zone="UTC")

    def with_resolution(self, resolution: Resolution) -> Catalog:
        """Returns the catalog in which the names of one statement have these meanings, and no other names exist.

        Raises 40001 if an item, role or schema has changed since the names were resolved.
        """
        if authority(self.roles, self.schemas, self.access) != resolution.authority:
            raise changed("roles or schemas")
        for id, resolved_version in resolution.versions.items():
            if (item := self.get(id)) is None or version(item) != resolved_version:
                raise changed("an object that the statement names")
        return replace(self, path=resolution.path, resolution=resolution)

    def objects(self) -> dict[int, Item | Schema | Database]:
        """Returns the database, all schemas and all items by id. Each has an owner and privileges."""
        return {DATABASE.id: DATABASE, **self.all_schemas(), **self.items}

    # ---- roles

    def with_access(self) -> Catalog:
        """Returns the catalog with the privileges that roles of earlier versions contain."""
        roles, access = without_grants(self.roles, self.access, self.objects().values())
        return replace(self, roles=roles, access=access)

    @property
    def has_roles(self) -> bool:
        """Returns whether any role was created or altered. If not, every client on the lake's machine may do everything."""
        return any(id not in (PUBLIC_ID,) for id in self.roles)

    def all_roles(self) -> Mapping[int, Role]:
        """Returns all roles by id, including the built-in ones."""
        return {**BUILT_IN, **self.roles}

    def role(self, name: str, position: int | None = None) -> Role:
        """Returns the role with this name. Raises 42704 if it does not exist."""
        if (role := self.find_role(name)) is None:
            raise UndefinedObject(f'role "{name}" does not exist', position=position)
        return role

    def find_role(self, name: str) -> Role | None:
        """Returns the role with this name, or None. PUBLIC is not a role."""
        return next((r for r in self.all_roles().values() if r.name == name and r.id != PUBLIC_ID), None)

    def may(self, role: Role, privilege: str, object: int, columns: Collection[int] | None = None, *, grant: bool = False) -> bool:
        """Returns whether a role has a privilege on an item, a schema or the database, or with `grant` may grant it.

        `columns`: positions of columns. Then the privilege on each of them suffices, or that on any column if they are none.
        """
        if role.superuser:
            return True
        if is_system(object):
            return not grant and privilege == ("USAGE" if object == TAILGATE_ID else "SELECT") and object not in _FOR_SUPERUSERS
        if (owned := self.items.get(object) or self.schemas.get(object) or BUILT_IN_OBJECTS.get(object)) is None:
            return False
        acting = self.acting(role.id)
        own = owned.owner in acting and (grant or privilege not in owned.privileges)
        if own or includes(self.entries(owned), acting, privilege, grant=grant):
            return True
        if columns is None or isinstance(owned, Schema | Database) or object not in self.access:
            return False
        granted = {c for c, entries in self.access[object].columns.items() if includes(entries, acting, privilege, grant=grant)}
        return granted.issuperset(columns) if columns else any(not owned.columns[column].is_dropped for column in granted)

    def entries(self, object: Item | Schema | Database) -> AccessList:
        """Returns the access list of an object."""
        access = self.access.get(object.id)
        return default_entries(object) if access is None or access.entries is None else access.entries

    def acting(self, role: int) -> frozenset[int]:
        """Returns the ids of the role and of all roles that it is a direct or indirect member of; it has their privileges."""
        if role not in self.roles or not self.roles[role].member_of:
            return frozenset((role,))
        ids, waiting = {role}, [role]
        while waiting:
            member = self.roles.get(waiting.pop())
            new = set(member.member_of) - ids if member is not None else ()
            ids.update(new)
            waiting.extend(new)
        return frozenset(ids)

    def administers(self, role: Role, group: int) -> bool:
        """Returns whether a role may add members to `group`."""
        return role.superuser or any(self.roles[id].member_of.get(group) for id in self.acting(role.id) if id in self.roles)

    # ---- schemas

    def all_schemas(self) -> Mapping[int, Schema]:
        """Returns all schemas by id, including the built-in ones."""
        return {id: schema for id, schema in {**SCHEMAS, **self.schemas}.items() if not schema.dropped}

    def find_schema(self, name: str) -> Schema | None:
        """Returns the schema with this name, or None. `pg_temp` means the temporary schema in the path."""
        if name == TEMPORARY:
            name = next((p for p in self.path if p.startswith(f"{TEMPORARY}_")), name)
        return next((s for s in self.all_schemas().values() if s.name == name), None)

    def schema(self, name: str, position: int | None = None) -> Schema:
        """Returns the schema with this name. Raises 3F000 if it does not exist."""
        if (schema := self.find_schema(name)) is None:
            raise InvalidSchemaName(f'schema "{name}" does not exist', position=position)
        return schema

    def home(self, name: Name) -> Schema:
        """Returns the schema in which a new item with this name is created: the named one, or the first in the path that exists.

        Raises 3F000 if there is none, and 42501 for system schemas.
        """
        if name.schema is not None:
            schema: Schema | None = self.schema(name.schema, name.position)
        else:
            schema = next(filter(None, (self.find_schema(p) for p in self.path if not p.startswith(TEMPORARY))), None)
        if schema is None:
            raise InvalidSchemaName("no schema has been selected to create in", position=name.position)
        if schema.id in SYSTEM:
            raise InsufficientPrivilege(
                f'permission denied to create "{schema.name}.{name.name}"', detail="System catalog modifications are currently disallowed."
            )
        return schema

    def schema_of(self, item: Item) -> Schema:
        return self.schemas.get(item.schema) or SCHEMAS[item.schema]

    # ---- items

    def with_types(self) -> Catalog:
        """Returns the catalog whose columns have its enum types, composite types and domains."""
        schema_names = {id: schema.name for id, schema in self.all_schemas().items()}
        return replace(self, items=with_types(self.items, schema_names))

    def find_domain(self, name: Name) -> Domain | None:
        """Returns the domain with this name, or None."""
        item = self.find(name, "type")
        return item if isinstance(item, Domain) else None

    def find_type(self, name: Name) -> Type | None:
        """Returns the enum or composite type with this name, or None."""
        return self._type_of(self.find(name, "type"))

    def type_with(self, oid: int) -> Type | None:
        """Returns the enum or composite type with this oid, or the array type of one, or None."""
        if (type := self._type_of(self.items.get(oid))) is not None:
            return type
        element = self._type_of(self.items.get(oid - ARRAYS_OF_NAMED))
        return None if element is None else element.array()

    def _type_of(self, item: Item | None) -> Type | None:
        return item.type(self.schema_of(item).name) if isinstance(item, Enum | Composite) else None

    def each(self, kind: type[ItemType]) -> tuple[ItemType, ...]:
        """Returns all items of a class."""
        return tuple(item for item in self.items.values() if isinstance(item, kind))

    def find(self, name: Name | str, namespace: Namespace = "relation") -> Item | None:
        """Returns the item with this name, or None. `functions` finds functions.

        A name without a schema is searched along the path. All kinds except functions, endpoints and types
        share one namespace, as relations do in PostgreSQL's pg_class.
        """
        if isinstance(name, str):
            name = Name(name)
        if self.resolution is not None:
            ids = {"endpoint": self.resolution.endpoints, "type": self.resolution.types}.get(namespace, self.resolution.relations)
            return self.get(ids.get(name, 0))
        candidates = [i for i in self.items.values() if i.name == name.name and not i.replaces and i.namespace == namespace]
        if namespace == "relation" and name.name in SYSTEM_RELATIONS:
            candidates.append(SYSTEM_RELATIONS[name.name])
        places = self._places(name) if candidates else []
        return next((i for place in places for i in candidates if i.schema == place), None)

    def find_query(self, id: str) -> Item | None:
        """Returns the item that the persistent query of ksqlDB with this id maintains, or None."""
        if self.resolution is not None:
            return self.items.get(self.resolution.queries.get(id, 0))
        return self.queries.get(id)

    @property
    def queries(self) -> dict[str, Item]:
        """Returns the items that persistent queries of ksqlDB maintain, by the id of the query."""
        return {k.query: i for i in self.visible if (k := ksqldb_of(i)) is not None and k.query}

    def at(self, name: str, schema: Schema, namespace: Namespace = "relation") -> Item | None:
        """Returns the item with this name in a schema, or None."""
        items = (i for i in self.items.values() if i.name == name and i.schema == schema.id and i.namespace == namespace)
        return next((i for i in items if not i.replaces), None)

    def functions(self, name: Name | str) -> tuple[Function, ...]:
        """Returns the functions with this name. If two have equal argument types, only the first in the path is returned."""
        if isinstance(name, str):
            name = Name(name)
        if self.resolution is not None:
            resolved = (self.items.get(id) for id in self.resolution.functions.get(name, ()))
            return tuple(item for item in resolved if isinstance(item, Function))
        candidates = [i for i in self.each(Function) if i.name == name.name and not i.replaces]
        functions_by_types: dict[tuple[Type, ...], Function] = {}
        for schema in self._places(name) if candidates else ():
            for item in candidates:
                if item.schema == schema:
                    functions_by_types.setdefault(item.types, item)
        return tuple(functions_by_types.values())

    def _places(self, name: Name) -> list[int]:
        """Returns the ids of the schemas in which a name is searched, in order."""
        schemas = map(self.find_schema, self.path if name.schema is None else (name.schema,))
        return [schema.id for schema in schemas if schema is not None]

    def name_of(self, item: Item) -> Name:
        """Returns the shortest name that finds the item along the path; it has a schema only where one is needed."""
        if self.resolution is not None:
            return replace(self, resolution=None).name_of(item)
        schema = self.schema_of(item).name
        if schema not in self.path:
            return Name(item.name, schema)
        if schema == self.path[0]:
            return Name(item.name)
        is_function = isinstance(item, Function)
        visible: tuple[Item | None, ...] = self.functions(item.name) if is_function else (self.find(item.name, item.namespace),)
        return Name(item.name, None if any(f is not None and f.schema == item.schema for f in visible) else schema)

    @property
    def visible(self) -> tuple[Item, ...]:
        """Returns all items by id, without unfinished replacements."""
        return tuple(self.items[i] for i in sorted(self.items) if not self.items[i].replaces)

    def replacements(self) -> dict[int, Item]:
        """Returns the unfinished replacements, by the id of the item that each will replace."""
        return {i.replaces: i for i in self.items.values() if i.replaces}

    def replaced(self) -> Catalog:
        """Returns the catalog as if all replacements had finished and taken the names of the items that they replace."""
        if not (coming := self.replacements()):
            return self
        return replace(self, items={i: replace(item, replaces=0) for i, item in self.items.items() if i not in coming})

    def relation(self, name: Name | str, *, sequences: bool = False) -> Item:
        """Returns the relation, or with `sequences` maybe a sequence. Raises 42P01 or 42809 at the position of the name."""
        item, position = self.find(name), name.position if isinstance(name, Name) else None
        if item is not None and isinstance(item, Index):
            raise WrongObjectType(f'"{item.name}" is an index', position=position)
        if item is None or not (item.is_relation or (sequences and isinstance(item, Sequence))):
            raise UndefinedTable(f'relation "{name}" does not exist', position=position)
        return item

    def named(self, name: Name) -> Item:
        """Returns the relation with this name. Raises 3F000 if its schema does not exist, otherwise as `relation`."""
        self.check_schema(name)
        return self.relation(name)

    def check_schema(self, name: Name) -> None:
        """Raises 3F000 if the name has a schema that does not exist."""
        if name.schema is not None:
            self.schema(name.schema)

    def __getitem__(self, id: int) -> Item:
        return self.items[id] if id in self.items else _SYSTEM_BY_ID[id]

    def get(self, id: int) -> Item | None:
        """Returns the item with this id, or None."""
        return self.items.get(id) or _SYSTEM_BY_ID.get(id)

    def expect(self, kind: type[ItemType], id: int) -> ItemType:
        """Returns the item with this id, which is of this class."""
        item = self.items[id]
        assert isinstance(item, kind), f"item {id} is a {item.kind}"
        return item

    def check_new(self, name: str, schema: Schema, namespace: Namespace = "relation") -> None:
        """Raises 42P07 or, for an endpoint or a type, 42710 if the schema has an item with this name."""
        if self.at(name, schema, namespace) or (namespace == "relation" and isinstance(self.at(name, schema, "type"), Composite)):
            if namespace in ("endpoint", "type"):
                raise DuplicateObject(f'{namespace} "{name}" already exists')
            raise DuplicateTable(f'relation "{name}" already exists')

    def dependents(self, id: int) -> tuple[Item, ...]:
        """Returns the items whose definitions name this one directly, and its replacement if there is one."""
        return tuple(i for i in self.items.values() if id in i.depends or i.replaces == id)

    def below(self, item: Item, through: Callable[[Item], bool] = lambda other: True) -> set[int]:
        """Returns the ids of all items that an item depends on, directly or through items for which `through` is true."""
        ids, queue = set[int](), list(item.depends)
        while queue:
            id = queue.pop()
            if id not in ids:
                ids.add(id)
                if through(other := self[id]):
                    queue += other.depends
        return ids


def check_not_system(item: Item) -> None:
    """Raises 42501 for a relation of a system schema, which nobody may change."""
    if item.schema in SYSTEM and not is_transient(item):
        raise InsufficientPrivilege(f'permission denied: "{item.name}" is a system catalog')
