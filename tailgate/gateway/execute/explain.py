"""EXPLAIN: the plan of a query, which the gateway runs, or of a view or sink, which the engine maintains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import pyarrow as pa

from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.execute import catalog_changes, queries, time_expressions
from tailgate.gateway.execute.temporary import relations as temporary_relations
from tailgate.gateway.ksqldb import entities
from tailgate.gateway.results.rows import TableRows, Tagged
from tailgate.gateway.serving.prepared import explained, explained_as_json
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e
from tailgate.lake.types import JSON, TEXT, Field
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.dialect import HTTP


@dataclass(frozen=True, slots=True)
class _Planned:
    """The query of EXPLAIN, bound in `seconds`."""

    query: Bound
    seconds: float


@dataclass(frozen=True, slots=True)
class _Executed:
    """The measurements of EXPLAIN ANALYZE: the number of rows, and the milliseconds to the first rows and to the last one."""

    rows: int
    first: float
    last: float


async def bind(session: Session, bound: Bound, statement: s.Explain, oids: Sequence[int]) -> Bound:
    if _as_entity(session, statement):
        return replace(bound, columns=entities.COLUMNS)
    bound = replace(bound, columns=(Field("QUERY PLAN", JSON if statement.json else TEXT),))
    if not isinstance(statement.target, s.Select):
        return bound
    begin = perf_counter()
    query = await queries.bind_select(session, replace(bound, statement=statement.target), statement.target, oids)
    if query.is_catalog:
        raise e.FeatureNotSupported("EXPLAIN of a query of the system catalog is not supported")
    return replace(bound, parameters=query.parameters, body=_Planned(query, perf_counter() - begin))


async def run(session: Session, bound: Bound, statement: s.Explain, values: Sequence[object]) -> Tagged:
    if isinstance(bound.body, _Planned):
        lines: Sequence[str] = await _of_query(session, bound.body, statement, values)
    else:
        lines = await _lines(session, bound, statement)
    if _as_entity(session, statement):
        assert isinstance(statement.target, s.QueryId)
        item = session.catalog.find_query(statement.target.id)
        if item is None:
            raise e.UndefinedObject(f'query "{statement.target.id}" does not exist')
        document, entry = entities.query_description(item, lines, session.catalog, session.access.may_see), session.serving.progress.state.n
        table = pa.table([pa.array([document], pa.string()), pa.array([entry], pa.int64())], names=["c0", "c1"])
    else:
        table = pa.table([pa.array(lines, pa.string())], names=["c0"])
    return Tagged(TableRows(bound.columns or (), table), "EXPLAIN", counted=False)


def _as_entity(session: Session, statement: s.Explain) -> bool:
    """Returns whether the result is an entity of ksqlDB's HTTP API."""
    return session.settings.dialect == HTTP and isinstance(statement.target, s.QueryId)


async def _of_query(session: Session, planned: _Planned, statement: s.Explain, values: Sequence[object]) -> list[str]:
    """Returns the lines of EXPLAIN for a query, which ANALYZE executes."""
    assert planned.query.prepared is not None
    packed = session.access.authorize(planned.query.prepared).plan.packed
    workers = session.serving.workers
    times = {"Planning Time": round(planned.seconds * 1000, 3)}
    executed = await _execute(session, planned.query, values) if statement.analyze else None
    if executed is not None:
        times["Execution Time"] = executed.last
    if statement.json:
        plan = await workers.run_bounded(explained_as_json, packed)
        if executed is not None and statement.timing:
            plan = {**plan, "Actual Startup Time": executed.first, "Actual Total Time": executed.last}
        if executed is not None:
            plan = {**plan, "Actual Rows": executed.rows, "Actual Loops": 1}
        return [json.dumps([{"Plan": plan, **(times if statement.summary else {})}], indent=2, ensure_ascii=False)]
    first, *others = await workers.run_bounded(explained, packed)
    if executed is not None:
        time = f"time={executed.first:.3f}..{executed.last:.3f} " if statement.timing else ""
        first = f"{first} (actual {time}rows={executed.rows} loops=1)"
    return [first, *others, *(f"{name}: {ms:.3f} ms" for name, ms in times.items() if statement.summary)]


async def _execute(session: Session, query: Bound, values: Sequence[object]) -> _Executed:
    """Executes the query and counts its rows, which no client gets."""
    begin, count = perf_counter(), 0
    assert isinstance(query.statement, s.Select)
    rows = await queries.select(session, query, query.statement, values)
    first = round((perf_counter() - begin) * 1000, 3)
    while True:
        count += (await rows.fetch(None)).num_rows
        if rows.ended:
            break
    await rows.close()
    return _Executed(count, first, round((perf_counter() - begin) * 1000, 3))


async def _lines(session: Session, bound: Bound, statement: s.Explain) -> Sequence[str]:
    """Returns the lines of EXPLAIN: for TAIL the plan that is followed, for views and other statements the engine's answer."""
    target = statement.target
    if isinstance(target, s.Tail):
        query = target.target if isinstance(target.target, s.QueryText) else time_expressions.of_relation(target.target)
        prepared = await session.serving.binder.analyzed(s.Select(query), (), session.naming.seen)
        if isinstance(prepared, CatalogQuery):
            raise e.FeatureNotSupported("EXPLAIN of a query of the system catalog is not supported")
        return await session.serving.workers.run_bounded(explained, session.access.authorize(prepared).plan.packed)
    await temporary_relations.answer(session, bound)
    return (await catalog_changes.send(session, bound)).lines
