"""OWNER TO: the change that gives an item, and the objects that belong to it, to another role.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecChangeOwner), src/backend/utils/adt/acl.c (aclnewowner).
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change, Companion, Index, Item, Sequence
from tailgate.lake.catalog.roles import Role


def given(item: Item, owner: int, catalog: Catalog) -> Change:
    """Returns the change that gives an item, and its indexes, sequences and companions, to another owner.

    As in PostgreSQL, the old owner keeps no privileges that it has granted to itself, and the new owner has all.
    """
    belonging = (other for other in catalog.dependents(item.id) if isinstance(other, Companion | Index | Sequence))
    items = tuple(replace(each, owner=owner) for each in (item, *belonging))
    roles = without_privileges({each.id for each in items}, (item.owner, owner), catalog)
    return Change(put=items, put_roles=roles)


def without_privileges(objects: Set[int], owners: Collection[int], catalog: Catalog) -> tuple[Role, ...]:
    """Returns those of the old and the new owner that have privileges on these objects, without them."""
    roles = [role for role in catalog.roles.values() if role.id in owners and objects & {*role.grants, *role.column_grants}]
    return tuple(_without(role, objects) for role in roles)


def _without(role: Role, objects: Set[int]) -> Role:
    grants = {id: privileges for id, privileges in role.grants.items() if id not in objects}
    return replace(role, grants=grants, column_grants={id: columns for id, columns in role.column_grants.items() if id not in objects})
