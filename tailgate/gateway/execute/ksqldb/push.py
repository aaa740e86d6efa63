"""SELECT … EMIT CHANGES, as a statement, in a cursor and in COPY.

of one stored stream or table   ──► TAIL of its query
of others, JOIN, WINDOW         ──► the engine: a view that exists while the rows are followed ──► its rows
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from tailgate.gateway.engine_connection import PushView
from tailgate.gateway.execute import catalog_changes, queries
from tailgate.gateway.execute.monitoring import push_queries
from tailgate.gateway.execute.temporary.relations import DescribedView, described_query
from tailgate.gateway.ksqldb import http_rows
from tailgate.gateway.results import tail
from tailgate.gateway.results.envelopes import Plain, Shape, Trimmed
from tailgate.gateway.results.rows import Rows
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e
from tailgate.lake.catalog import Item
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.types import Field
from tailgate.sql import statements as s
from tailgate.sql.authorization import Authorized, Followed, authorize
from tailgate.sql.ksqldb.dialect import HTTP
from tailgate.sql.ksqldb.limits import with_limits
from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name
from tailgate.sql.ksqldb.queries import PushQuery, push_query
from tailgate.sql.ksqldb.queries.push import QUERY_NAME, transient_name
from tailgate.sql.statements import QueryText, Tail

EARLIEST = "earliest"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pushed:
    """The format of a push query that needs a view. `snapshot`: whether it sends the rows that the view has at first."""

    shape: Shape
    snapshot: bool


async def bind(session: Session, bound: Bound, statement: s.FollowKsqldb, oids: Sequence[int]) -> Bound:
    """Sets the columns of a push query.

    For the HTTP API, the rows have ksqlDB's names and types, and tombstones; the first column has the id of the query as its name.
    """
    session.push_query = session.push_query or ksqldb_name(transient_name(statement.statement.query))
    query = push_query(with_limits(statement.statement.query, catalog_changes.settings_of(session)), session.catalog)
    is_earliest = session.settings["auto.offset.reset"] == EARLIEST
    if query.needs_view:
        described = await authorized(session, query.text)  # before the response begins
        shape = _shape(session, query, described.columns)
        snapshot = is_earliest or not query.is_of_tables
        return replace(bound, columns=_columns(session, shape), body=Pushed(shape, snapshot))
    follows = Tail(QueryText(query.text), snapshot=is_earliest, limit=statement.statement.query.limit)
    result = await queries.bind_tail(session, replace(bound, statement=follows), follows, oids)
    assert result.prepared is not None
    session.access.authorize(result.prepared)
    shape = _shape(session, query, result.prepared.columns)
    return replace(result, columns=_columns(session, shape), body=tail.Target(None, shape))


def _columns(session: Session, shape: Shape) -> tuple[Field, ...]:
    time, *others = tail.columns(shape, False)
    if session.settings.dialect == HTTP and session.push_query is not None:
        time = replace(time, name=session.push_query)
    return (time, *others)


async def authorized(session: Session, text: str) -> DescribedView:
    """Returns the columns of a query for which the engine makes a view. Raises 42501 if the role may not run it."""
    described = await session.serving.workers.run_bounded(described_query, QueryText(text), session.catalog)
    session.access.authorize(described)
    return described


def _shape(session: Session, query: PushQuery, fields: Sequence[Field]) -> Shape:
    """Returns the format of the rows. `fields`: the columns of the query, with the hidden ones."""
    shown, hidden = tuple(fields[: len(query.columns)]), tuple(fields[len(query.columns) :])
    shape: Shape = Plain((*shown, *hidden))
    if session.settings.dialect == HTTP:
        shape = http_rows.Changes((*http_rows.declared(shown, query.columns), *hidden), query.key, query.windows)
    return Trimmed(shape, len(hidden), sorted=query.type == "stream") if hidden else shape


async def begin(session: Session, bound: Bound, values: Sequence[object], at: int | None = None) -> Rows:
    """Runs the query of a cursor or COPY. `at`: for the TAIL of a cursor, the time of DECLARE."""
    match bound.statement:
        case s.FollowKsqldb() as statement:
            return await follow(session, bound, statement, values)
        case s.Tail() as statement:
            return await queries.follow(session, bound, statement, values, at)
        case statement:
            assert isinstance(statement, s.Select)
            return await queries.select(session, bound, statement, values)


async def follow(session: Session, bound: Bound, statement: s.FollowKsqldb, values: Sequence[object]) -> Rows:
    """Follows the view of a push query, which ends with the rows."""
    view = await opened(session, statement)
    pushed: Pushed = bound.body
    try:
        item = await mirrored(session, view)
        plan = authorize(Followed(item), session.access.role, session.serving.progress.catalog)
        limit = statement.statement.query.limit
        options = tail.TailOptions(session.serving.progress.time, snapshot=pushed.snapshot, progress=False, limit=limit)
        return PushRows(session.serving, plan, pushed.shape, options, view)
    except BaseException:
        view.close()
        raise


async def opened(session: Session, statement: s.FollowKsqldb | s.PullKsqldb) -> PushView:
    """Returns the view of a query, which the engine maintains until it is closed."""
    if session.transaction.definitions is not None:
        raise e.ActiveSqlTransaction("this query of a stream cannot run in a transaction block that has changed the catalog")
    if session.settings.as_of is not None:
        raise e.FeatureNotSupported("this query of a stream is not supported while tailgate.as_of is set", hint="RESET tailgate.as_of.")

    tell = partial(catalog_changes.send_notice, session)

    async def execute(resolution: Resolution) -> PushView:
        return await session.control.push_query(statement.text, settings, resolution, tell)

    await catalog_changes.caught_up(session)
    settings = catalog_changes.settings_of(session, statement)
    if session.push_query is not None:
        settings[QUERY_NAME] = catalog_name(session.push_query)
    return await catalog_changes.resolved(session, statement, statement.text, execute)


async def mirrored(session: Session, view: PushView) -> Item:
    """Returns the view once the mirrors contain the entry with which it is ready. Raises 55000 if it was dropped meanwhile."""
    progress = session.serving.progress
    await progress.wait(view.result.time - 1, catalog_changes.MIRROR_TIMEOUT_S)
    item = progress.catalog.items.get(view.result.view)
    if item is None:
        raise _ended()
    return item


class PushRows(tail.TailRows):
    """The rows of a push query. Its view ends with them: at the limit, after an error, or when they are closed."""

    def __init__(self, serving: Serving, source: Authorized[Followed], shape: Shape, options: tail.TailOptions, view: PushView) -> None:
        super().__init__(serving, source, shape, options)
        self._view = view
        self._end_if_complete()

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        return await self._guarded(super().fetch(limit, timeout))

    async def piece(self) -> tail.SharedRows | None:
        return await self._guarded(super().piece())

    async def close(self) -> None:
        self._view.close()
        await super().close()

    async def _guarded(self, rows: Awaitable[T]) -> T:
        """Waits for rows. Ends the view with the last ones, or after an error."""
        try:
            result = await rows
        except e.UndefinedTable:
            self._view.close()
            raise _ended() from None
        except BaseException:
            self._view.close()
            raise
        self._end_if_complete()
        return result

    def _end_if_complete(self) -> None:
        if self.ended:
            self._view.close()


def _ended() -> e.TailgateError:
    return e.ObjectNotInPrerequisiteState(
        "the push query has ended",
        hint="It was terminated, a stream that it reads was dropped, or the engine was restarted: start it again.",
    )


async def control(session: Session, bound: Bound, statement: s.ControlQueries, values: Sequence[object]) -> str:
    """Executes TERMINATE, PAUSE or RESUME. TERMINATE also ends a push query that has no view: it cancels the statement of its session."""
    query = statement.query
    if statement.action == "terminate" and query is not None and query not in session.catalog.queries:
        rows = await push_queries.running(session)
        if (process := next((f.process for f in rows if f.id == query), None)) is not None:
            await push_queries.cancel(session, process)
            return "TERMINATE"
    return await catalog_changes.run(session, bound, statement, values)
