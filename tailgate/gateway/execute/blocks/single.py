"""A statement that changes definitions and rows together is a block outside of a block: one entry of the log has both.

BEGIN ──► the statement ──► COMMIT ──40001──► BEGIN, at a newer time
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tailgate.gateway.execute.blocks import commits
from tailgate.gateway.execute.catalog_changes import caught_up
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.transactions import Move
from tailgate.gateway.writes.conflicts import EVALUATIONS_MAX
from tailgate.lake.errors import SerializationFailure

Result = TypeVar("Result")


async def run(session: Session, statement: Callable[[], Awaitable[Result]]) -> Result:
    """Runs a statement in the session's transaction. Outside of one, runs and commits it in a new block, again after a conflict."""
    transaction = session.transaction
    if transaction.pending:
        return await statement()
    for attempt in range(1, EVALUATIONS_MAX + 1):
        await caught_up(session)
        await session.serving.progress.wait_inbox(session.last_write)
        session.settings.begin()
        transaction.move(Move.BEGIN)
        committed = False
        try:
            result = await statement()
            await commits.commit(session)
            committed = True
            return result
        except SerializationFailure:
            if attempt == EVALUATIONS_MAX:
                raise
        finally:
            transaction.move(Move.COMMIT if committed else Move.ROLLBACK)
            session.end_block(undo=not committed)
    raise AssertionError("the last attempt returns or raises")
