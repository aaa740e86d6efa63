"""FOR UPDATE, FOR SHARE and the like: the relations whose rows a query locks.

Source: PostgreSQL 15, src/backend/parser/analyze.c (CheckSelectLocking, transformLockingClause).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Item, Table, View
from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.errors import FeatureNotSupported, SyntaxError_, UndefinedTable, WrongObjectType
from tailgate.sql.authorization import Demand
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Scope
from tailgate.sql.grammar.names import position


def locking(tree: exp.Expr, names: Names) -> Names:
    """Returns the names for the FROM clause of a SELECT. With a locking clause they record the locked relations. Raises 0A000."""
    lock = tree.args.get("locks")
    if lock is None:
        return names
    if names.locked is None:
        raise FeatureNotSupported(f"{lock.meta['words']} is not supported", position=position(lock))
    for key, clause in (("distinct", "DISTINCT clause"), ("group", "GROUP BY clause"), ("having", "HAVING clause")):
        refuse_lock(tree, clause, bool(tree.args.get(key)))
    items = () if names.locking is not None or lock.meta.get("all") else tuple(node.name for node in lock.meta["of"])
    return replace(names, locking=items)


def of_item(names: Names, item: str) -> Names:
    """Returns the names for an item of FROM. All its relations are locked, or none if OF names other items only."""
    if not names.locking:
        return names
    return replace(names, locking=() if item in names.locking else None)


def refuse_lock(tree: exp.Expr, clause: str, present: bool = True) -> None:
    """Raises 0A000 if a query with a locking clause has another clause."""
    lock = tree.args.get("locks")
    if lock is not None and present:
        raise FeatureNotSupported(f"{lock.meta['words']} is not allowed with {clause}")


def check_locked(tree: exp.Expr, scope: Scope) -> None:
    """Raises 42P01 for a table that a locking clause names and FROM lacks, and 42601 for a name with a schema."""
    lock = tree.args.get("locks")
    if lock is None:
        return
    for node in lock.meta.get("of", ()):
        if node.text("db"):
            raise SyntaxError_(f"{lock.meta['words']} must specify unqualified relation names", position=position(node))
        if node.name not in [table.alias for table in scope.tables]:
            message = f'relation "{node.name}" in {lock.meta["words"]} clause not found in FROM clause'
            raise UndefinedTable(message, position=position(node))


def lock(names: Names, item: Item, at: int | None) -> None:
    """Records that the query locks rows of a relation. Raises 42809 for one that statements cannot change."""
    if names.locking is None or names.locked is None:
        return
    if not isinstance(item, Table | View) or is_system(item.id):
        raise WrongObjectType(f'cannot lock rows in {item.kind} "{item.name}"', position=at)
    names.demand(Demand("UPDATE", item.id, names.readers, columns=()))
    names.locked[item.id] = None
