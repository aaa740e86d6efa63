"""Pull queries of ksqlDB: SELECT without EMIT, on the HTTP API.

of stored rows          ──► SELECT in PostgreSQL's dialect
of a declared stream    ──► the engine: a view of the records that its topic holds at the request ──► SELECT of that view
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailgate.gateway.execute import queries
from tailgate.gateway.execute.ksqldb import push
from tailgate.gateway.ksqldb import http_rows
from tailgate.gateway.ksqldb.pull import check_stream, compared, of_topic, pulled
from tailgate.gateway.results.rows import Rows
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake.catalog import Item
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.catalog.schemas import TRANSIENT
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.custom_types import with_types
from tailgate.sql.ksqldb.declared.switches import SCANS, STREAMS
from tailgate.sql.ksqldb.queries import PushQuery


async def bind(session: Session, bound: Bound, statement: s.PullKsqldb, oids: Sequence[int]) -> Bound:
    """Sets the columns of a pull query, with ksqlDB's names and types. One of stored rows becomes a SELECT."""
    query = with_types(statement.statement.query, session.catalog)
    if session.settings[STREAMS] == "off":
        check_stream(query, session.catalog)
    if (topic := of_topic(query, session.catalog)) is not None:
        described = await push.authorized(session, topic.text)
        fields = described.columns[: len(topic.columns)]
        return replace(bound, columns=http_rows.declared(fields, topic.columns), body=topic)
    pull = pulled(query, session.catalog, scans=session.settings[SCANS] == "on")
    result = await queries.bind_select(session, replace(bound, statement=pull.select), pull.select, oids)
    columns = http_rows.declared(result.columns or (), pull.columns, pull.key)
    return replace(result, columns=columns, literals=compared(query.where))


async def run(session: Session, bound: Bound, statement: s.PullKsqldb, values: Sequence[object]) -> Rows:
    """Returns the rows of a declared stream up to the records that its topic holds now."""
    view = await push.opened(session, statement)
    try:
        item = await push.mirrored(session, view)
        await queries.wait_recent(session, frozenset([item.id]))
        await session.naming.catch_up()
        select = _select(bound.body, item, statement.statement.query.limit)
        inner = await queries.bind_select(session, replace(bound, statement=select), select, ())
        return await queries.select(session, replace(inner, columns=bound.columns), select, ())
    finally:
        view.close()


def _select(query: PushQuery, view: Item, limit: int | None) -> s.Select:
    """Returns the SELECT of the rows of a view, in the order of their positions."""
    columns = ", ".join(quoted(name) for name, _ in query.columns)
    order = ", ".join(map(quoted, query.hidden))
    ending = "" if limit is None else f" LIMIT {limit}"
    select = s.parse(f"SELECT {columns} FROM {Name(view.name, TRANSIENT).sql} ORDER BY {order}{ending}", "postgresql")
    assert isinstance(select, s.Select)
    return select
