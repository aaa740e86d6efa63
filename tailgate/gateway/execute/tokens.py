"""CREATE TOKEN: the gateway makes the token and shows it once. The engine, the catalog and the log get its hash only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tailgate.gateway.execute import catalog_changes
from tailgate.gateway.results.rows import TableRows, Tagged
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.passwords import new_token, token_hash
from tailgate.lake.types import TEXT, Field
from tailgate.sql import statements as s


def bind(session: Session, bound: Bound, statement: s.CreateToken, oids: Sequence[int]) -> Bound:
    if statement.hash is not None:
        raise FeatureNotSupported("the hash of a token in CREATE TOKEN is not supported")
    return replace(bound, columns=(Field("token", TEXT),))


async def create(session: Session, bound: Bound, statement: s.CreateToken, values: Sequence[object]) -> Tagged:
    """Creates a token. Returns the only row that ever shows it."""
    token, text = new_token(), bound.text
    if statement.until is not None:  # in the time zone of the session
        begin, end = statement.until_at
        text = f"{text[:begin]}'{catalog_changes.zoned(statement.until, session.settings.style)}'{text[end:]}"
    hashed = replace(bound, text=f"{text.rstrip().rstrip(';')} AS '{token_hash(token)}'")
    tag = await catalog_changes.run(session, hashed, statement, values)
    return Tagged(TableRows(bound.columns or (), pa.table([pa.array([token])], names=["c0"])), tag, counted=False)
