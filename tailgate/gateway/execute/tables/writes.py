"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE in a session: bound once, then run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tailgate.gateway.execute import committing
from tailgate.gateway.execute.tables import restarting
from tailgate.gateway.results.rows import TableRows, Tagged
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import LONG_CHARACTERS, LongWrite
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import plans
from tailgate.gateway.writes.plans import TruncatePlan, Write, WritePlan


async def bind(session: Session, bound: Bound, statement: Write | LongWrite, oids: Sequence[int]) -> Bound:
    """Binds the statement: the plan becomes `body`, the columns are those of RETURNING."""
    assert bound.catalog is not None
    workers, oids = session.serving.workers, tuple(oids)
    in_worker = partial(plans.bound_in_worker, bound.text, oids, bound.catalog)
    if isinstance(statement, LongWrite):
        columns, write = await workers.run_in_worker(in_worker)
    else:
        long = len(bound.text) > LONG_CHARACTERS
        columns, write = await workers.run_bounded(plans.bound, statement, oids, bound.catalog, in_worker=in_worker, long=long)
    return replace(bound, columns=columns, parameters=write.parameters, body=write)


async def begin(session: Session, bound: Bound, statement: Write | LongWrite, values: Sequence[object]) -> Tagged | str:
    """Runs the statement; returns its command tag, with the rows of RETURNING if any."""
    write: WritePlan = bound.body
    if isinstance(write, TruncatePlan):
        session.portals.check_unused(write.tables, "TRUNCATE")
    if isinstance(write, TruncatePlan) and write.restarted:
        await restarting.truncate(session, write)
        return truncated(session, write)
    effect = await committing.run(session, write, values)
    if isinstance(write, TruncatePlan):
        return truncated(session, write)
    word = committing.command(write)
    word = "INSERT 0" if word == "INSERT" else word
    if bound.columns is None or effect.returned is None:
        return f"{word} {effect.count}"
    return Tagged(TableRows(bound.columns, effect.returned), word)


def truncated(session: Session, write: TruncatePlan) -> str:
    """Sends the notices of a TRUNCATE and returns its command tag."""
    for name in write.cascaded:
        session.notice(f'truncate cascades to table "{name}"')
    return "TRUNCATE TABLE"
