"""The meaning of the names of one statement, decided once.

A statement that changes the catalog is checked by a gateway and executed by the engine. The gateway looks its names up, checks the
privileges on what they mean, and sends the ids that it found. The engine never looks up the names again, so what was checked is what
is changed:

    gateway: text, catalog as the session sees it ──► Resolution ──► `over(catalog)` ──► checks of ownership and privileges
    engine:  Resolution, its own catalog          ──────────────► `over(catalog)` ──► execution; 40001 if something changed since

`over` gives a catalog in which the names of the statement mean these ids and no other name means anything. A temporary view has no
id there, so its name means nothing to the engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lake.catalog import Catalog, Item
from lake.errors import SerializationFailure
from lake.names import Name
from lake.types import field_to_json

DIGEST_BYTES = 8  # of a digest: it notices a change, it is no protection against collisions made on purpose


@dataclass(frozen=True, slots=True)
class Resolution:
    """`path`: the schemas of the session's path, in order. `relations`: id by name, of all that is not a function. `functions`: ids by
    name, in the order of the path. `versions`: of the definition of each of these items. `authority`: of all roles and schemas."""

    path: tuple[str, ...]
    relations: Mapping[Name, int] = field(default_factory=dict)
    functions: Mapping[Name, tuple[int, ...]] = field(default_factory=dict)
    versions: Mapping[int, str] = field(default_factory=dict)
    authority: str = ""

    def over(self, catalog: Catalog) -> Catalog:
        """The catalog in which names mean what they mean here. Raises 40001 if an item, a role or a schema is no longer what it was."""
        if authority(catalog) != self.authority:
            raise _changed("roles or schemas")
        for id, known in self.versions.items():
            if id not in catalog.items or version(catalog.items[id]) != known:
                raise _changed("an object that the statement names")
        return replace(catalog, path=self.path, resolution=self)

    def including(self, items: Iterable[Item], catalog: Catalog) -> Resolution:
        """The resolution with items that the statement itself creates, by their names in this catalog."""
        relations, functions = dict(self.relations), dict(self.functions)
        for item in items:
            schema = catalog.schema_of(item).name
            for name in (Name(item.name, schema), *((Name(item.name),) if schema in self.path else ())):
                if item.kind == "function":
                    functions[name] = (*functions.get(name, ()), item.id)
                else:
                    relations.setdefault(name, item.id)
        return replace(self, relations=relations, functions=functions)

    def to_json(self) -> dict[str, Any]:
        return {
            "path": list(self.path),
            "relations": [[name.schema, name.name, id] for name, id in self.relations.items()],
            "functions": [[name.schema, name.name, list(ids)] for name, ids in self.functions.items()],
            "versions": {str(id): known for id, known in self.versions.items()},
            "authority": self.authority,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Resolution:
        return Resolution(
            tuple(data["path"]),
            {Name(name, schema): id for schema, name, id in data["relations"]},
            {Name(name, schema): tuple(ids) for schema, name, ids in data["functions"]},
            {int(id): known for id, known in data["versions"].items()},
            data["authority"],
        )


def version(item: Item) -> str:
    """A digest of what a statement relies on: what the item is, what it is called, who owns it and how it is defined. Not of what the
    engine keeps in it, such as the operators of a view."""
    columns = [field_to_json(c) for c in item.columns]
    return _digest([item.id, item.kind, item.name, item.schema, item.owner, columns, item.key, item.sql])


def authority(catalog: Catalog) -> str:
    """A digest of what decides who may do what, passwords aside: roles with their grants, and schemas with their owners."""
    roles = [{**role.to_json(), "verifier": None} for _, role in sorted(catalog.roles.items())]
    return _digest([roles, [[s.id, s.name, s.owner] for _, s in sorted(catalog.schemas.items())]])


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=DIGEST_BYTES).hexdigest()


def _changed(what: str) -> SerializationFailure:  # type: ignore[valid-type]
    return SerializationFailure(f"{what} changed while the statement was checked", hint="The statement might succeed if retried.")
