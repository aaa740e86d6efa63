"""Privileges in the system catalog: access lists such as `{ann=r/boss}`, and the rows for the privileges of information_schema.

Source: PostgreSQL 15, src/backend/utils/adt/acl.c (aclitemout, putid), src/backend/catalog/information_schema.sql.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tailgate.lake.catalog import Catalog, Domain, Enum, Item, Sequence
from tailgate.lake.catalog.roles import (
    COLUMN_PRIVILEGES,
    PUBLIC,
    PUBLIC_ID,
    RELATION_PRIVILEGES,
    SCHEMA_PRIVILEGES,
    SEQUENCE_PRIVILEGES,
    TYPE_PRIVILEGES,
    Role,
)
from tailgate.lake.catalog.schemas import Schema, is_system


def access_list(item: Item | Schema, catalog: Catalog) -> list[str] | None:
    """Returns pg_class.relacl, pg_namespace.nspacl or pg_type.typacl; NULL if no privileges were granted."""
    letters = RELATION_PRIVILEGES
    if isinstance(item, Schema | Sequence):
        letters = SCHEMA_PRIVILEGES if isinstance(item, Schema) else SEQUENCE_PRIVILEGES
    granted = [(r, r.grants[item.id]) for r in catalog.all_roles().values() if r.grants.get(item.id)]
    if is_system(item.id):
        of_all = frozenset(word for word in letters if catalog.may(PUBLIC, word, item.id))
        granted = [(PUBLIC, of_all)] if of_all else []
    if not granted:
        return None
    if isinstance(item, Enum | Domain):
        letters = TYPE_PRIVILEGES
        granted = [(PUBLIC, frozenset(("USAGE",))), *((role, words) for role, words in granted if role.id != PUBLIC_ID)]
    owner = _owner(item, catalog)
    owners = f"{owner}={''.join(letters.values())}/{owner}"
    listed = [_entry(role, words, letters, owner) for role, words in granted if role.id != item.owner]
    return [listed[0], owners, *listed[1:]] if isinstance(item, Enum | Domain) else [owners, *listed]


def column_access_lists(item: Item, catalog: Catalog) -> dict[int, list[str]]:
    """Returns pg_attribute.attacl of the columns with privileges, by position."""
    owner, lists = _owner(item, catalog), dict[int, list[str]]()
    for role in catalog.all_roles().values():
        for position, words in role.column_grants.get(item.id, {}).items():
            if not item.columns[position].is_dropped:
                lists.setdefault(position, []).append(_entry(role, words, COLUMN_PRIVILEGES, owner))
    return lists


def relation_grants(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the privileges on relations and, with their `attnum`, on columns. The owner has granted all privileges to itself."""
    for item in (item for item in catalog.visible if item.is_relation):
        owner = catalog.all_roles().get(item.owner)
        if owner is not None:
            yield from _grants(item, owner, 0, RELATION_PRIVILEGES)
        for role in catalog.all_roles().values():
            if role.id != item.owner:
                yield from _grants(item, role, 0, role.grants.get(item.id, ()))
            for position, words in role.column_grants.get(item.id, {}).items():
                yield from _grants(item, role, position + 1, words)


def _grants(item: Item, role: Role, attnum: int, words: Collection[str]) -> Iterator[dict[str, Any]]:
    for word in sorted(words):
        yield {"relation": item.id, "attnum": attnum, "grantor": item.owner, "grantee": role.id, "privilege": word}


def _owner(item: Item | Schema, catalog: Catalog) -> str:
    owner = catalog.all_roles().get(item.owner)
    return str(item.owner) if owner is None else _grantee(owner.name)


def _entry(role: Role, words: Collection[str], letters: Mapping[str, str], owner: str) -> str:
    """Returns the entry of an access list for the privileges of a role."""
    granted = "".join(letter for word, letter in letters.items() if word in words)
    return f"{_grantee(role.name) if role.id != PUBLIC_ID else ''}={granted}/{owner}"


def _grantee(name: str) -> str:
    """Quotes a role name as access lists do, which is less often than in statements."""
    return name if name.replace("_", "a").isalnum() else '"' + name.replace('"', '""') + '"'
