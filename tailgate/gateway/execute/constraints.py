"""The checks of foreign keys that a block postpones until COMMIT or SET CONSTRAINTS … IMMEDIATE.

Source: PostgreSQL 15, src/backend/commands/trigger.c (AfterTriggerSetState, AfterTriggerFireDeferred).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes.constraints.references import check_net
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.catalog.names import Name
from tailgate.lake.constraints import Reference, keys_of, references_of
from tailgate.lake.errors import UndefinedObject, WrongObjectType
from tailgate.sql import statements as s
from tailgate.sql.authorization import Demand


@dataclass(frozen=True, slots=True)
class PostponedChecks:
    """The foreign keys that are checked. They are checked for every role, as in PostgreSQL."""

    references: tuple[Reference, ...]
    demands: tuple[Demand, ...] = ()


async def set_mode(session: Session, bound: Bound, statement: s.SetConstraints, values: Sequence[object]) -> str:
    """Sets when the block checks its deferrable constraints. IMMEDIATE makes the checks that were postponed."""
    if not session.transaction.in_block:
        session.notice("SET CONSTRAINTS can only be used in transaction blocks", "WARNING", "25P01")
        return "SET CONSTRAINTS"
    keys = None if not statement.names else frozenset(key for name in statement.names for key in _named(name, session.catalog))
    session.transaction.deferral.set(keys, deferred=statement.deferred)
    if not statement.deferred:
        await check_postponed(session, keys)
    return "SET CONSTRAINTS"


def _named(name: Name, catalog: Catalog) -> list[tuple[int, str]]:
    """Returns the deferrable foreign keys of a name, as (id of the table, name). Raises 42704, 42809.

    A deferrable UNIQUE is always checked after each statement.
    """
    schemas = [catalog.schema(name.schema).id] if name.schema is not None else [s.id for p in catalog.path if (s := catalog.find_schema(p))]
    for schema in schemas:
        tables = [table for table in catalog.each(Table) if table.schema == schema]
        foreign_keys = [(table.id, key) for table in tables for key in table.foreign_keys if key.name == name.name]
        uniques = [key.deferrable for table in tables for key in keys_of(table, catalog) if key.constraint and key.name == name.name]
        if foreign_keys or uniques:
            if not all([*(key.deferrable for _, key in foreign_keys), *uniques]):
                raise WrongObjectType(f'constraint "{name.name}" is not deferrable')
            return [(id, key.name) for id, key in foreign_keys]
    raise UndefinedObject(f'constraint "{name.name}" does not exist')


async def check_postponed(session: Session, only: frozenset[tuple[int, str]] | None = None) -> None:
    """Makes the postponed checks of these foreign keys, or of all, on the changes of the block. Raises 23503."""
    transaction = session.transaction
    pending = transaction.writes.postponed if only is None else transaction.writes.postponed & only
    if not pending or (snapshot := transaction.snapshot(session.serving)) is None:
        return
    catalog = session.catalog
    tables = {id: catalog.items.get(id) for id, _ in pending}
    every = (r for table in tables.values() if isinstance(table, Table) for r in references_of(table, catalog))
    plan = PostponedChecks(tuple(r for r in every if (r.table.id, r.name) in pending))
    changes = {id: written.changes for id, written in transaction.writes.changes.items()}
    style = session.settings.style

    def check(evaluation: Evaluation) -> None:
        for reference in plan.references:
            check_net(reference, changes, evaluation.cursor, evaluation.violations)

    items = {t.id: t for r in plan.references for t in (r.table, r.referenced)}
    await session.serving.queries.write(
        session.access.authorize(plan),
        list(items.values()),
        lambda cursor: check(Evaluation(cursor, (), style, catalog)),
        at=snapshot,
    )
    transaction.writes.postponed -= pending
