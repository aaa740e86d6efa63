"""The catalog: items, roles and schemas by id and by name, as one frozen value.

Each change of the catalog is a log entry (W6), so the catalog has a time like any relation. Ids are
never reused; names may be. A maintained item has two relations: its rows (`id`) and the weighted
errors of its rows (`errors`). The log treats both alike.

    CREATE … ──► Change(put=…) ──► log entry {"catalog": change} ──► Catalog.apply(change) in every process
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from tailgate.lake.errors import DuplicateTable, InsufficientPrivilege, InvalidSchemaName, UndefinedObject, UndefinedTable, WrongObjectType
from tailgate.lake.names import Name
from tailgate.lake.roles import BUILT_IN, OPERATOR_ID, PUBLIC_ID, SCHEMA_ID, Role
from tailgate.lake.schemas import BUILT_IN as SCHEMAS
from tailgate.lake.schemas import SCHEMA, SYSTEM, TEMPORARY, Schema
from tailgate.lake.types import BOOL, BYTEA, INT4, INT8, TEXT, TIMESTAMPTZ, Field, field_from_json, field_to_json

if TYPE_CHECKING:
    from tailgate.lake.resolution import Resolution

FIRST_ID = 16384  # PostgreSQL's first oid for user objects, so an id can serve as an oid

# columns of a source's dead letters: records that could not be decoded, with the error
DEAD_LETTERS = (
    Field("topic", TEXT, False),
    Field("partition", INT4, False),
    Field("offset", INT8, False),
    Field("time", TIMESTAMPTZ),
    Field("key", BYTEA),
    Field("value", BYTEA),
    Field("error", TEXT, False),
    Field("attempts", INT4, False),
    Field("since", TIMESTAMPTZ),
    Field("backfill", BOOL),
)
DEAD_LETTERS_KEY = (0, 1, 2)
DEAD_LETTERS_FIRST = 8  # number of columns in the first version; `since` and `backfill` were added later

# columns of a maintained item's errors
ERRORS = (Field("sqlstate", TEXT, False), Field("message", TEXT, False))

SUBSCRIPTION, SECRET, CONNECTION = "subscription", "secret", "connection"
NO_RELATIONS = ("sink", "function", "index", SUBSCRIPTION, SECRET, CONNECTION)  # kinds that are not relations
KINDS = ("source", "dead letters", "table", "view", "materialized view", "view errors", *NO_RELATIONS)
COMPANIONS = ("dead letters", "view errors")  # kinds that are created and dropped with another item
INDEX = "index"
GOING_ALONG = (*COMPANIONS, INDEX)  # kinds that are dropped with the item that they depend on
WIDTHS = "widths"  # option of an item that reads a source with columns added later: {source id: number of columns that the item knows}
ON_ERROR = "on_error"  # option of a materialized view: 'skip' omits rows that fail


@dataclass(frozen=True, slots=True)
class Item:
    """An object in the catalog.

    - `kind`: one of KINDS.
    - `columns`: empty if the item is not a relation; the arguments of a function (`lake.routines`).
    - `key`: positions of the columns that identify a row; None if the relation may hold duplicates.
    - `stored`: whether the lake keeps its rows (keyed sources, tables, materialized views, dead letters).
    - `errors`: id of the relation with its errors; 0 if the item is not maintained.
    - `depends`: ids of the items that its definition names.
    - `sql`: the statement that created it, as typed, but without the value of a secret.
    - `query`: the text of a view after AS, or the body of a function.
    - `options`: further properties of the kind, as JSON values (a source: topic, brokers, formats; a
      sink: topic, formats, envelope).
    - `ready`: whether the backfill has finished. Clients cannot read an item that is not ready. A
      change that puts an item as not ready, even again, makes its relations empty.
    - `owner`: id of the role that created it.
    - `replaces`: the id of the item that this item will replace after its backfill, else 0. Until
      then only the engine sees this item.
    - `schema`: id of the schema that contains the name.

    Names in `sql` and `query` are resolved with the search path `public`; names in other schemas are
    qualified.
    """

    id: int
    kind: str
    name: str
    columns: tuple[Field, ...] = ()
    key: tuple[int, ...] | None = None
    stored: bool = False
    errors: int = 0
    depends: tuple[int, ...] = ()
    sql: str = ""
    query: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    ready: bool = True
    owner: int = OPERATOR_ID
    replaces: int = 0
    schema: int = SCHEMA_ID

    @property
    def is_relation(self) -> bool:
        """Returns whether the item has rows and columns."""
        return self.kind not in NO_RELATIONS

    @property
    def shown(self) -> str:
        """Returns the name for messages; a function's includes the types of its arguments."""
        return f"{self.name}({','.join(str(a.type) for a in self.columns)})" if self.kind == "function" else self.name

    @property
    def widths(self) -> dict[int, int]:
        """Returns, for each relation that got columns after this item was defined, how many columns the item knows."""
        return {int(id): width for id, width in self.options.get(WIDTHS, {}).items()}

    @property
    def own_view(self) -> int | None:
        """Returns the id of the materialized view that belongs to a sink with a query, else None. It is dropped with the sink."""
        return self.depends[0] if self.kind == "sink" and self.options.get("query") else None

    @property
    def append_only(self) -> bool:
        """Returns whether rows are only added: dead letters, and sources without an envelope even if stored."""
        if self.kind == "source":
            return not self.stored or self.options.get("envelope") == "none"
        return self.kind == "dead letters"

    def to_json(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **data,
            "columns": [field_to_json(c) for c in self.columns],
            "depends": list(self.depends),
            "key": None if self.key is None else list(self.key),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Item:
        columns = tuple(field_from_json(c) for c in data["columns"])
        key = None if data["key"] is None else tuple(data["key"])
        return Item(**{**data, "columns": columns, "depends": tuple(data["depends"]), "key": key})


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the catalog, as carried by a log entry.

    Items, roles and schemas in `put…` are added, or replace the one with the same id. `drop…` are ids.
    """

    put: tuple[Item, ...] = ()
    drop: tuple[int, ...] = ()
    put_roles: tuple[Role, ...] = ()
    drop_roles: tuple[int, ...] = ()
    put_schemas: tuple[Schema, ...] = ()
    drop_schemas: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        items = {"put": [i.to_json() for i in self.put], "drop": list(self.drop)}
        others = {
            "put_roles": [r.to_json() for r in self.put_roles],
            "drop_roles": list(self.drop_roles),
            "put_schemas": [s.to_json() for s in self.put_schemas],
            "drop_schemas": list(self.drop_schemas),
        }
        return {**items, **{key: value for key, value in others.items() if value}}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Change:
        return Change(
            tuple(map(Item.from_json, data["put"])),
            tuple(data["drop"]),
            tuple(map(Role.from_json, data.get("put_roles", ()))),
            tuple(data.get("drop_roles", ())),
            tuple(map(Schema.from_json, data.get("put_schemas", ()))),
            tuple(data.get("drop_schemas", ())),
        )


@dataclass(frozen=True, slots=True)
class Catalog:
    """All items, roles and schemas at one time.

    `next_id` only grows. `roles` and `schemas` hold only those that statements created or changed.

    `path` is the search path for names without a schema. It belongs to a session and is not stored;
    the texts of items are resolved with `public` alone, see `stored`. `resolution` holds the names of
    one statement if they are already resolved; then `find` and `functions` know only these names.
    """

    items: Mapping[int, Item] = field(default_factory=dict)
    next_id: int = FIRST_ID
    roles: Mapping[int, Role] = field(default_factory=dict)
    schemas: Mapping[int, Schema] = field(default_factory=dict)
    path: tuple[str, ...] = (SCHEMA,)
    resolution: Resolution | None = field(default=None, compare=False, repr=False)

    def apply(self, change: Change) -> Catalog:
        """Returns the catalog after a change."""
        items = {i: item for i, item in self.items.items() if i not in change.drop} | {item.id: item for item in change.put}
        roles = {i: role for i, role in self.roles.items() if i not in change.drop_roles} | {role.id: role for role in change.put_roles}
        schemas = {i: s for i, s in self.schemas.items() if i not in change.drop_schemas} | {s.id: s for s in change.put_schemas}
        used = [max(i.id, i.errors) for i in change.put] + [r.id for r in change.put_roles] + [s.id for s in change.put_schemas]
        after = replace(self, items=items, next_id=max([self.next_id, *(id + 1 for id in used)]), roles=roles, schemas=schemas)
        if self.resolution is None:
            return after
        created = tuple(item for item in change.put if item.id not in self.items)
        return replace(after, resolution=self.resolution.including(created, after))

    def along(self, path: tuple[str, ...]) -> Catalog:
        """Returns the same catalog with another search path."""
        return self if path == self.path else replace(self, path=path)

    @property
    def stored(self) -> Catalog:
        """Returns the same catalog with the search path that the texts of its items assume."""
        return self.along((SCHEMA,)) if self.resolution is None else replace(self, path=(SCHEMA,), resolution=None)

    # ---- roles

    @property
    def has_roles(self) -> bool:
        """Returns whether any role was created or altered. If not, every client on the lake's machine may do everything."""
        return any(id not in (PUBLIC_ID,) for id in self.roles)

    def all_roles(self) -> Mapping[int, Role]:
        """Returns all roles by id, including the built-in ones."""
        return {**BUILT_IN, **self.roles}

    def role(self, name: str, position: int | None = None) -> Role:
        """Returns the role with this name. Raises 42704 if it does not exist."""
        found = self.find_role(name)
        if found is None:
            raise UndefinedObject(f'role "{name}" does not exist', position=position)
        return found

    def find_role(self, name: str) -> Role | None:
        """Returns the role with this name, or None. PUBLIC is not a role."""
        return next((r for r in self.all_roles().values() if r.name == name and r.id != PUBLIC_ID), None)

    def may(self, role: Role, privilege: str, object: int) -> bool:
        """Returns whether a role has a privilege on an item or schema. Owners and superusers have all privileges."""
        owned = self.items.get(object) or self.schemas.get(object)
        if role.superuser:
            return True
        acting = self.acting(role.id)
        if owned is not None and owned.owner in acting:
            return True
        roles = self.all_roles()
        return any(privilege in roles[id].grants.get(object, ()) for id in (*acting, PUBLIC_ID) if id in roles)

    def acting(self, role: int) -> frozenset[int]:
        """Returns the ids of the role and of all roles that it is a direct or indirect member of; it has their privileges."""
        if role not in self.roles or not self.roles[role].member_of:
            return frozenset((role,))
        found, waiting = {role}, [role]
        while waiting:
            known = self.roles.get(waiting.pop())
            new = set(known.member_of) - found if known is not None else ()
            found.update(new)
            waiting.extend(new)
        return frozenset(found)

    def administers(self, role: Role, group: int) -> bool:
        """Returns whether a role may add members to `group`."""
        return role.superuser or any(self.roles[id].member_of.get(group) for id in self.acting(role.id) if id in self.roles)

    # ---- schemas

    def all_schemas(self) -> Mapping[int, Schema]:
        """Returns all schemas by id, including the built-in ones."""
        return {**SCHEMAS, **self.schemas}

    def find_schema(self, name: str) -> Schema | None:
        """Returns the schema with this name, or None. `pg_temp` means the temporary schema in the path."""
        if name == TEMPORARY:
            name = next((p for p in self.path if p.startswith(f"{TEMPORARY}_")), name)
        return next((s for s in self.all_schemas().values() if s.name == name), None)

    def schema(self, name: str, position: int | None = None) -> Schema:
        """Returns the schema with this name. Raises 3F000 if it does not exist."""
        found = self.find_schema(name)
        if found is None:
            raise InvalidSchemaName(f'schema "{name}" does not exist', position=position)
        return found

    def home(self, name: Name) -> Schema:
        """Returns the schema in which a new item with this name is created: the named one, or the first in the path that exists.

        Raises 3F000 if there is none, and 42501 for system schemas.
        """
        if name.schema is not None:
            found = self.schema(name.schema, name.position)
        else:
            durable = (self.find_schema(p) for p in self.path if not p.startswith(TEMPORARY))
            there = next((s for s in durable if s is not None), None)
            if there is None:
                raise InvalidSchemaName("no schema has been selected to create in", position=name.position)
            found = there
        if found.id in SYSTEM:
            raise InsufficientPrivilege(
                f'permission denied to create "{found.name}.{name.name}"', detail="System catalog modifications are currently disallowed."
            )
        return found

    def schema_of(self, item: Item) -> Schema:
        return self.all_schemas()[item.schema]

    # ---- items

    def find(self, name: Name | str) -> Item | None:
        """Returns the item with this name, or None. Functions are not considered.

        A name without a schema is searched along the path. All kinds except functions share one
        namespace, as relations do in PostgreSQL's pg_class.
        """
        if isinstance(name, str):
            name = Name(name)
        if self.resolution is not None:
            return self.items.get(self.resolution.relations.get(name, 0))
        named = [i for i in self.items.values() if i.name == name.name and not i.replaces and i.kind != "function"]
        places = self._places(name) if named else []
        return next((i for place in places for i in named if i.schema == place), None)

    def at(self, name: str, schema: Schema) -> Item | None:
        """Returns the item with this name in a schema, or None. Functions are not considered."""
        named = (i for i in self.items.values() if i.name == name and i.schema == schema.id)
        return next((i for i in named if not i.replaces and i.kind != "function"), None)

    def functions(self, name: Name | str) -> tuple[Item, ...]:
        """Returns the functions with this name. If two have equal argument types, only the first in the path is returned."""
        if isinstance(name, str):
            name = Name(name)
        if self.resolution is not None:
            return tuple(self.items[id] for id in self.resolution.functions.get(name, ()) if id in self.items)
        named = [i for i in self.items.values() if i.kind == "function" and i.name == name.name and not i.replaces]
        found: dict[tuple[Any, ...], Item] = {}
        for schema in self._places(name) if named else ():
            for item in named:
                if item.schema == schema:
                    found.setdefault(tuple(c.type for c in item.columns), item)
        return tuple(found.values())

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
        found = self.functions(item.name) if item.kind == "function" else (self.find(item.name),)
        return Name(item.name, None if any(f is not None and f.schema == item.schema for f in found) else schema)

    @property
    def visible(self) -> tuple[Item, ...]:
        """Returns all items by id, without unfinished replacements."""
        return tuple(self.items[i] for i in sorted(self.items) if not self.items[i].replaces)

    def replacements(self) -> dict[int, Item]:
        """Returns the unfinished replacements, by the id of the item that each will replace."""
        return {i.replaces: i for i in self.items.values() if i.replaces}

    def replaced(self) -> Catalog:
        """Returns the catalog as if all replacements had finished and taken the names of the items that they replace."""
        coming = self.replacements()
        if not coming:
            return self
        there = {i: item for i, item in self.items.items() if i not in coming}
        return replace(self, items={i: replace(item, replaces=0) for i, item in there.items()})

    def relation(self, name: Name | str) -> Item:
        """Returns the relation with this name. Raises 42P01 or 42809 at the position of the name."""
        item, position = self.find(name), name.position if isinstance(name, Name) else None
        if item is not None and item.kind == INDEX:
            raise WrongObjectType(f'"{item.name}" is an index', position=position)
        if item is None or not item.is_relation:
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
        return self.items[id]

    def check_new(self, name: str, schema: Schema) -> None:
        """Raises 42P07 if the schema has an item with this name."""
        if self.at(name, schema) is not None:
            raise DuplicateTable(f'relation "{name}" already exists')

    def dependents(self, id: int) -> tuple[Item, ...]:
        """Returns the items whose definitions name this one directly, and its replacement if there is one."""
        return tuple(i for i in self.items.values() if id in i.depends or i.replaces == id)

    def below(self, item: Item, through: Callable[[Item], bool] = lambda other: True) -> set[int]:
        """Returns the ids of all items that an item depends on, directly or through items for which `through` is true."""
        found: set[int] = set()
        queue = list(item.depends)
        while queue:
            id = queue.pop()
            if id not in found:
                found.add(id)
                if through(other := self[id]):
                    queue += other.depends
        return found

    def to_json(self) -> dict[str, Any]:
        roles = {"roles": [r.to_json() for r in self.roles.values()]} if self.roles else {}
        schemas = {"schemas": [s.to_json() for s in self.schemas.values()]} if self.schemas else {}
        return {"items": [i.to_json() for i in self.items.values()], "next_id": self.next_id, **roles, **schemas}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Catalog:
        items: Iterable[Item] = map(Item.from_json, data["items"])
        roles = map(Role.from_json, data.get("roles", ()))
        schemas = map(Schema.from_json, data.get("schemas", ()))
        return Catalog({i.id: i for i in items}, data["next_id"], {r.id: r for r in roles}, {s.id: s for s in schemas})


def ready(item: Item) -> Item:
    """Returns the item marked as ready."""
    return replace(item, ready=True)


def skips(item: Item) -> bool:
    """Returns whether a view omits rows that fail, instead of reporting them as errors of the view."""
    return item.options.get(ON_ERROR) == "skip"
