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
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tailgate.gateway.execute import time_expressions
from tailgate.gateway.results import tail
from tailgate.gateway.results.envelopes import Shape, shape_of
from tailgate.gateway.session.portals import Bound, Rows, TableRows, Tagged
from tailgate.gateway.session.transactions import State
from tailgate.lake import errors as e
from tailgate.lake import subscriptions
from tailgate.lake.catalog import SUBSCRIPTION, Catalog, Item
from tailgate.lake.subscriptions import Place
from tailgate.sql import statements as s
from tailgate.sql.authorization import Authorized, Followed

if TYPE_CHECKING:
    from tailgate.gateway.session.session import Session
    from tailgate.lake import Lake

ADVANCE_S = 60.0  # how far behind the place may be before a FETCH without changes advances it
FRESH = "Take the rows at a time t anew (SELECT … AS OF t) and ACKNOWLEDGE … UP TO t, or drop the subscription and create it again."


class Follower:
    """A session's reader of one subscription.

    `place`: the acknowledged position. `rows`: the changes after it, in the columns of `shape`. `given`: the time of the newest
    row that the client has received, -1 for none.
    """

    def __init__(self, rows: tail.TailRows, shape: Shape, place: Place, progress: bool) -> None:
        self.rows, self.shape, self.place, self.given = rows, shape, place, -1
        self._flag = int(progress)

    def note(self, table: pa.Table) -> None:
        """Sets `given` to the time of the last row of a fetched table, not counting progress rows."""
        for index in range(table.num_rows - 1, -1, -1):
            if not self._flag or not table[1][index].as_py():
                self.given = int(table[0][index].as_py())
                return


def find(catalog: Catalog, name: s.Name) -> Item:
    """Returns the subscription with this name. Raises 42704 or 42809."""
    item = catalog.find(name)
    if item is None:
        raise e.UndefinedObject(f'subscription "{name}" does not exist', position=name.position)
    if item.kind != SUBSCRIPTION:
        raise e.WrongObjectType(f'"{item.name}" is not a subscription', position=name.position)
    return item


async def bind(session: Session, bound: Bound, statement: s.FetchSubscription | s.Acknowledge, oids: Sequence[int]) -> dict[str, Any]:
    """Returns the fields of `Bound` to set: the columns of a FETCH, or the prepared time of an ACKNOWLEDGE."""
    item = find(session.catalog, statement.name)
    if isinstance(statement, s.FetchSubscription):
        known = session.following_durably.get(item.id)  # keeps its columns, even if the relation has got more
        shape = shape_of(session.serving.catalog[item.depends[0]].columns, None, ()) if known is None else known.shape
        return {"columns": tail.columns(shape, bool(item.options[subscriptions.PROGRESS])), "body": shape}
    if isinstance(statement.up_to, int):
        return {}
    return {"prepared": await time_expressions.constant(session, statement.up_to, "ACKNOWLEDGE", oids)}


def _authorized(session: Session, item: Item) -> Authorized[Followed]:
    """Returns the authorized plan of the relation that the subscription follows.

    Raises 42501 if the role does not own the subscription, whose place all sessions share, or may not read the relation any more.
    """
    if not session.access.owns(item):
        raise e.InsufficientPrivilege(f"must be owner of subscription {item.name}")
    return session.access.authorize(Followed(session.serving.catalog[item.depends[0]]))


def told(lake: Lake, catalog: Catalog) -> dict[str, dict[str, Any]]:
    """Returns the progress of each subscription by name, qualified if not in `public`. Blocks.

    The columns are those of `gateway.catalog.item_status`.
    """
    newest, oldest = lake.log.newest(), lake.since()
    found: dict[str, dict[str, Any]] = {}
    for id, place in subscriptions.places(lake, catalog).items():
        item = catalog[id]
        error = place.stopped or (None if place.time >= oldest else "changes that it has not given are no longer kept")
        found[catalog.stored.name_of(item).sql] = {
            "on_name": catalog.name_of(catalog[item.depends[0]]).sql,
            "acknowledged": None if place.snapshot else place.time,
            "lag_ms": max(newest.time - place.time, 0) if newest is not None else 0,
            "retention_ms": int(item.options[subscriptions.RETENTION]),
            "status": "running" if error is None else "stopped",
            "error": error,
        }
    return found


# --- FETCH ---------------------------------------------------------------------------------------------------------------


