"""OWNER TO: the change that gives an item, and the objects that belong to it, to another role.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecChangeOwner), src/backend/utils/adt/acl.c (aclnewowner).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change, Companion, Index, Item, Sequence
from tailgate.lake.catalog.roles import Access, AccessList, Granted
from tailgate.lake.catalog.schemas import Schema


def given(item: Item, owner: int, catalog: Catalog) -> Change:
    """Returns the change that gives an item, and its indexes, sequences and companions, to another owner."""
    belonging = (other for other in catalog.dependents(item.id) if isinstance(other, Companion | Index | Sequence))
    items = (item, *belonging)
    return Change(put=tuple(replace(each, owner=owner) for each in items), put_access=access_given(items, owner, catalog))


def access_given(objects: tuple[Item | Schema, ...], owner: int, catalog: Catalog) -> tuple[Access, ...]:
    """Returns the privileges on objects that get another owner, which has those of the old owner and has granted what that had granted."""
    before = ((object.owner, access) for object in objects if (access := catalog.access.get(object.id)) is not None)
    return tuple(
        replace(
            access,
            entries=None if access.entries is None else _given(access.entries, old, owner),
            columns={column: _given(entries, old, owner) for column, entries in access.columns.items()},
        )
        for old, access in before
    )


def _given(entries: AccessList, old: int, new: int) -> AccessList:
    """Returns the entries with a role in the place of another one; those of the same roles become one."""
    after: dict[tuple[int, int], Granted] = {}
    for entry in entries:
        grantee, grantor = (new if role == old else role for role in (entry.grantee, entry.grantor))
        other = after.get((grantee, grantor), Granted(grantee, grantor, frozenset()))
        after[grantee, grantor] = replace(other, privileges=other.privileges | entry.privileges, options=other.options | entry.options)
    return tuple(after.values())
