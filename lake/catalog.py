"""What has been created: items, by id and by name, as one frozen value.

Every change of the catalog is an entry of the log (W6), so the catalog has a time like any relation. Ids are never used
again; names may be. A maintained item has a relation (`id`) and a second one, `errors`, with the weighted errors of its
rows; both are relations of the log like any other.

    CREATE … ──► Catalog.add(item) ──► log entry {"catalog": change} ──► Catalog.apply(change) in every process
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from lake.errors import DuplicateTable, InsufficientPrivilege, InvalidSchemaName, UndefinedObject, UndefinedTable, WrongObjectType
from lake.names import Name
from lake.roles import BUILT_IN, OPERATOR_ID, PUBLIC_ID, SCHEMA_ID, Role
from lake.schemas import BUILT_IN as SCHEMAS
from lake.schemas import SCHEMA, SYSTEM, TEMPORARY, Schema
from lake.types import BOOL, BYTEA, INT4, INT8, TEXT, TIMESTAMPTZ, Field, field_from_json, field_to_json

if TYPE_CHECKING:
    from lake.resolution import Resolution

FIRST_ID = 16384  # as PostgreSQL's first oid of a user's object, so an id can be an oid

# the columns of a source's dead letters: records that could not be decoded, with the reason
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
DEAD_LETTERS_FIRST = 8  # how many of the columns there were first: `since` and `backfill` came later

# the columns of a maintained item's errors
ERRORS = (Field("sqlstate", TEXT, False), Field("message", TEXT, False))

SUBSCRIPTION, SECRET, CONNECTION = "subscription", "secret", "connection"
NO_RELATIONS = ("sink", "function", "index", SUBSCRIPTION, SECRET, CONNECTION)  # what is no relation
KINDS = ("source", "dead letters", "table", "view", "materialized view", "view errors", *NO_RELATIONS)
COMPANIONS = ("dead letters", "view errors")  # items that come and go with another
INDEX = "index"
GOING_ALONG = (*COMPANIONS, INDEX)  # go with what they depend on
WIDTHS = "widths"  # option of what reads a source that got columns later: {source id: how many of its columns there were}
ON_ERROR = "on_error"  # option of a materialized view: 'skip' leaves out rows that fail


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of the catalog.

    `kind` is one of KINDS. `columns` are empty for what is no relation, of a function its arguments (`lake.routines`). `key`: positions
    of columns that identify a row, or None if the relation may hold duplicates. `stored`: its rows are kept in the lake (keyed sources,
    tables, materialized views, dead letters). `errors`: id of the relation of its errors, 0 if it is not maintained. `depends`: ids of
    the items its definition names. `sql`: the statement that made it, as typed, a secret's without its value; `query`: of a view, the
    text after AS, of a function its body. `options`: what its kind needs besides, as JSON values (a source: topic, brokers, formats; a
    sink: topic, formats, envelope). `ready`: whether it is filled; an item that is not is not to be read, and putting it as not ready,
    also again, is where its relations begin, empty. `owner`: id of the role that made it. `replaces`: of an item that is filled to take
    another's place, the other's id; until then only the engine sees it. `schema`: id of the schema that the name is in.

    The names in `sql` and `query` are those of a session whose path is `public`: what is in another schema is named with it.
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
        return self.kind not in NO_RELATIONS

    @property
    def shown(self) -> str:
        """As messages name it: a function with the types of its arguments."""
        return f"{self.name}({','.join(str(a.type) for a in self.columns)})" if self.kind == "function" else self.name

    @property
    def widths(self) -> dict[int, int]:
        """Of relations that got columns at their end since this was defined: how many it knows."""
        return {int(id): width for id, width in self.options.get(WIDTHS, {}).items()}

    @property
    def own_view(self) -> int | None:
        """Of a sink from a query: the materialized view that was made for it, and goes with it."""
        return self.depends[0] if self.kind == "sink" and self.options.get("query") else None

    @property
    def append_only(self) -> bool:
        """Whether its rows only ever come: dead letters, and a source without an envelope, also if it is stored."""
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
    """A change of the catalog: what an entry of the log carries. Items of `put` are new or replace the one with their id, and so do
    roles of `put_roles` and schemas of `put_schemas`. `drop`, `drop_roles` and `drop_schemas` are ids."""

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
    """All items, roles and schemas at one time. `next_id` only grows. `roles` and `schemas`: those that statements made or changed.

    `path`: the schemas in which a name without schema is looked for, in order; which is not part of what is kept. The texts
    of items are read along `public` alone: `stored`. `resolution`: the meaning of the names of one statement, where it is already
    decided: then `find` and `functions` know these names and no others.
    """

    items: Mapping[int, Item] = field(default_factory=dict)
    next_id: int = FIRST_ID
    roles: Mapping[int, Role] = field(default_factory=dict)
    schemas: Mapping[int, Schema] = field(default_factory=dict)
    path: tuple[str, ...] = (SCHEMA,)
    resolution: Resolution | None = field(default=None, compare=False, repr=False)

    def apply(self, change: Change) -> Catalog:
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
        """The same catalog, seen along a path."""
        return self if path == self.path else replace(self, path=path)

    @property
    def stored(self) -> Catalog:
        """The same catalog, seen as the texts of its items are to be read."""
        return self.along((SCHEMA,)) if self.resolution is None else replace(self, path=(SCHEMA,), resolution=None)

    # ---- roles

    @property
    def has_roles(self) -> bool:
        """Whether roles were made: without any, whoever reaches the lake from its own machine is trusted with everything."""
        return any(id not in (PUBLIC_ID,) for id in self.roles)

    def all_roles(self) -> Mapping[int, Role]:
        """By id, with those that are always there."""
        return {**BUILT_IN, **self.roles}

    def role(self, name: str, position: int | None = None) -> Role:
        found = self.find_role(name)
        if found is None:
            raise UndefinedObject(f'role "{name}" does not exist', position=position)
        return found

    def find_role(self, name: str) -> Role | None:
        """The role of a name; PUBLIC is none."""
        return next((r for r in self.all_roles().values() if r.name == name and r.id != PUBLIC_ID), None)

    def may(self, role: Role, privilege: str, object: int) -> bool:
        """Whether a role has a privilege on an item, or on a schema: its owner and superusers have all."""
        owned = self.items.get(object) or self.schemas.get(object)
        if role.superuser:
            return True
        acting = self.acting(role.id)
        if owned is not None and owned.owner in acting:
            return True
        roles = self.all_roles()
        return any(privilege in roles[id].grants.get(object, ()) for id in (*acting, PUBLIC_ID) if id in roles)

    def acting(self, role: int) -> frozenset[int]:
        """The role, and all that it is a member of, at any depth: what is theirs is its own."""
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
        """Whether a role may make others members of `group`."""
        return role.superuser or any(self.roles[id].member_of.get(group) for id in self.acting(role.id) if id in self.roles)

    # ---- schemas

    def all_schemas(self) -> Mapping[int, Schema]:
        """By id, with those that are always there."""
        return {**SCHEMAS, **self.schemas}

    def find_schema(self, name: str) -> Schema | None:
        if name == TEMPORARY:
            name = next((p for p in self.path if p.startswith(f"{TEMPORARY}_")), name)
        return next((s for s in self.all_schemas().values() if s.name == name), None)

    def schema(self, name: str, position: int | None = None) -> Schema:
        found = self.find_schema(name)
        if found is None:
            raise InvalidSchemaName(f'schema "{name}" does not exist', position=position)
        return found

    def home(self, name: Name) -> Schema:
        """Where a new item of this name goes: the schema that is said, or the first of the path that is there."""
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
        """The item of a name, functions aside; one without schema is looked for along the path. A schema that is not there has none.

        All but functions share one space of names, as relations do in PostgreSQL's pg_class.
        """
        if isinstance(name, str):
            name = Name(name)
        if self.resolution is not None:
            return self.items.get(self.resolution.relations.get(name, 0))
        named = [i for i in self.items.values() if i.name == name.name and not i.replaces and i.kind != "function"]
        places = self._places(name) if named else []
        return next((i for place in places for i in named if i.schema == place), None)

    def at(self, name: str, schema: Schema) -> Item | None:
        """The item that has this name in a schema, functions aside."""
        named = (i for i in self.items.values() if i.name == name and i.schema == schema.id)
        return next((i for i in named if not i.replaces and i.kind != "function"), None)

    def functions(self, name: Name | str) -> tuple[Item, ...]:
        """The functions of a name, which has nothing to do with those of relations; of two with equal arguments the path's first."""
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
        """The schemas in which a name is looked for, in order."""
        schemas = map(self.find_schema, self.path if name.schema is None else (name.schema,))
        return [schema.id for schema in schemas if schema is not None]

    def name_of(self, item: Item) -> Name:
        """What the item is called along the path: with its schema only where its name alone would not find it."""
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
        """All items but those that are about to replace others, by id."""
        return tuple(self.items[i] for i in sorted(self.items) if not self.items[i].replaces)

    def replacements(self) -> dict[int, Item]:
        """What is being filled to replace an item, by that item's id."""
        return {i.replaces: i for i in self.items.values() if i.replaces}

    def replaced(self) -> Catalog:
        """As it will be: with replacements under the names of the items that they replace."""
        coming = self.replacements()
        if not coming:
            return self
        there = {i: item for i, item in self.items.items() if i not in coming}
        return replace(self, items={i: replace(item, replaces=0) for i, item in there.items()})

    def relation(self, name: Name | str) -> Item:
        """Raises 42P01, at the name."""
        item, position = self.find(name), name.position if isinstance(name, Name) else None
        if item is not None and item.kind == INDEX:
            raise WrongObjectType(f'"{item.name}" is an index', position=position)
        if item is None or not item.is_relation:
            raise UndefinedTable(f'relation "{name}" does not exist', position=position)
        return item

    def named(self, name: Name) -> Item:
        """The same for statements that look for the schema first: 3F000, or 42P01."""
        self.check_schema(name)
        return self.relation(name)

    def check_schema(self, name: Name) -> None:
        if name.schema is not None:
            self.schema(name.schema)

    def __getitem__(self, id: int) -> Item:
        return self.items[id]

    def check_new(self, name: str, schema: Schema) -> None:
        if self.at(name, schema) is not None:
            raise DuplicateTable(f'relation "{name}" already exists')

    def dependents(self, id: int) -> tuple[Item, ...]:
        """The items whose definitions name this one, directly, and what is to replace it."""
        return tuple(i for i in self.items.values() if id in i.depends or i.replaces == id)

    def below(self, item: Item) -> set[int]:
        """All that an item is made of, at any depth."""
        found: set[int] = set()
        queue = list(item.depends)
        while queue:
            id = queue.pop()
            if id not in found:
                found.add(id)
                queue += self[id].depends
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
    """The item once it is filled."""
    return replace(item, ready=True)


def skips(item: Item) -> bool:
    """Whether rows that fail are left out of a view, instead of being errors of it."""
    return item.options.get(ON_ERROR) == "skip"
