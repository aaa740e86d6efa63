"""Sends the effects of writes to the engine: immediately outside a block, at COMMIT inside one.

    outside a block: evaluate ──► POST /write ──conflict c──► wait until the mirrors have c ──► evaluate again
                                      └──number n──► wait until the mirrors have n ──► answer
    in a block:      evaluate ──► pending ──► … ──► COMMIT ──► POST /write ──conflict──► 40001
    in a pipeline:   INSERTs of constants are collected, up to Sync or a statement that reads
    many sessions:   INSERTs of constants outside blocks share an evaluation and a request (`writes.insert_groups`)

With synchronous_commit = off the session does not wait for the tick: the inbox entry is durable.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from tailgate.gateway.execute import constraints, sequences, subscriptions
from tailgate.gateway.execute.monitoring import system_relations
from tailgate.gateway.mirrors.snapshots import Snapshot
from tailgate.gateway.serving.prepared import readable
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements import current_rows
from tailgate.gateway.session.transactions import State
from tailgate.gateway.writes.conflicts import Conflict, accepted, could_not_serialize
from tailgate.gateway.writes.constraints.rules import immediate, without_references
from tailgate.gateway.writes.constraints.shown_values import ShownValues
from tailgate.gateway.writes.effects import Effect
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.insert_groups import ALL_ALONE, MEMBER_ROWS_MAX, Sent, evaluate
from tailgate.gateway.writes.pending import Pending
from tailgate.gateway.writes.plans import ChangePlan, InsertPlan, MergePlan, TruncatePlan, WithPlan, WritePlan
from tailgate.gateway.writes.rows.constants import Constants
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.gateway.writes.rows.query import Query
from tailgate.lake.catalog import Item, MaterializedView
from tailgate.lake.catalog.schemas import is_temporary
from tailgate.lake.errors import FeatureNotSupported, QueryCanceled, SerializationFailure, TailgateError
from tailgate.sql.authorization import Authorized

Result = TypeVar("Result")

CONFLICT_WAIT_S = 30.0  # that a failing COMMIT waits until the conflicting write is readable
ROWS_AT_ONCE = 5_000  # rows that are serialized in the event loop, in about 5 ms; more use a thread
SERIALIZABLE = ("repeatable read", "serializable")  # COMMIT fails if what SELECT has read in such a block has changed


def tables_of(write: WritePlan) -> tuple[Item, ...]:
    if isinstance(write, WithPlan):
        return tuple(plan.table for plan in write.writes)
    return write.tables if isinstance(write, TruncatePlan) else (write.table,)


def command(write: WritePlan) -> str:
    """Returns the name of a statement that writes."""
    match write.body if isinstance(write, WithPlan) else write:
        case Query():
            return "SELECT"
        case InsertPlan():
            return "INSERT"
        case ChangePlan(updates=updates):
            return "UPDATE" if updates else "DELETE"
        case MergePlan():
            return "MERGE"
        case TruncatePlan():
            return "TRUNCATE TABLE"


def check_writable(session: Session, write: WritePlan, command: str) -> None:
    """Raises 25006 in a read-only transaction. As in PostgreSQL, the rows of temporary tables may change, but not by TRUNCATE."""
    if isinstance(write, TruncatePlan) or not all(is_temporary(table.id) for table in tables_of(write)):
        session.settings.check_writable(command)


def _relations(write: WritePlan) -> frozenset[int]:
    """Returns the ids of the relations that a write reads or changes."""
    return frozenset(table.id for table in tables_of(write)) | (frozenset() if isinstance(write, TruncatePlan) else write.relations)


def _items(session: Session, write: WritePlan) -> list[Item]:
    """Returns the relations that must be mirrored to evaluate the write."""
    if isinstance(write, TruncatePlan):
        return list(write.tables)
    return [readable(session.naming.item(r)) for r in sorted(write.relations)]


async def run(session: Session, write: WritePlan, values: Sequence[object], rows: pa.Table | None = None) -> Effect:
    """Runs a statement that writes.

    Outside a block the write is committed and visible on return; otherwise it is pending until COMMIT.
    """
    check_writable(session, write, command(write))
    fires = session.settings.fires_triggers
    if not fires:
        write = replace(write, rules=without_references(write.rules))
    authorized = session.access.authorize(write)
    transaction = session.transaction
    if isinstance(write, ChangePlan) and write.current is not None:
        rows = current_rows.key(session.portals, session.catalog, write.table, write.current)
    if transaction.state is State.IDLE:
        together = await _grouped(session, authorized, values, rows) if fires else None
        return together or await _alone(session, authorized, values, rows)
    plain = _plain(write, values) if rows is None and fires and session.out.pipelined() else None
    if plain is not None:
        await _settle_others(session, write)
        transaction.writes.waiting.append((authorized, plain))
        return Effect(plain.num_rows)
    await settle(session)
    return await _in_block(session, authorized, values, rows)


async def check(session: Session, write: InsertPlan, values: Sequence[object], rows: pa.Table) -> None:
    """Raises the first constraint violation of `rows`, which precede a row that cannot be parsed."""
    async with session.transaction.reading(session.serving, (write.table.id,)) as at:
        await _evaluated(session, session.access.authorize(write), values, lambda evaluation: evaluation.check(write, rows), at)


async def _evaluated(
    session: Session,
    authorized: Authorized[WritePlan],
    values: Sequence[object],
    work: Callable[[Evaluation], Result],
    at: Snapshot | None = None,
    *,
    grouped: bool = False,
) -> Result:
    """Calls `work` with an evaluation of the write on the mirrors; returns its result.

    `grouped`: the write is that of a group, whose first member's session may be in another statement by then.
    """
    write, style = authorized.plan, session.settings.style
    shown = ShownValues(session.catalog, session.access.role, write.demands)
    evaluator = sequences.evaluator(session)
    is_deferred = immediate if grouped or session.transaction.state is State.IDLE else session.transaction.constraint_modes.is_deferred
    return await session.serving.queries.write(
        authorized,
        _items(session, write),
        lambda cursor: work(Evaluation(cursor, values, style, shown, evaluator, is_deferred)),
        at=at,
    )


async def _in_block(session: Session, authorized: Authorized[WritePlan], values: Sequence[object], rows: pa.Table | None) -> Effect:
    """Runs a write inside a block: evaluates it and adds its effect to the pending writes."""
    write, transaction = authorized.plan, session.transaction
    system = await system_relations.changes(session, _relations(write))
    async with transaction.reading(session.serving, (), system) as snapshot:
        assert snapshot is not None
        effect = await _evaluated(session, authorized, values, lambda evaluation: evaluation.run(write, rows), snapshot)
    written = [(id, key) for id in effect.changes.keys() & effect.rules.keys() for key in effect.rules[id].keys]
    late = {(id, key.name) for id, key in written if transaction.constraint_modes.is_deferred(id, key)}
    transaction.writes.add(replace(effect, postponed=effect.postponed | late), snapshot.inbox)
    transaction.temporary.charge(transaction.writes.temporary)
    return effect


def _plain(write: WritePlan, values: Sequence[object]) -> pa.Table | None:
    """Returns the rows of an INSERT that may be collected in a pipeline, otherwise None."""
    query = _collectable(write)
    rows = None if query is None else query.literal(values)
    return None if rows is None else fitted(rows, tables_of(write)[0].columns)


def _collectable(write: WritePlan) -> Query | None:
    """Returns the rows of an INSERT that may be evaluated with others if they are constants: without other results and checks."""
    if not isinstance(write, InsertPlan) or write.conflict != "error" or write.returning is not None or write.view_checks:
        return None
    if write.rows is None or write.rows.calls or write.rows.session_values or write.own.asks_session:
        return None
    return None if is_temporary(write.table.id) else write.rows


async def settle(session: Session) -> None:
    """Evaluates the collected INSERTs of a pipeline together, with one check of the table's keys."""
    waiting = session.transaction.writes.waiting
    if waiting:
        authorized = waiting[0][0]
        rows = pa.concat_tables([rows for _, rows in waiting])
        waiting.clear()
        await _in_block(session, authorized, (), rows)


