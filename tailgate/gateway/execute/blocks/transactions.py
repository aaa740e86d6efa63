"""Statements that begin and end transactions and savepoints. Each function returns a command tag."""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.gateway.execute import committing
from tailgate.gateway.execute.blocks import commits, cursors
from tailgate.gateway.execute.commands import set_modes
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.session.transactions import ConstraintModes, Move, SavedState, State
from tailgate.lake import errors as e
from tailgate.sql import statements as s


def begin(session: Session, bound: Bound, statement: s.Begin, values: Sequence[object]) -> str:
    transaction = session.transaction
    if transaction.in_block:
        session.notice("there is already a transaction in progress", "WARNING", "25001")
    else:
        session.settings.begin()
    set_modes(session, statement.modes)  # if this fails, the transaction does not become a block
    transaction.move(Move.BEGIN)
    return "START TRANSACTION" if statement.start else "BEGIN"


async def end(session: Session, bound: Bound, statement: s.Commit | s.Rollback, values: Sequence[object]) -> str:
    transaction = session.transaction
    is_commit = isinstance(statement, s.Commit)
    if not transaction.in_block:
        if statement.chain:
            raise e.NoActiveSqlTransaction(f"{'COMMIT' if is_commit else 'ROLLBACK'} AND CHAIN can only be used in transaction blocks")
        session.notice("there is no transaction in progress", "WARNING", "25P01")
    if is_commit and transaction.state in (State.BLOCK, State.IMPLICIT):
        try:
            await cursors.hold(session)
            await commits.commit(session)
        except BaseException:
            transaction.move(Move.ROLLBACK)  # as in PostgreSQL, a COMMIT that fails ends the transaction
            session.end_block(undo=True)
            raise
    undone = not is_commit or transaction.state is State.FAILED
    was_pending = transaction.pending
    transaction.move(Move.COMMIT if is_commit else Move.ROLLBACK)
    session.portals.drop_all()
    if was_pending:
        session.end_block(undo=undone)
    if statement.chain:
        session.settings.begin(chain=True)
        transaction.move(Move.BEGIN)
    return "ROLLBACK" if undone else "COMMIT"


def _block(session: Session, words: str) -> None:
    if not session.transaction.in_block:
        raise e.NoActiveSqlTransaction(f"{words} can only be used in transaction blocks")


async def savepoint(session: Session, bound: Bound, statement: s.Savepoint, values: Sequence[object]) -> str:
    _block(session, "SAVEPOINT")
    await save(session, statement.name)
    return "SAVEPOINT"


async def save(session: Session, name: str) -> None:
    """Makes a savepoint."""
    await committing.settle(session)
    session.memory.charge_savepoints(len(session.transaction.savepoints) + 1)
    transaction, naming = session.transaction, session.naming
    saved = SavedState(
        name,
        writes=len(transaction.writes),
        settings=session.settings.mark(),
        constraint_modes=ConstraintModes(transaction.constraint_modes),
        definitions=transaction.definitions,
        temporary=naming.temporary,
        catalog=naming.durable,
        locks=frozenset(transaction.locks),
        functions=dict(transaction.functions),
        advisory_locks=transaction.advisory_locks.mark(),
        notifications=session.notifications.mark(),
    )
    transaction.savepoints.append(saved)


def release(session: Session, bound: Bound, statement: s.Release, values: Sequence[object]) -> str:
    _block(session, "RELEASE SAVEPOINT")
    remove(session, statement.name)
    return "RELEASE"


def remove(session: Session, name: str) -> None:
    """Removes a savepoint, and keeps the changes since it."""
    session.transaction.back_to(name, keep=False)
    session.portals.release(len(session.transaction.savepoints))


async def rollback_to(session: Session, bound: Bound, statement: s.RollbackTo, values: Sequence[object]) -> str:
    _block(session, "ROLLBACK TO SAVEPOINT")
    await restore(session, statement.name)
    return "ROLLBACK"


async def restore(session: Session, name: str) -> None:
    """Undoes all changes since a savepoint, and keeps the savepoint."""
    saved = session.transaction.back_to(name, keep=True)
    session.settings.back(saved.settings)
    session.notifications.back(saved.notifications)
    session.portals.back_to(len(session.transaction.savepoints))
    session.transaction.move(Move.RECOVER)
    await session.naming.back(saved)
