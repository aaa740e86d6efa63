"""Whether a role may evaluate a plan. This is the only place that decides it, and only what it returns can be run.

    plan ──► its demands: privilege, item, in whose name ──► authorize(plan, role, catalog) ──► Authorized, or 42501

A plan reads in the name of one or more roles, which must all have the privilege:

    what a statement names             the role of the session
    what a plain view names            the owner of the view, whoever reads the view
    what the body of a function names  those in whose name the function is called, and the owner of the function

So neither a view nor a function lends its caller's privileges to its owner, and a function does not lend its owner's either. A
source, a table and a materialized view hold rows: to read those takes SELECT on them alone.

The binder notes a demand where it looks a name up. `gateway.serving` takes an `Authorized` wherever it evaluates something, and
`engine.ddl.definitions` authorizes definitions with the privileges of their owners.

Source: PostgreSQL 15, section 41.5, "Rules and Privileges".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from lake.catalog import Catalog, Item
from lake.errors import InsufficientPrivilege, UndefinedTable
from lake.roles import Role
from lake.schemas import TEMPORARY_ID

SESSION = 0  # in place of an item's id: the role of the session
SELECT, EXECUTE, SUPERUSER = "SELECT", "EXECUTE", "SUPERUSER"


class Demand(NamedTuple):
    """A privilege that a plan needs on an item. `readers`: in whose name: SESSION, or ids of views and functions, whose owners are meant.

    EXECUTE of a function is everybody's. SUPERUSER is no privilege on an item; `what` is then named in the error.
    """

    privilege: str
    item: int
    readers: tuple[int, ...] = (SESSION,)
    what: str = ""


class Plan(Protocol):
    @property
    def demands(self) -> tuple[Demand, ...]:
        """All that is needed to evaluate it."""


P = TypeVar("P", bound=Plan)
P_co = TypeVar("P_co", bound=Plan, covariant=True)
NOBODY = Role(-1, "")  # the owner of what is gone
_SEAL = object()


@dataclass(frozen=True, slots=True)
class Authorized(Generic[P_co]):
    """A plan that may be evaluated. `authorize` and `shared` make one; nothing else can."""

    plan: P_co
    _seal: object = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._seal is not _SEAL:
            raise TypeError("authorize() makes these")


@dataclass(frozen=True, slots=True)
class Followed:
    """All rows of one relation, and how they change. `item` may be as it was at another time."""

    item: Item

    @property
    def demands(self) -> tuple[Demand, ...]:
        return (Demand(SELECT, self.item.id),)


def authorize(plan: P, role: Role, catalog: Catalog) -> Authorized[P]:
    """The plan, for what evaluates it. Raises 42501 unless all in whose name it reads may; `role` is that of the session."""
    for demand in plan.demands:
        _check(demand, role, catalog)
    return Authorized(plan, _SEAL)


def shared(plan: P) -> Authorized[P]:
    """A plan that is evaluated for a cache. A session gets a part of what it gives after a plan of its own was authorized."""
    return Authorized(plan, _SEAL)


def renamed(demands: Iterable[Demand], reader: int) -> tuple[Demand, ...]:
    """The demands of a definition in the name of its owner and not of the session's role."""
    return tuple(d._replace(readers=tuple(reader if r == SESSION else r for r in d.readers)) for d in demands)


def kind_of(item: Item) -> str:
    """What PostgreSQL's messages call it."""
    return item.kind if item.kind in ("view", "materialized view") else "table" if item.is_relation else item.kind


def _check(demand: Demand, role: Role, catalog: Catalog) -> None:
    if demand.privilege == SUPERUSER:
        if not role.superuser:
            raise InsufficientPrivilege(f"permission denied for {demand.what}")
        return
    item = catalog.items.get(demand.item)
    if item is None:
        raise UndefinedTable("a relation that the statement reads was dropped")
    for reader in demand.readers:
        if reader == SESSION:
            _check_role(demand.privilege, item, role, catalog, named=True)
        else:
            _check_role(demand.privilege, item, _owner(reader, catalog), catalog)


def _check_role(privilege: str, item: Item, role: Role, catalog: Catalog, *, named: bool = False) -> None:
    """`named`: the role's own statement names the item, which takes USAGE of the schema too, except that of a session's own views."""
    if named and item.schema != TEMPORARY_ID and not catalog.may(role, "USAGE", item.schema):
        raise InsufficientPrivilege(f"permission denied for schema {catalog.schema_of(item).name}")
    if privilege != EXECUTE and not catalog.may(role, privilege, item.id):
        raise InsufficientPrivilege(f"permission denied for {kind_of(item)} {item.name}")


def _owner(id: int, catalog: Catalog) -> Role:
    """The owner of a view or function; a role without any privilege if one of the two is gone."""
    item = catalog.items.get(id)
    owner = None if item is None else catalog.all_roles().get(item.owner)
    return owner or NOBODY
