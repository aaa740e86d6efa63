"""TAIL of queries that read relations of the schema `tailgate`, whose changes are not in the log.

The query runs once a second, and its result is compared with the previous one:

    rows ── SAMPLE_S ──► rows ── SAMPLE_S ──► rows
      └──────► changes ◄──┘└──────► changes ◄──┘

The time of a sample is the gateway's clock, and never before the time at which the other relations of the query are read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence

import pyarrow as pa

from tailgate.gateway.execute.monitoring import system_relations
from tailgate.gateway.resources.budgets import Charge
from tailgate.gateway.serving.feeds import FOLLOW_A_VIEW, RESULT_ROWS
from tailgate.gateway.serving.following import Batch
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.session.session import Session
from tailgate.lake.errors import ProgramLimitExceeded, UndefinedTable
from tailgate.lake.tables.weights import negated, total, weighted
from tailgate.lake.types import arrow_schema

SAMPLE_S = 1.0  # between two samples
PAUSE_FACTOR = 9  # the pause after a sample is at least this many times its duration


def now() -> int:
    """Returns the clock, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


async def changes(
    session: Session, prepared: Prepared, values: Sequence[object], after: int, *, snapshot: bool
) -> AsyncGenerator[Batch, None]:
    """Yields the rows of the query if `snapshot`, then without end the net changes of each later sample."""
    loop, schema = asyncio.get_running_loop(), arrow_schema(prepared.columns, weight=True)
    charge = Charge(session.memory.budget)
    last, before, is_first = after - 1, schema.empty_table(), True
    try:
        with session.serving.followers.counted():
            while True:
                began = loop.time()
                at, rows = await _sample(session, prepared, values)
                last = max(last + 1, at)
                rows = total([weighted(rows, 1)], schema)
                charge.set(rows.nbytes)
                if not is_first:
                    yield Batch(last, total([rows, negated(before)], schema))
                elif snapshot:
                    yield Batch(last, rows)
                before, is_first = rows, False
                await asyncio.sleep(max(SAMPLE_S, PAUSE_FACTOR * (loop.time() - began)))
    finally:
        charge.set(0)


async def _sample(session: Session, prepared: Prepared, values: Sequence[object]) -> tuple[int, pa.Table]:
    """Returns the rows of the query now, and the time. Raises 42501 if the role may no longer read them."""
    serving, catalog = session.serving, session.catalog
    for item in prepared.items:
        if catalog.get(item.id) is None:
            raise UndefinedTable(f'relation "{item.name}" does not exist')
    authorized = session.access.authorize(prepared)
    system = await system_relations.changes(session, prepared.relations, prepared, values)
    with await serving.queries.open_snapshot(system, relations=prepared.relations) as snapshot:
        table = await serving.queries.run(authorized, values, at=snapshot)
        if table.num_rows > RESULT_ROWS:
            raise ProgramLimitExceeded(f"a followed query may have at most {RESULT_ROWS} rows", hint=FOLLOW_A_VIEW)
        return max(now(), snapshot.time), table
