"""FETCH … FROM SUBSCRIPTION and ACKNOWLEDGE: followers whose position is stored in the lake.

    place in the lake ──► TailRows after it ──► FETCH, FETCH, …  ──► ACKNOWLEDGE ──► place in the lake, at COMMIT inside a block
           ▲                                        │
           └── a new session, ROLLBACK, an error ───┘   (`rewind`: rows that are not acknowledged are sent again)

A FETCH returns complete times, so a client can acknowledge each time that it has seen. While a FETCH finds no changes, it advances
the place automatically, so a subscription to a quiet view does not hold back `since`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tailgate.gateway.execute import time_expressions
from tailgate.gateway.results import tail
from tailgate.gateway.results.envelopes import shape_of
from tailgate.gateway.results.rows import Rows, TableRows, Tagged
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound, declared
from tailgate.gateway.session.subscription_readers import SubscriptionReader
from tailgate.gateway.session.transactions import State
from tailgate.lake import errors as e
from tailgate.lake.catalog import Catalog, Subscription
from tailgate.lake.readers import subscriptions
from tailgate.sql import statements as s
from tailgate.sql.authorization import Authorized, Followed

ADVANCE_S = 60.0  # how far behind the place may be before a FETCH without changes advances it
FRESH = "Read the rows at a time t again (SELECT … AS OF t) and ACKNOWLEDGE … UP TO t, or drop the subscription and create it again."


def find(catalog: Catalog, name: s.Name) -> Subscription:
    """Returns the subscription with this name. Raises 42704 or 42809."""
    item = catalog.find(name)
    if item is None:
        raise e.UndefinedObject(f'subscription "{name}" does not exist', position=name.position)
    if not isinstance(item, Subscription):
        raise e.WrongObjectType(f'"{item.name}" is not a subscription', position=name.position)
    return item


def bind_fetch(session: Session, bound: Bound, statement: s.FetchSubscription, oids: Sequence[int]) -> Bound:
    """Determines the columns of a FETCH."""
    item = find(session.catalog, statement.name)
    reader = session.subscriptions.get(item.id)  # keeps its columns, even if the relation has got more
    shape = shape_of(session.serving.progress.catalog[item.depends[0]].columns, None, ()) if reader is None else reader.shape
    return replace(bound, columns=tail.columns(shape, item.progress), body=shape)


async def bind_acknowledge(session: Session, bound: Bound, statement: s.Acknowledge, oids: Sequence[int]) -> Bound:
    """Prepares the time of an ACKNOWLEDGE."""
    find(session.catalog, statement.name)
    if isinstance(statement.up_to, int):
        return bound
    prepared = await time_expressions.constant(session, statement.up_to, "ACKNOWLEDGE", oids)
    return replace(bound, prepared=prepared, parameters=declared(prepared.parameters))


def _authorized(session: Session, item: Subscription) -> Authorized[Followed]:
    """Returns the authorized plan of the relation that the subscription follows.

    Raises 42501 if the role does not own the subscription, whose place all sessions share, or may not read the relation any more.
    """
    if not session.access.owns(item):
        raise e.InsufficientPrivilege(f"must be owner of subscription {item.name}")
    return session.access.authorize(Followed(session.serving.progress.catalog[item.depends[0]]))


# --- FETCH ---------------------------------------------------------------------------------------------------------------


async def fetch(session: Session, bound: Bound, statement: s.FetchSubscription, values: Sequence[object]) -> Rows:
    """Executes FETCH … FROM SUBSCRIPTION. Raises 55000 if the subscription has fallen behind the log's history."""
    item = find(session.catalog, statement.name)
    source = _authorized(session, item)
    timeout = time_expressions.timeout(statement.timeout)
    try:
        reader = await _reader(session, bound, item, source)
        table = await _fetched(session, item, reader, statement.count, timeout)
    except e.Gone:
        session.subscriptions.rewind(item.id)
        raise _behind(item, session.serving.progress.oldest()) from None
    except BaseException:
        session.subscriptions.rewind(item.id)
        raise
    reader.note(table)
    if not table.num_rows:
        await _advance(session, item, reader)
    return Tagged(TableRows(bound.columns or (), table), "FETCH")


async def _reader(session: Session, bound: Bound, item: Subscription, source: Authorized[Followed]) -> SubscriptionReader:
    """Returns the session's reader of a subscription.

    Creates it on first use, and again if another session has acknowledged a later time than this reader has read.
    """
    place = await asyncio.to_thread(subscriptions.place, session.gateway.lake, item.id)
    if place is None:
        raise e.UndefinedObject(f'subscription "{item.name}" does not exist')
    if place.stopped is not None:
        raise _behind(item, session.serving.progress.oldest(), f" It was stopped: {place.stopped}.")
    existing = session.subscriptions.get(item.id)
    if existing is not None and place.time <= existing.rows.position:
        existing.place = place
        return existing
    session.subscriptions.rewind(item.id)
    if place.time < session.serving.progress.oldest():
        raise _behind(item, session.serving.progress.oldest())
    progress = item.progress
    options = tail.TailOptions(place.time, place.snapshot, progress, durable=True)
    rows = tail.TailRows(session.serving, source, bound.body, options)
    reader = session.subscriptions[item.id] = SubscriptionReader(rows, bound.body, place, progress)
    return reader


