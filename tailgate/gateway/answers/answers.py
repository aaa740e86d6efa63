"""Answers to SELECT statements at the newest time without DuckDB: look-ups by key, and cached results.

    text of a Query          ──► `ready`: the complete response, without parsing
    bound statement          ──► `find`: DataRows and CommandComplete, if they are in memory now
                             ──► `get`:  the same, after waiting for an index or running the query once for all

A look-up is tried before the cached results: its index is never out of date for long, and a cache entry for each key would fill memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailgate.gateway.answers.lookups import Lookups, answer_rows
from tailgate.gateway.answers.polls import Again, Poll, Polls
from tailgate.gateway.encode.rows import RowEncoder, description
from tailgate.gateway.protocol import backend
from tailgate.gateway.resources.background import Background
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.service import Serving
from tailgate.lake.types import Field
from tailgate.sql.authorization import Authorized, Plan
from tailgate.values.codec.style import Style


@dataclass(slots=True)
class Request:
    """An authorized SELECT at the newest time.

    `key`: of the cached result. `columns`: of the result. `row_limit`: the maximal number of rows of an Execute; 0 means no limit.
    `text` and `scope`: of a Query that is this statement alone, from which later ones with other literals are answered; None for
    others. `literals`: as of `Bound`.
    """

    key: Hashable
    query: Authorized[Prepared]
    columns: Sequence[Field]
    values: Sequence[object]
    formats: tuple[int, ...]
    style: Style
    row_limit: int = 0
    text: bytes | None = None
    scope: Hashable = None
    literals: Mapping[object, int] | None = None

    def fits(self, count: int) -> bool:
        """Returns whether a result of `count` rows is complete: with exactly `row_limit` rows, the portal would be suspended."""
        return self.row_limit == 0 or count < self.row_limit


class Answers:
    """The answers in memory of a gateway."""

    def __init__(self, serving: Serving, background: Background) -> None:
        self.polls = Polls(serving)
        self.lookups = Lookups(serving, background)

    def ready(self, text: bytes, style: Style, scope: Hashable, may: Callable[[Plan], bool]) -> bytes | None:
        """Returns the complete response to a Query, or None. `may`: whether the role may run a plan."""
        poll = self.polls.find((text, style, scope))
        if poll is not None:
            return poll.ready if may(poll.query.plan) else None
        return self.lookups.answer(text, style, scope, may)

    def find(self, request: Request) -> bytes | None:
        """Returns the DataRows and CommandComplete, or None if they are not in memory."""
        plan = request.query.plan
        lookup = self.lookups.of(plan)
        if lookup is not None and request.row_limit != 1:
            rows = self.lookups.rows(lookup, request.query, request.values)
            if rows is not None and request.fits(len(rows)):
                return answer_rows(rows, lookup, request.formats, request.style)
        poll = self.polls.find(request.key)
        return poll.rows if poll is not None and request.fits(poll.count) else None

    async def get(self, request: Request) -> bytes | pa.Table | None:
        """Returns the DataRows and CommandComplete, or the rows themselves if they are too large for the cache.

        Returns None if the result has more rows than the request accepts.
        """
        plan = request.query.plan
        lookup = self.lookups.of(plan)
        if lookup is not None and request.row_limit != 1:
            await self.lookups.catch_up(lookup, plan)
            rows = self.lookups.rows(lookup, request.query, request.values)
            if rows is not None and request.fits(len(rows)):
                if request.text is not None:
                    self.lookups.learn(request.text, request.scope, plan, lookup, request.columns, request.literals)
                return answer_rows(rows, lookup, request.formats, request.style)
        answer = await self._poll(request, is_lookup=lookup is not None)
        if isinstance(answer, pa.Table):
            return answer
        return answer.rows if request.fits(answer.count) else None

    async def _poll(self, request: Request, *, is_lookup: bool) -> Poll | pa.Table:
        """Returns the cached result, computing it if necessary, or its rows if they are not cacheable."""
        encoder = RowEncoder(request.columns, request.formats, request.style)
        described = backend.row_description(description(request.columns), request.formats)
        while True:
            try:
                return await self.polls.get(request.key, request.query, request.values, encoder, described, refreshed=not is_lookup)
            except Again:
                continue