async def fetch(session: Session, bound: Bound, statement: s.FetchSubscription) -> Rows:
    """Executes FETCH … FROM SUBSCRIPTION. Raises 55000 if the subscription has fallen behind the log's history."""
    item = find(session.catalog, statement.name)
    source = _authorized(session, item)
    timeout = time_expressions.timeout(statement.timeout)
    try:
        follower = await _follower(session, bound, item, source)
        table = await _fetched(session, item, follower, statement.count, timeout)
    except e.Gone:
        rewind(session, item.id)
        raise _behind(item, session.serving.oldest()) from None
    except BaseException:
        rewind(session, item.id)
        raise
    follower.note(table)
    if not table.num_rows:
        await _advance(session, item, follower)
    return Tagged(TableRows(bound.columns or (), table), "FETCH")


async def _follower(session: Session, bound: Bound, item: Item, source: Authorized[Followed]) -> Follower:
    """Returns the session's follower of a subscription.

    Creates it on first use, and again if another session has acknowledged a later time than this follower has read.
    """
    place = await asyncio.to_thread(subscriptions.place, session.gateway.lake, item.id)
    if place is None:
        raise e.UndefinedObject(f'subscription "{item.name}" does not exist')
    if place.stopped is not None:
        raise _behind(item, session.serving.oldest(), f" It was stopped: {place.stopped}.")
    known = session.following_durably.get(item.id)
    if known is not None and place.time <= known.rows.position:
        known.place = place
        return known
    rewind(session, item.id)
    if place.time < session.serving.oldest():
        raise _behind(item, session.serving.oldest())
    progress = bool(item.options[subscriptions.PROGRESS])
    rows = tail.TailRows(
        session.serving, source, bound.body, after=place.time, snapshot=place.snapshot, progress=progress, durable=True
    )  # fmt: skip
    follower = session.following_durably[item.id] = Follower(rows, bound.body, place, progress)
    return follower


async def _fetched(session: Session, item: Item, follower: Follower, count: int | None, timeout: float | None) -> pa.Table:
    """Waits for rows. Advances the place while there are none, and raises 42704 as soon as the subscription is dropped."""
    serving = session.serving
    task = asyncio.ensure_future(follower.rows.fetch(count, timeout))
    session.following = True  # a disconnect ends it
    try:
        while not task.done():
            moved = asyncio.ensure_future(serving.wait(serving.time, ADVANCE_S))
            await asyncio.wait((task, moved), return_when=asyncio.FIRST_COMPLETED)
            moved.cancel()
            if item.id not in serving.catalog.items:
                raise e.UndefinedObject(f'subscription "{item.name}" does not exist', detail="It was dropped meanwhile.")
            if not task.done() and follower.rows.empty:
                await _advance(session, item, follower)
        return task.result()
    finally:
        session.following = False
        if not task.done():
            task.cancel()
            with contextlib.suppress(BaseException):
                await task


async def _advance(session: Session, item: Item, follower: Follower) -> None:
    """Acknowledges the times after the place up to the follower's position, if they have no rows."""
    rows, place = follower.rows, follower.place
    nothing = follower.given < place.time if place.snapshot else follower.given <= place.time
    if nothing and rows.position - place.time >= ADVANCE_S * 1000:
        taken = await asyncio.to_thread(subscriptions.acknowledge, session.gateway.lake, item.id, rows.position)
        follower.place = taken or place


def _behind(item: Item, oldest: int, reason: str = "") -> e.TailgateError:
    return e.ObjectNotInPrerequisiteState(
        f'subscription "{item.name}" has fallen behind: changes that it has not given are no longer kept',
        detail=f"The oldest time that can be read is {oldest}.{reason}",
        hint=FRESH,
    )


def rewind(session: Session, id: int | None = None) -> None:
    """Closes the followers of one subscription, or of all: the next FETCH returns unacknowledged rows again."""
    for known in [id] if id is not None else list(session.following_durably):
        follower = session.following_durably.pop(known, None)
        if follower is not None:
            session.gateway.aside(follower.rows.close())


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
    newest = lake.log.newest()
    if newest is None or upto > newest.time:
        raise e.InvalidParameterValue(
            f"time {upto} has not come yet", detail=f"The newest is {newest.time if newest else 0}.", hint="Acknowledge what FETCH gave."
        )
    place = await asyncio.to_thread(subscriptions.place, lake, item.id)
    if place is not None and place.stopped is not None and upto < session.serving.oldest():
        raise _behind(item, session.serving.oldest(), f" It was stopped: {place.stopped}.")
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
    (value,) = (column[0].as_py() for column in (await session.serving.run(plan, values)).columns)
    upto = time_expressions.milliseconds(value)
    if upto < 0:
        raise e.DataException(time_expressions.NO_TIME)
    return upto


async def commit(session: Session, acknowledged: Mapping[int, int]) -> None:
    """Stores acknowledged times (by id of the subscription) durably. Ignores subscriptions that were dropped meanwhile."""
    for id, upto in acknowledged.items():
        await asyncio.shield(asyncio.to_thread(subscriptions.acknowledge, session.gateway.lake, id, upto))
