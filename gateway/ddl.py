"""What changes the catalog: the engine does it, and answers when it is durable; the mirrors follow before the client is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.portals import Bound
from lake import errors as e

if TYPE_CHECKING:
    from gateway.session import Session

MIRROR_TIMEOUT_S = 5.0  # a statement's own entry is in this gateway's mirrors within milliseconds; 5 s is a machine in trouble


async def change_catalog(session: Session, bound: Bound) -> str:
    if session.transaction.in_block:
        words = bound.text.split(None, 3)[:3]
        verb = " ".join(words[: 3 if words[1].lower() == "materialized" else 2]).upper()
        raise e.ActiveSqlTransaction(f"{verb} cannot run inside a transaction block")
    session.out.flush()
    done = await session.control.statement(bound.text, session.statement_settings())
    for notice in done.notices:
        session.notice(notice.get("message", ""), notice.get("severity", "NOTICE"), notice.get("sqlstate", "00000"), notice.get("hint"))
    if done.time:
        await session.serving.wait(done.time - 1, MIRROR_TIMEOUT_S)
    return done.tag
