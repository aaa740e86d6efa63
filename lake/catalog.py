"""What has been created: items, by id and by name, as one frozen value.

Every change of the catalog is an entry of the log (W6), so the catalog has a time like any relation. Ids are never used
again; names may be. A maintained item has a relation (`id`) and a second one, `errors`, with the weighted errors of its
rows; both are relations of the log like any other.

    CREATE … ──► Catalog.add(item) ──► log entry {"catalog": change} ──► Catalog.apply(change) in every process
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from lake.errors import DependentObjectsStillExist, DuplicateTable, UndefinedObject, UndefinedTable
from lake.roles import BUILT_IN, OPERATOR_ID, PUBLIC_ID, Role
from lake.types import BYTEA, INT4, INT8, TEXT, TIMESTAMPTZ, Field, field_from_json, field_to_json

FIRST_ID = 16384  # as PostgreSQL's first oid of a user's object, so an id can be an oid

SCHEMA = "public"

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
)
DEAD_LETTERS_KEY = (0, 1, 2)

# the columns of a maintained item's errors
ERRORS = (Field("sqlstate", TEXT, False), Field("message", TEXT, False))

KINDS = ("source", "dead letters", "table", "view", "materialized view", "view errors", "sink", "function")
COMPANIONS = ("dead letters", "view errors")  # items that come and go with another
ON_ERROR = "on_error"  # option of a materialized view: 'skip' leaves out rows that fail


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of the catalog.

    `kind` is one of KINDS. `columns` are empty for a sink, of a function its arguments (`lake.routines`). `key`: positions of columns
    that identify a row, or None if the relation may hold duplicates. `stored`: its rows are kept in the lake (keyed sources, tables,
    materialized views, dead letters). `errors`: id of the relation of its errors, 0 if it is not maintained. `depends`: ids of the
    items its definition names. `sql`: the statement that made it, as typed; `query`: of a view, the text after AS, of a function its
    body. `options`: what its kind needs besides, as JSON values (a source: topic, brokers, formats; a sink: topic, formats, envelope).
    `ready`: whether it is filled; an item that is not is not to be read, and putting it as not ready, also again, is where
    its relations begin, empty. `owner`: id of the role that made it. `replaces`: of an item that is filled to take another's place,
    the other's id; until then only the engine sees it.
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

    @property
    def is_relation(self) -> bool:
        return self.kind not in ("sink", "function")

    @property
    def shown(self) -> str:
        """As messages name it: a function with the types of its arguments."""
        return f"{self.name}({','.join(str(a.type) for a in self.columns)})" if self.kind == "function" else self.name

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
    roles of `put_roles`. `drop` and `drop_roles` are ids."""

    put: tuple[Item, ...] = ()
    drop: tuple[int, ...] = ()
    put_roles: tuple[Role, ...] = ()
    drop_roles: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        items = {"put": [i.to_json() for i in self.put], "drop": list(self.drop)}
        roles = {"put_roles": [r.to_json() for r in self.put_roles], "drop_roles": list(self.drop_roles)}
        return {**items, **{key: value for key, value in roles.items() if value}}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Change:
        roles = tuple(Role.from_json(r) for r in data.get("put_roles", ()))
        return Change(tuple(Item.from_json(i) for i in data["put"]), tuple(data["drop"]), roles, tuple(data.get("drop_roles", ())))


@dataclass(frozen=True, slots=True)
class Catalog:
    """All items and roles at one time. `next_id` only grows. `roles`: those that statements made or changed; see `role`."""

    items: Mapping[int, Item] = field(default_factory=dict)
    next_id: int = FIRST_ID
    roles: Mapping[int, Role] = field(default_factory=dict)

    def apply(self, change: Change) -> Catalog:
        items = {i: item for i, item in self.items.items() if i not in change.drop} | {item.id: item for item in change.put}
        roles = {i: role for i, role in self.roles.items() if i not in change.drop_roles} | {role.id: role for role in change.put_roles}
        used = [max(item.id, item.errors) + 1 for item in change.put] + [role.id + 1 for role in change.put_roles]
        return Catalog(items, max([self.next_id, *used]), roles)

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
        """Whether a role has a privilege on an item, or on the schema: its owner and superusers have all."""
        item = self.items.get(object)
        if role.superuser or (item is not None and item.owner == role.id):
            return True
        everybody = self.roles.get(PUBLIC_ID, BUILT_IN[PUBLIC_ID])
        return any(privilege in granted.grants.get(object, ()) for granted in (role, everybody))

    # ---- items

    def find(self, name: str) -> Item | None:
        """The item of a name; relations and sinks share one space of names, as in PostgreSQL's pg_class."""
        return next((i for i in self.items.values() if i.name == name and not i.replaces and i.kind != "function"), None)

    def functions(self, name: str) -> tuple[Item, ...]:
        """The functions of a name, which has nothing to do with those of relations."""
        return tuple(i for i in self.items.values() if i.kind == "function" and i.name == name and not i.replaces)

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
        return Catalog({i: replace(item, replaces=0) for i, item in there.items()}, self.next_id, self.roles)

    def relation(self, name: str, position: int | None = None) -> Item:
        item = self.find(name)
        if item is None or not item.is_relation:
            raise UndefinedTable(f'relation "{name}" does not exist', position=position)
        return item

    def __getitem__(self, id: int) -> Item:
        return self.items[id]

    def check_new(self, name: str) -> None:
        if self.find(name) is not None:
            raise DuplicateTable(f'relation "{name}" already exists')

    def dependents(self, id: int) -> tuple[Item, ...]:
        """The items whose definitions name this one, directly, and what is to replace it."""
        return tuple(i for i in self.items.values() if id in i.depends or i.replaces == id)

    def dropping(self, item: Item, *, cascade: bool = False) -> tuple[Item, ...]:
        """What goes when an item is dropped: itself, its companions and, with cascade, all that depends on it.

        Raises 2BP01 naming the dependents if there are any and cascade was not asked for.
        """
        going: dict[int, Item] = {item.id: item}
        blocked: list[str] = []
        queue = [item]
        while queue:
            current = queue.pop()
            for dependent in self.dependents(current.id):
                if dependent.id in going:
                    continue
                if not cascade and dependent.kind not in COMPANIONS and not dependent.replaces:
                    blocked.append(f"{dependent.kind} {dependent.shown} depends on {current.kind} {current.shown}")
                going[dependent.id] = dependent
                queue.append(dependent)
        if blocked:
            raise DependentObjectsStillExist(
                f"cannot drop {item.kind} {item.shown} because other objects depend on it",
                detail="\n".join(blocked),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )
        return tuple(going.values())

    def to_json(self) -> dict[str, Any]:
        roles = {"roles": [r.to_json() for r in self.roles.values()]} if self.roles else {}
        return {"items": [i.to_json() for i in self.items.values()], "next_id": self.next_id, **roles}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Catalog:
        items: Iterable[Item] = map(Item.from_json, data["items"])
        roles = map(Role.from_json, data.get("roles", ()))
        return Catalog({i.id: i for i in items}, data["next_id"], {r.id: r for r in roles})


def ready(item: Item) -> Item:
    """The item once it is filled."""
    return replace(item, ready=True)


def skips(item: Item) -> bool:
    """Whether rows that fail are left out of a view, instead of being errors of it."""
    return item.options.get(ON_ERROR) == "skip"
