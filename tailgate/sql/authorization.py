"""Checks whether a role may evaluate a plan. Only this module decides it; only an `Authorized` plan is run.

    plan ──► demands: privilege, item, readers ──► authorize(plan, role, catalog) ──► Authorized, or 42501

Each item is read on behalf of one or more roles. All of them must have the privilege:

    an item named by a statement           the role of the session
    an item named by a plain view          the owner of the view, not the role that reads the view
    an item named by a function's body     the roles on whose behalf the function is called, and its owner

So the owner of a view or function never gains the privileges of its caller, and the caller of a
function never gains those of its owner. A source, a table and a materialized view contain rows;
reading these requires SELECT on that item only.

As in PostgreSQL, SELECT, INSERT and UPDATE are needed on the item or on each of the columns that the
plan reads or writes. If it reads or writes none, as count(*) does, the privilege on any column suffices.

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
SELECT, EXECUTE, TYPE, OWNERSHIP, SUPERUSER = "SELECT", "EXECUTE", "TYPE", "OWNERSHIP", "SUPERUSER"


class Demand(NamedTuple):
    """A privilege that a plan needs on an item, or several with OR between them.

    `readers` are the roles that must have it: SESSION, or the id of a view or function, for its owner.
    Every role has EXECUTE on functions; on endpoints it is granted. Every role may use all TYPEs; the name
    needs USAGE on the schema. OWNERSHIP cannot be granted. SUPERUSER is independent of any
    item; the error then names `what`. `columns`: the positions of the columns on which the privilege
    suffices; empty for any column, None if it is needed on the whole item.
    """

    privilege: str
    item: int
    readers: tuple[int, ...] = (SESSION,)
    what: str = ""
    columns: tuple[int, ...] | None = None


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
        """Returns the demand for SELECT on all columns of the relation."""
        columns = tuple(i for i, column in enumerate(self.item.columns) if not column.is_dropped)
        return (Demand(SELECT, self.item.id, columns=columns),)


@dataclass(frozen=True, slots=True)
class Required:
    """Privileges that something other than a plan needs."""

    demands: tuple[Demand, ...]


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


def merged(demands: Iterable[Demand]) -> tuple[Demand, ...]:
    """Returns the demands with the columns of all that have the same privilege, item and readers in one."""
    columns: dict[Demand, tuple[int, ...] | None] = {}
    for demand in demands:
        key = demand._replace(columns=None)
        before = columns.get(key, ())
        columns[key] = None if before is None or demand.columns is None else tuple(sorted({*before, *demand.columns}))
    return tuple(key._replace(columns=of_key) for key, of_key in columns.items())


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
            _check_role(demand, item, role, catalog, by_name=True)
        else:
            _check_role(demand, item, _owner(reader, catalog), catalog)


def _check_role(demand: Demand, item: Item, role: Role, catalog: Catalog, *, by_name: bool = False) -> None:
    """Raises 42501 if the role lacks the privilege of a demand on its item.

    `by_name`: a statement of the role names the item. This requires USAGE on its schema too, except for
    the session's temporary views and for those of push queries, which only their owners follow.
    """
    if by_name and item.schema not in (TEMPORARY_ID, TRANSIENT_ID) and not catalog.may(role, "USAGE", item.schema):
        raise InsufficientPrivilege(f"permission denied for schema {catalog.schema_of(item).name}")
    if isinstance(item, Function) or demand.privilege == TYPE:
        return
    if not any(catalog.may(role, privilege, item.id, demand.columns) for privilege in demand.privilege.split(OR)):
        what = "must be owner of" if demand.privilege == OWNERSHIP else "permission denied for"
        raise InsufficientPrivilege(f"{what} {kind_of(item)} {item.name}")


def _owner(id: int, catalog: Catalog) -> Role:
    """Returns the owner of a view or function, or NOBODY if the item or its owner was dropped."""
    item = catalog.items.get(id)
    owner = None if item is None else catalog.all_roles().get(item.owner)
    return owner or NOBODY
