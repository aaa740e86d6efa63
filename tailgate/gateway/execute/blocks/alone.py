"""Changes of the catalog in an implicit transaction: a Query of several statements, or a pipeline.

a part of the transaction ──25001: not in a block──► COMMIT of the statements before it ──► the statement alone ──► a new transaction
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from tailgate.gateway.execute.blocks import commits
from tailgate.gateway.execute.catalog_changes import check_concurrently
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.session.transactions import State
from tailgate.lake.errors import ActiveSqlTransaction

Result = TypeVar("Result")
Change = Callable[[Session, Bound, Any, Sequence[object]], Awaitable[Result]]  # as of `dispatch.Executor`


def or_alone(change: Change[Result]) -> Change[Result]:
    """Returns `change` for implicit transactions: it commits the statements before one that cannot be a part of a transaction."""

    async def run(session: Session, bound: Bound, statement: Any, values: Sequence[object]) -> Result:
        check_concurrently(session, statement)
        try:
            return await change(session, bound, statement, values)
        except ActiveSqlTransaction:
            if session.transaction.state is not State.IMPLICIT:
                raise
        await commits.commit_implicit(session)
        await session.naming.catch_up()
        result = await change(session, bound, statement, values)
        session.imply()
        return result

    return run
