"""DROP: which items go."""

from __future__ import annotations

from engine.ddl.names import check_schema
from lake.catalog import COMPANIONS, Catalog, Change, Item
from lake.errors import DependentObjectsStillExist, TailgateError, UndefinedObject, UndefinedTable, WrongObjectType
from sql.statements import Drop, Name

Notice = dict[str, str | None]


def drop(statement: Drop, catalog: Catalog) -> tuple[tuple[Item, ...], list[Notice]]:
    """The items that go, and what to tell. Companions go with their owner; what depends on an item goes with CASCADE, else 2BP01."""
    notices: list[Notice] = []
    named: dict[int, Item] = {}
    for name in statement.names:
        item = _find(statement, name, catalog)
        if item is None:
            notices.append(notice(f'{statement.kind} "{name.name}" does not exist, skipping'))
        else:
            named[item.id] = item
    items, told = going(named, catalog, cascade=statement.cascade)
    return items, notices + told


def going(named: dict[int, Item], catalog: Catalog, *, cascade: bool) -> tuple[tuple[Item, ...], list[Notice]]:
    """The items that go with those that were named, and what to tell. Raises 2BP01."""
    notices: list[Notice] = []
    gone: dict[int, Item] = {}
    blocked: list[TailgateError] = []
    for item in named.values():
        others = catalog.apply(Change(drop=tuple(i for i in named if i != item.id)))
        try:
            gone |= {i.id: i for i in others.dropping(item, cascade=cascade)}
        except DependentObjectsStillExist as e:
            blocked.append(e)
    if blocked:
        if len(named) == 1:
            raise blocked[0]
        told: dict[str, str] = {}  # by dependent, each once
        for line in (line for e in blocked for line in (e.detail or "").splitlines()):
            told.setdefault(line.split(" depends on ")[0], line)
        raise DependentObjectsStillExist(
            "cannot drop desired object(s) because other objects depend on them",
            detail="\n".join(told.values()),
            hint=blocked[0].hint,
        )
    followers = [i for i in gone.values() if i.id not in named and i.kind not in COMPANIONS and not i.replaces]
    if len(followers) == 1:
        notices.append(notice(f"drop cascades to {followers[0].kind} {followers[0].shown}"))
    elif followers:
        detail = "\n".join(f"drop cascades to {i.kind} {i.shown}" for i in followers)
        notices.append({**notice(f"drop cascades to {len(followers)} other objects"), "detail": detail})
    return tuple(gone[i] for i in sorted(gone)), notices


def _find(statement: Drop, name: Name, catalog: Catalog) -> Item | None:
    item = found(statement.kind, name, catalog, if_exists=statement.if_exists)
    if item is not None and item.kind in COMPANIONS:
        owner = catalog[item.depends[0]]
        raise DependentObjectsStillExist(
            f"cannot drop {item.name} because {owner.kind} {owner.name} requires it",
            hint=f"You can drop {owner.kind} {owner.name} instead.",
            position=name.position,
        )
    return item


def found(kind: str, name: Name, catalog: Catalog, *, if_exists: bool = False, any_relation: bool = False) -> Item | None:
    """The item that a statement names, of the kind that it says; None if it is not there and need not be. Companions are of every kind."""
    check_schema(name)
    item = catalog.find(name.name)
    if item is None:
        if if_exists:
            return None
        missing = UndefinedObject if kind == "sink" else UndefinedTable
        raise missing(f'{kind} "{name.name}" does not exist', position=name.position)
    if item.kind != kind and item.kind not in COMPANIONS and not (any_relation and item.is_relation):
        raise WrongObjectType(
            f'"{name.name}" is not a {kind}', hint=f"Use DROP {item.kind.upper()} to remove a {item.kind}.", position=name.position
        )
    return item


def notice(message: str) -> Notice:
    return {"severity": "NOTICE", "sqlstate": "00000", "message": message, "hint": None}
