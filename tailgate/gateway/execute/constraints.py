"""The checks of constraints that a block postpones until COMMIT or SET CONSTRAINTS … IMMEDIATE.

Source: PostgreSQL 15, src/backend/commands/trigger.c (AfterTriggerSetState, AfterTriggerFireDeferred).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes.constraints.references import check_net, check_net_keys
from tailgate.gateway.writes.constraints.shown_values import ShownValues
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.catalog.names import Name
from tailgate.lake.constraints import Key, Reference, keys_of, references_of
from tailgate.lake.errors import UndefinedObject, WrongObjectType
from tailgate.sql import statements as s
from tailgate.sql.authorization import Demand


@dataclass(frozen=True, slots=True)
class PostponedChecks:
    """The foreign keys and the unique constraints that are checked. They are checked for every role, as in PostgreSQL."""

    references: tuple[Reference, ...]
    keys: tuple[tuple[Table, Key], ...] = ()
    demands: tuple[Demand, ...] = ()


async def set_mode(session: Session, bound: Bound, statement: s.SetConstraints, values: Sequence[object]) -> str:
    """Sets when the block checks its deferrable constraints. IMMEDIATE makes the checks that were postponed."""
    if not session.transaction.pending:
        session.notice("SET CONSTRAINTS can only be used in transaction blocks", "WARNING", "25P01")
        return "SET CONSTRAINTS"
    keys = None if not statement.names else frozenset(key for name in statement.names for key in _named(name, session.catalog))
    session.transaction.constraint_modes.set(keys, deferred=statement.deferred)
    if not statement.deferred:
        await check_postponed(session, keys)
    return "SET CONSTRAINTS"


def _named(name: Name, catalog: Catalog) -> list[tuple[int, str]]:
    """Returns the deferrable constraints of a name, as (id of the table, name). Raises 42704, 42809."""
    schemas = [catalog.schema(name.schema).id] if name.schema is not None else [s.id for p in catalog.path if (s := catalog.find_schema(p))]
    for schema in schemas:
        tables = [table for table in catalog.each(Table) if table.schema == schema]
        matches = [(t.id, c) for t in tables for c in _constraints(t, catalog) if c.name == name.name]
        if matches:
            if not all(constraint.deferrable for _, constraint in matches):
                raise WrongObjectType(f'constraint "{name.name}" is not deferrable')
            return [(id, constraint.name) for id, constraint in matches]
    raise UndefinedObject(f'constraint "{name.name}" does not exist')


def _constraints(table: Table, catalog: Catalog) -> tuple[Key | Reference, ...]:
    """Returns the foreign keys and the unique constraints of a table."""
    return (*references_of(table, catalog), *(key for key in keys_of(table, catalog) if key.constraint))


async def check_postponed(session: Session, only: frozenset[tuple[int, str]] | None = None) -> None:
    """Makes the postponed checks of these constraints, or of all, on the changes of the block. Raises 23503, 23505."""
    transaction = session.transaction
    pending = transaction.writes.postponed if only is None else transaction.writes.postponed & only
    if not pending or (snapshot := transaction.snapshot(session.serving)) is None:
        return
    catalog = session.catalog
    tables = [table for id in dict.fromkeys(id for id, _ in pending) if isinstance(table := catalog.items.get(id), Table)]
    late = [(table, c) for table in tables for c in _constraints(table, catalog) if (table.id, c.name) in pending]
    plan = PostponedChecks(
        tuple(c for _, c in late if isinstance(c, Reference)), tuple((table, c) for table, c in late if isinstance(c, Key))
    )
    changes = {id: written.changes for id, written in transaction.writes.changes.items()}
    style, shown = session.settings.style, ShownValues(catalog, session.access.role)

    def check(evaluation: Evaluation) -> None:
        for reference in plan.references:
            check_net(reference, changes, evaluation.cursor, evaluation.violations)
        for table, key in plan.keys:
            check_net_keys(table, key, changes, evaluation.cursor, evaluation.violations)

    items = {t.id: t for r in plan.references for t in (r.table, r.referenced)} | {table.id: table for table, _ in plan.keys}
    await session.serving.queries.write(
        session.access.authorize(plan),
        list(items.values()),
        lambda cursor: check(Evaluation(cursor, (), style, shown)),
        at=snapshot,
    )
    transaction.writes.postponed -= pending
