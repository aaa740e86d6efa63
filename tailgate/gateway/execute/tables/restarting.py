"""TRUNCATE … RESTART IDENTITY: the rows and the sequences of the tables change together.

in a block:      the changes of the sequences are definitions of the block, or the session's, and the rows are pending writes
outside a block: the statement is a block
"""

from __future__ import annotations

from functools import partial

from tailgate.gateway.execute import committing
from tailgate.gateway.execute.blocks import single
from tailgate.gateway.session.session import Session
from tailgate.gateway.writes.plans import TruncatePlan
from tailgate.lake.catalog import Change, Sequence
from tailgate.lake.uncommitted import Uncommitted
from tailgate.sql.sequence_definitions import restarted


async def truncate(session: Session, write: TruncatePlan) -> None:
    """Removes the rows, and restarts the sequences."""
    await single.run(session, partial(_truncate, session, write))


async def _truncate(session: Session, write: TruncatePlan) -> None:
    """Runs the statement. The owner of a table, who alone may truncate it, is also the owner of its sequences."""
    ids = {sequence.id for sequence in write.restarted}
    sequences = [sequence for sequence in session.naming.durable.each(Sequence) if sequence.id in ids]
    await committing.run(session, write, ())
    for sequence in list(session.naming.temporary.values()):
        if isinstance(sequence, Sequence) and sequence.id in ids:
            session.sequences.redefine(again := restarted(sequence))
            session.naming.put(again)
    if not sequences:
        return
    put = tuple(restarted(session.transaction.moved_sequence(sequence)) for sequence in sequences)
    block = session.transaction.definitions or Uncommitted()
    await session.naming.define(block.including(Change(put=put), session.serving.progress.catalog))
