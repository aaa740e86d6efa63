"""The texts of Query and Parse messages, up to their statements.

bytes ──► text ──► values of variables ──► statements
"""

from __future__ import annotations

from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import LONG_CHARACTERS, Parts
from tailgate.values.codec.texts import utf8


async def statements(session: Session, raw: bytes) -> Parts:
    """Returns the statements of a message, with the values of the session's variables. Raises 42601, 42704 and 22023."""
    text, dialect, variables = utf8(raw), session.settings.dialect, session.variables
    if variables.may_be_in(text, dialect):
        long = len(text) > LONG_CHARACTERS
        text = await session.serving.workers.run_bounded(variables.replaced, text, dialect, session.catalog, long=long)
    return await session.gateway.texts.read(text, dialect, session.client.database)
