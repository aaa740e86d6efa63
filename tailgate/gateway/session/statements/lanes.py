"""The lane of a statement: its kind in statistics.

memory      answered from memory: cached results and look-ups by key
query       SELECT, COPY TO, cursors           catalog     queries of the system catalog
follow      TAIL, SUBSCRIBE, subscriptions     write       INSERT, UPDATE, DELETE, COPY FROM
definition  CREATE, DROP, GRANT, …             session     SET, BEGIN, SHOW, …
endpoint    requests of HTTP
unknown     statements that failed before their kind was known
"""

from __future__ import annotations

from typing import Literal

from tailgate.gateway.session.statements.parsing import LongWrite
from tailgate.gateway.session.statements.portals import Bound
from tailgate.sql import statements as s
from tailgate.sql.statements.kinds import KINDS, Place

Lane = Literal["memory", "query", "catalog", "follow", "write", "definition", "session", "endpoint", "unknown"]
FOLLOWING = (s.Tail, s.FollowKsqldb, s.FetchSubscription, s.Acknowledge)
OF_PLACE: dict[Place, Lane] = {Place.QUERY: "query", Place.WRITE: "write", Place.SESSION: "session", Place.CATALOG: "definition"}


def lane_of(bound: Bound) -> Lane:
    """Returns the lane of a statement."""
    statement = bound.statement
    if bound.is_catalog:
        return "catalog"
    if isinstance(statement, FOLLOWING):
        return "follow"
    if isinstance(statement, LongWrite):
        return "write"
    kind = KINDS.get(type(statement))
    return "unknown" if kind is None else OF_PLACE[kind.place]
