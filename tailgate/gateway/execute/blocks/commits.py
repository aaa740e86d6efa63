"""COMMIT of a block that has changed the catalog: one request with its definitions and its rows.

definitions, pending writes ──► POST /block ──conflict──► 40001
└── one entry of the log ──► new views are filled ──► mirrors ──► COMMIT
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial

from tailgate.gateway.execute import committing, constraints, subscriptions
from tailgate.gateway.execute.catalog_changes import MIRROR_TIMEOUT_S, send_notice, withdrawable
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.transactions import Move
from tailgate.gateway.writes.conflicts import could_not_serialize
from tailgate.lake.catalog import Change
from tailgate.lake.control import BlockCommit, Write
from tailgate.lake.uncommitted import is_local


async def commit_implicit(session: Session) -> None:
    """Commits an implicit transaction before the end of its text or pipeline."""
    await commit(session)
    session.transaction.move(Move.COMMIT)
    session.end_block(undo=False)


async def commit(session: Session) -> None:
    """Commits the transaction. Raises 40001, 42P07 or 42P06 without any effect if it conflicts with another one."""
    transaction, progress = session.transaction, session.serving.progress
    definitions = transaction.definitions
    if definitions is None or definitions.change == Change():
        await committing.commit(session)
        return
    await committing.settle(session)
    await constraints.check_postponed(session)
    pending = transaction.writes
    write = Write(progress.inbox, (), ())
    if len(pending):
        durable = session.naming.durable
        write = await asyncio.to_thread(pending.write, durable, "")
        lost = pending.durable.keys() - durable.items.keys() - set(definitions.change.drop)  # others dropped these tables
        write = replace(write, reads=tuple(sorted(table for table in {*write.reads, *lost} if not is_local(table))))

    tell = partial(send_notice, session)
    request = BlockCommit(definitions.moved(transaction.sequences), write)
    result = await withdrawable(session, session.control.commit_block(request, tell))
    if isinstance(result, int):
        with contextlib.suppress(asyncio.TimeoutError):  # without this wait, a retry would read the old rows again
            await asyncio.wait_for(progress.wait_inbox(result), committing.CONFLICT_WAIT_S)
        raise could_not_serialize()
    for notice in result.notices:
        tell(notice)
    await progress.wait(result.time - 1, MIRROR_TIMEOUT_S)
    session.keep_temporary(pending)
    await subscriptions.commit(session, pending.acknowledged)