async def _settle_others(session: Session, write: WritePlan) -> None:
    waiting = session.transaction.writes.waiting
    if waiting and tables_of(waiting[0][0].plan)[0].id != tables_of(write)[0].id:
        await settle(session)


async def _grouped(session: Session, authorized: Authorized[WritePlan], values: Sequence[object], copied: pa.Table | None) -> Effect | None:
    """Runs an INSERT of few constants together with those of other sessions; returns None if it must run alone."""
    write = authorized.plan
    query = _collectable(write) if copied is None else None
    rows = None if query is None else query.literals(values)
    if rows is None or not 0 < len(rows) <= MEMBER_ROWS_MAX:
        return None
    assert isinstance(write, InsertPlan)
    send = partial(_sent, session, authorized, write)
    version = f"{write.own.version} {session.settings.style.time_zone}"  # on which a CHECK may depend
    number = await _confirmed(session, session.gateway.insert_groups.insert(write.table, version, rows, send))
    return Effect(len(rows)) if number else None


async def _sent(session: Session, authorized: Authorized[WritePlan], write: InsertPlan, members: list[Constants]) -> Sent:
    """Evaluates a group of INSERTs and sends it until it has no conflict. If it always has one, each member is sent alone."""
    progress = session.serving.progress

    async def attempt(reserve: str) -> Sent | Conflict:
        pending, base = Pending(), progress.inbox
        try:
            evaluated = await _evaluated(session, authorized, (), lambda evaluation: evaluate(evaluation, write, members), grouped=True)
        except TailgateError:  # each member meets its own error alone
            return ALL_ALONE
        if evaluated is None:
            return ALL_ALONE
        effect, refused = evaluated
        pending.add(effect, base)
        if not pending.durable:
            return ALL_ALONE
        answer = await session.control.write(pending.body(progress.catalog, reserve))
        return Conflict(answer.conflict) if answer.conflict else Sent(answer.number, refused)

    try:
        return await accepted(progress.wait_inbox, attempt)
    except SerializationFailure:  # the conflict of one member is not an error of the others
        return ALL_ALONE


