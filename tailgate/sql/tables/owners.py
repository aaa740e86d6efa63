"""OWNER TO: the change that gives an item, and the objects that belong to it, to another role.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecChangeOwner), src/backend/utils/adt/acl.c (aclnewowner).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change, Companion, Index, Item, Sequence
from tailgate.lake.catalog.roles import Access
from tailgate.lake.catalog.roles import given as given_access
from tailgate.lake.catalog.schemas import Schema


def given(item: Item, owner: int, catalog: Catalog) -> Change:
    """Returns the change that gives an item, and its indexes, sequences and companions, to another owner."""
    belonging = (other for other in catalog.dependents(item.id) if isinstance(other, Companion | Index | Sequence))
    items = (item, *belonging)
    return Change(put=tuple(replace(each, owner=owner) for each in items), put_access=access_given(items, owner, catalog))


def access_given(objects: tuple[Item | Schema, ...], owner: int, catalog: Catalog) -> tuple[Access, ...]:
    """Returns the privileges on objects that get another owner."""
    return tuple(given_access(access, o.owner, owner) for o in objects if (access := catalog.access.get(o.id)) is not None)
