"""Checks whether a role may evaluate a plan. Only this module decides it; only an `Authorized` plan is run.

    plan ──► demands: privilege, item, readers ──► authorize(plan, role, catalog) ──► Authorized, or 42501

Each item is read on behalf of one or more roles. All of them must have the privilege:

    an item named by a statement           the role of the session
    an item named by a plain view          the owner of the view, not the role that reads the view
    an item named by a function's body     the roles on whose behalf the function is called, and its owner

So the owner of a view or function never gains the privileges of its caller, and the caller of a
function never gains those of its owner. A source, a table and a materialized view contain rows;
reading these requires SELECT on that item only.

The binder records a demand for each name that it resolves. `gateway.serving` accepts only
`Authorized` plans, and `engine.ddl.definitions` authorizes definitions with the privileges of their
owners.

Source: PostgreSQL 15, section 41.5, "Rules and Privileges".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from tailgate.lake.catalog import Catalog, Function, Item, MaterializedView, View
from tailgate.lake.catalog.roles import Role
from tailgate.lake.catalog.schemas import TEMPORARY_ID, TRANSIENT_ID
from tailgate.lake.errors import InsufficientPrivilege, UndefinedTable

SESSION = 0  # the role of the session, where other readers are ids of items
OR = " or "  # between the privileges of a demand of which one is enough
SELECT, EXECUTE, SUPERUSER = "SELECT", "EXECUTE", "SUPERUSER"


class Demand(NamedTuple):
    """A privilege that a plan needs on an item, or several with OR between them.

    `readers` are the roles that must have it: SESSION, or the id of a view or function, for its owner.
    Every role has EXECUTE on functions; on endpoints it is granted. SUPERUSER is independent of any
    item; the error then names `what`.
    """

    privilege: str
    item: int
    readers: tuple[int, ...] = (SESSION,)
    what: str = ""


class Plan(Protocol):
    """Anything that needs authorization before it is evaluated."""

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns all privileges that evaluating the plan needs."""


P = TypeVar("P", bound=Plan)
P_co = TypeVar("P_co", bound=Plan, covariant=True)
NOBODY = Role(-1, "")  # stands for the owner of a dropped item
_SEAL = object()


@dataclass(frozen=True, slots=True)
class Authorized(Generic[P_co]):
    """A plan that may be evaluated. Only `authorize` and `shared` can create one."""

    plan: P_co
    _seal: object = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._seal is not _SEAL:
            raise TypeError("authorize() makes these")


@dataclass(frozen=True, slots=True)
class Followed:
    """The rows and changes of one relation. `item` may come from an older catalog."""

    item: Item

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns the demand for SELECT on the relation."""
        return (Demand(SELECT, self.item.id),)


def authorize(plan: P, role: Role, catalog: Catalog) -> Authorized[P]:
    """Returns the plan as `Authorized`. Raises 42501 if a reader lacks a privilege.

    `role` is the role of the session.
    """
    for demand in plan.demands:
        _check(demand, role, catalog)
    return Authorized(plan, _SEAL)


def shared(plan: P) -> Authorized[P]:
    """Returns a plan that fills a cache, without a check.

    A session gets rows from the cache only after its own plan was authorized.
    """
    return Authorized(plan, _SEAL)


def renamed(demands: Iterable[Demand], reader: int) -> tuple[Demand, ...]:
    """Returns demands that check the owner of item `reader` in place of the session's role."""
    return tuple(d._replace(readers=tuple(reader if r == SESSION else r for r in d.readers)) for d in demands)


def may_see(item: Item, role: Role, catalog: Catalog) -> bool:
    """Returns whether a role may see an item's errors, which can contain values of rows.

    It must own the item, or be allowed to read it or the relation that it reads.
    """
    if role.superuser or item.owner in catalog.acting(role.id):
        return True
    try:
        authorize(Followed(item if item.is_relation else catalog[item.depends[0]]), role, catalog)
    except (InsufficientPrivilege, UndefinedTable):
        return False
    return True


def kind_of(item: Item) -> str:
    """Returns the kind of an item in the words of PostgreSQL's error messages."""
    return item.kind if isinstance(item, View | MaterializedView) else "table" if item.is_relation else item.kind


def _check(demand: Demand, role: Role, catalog: Catalog) -> None:
    """Raises 42501 unless all readers of a demand have its privilege.

    Raises 42P01 for a dropped item.
    """
    if demand.privilege == SUPERUSER:
        if not role.superuser:
            raise InsufficientPrivilege(f"permission denied for {demand.what}")
        return
    item = catalog.get(demand.item)
    if item is None:
        raise UndefinedTable("a relation that the statement reads was dropped")
    for reader in demand.readers:
        if reader == SESSION:
            _check_role(demand.privilege, item, role, catalog, by_name=True)
        else:
            _check_role(demand.privilege, item, _owner(reader, catalog), catalog)


def _check_role(privilege: str, item: Item, role: Role, catalog: Catalog, *, by_name: bool = False) -> None:
    """Raises 42501 if the role lacks a privilege on an item.

    `by_name`: a statement of the role names the item. This requires USAGE on its schema too, except for
    the session's temporary views and for those of push queries, which only their owners follow.
    """
    if by_name and item.schema not in (TEMPORARY_ID, TRANSIENT_ID) and not catalog.may(role, "USAGE", item.schema):
        raise InsufficientPrivilege(f"permission denied for schema {catalog.schema_of(item).name}")
    if not isinstance(item, Function) and not any(catalog.may(role, p, item.id) for p in privilege.split(OR)):
        raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")


def _owner(id: int, catalog: Catalog) -> Role:
    """Returns the owner of a view or function, or NOBODY if the item or its owner was dropped."""
    item = catalog.items.get(id)
    owner = None if item is None else catalog.all_roles().get(item.owner)
    return owner or NOBODY