async def _fetched(session: Session, item: Subscription, reader: SubscriptionReader, count: int | None, timeout: float | None) -> pa.Table:
    """Waits for rows. Advances the place while there are none, and raises 42704 as soon as the subscription is dropped."""
    serving = session.serving
    task = asyncio.ensure_future(reader.rows.fetch(count, timeout))
    session.execution.following = True  # a disconnect ends it
    try:
        while not task.done():
            moved = asyncio.ensure_future(serving.progress.wait(serving.progress.time, ADVANCE_S))
            await asyncio.wait((task, moved), return_when=asyncio.FIRST_COMPLETED)
            moved.cancel()
            if item.id not in serving.progress.catalog.items:
                raise e.UndefinedObject(f'subscription "{item.name}" does not exist', detail="It was dropped meanwhile.")
            if not task.done() and reader.rows.empty:
                await _advance(session, item, reader)
        return task.result()
    finally:
        session.execution.following = False
        if not task.done():
            task.cancel()
            with contextlib.suppress(BaseException):
                await task


async def _advance(session: Session, item: Subscription, reader: SubscriptionReader) -> None:
    """Acknowledges the times after the place up to the reader's position, if they have no rows."""
    rows, place = reader.rows, reader.place
    nothing = reader.newest_time < place.time if place.snapshot else reader.newest_time <= place.time
    if nothing and rows.position - place.time >= ADVANCE_S * 1000:
        new_place = await asyncio.to_thread(subscriptions.acknowledge, session.gateway.lake, item.id, rows.position)
        reader.place = new_place or place


def _behind(item: Subscription, oldest: int, reason: str = "") -> e.TailgateError:
    return e.ObjectNotInPrerequisiteState(
        f'subscription "{item.name}" has fallen behind: changes that it has not given are no longer kept',
        detail=f"The oldest time that can be read is {oldest}.{reason}",
        hint=FRESH,
    )


# --- ACKNOWLEDGE ---------------------------------------------------------------------------------------------------------


async def acknowledge(session: Session, bound: Bound, statement: s.Acknowledge, values: Sequence[object]) -> str:
    """Executes ACKNOWLEDGE: stores the time immediately or, in a block, at COMMIT. Raises 22023 for a time in the future."""
    item = find(session.catalog, statement.name)
    _authorized(session, item)
    transaction = session.transaction
    if transaction.savepoints:
        raise e.FeatureNotSupported("ACKNOWLEDGE behind a savepoint is not supported", hint="Acknowledge at the end of the transaction.")
    upto = await _time(session, bound, statement, values)
    lake = session.gateway.lake
    newest = lake.log.look()
    if newest is None or upto > newest.time:
        raise e.InvalidParameterValue(
            f"time {upto} has not come yet",
            detail=f"The newest is {newest.time if newest else 0}.",
            hint="Acknowledge a time that FETCH has returned.",
        )
    place = await asyncio.to_thread(subscriptions.place, lake, item.id)
    if place is not None and place.stopped is not None and upto < session.serving.progress.oldest():
        raise _behind(item, session.serving.progress.oldest(), f" It was stopped: {place.stopped}.")
    if transaction.state is State.IDLE:
        await commit(session, {item.id: upto})
    else:
        pending = transaction.writes.acknowledged
        pending[item.id] = max(upto, pending.get(item.id, upto))
    return "ACKNOWLEDGE"


async def _time(session: Session, bound: Bound, statement: s.Acknowledge, values: Sequence[object]) -> int:
    if isinstance(statement.up_to, int):
        return statement.up_to
    assert bound.prepared is not None
    plan = session.access.authorize(bound.prepared)
    ((value, type),) = await time_expressions.evaluated(session, plan, values)
    upto = time_expressions.milliseconds(value, type)
    if upto < 0:
        raise e.DataException(time_expressions.NO_TIME)
    return upto


async def commit(session: Session, acknowledged: Mapping[int, int]) -> None:
    """Stores acknowledged times (by id of the subscription) durably. Ignores subscriptions that were dropped meanwhile."""
    for id, upto in acknowledged.items():
        await asyncio.shield(asyncio.to_thread(subscriptions.acknowledge, session.gateway.lake, id, upto))