async def _alone(session: Session, authorized: Authorized[WritePlan], values: Sequence[object], rows: pa.Table | None) -> Effect:
    """Runs a write outside a block: evaluates and sends it until it has no conflict.

    The engine does not validate an effect without changes, or an error. If the mirrors did not yet
    contain the session's last write, the write is evaluated again when they do.
    """
    write, serving = authorized.plan, session.serving
    relations = _relations(write)
    system = await system_relations.changes(session, relations)

    async def attempt(reserve: str) -> Effect | Conflict:
        pending = Pending(session.temporary.rows)
        async with session.transaction.reading(serving, relations, system) as at:
            base = serving.progress.inbox if at is None else at.inbox
            try:
                effect = await _evaluated(session, authorized, values, lambda evaluation: evaluation.run(write, rows), at)
                pending.add(effect, base)
            except TailgateError:
                if base >= session.last_write:
                    raise
        if base < session.last_write and not pending.durable:
            return Conflict(session.last_write)
        session.temporary.charge(pending.temporary)
        if conflict := await _send(session, pending, reserve):
            return Conflict(conflict)
        session.keep_temporary(pending)
        return effect

    return await accepted(serving.progress.wait_inbox, attempt)


async def commit(session: Session) -> None:
    """Commits the transaction's writes, then its acknowledgements of subscriptions.

    Raises 40001 if anything that it read has changed meanwhile, or if its writes changed nothing and
    did not see an earlier write of the session.
    """
    await settle(session)
    await constraints.check_postponed(session)
    pending = session.transaction.writes
    unseen = session.last_write if pending.base is not None and pending.base < session.last_write else 0
    conflict = await _send(session, pending, "") if pending.durable else unseen
    if conflict:
        with contextlib.suppress(asyncio.TimeoutError):  # without this wait, a retry would read the old rows again
            await asyncio.wait_for(session.serving.progress.wait_inbox(conflict), CONFLICT_WAIT_S)
        raise could_not_serialize()
    session.keep_temporary(pending)
    await subscriptions.commit(session, pending.acknowledged)


async def _send(session: Session, pending: Pending, reserve: str) -> int:
    """Sends the writes and returns 0, or the inbox entry that conflicts with them.

    Returns once the rows are readable, or durable with synchronous_commit = off.
    """
    if not pending.durable:
        return 0
    catalog = session.serving.progress.catalog
    large = sum(w.changes.num_rows for w in pending.durable.values()) > ROWS_AT_ONCE
    body = await asyncio.to_thread(pending.body, catalog, reserve) if large else pending.body(catalog, reserve)
    conflict = 0

    async def send() -> int:
        nonlocal conflict
        answer = await session.control.write(body)
        conflict = answer.conflict
        return 0 if conflict else answer.number

    await _confirmed(session, asyncio.ensure_future(send()))
    return conflict


async def _confirmed(session: Session, request: asyncio.Future[int]) -> int:
    """Waits for a request that writes, and until its rows are readable; with synchronous_commit = off, durable.

    `request` returns the number of the inbox entry, or 0 if nothing was written. Returns the same.
    """
    try:
        number = await asyncio.shield(request)
        if number:
            session.last_write = number
            if session.settings["synchronous_commit"] not in ("off", "local"):
                await session.serving.progress.wait_inbox(number)
    except asyncio.CancelledError:
        # An accepted write cannot be undone. PostgreSQL does the same if the wait for a standby is cancelled.
        reason = session.execution.interruption()
        if reason is None:
            raise
        number = await request
        if not number:
            raise QueryCanceled(reason) from None
        session.last_write = number
        session.notice("canceling wait for the commit", "WARNING", "01000", "The rows are durable, and will be there soon.")
    return number


async def before_read(session: Session, relations: frozenset[int], locked: frozenset[int]) -> None:
    """Prepares for a SELECT: evaluates collected INSERTs, and records reads of serializable blocks and of FOR UPDATE.

    Refuses to read a materialized view over a table that the block has written.
    """
    await settle(session)
    writes = session.transaction.writes
    catalog = session.naming.durable
    for relation in relations:
        item = catalog.items.get(relation)
        if item is not None and isinstance(item, MaterializedView) and writes.changes and _reaches(item, set(writes.changes), session):
            raise FeatureNotSupported(
                f'reading materialized view "{item.name}" in a transaction that has written a table below it is not supported',
                hint="Commit first: the view has the rows when COMMIT answers.",
            )
    if session.settings["transaction_isolation"] in SERIALIZABLE:
        writes.read(relations)
    elif locked:
        writes.read(locked)


def _reaches(item: Item, tables: set[int], session: Session) -> bool:
    catalog = session.naming.durable
    return any(d in tables or (d in catalog.items and _reaches(catalog[d], tables, session)) for d in item.depends)
