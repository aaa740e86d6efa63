"""SILENCE: notifications of an alert are not sent until a time. `tailgate watch` reads it from a file, so no engine is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tailgate.gateway.execute import time_expressions
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e
from tailgate.lake.catalog import Alert
from tailgate.lake.types import TIMESTAMPTZ
from tailgate.operations.watch import silences
from tailgate.operations.watch.checks import RESERVED
from tailgate.sql import statements as s
from tailgate.values.registry import read_text


async def run(session: Session, bound: Bound, statement: s.Silence, values: Sequence[object]) -> str:
    """Executes SILENCE at once. Raises 42704 if there is no such alert, 25001 in a block."""
    session.access.check_superuser("silence alerts")
    if session.transaction.in_block:
        raise e.ActiveSqlTransaction("SILENCE cannot run inside a transaction block")
    name = _alert(session, statement)
    if isinstance(statement.until, str):
        until = time_expressions.milliseconds(read_text(statement.until, TIMESTAMPTZ, session.settings.style), TIMESTAMPTZ)
    else:
        until = await time_expressions.as_of(session, statement.until, None)
    await asyncio.to_thread(silences.silence, session.gateway.lake, name, until)
    return "SILENCE"


def _alert(session: Session, statement: s.Silence) -> str:
    """Returns the name of the alert in notifications."""
    name = statement.name
    if name.schema is None and name.name in RESERVED:
        return name.name
    item = session.catalog.find(name)
    if not isinstance(item, Alert):
        raise e.UndefinedObject(f'alert "{name}" does not exist', position=name.position)
    return session.catalog.stored.name_of(item).sql
