"""The names of one statement, resolved once.

A gateway checks a statement that changes the catalog, and the engine executes it. The gateway
resolves the names, checks privileges on the resolved objects, and sends their ids. The engine does
not resolve the names again, so it changes exactly the objects that were checked:

    gateway: text, catalog with the session's path ──► Resolution ──► `Catalog.with_resolution` ──► checks of ownership and privileges
    engine:  Resolution, its own catalog           ──────────────► `Catalog.with_resolution` ──► execution; 40001 if something changed

`with_resolution` returns a catalog in which only the names of the statement exist, with these ids. Temporary
views have no id in it, so the engine does not see them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tailgate.lake.catalog.items import Item
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import Access, AccessList, Role
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import SerializationFailure
from tailgate.lake.types import field_to_json

DIGEST_BYTES = 8  # a digest detects changes; it does not protect against deliberate collisions


@dataclass(frozen=True, slots=True)
class Resolution:
    """The objects that the names of a statement refer to.

    - `path`: the schemas of the session's path, in order.
    - `relations`: id by name, for everything except functions, endpoints and types.
    - `functions`: ids by name, in the order of the path.
    - `endpoints`, `types`: id by name. `keys`: the id of a table by the name of its primary key.
    - `queries`: the id of the item that a persistent query of ksqlDB maintains, by the id of the query.
    - `versions`: by id, a digest of the item's definition.
    - `authority`: a digest of all roles, schemas and privileges.
    """

    path: tuple[str, ...]
    relations: Mapping[Name, int] = field(default_factory=dict)
    functions: Mapping[Name, tuple[int, ...]] = field(default_factory=dict)
    versions: Mapping[int, str] = field(default_factory=dict)
    authority: str = ""
    endpoints: Mapping[Name, int] = field(default_factory=dict)
    queries: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[Name, int] = field(default_factory=dict)
    keys: Mapping[Name, int] = field(default_factory=dict)

    def including(self, items: Iterable[Item], schemas: Mapping[int, Schema]) -> Resolution:
        """Returns the resolution with items added that the statement itself creates. `schemas`: all schemas by id."""
        relations, functions, endpoints, types = dict(self.relations), dict(self.functions), dict(self.endpoints), dict(self.types)
        ids_by_namespace = {"relation": relations, "endpoint": endpoints, "type": types}
        for item in items:
            schema = schemas[item.schema].name
            for name in (Name(item.name, schema), *((Name(item.name),) if schema in self.path else ())):
                if item.namespace == "function":
                    functions[name] = (*functions.get(name, ()), item.id)
                else:
                    ids_by_namespace[item.namespace].setdefault(name, item.id)
        return replace(self, relations=relations, functions=functions, endpoints=endpoints, types=types)

    def with_versions(self, ids: Iterable[int], items: Mapping[int, Item]) -> Resolution:
        """Returns the resolution with the versions of other items on which the statement depends."""
        return replace(self, versions={**self.versions, **{id: version(items[id]) for id in ids if id in items}})

    def to_json(self) -> dict[str, Any]:
        return {
            "path": list(self.path),
            "relations": [[name.schema, name.name, id] for name, id in self.relations.items()],
            "functions": [[name.schema, name.name, list(ids)] for name, ids in self.functions.items()],
            "versions": {str(id): hash for id, hash in self.versions.items()},
            "authority": self.authority,
            "endpoints": [[name.schema, name.name, id] for name, id in self.endpoints.items()],
            "queries": dict(self.queries),
            "types": [[name.schema, name.name, id] for name, id in self.types.items()],
            "keys": [[name.schema, name.name, id] for name, id in self.keys.items()],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Resolution:
        return Resolution(
            tuple(data["path"]),
            {Name(name, schema): id for schema, name, id in data["relations"]},
            {Name(name, schema): tuple(ids) for schema, name, ids in data["functions"]},
            {int(id): hash for id, hash in data["versions"].items()},
            data["authority"],
            {Name(name, schema): id for schema, name, id in data.get("endpoints", ())},
            data.get("queries", {}),
            {Name(name, schema): id for schema, name, id in data.get("types", ())},
            {Name(name, schema): id for schema, name, id in data.get("keys", ())},
        )


def version(item: Item) -> str:
    """Returns a digest of an item's identity, name, owner and definition.

    Data that the engine keeps in the item, such as the operators of a view, is not included.
    """
    columns = [field_to_json(c) for c in item.columns]
    return digest([item.id, item.kind, item.name, item.schema, item.owner, columns, item.key, item.sql])


def authority(roles: Mapping[int, Role], schemas: Mapping[int, Schema], access: Mapping[int, Access]) -> str:
    """Returns a digest of everything that decides about privileges, except passwords: roles, schemas with owners, access lists.

    Without access lists it is the digest of earlier versions, whose engine compares it during an upgrade.
    """
    known_roles = [_role(role) for _, role in sorted(roles.items())]
    lists = [(id, [(place, _list(entries)) for place, entries in _lists(each)]) for id, each in sorted(access.items())]
    return digest([known_roles, [[s.id, s.name, s.owner] for _, s in sorted(schemas.items())], *([lists] if lists else [])])


def _lists(access: Access) -> list[tuple[int, AccessList | None]]:
    return [(-1, access.entries), *sorted(access.columns.items())]


def _list(entries: AccessList | None) -> object:
    return entries and [(e.grantee, e.grantor, sorted(e.privileges), sorted(e.options)) for e in entries]


def _role(role: Role) -> dict[str, Any]:
    members = {"member_of": {str(r): admin for r, admin in role.member_of.items()}} if role.member_of else {}
    attributes = {"createrole": True} if role.createrole else {}
    earlier: dict[str, Any] = {"verifier": None, "grants": {}}  # keys of earlier versions, in which roles had the privileges
    return {"id": role.id, "name": role.name, "login": role.login, "superuser": role.superuser, **earlier, **attributes, **members}


def digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=DIGEST_BYTES).hexdigest()


def changed(what: str) -> SerializationFailure:
    """Returns the error for a catalog that is not the one in which the names were resolved."""
    return SerializationFailure(f"{what} changed while the statement was checked", hint="The statement might succeed if retried.")
