"""Privileges in the system catalog: access lists such as `{ann=r/boss}`, and the rows for the privileges of information_schema.

Source: PostgreSQL 15, src/backend/utils/adt/acl.c (aclitemout, putid), src/backend/catalog/information_schema.sql.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.catalog.roles import (
    COLUMN_PRIVILEGES,
    PRIVILEGES_OF,
    PUBLIC,
    PUBLIC_ID,
    RELATION_PRIVILEGES,
    AccessList,
    Granted,
    in_effect,
)
from tailgate.lake.catalog.schemas import Database, Schema, is_system

OBJECT_TYPES = {"relation": "r", "sequence": "S", "type": "T", "schema": "n"}  # pg_default_acl.defaclobjtype
DEFAULT_LISTS = 13 << 28  # the first oid of pg_default_acl


def access_list(object: Item | Schema | Database, catalog: Catalog) -> list[str] | None:
    """Returns pg_class.relacl, pg_namespace.nspacl, pg_type.typacl or pg_database.datacl; NULL before the first GRANT or REVOKE."""
    if is_system(object.id):
        of_all = frozenset(word for word in object.privileges if catalog.may(PUBLIC, word, object.id))
        entries = (*catalog.entries(object), *((Granted(PUBLIC_ID, object.owner, of_all),) if of_all else ()))
        return _texts(entries, object.privileges, catalog) if of_all else None
    access = catalog.access.get(object.id)
    return None if access is None or access.entries is None else _texts(access.entries, object.privileges, catalog)


def column_access_lists(item: Item, catalog: Catalog) -> dict[int, list[str]]:
    """Returns pg_attribute.attacl of the columns with privileges, by position."""
    access = catalog.access.get(item.id)
    return {} if access is None else {place: _texts(of, COLUMN_PRIVILEGES, catalog) for place, of in access.columns.items()}


def pg_default_acl(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the privileges of ALTER DEFAULT PRIVILEGES."""
    schemas = catalog.all_schemas()
    lists = ((role, each) for role in catalog.roles.values() for each in in_effect(role, schemas))
    for number, (role, each) in enumerate(lists):
        letters = PRIVILEGES_OF.get(each.kind, RELATION_PRIVILEGES)
        yield {
            "oid": DEFAULT_LISTS + number, "defaclrole": role.id, "defaclnamespace": each.schema, "defaclobjtype": OBJECT_TYPES[each.kind],
            "defaclacl": _texts(each.entries, letters, catalog),
        }  # fmt: skip


def relation_grants(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the privileges on relations and, with their `attnum`, on columns."""
    for item in (item for item in catalog.visible if item.is_relation):
        yield from _grants(item, 0, catalog.entries(item))
        if item.id in catalog.access:
            for place, entries in catalog.access[item.id].columns.items():
                yield from _grants(item, place + 1, entries)


def _grants(item: Item, attnum: int, entries: AccessList) -> Iterator[dict[str, Any]]:
    for entry in entries:
        for word in sorted(entry.privileges):
            roles = {"grantor": entry.grantor, "grantee": entry.grantee}
            yield {"relation": item.id, "attnum": attnum, **roles, "privilege": word, "grantable": word in entry.options}


def _texts(entries: AccessList, letters: Mapping[str, str], catalog: Catalog) -> list[str]:
    """Returns the entries as text: the letters of the privileges, with * behind those with GRANT OPTION."""
    return [
        f"{_role(entry.grantee, catalog)}="
        + "".join(letter + "*" * (word in entry.options) for word, letter in letters.items() if word in entry.privileges)
        + f"/{_role(entry.grantor, catalog)}"
        for entry in entries
    ]


def _role(id: int, catalog: Catalog) -> str:
    role = catalog.all_roles().get(id)
    return str(id) if role is None else "" if id == PUBLIC_ID else quoted_role(role.name)


def quoted_role(name: str) -> str:
    """Quotes a role name as access lists do, which is less often than in statements."""
    return name if name.replace("_", "a").isalnum() else '"' + name.replace('"', '""') + '"'
