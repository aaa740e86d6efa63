"""EXPLAIN: the plan of a query or a write, which the gateway runs, or of a view or sink, which the engine maintains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import pyarrow as pa

from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.execute import catalog_changes, committing, explain_formats, queries, time_expressions
from tailgate.gateway.execute.temporary import relations as temporary_relations
from tailgate.gateway.ksqldb import entities
from tailgate.gateway.ksqldb.explained_queries import explained_query
from tailgate.gateway.ksqldb.fields import Entity
from tailgate.gateway.ksqldb.query_errors import waiting
from tailgate.gateway.results.rows import TableRows, Tagged
from tailgate.gateway.serving.prepared import explained
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.lanes import Lane, lane_of
from tailgate.gateway.session.statements.parsing import LongWrite
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import plans
from tailgate.gateway.writes.plans import WritePlan
from tailgate.lake import errors as e
from tailgate.lake.types import JSON, TEXT, Field
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.dialect import HTTP
from tailgate.sql.plan.explain import Explained

WRITES = (s.Insert, s.Update, s.Delete, s.Merge, s.WithWrites, LongWrite)
EXPLAINED = (s.Select, *WRITES)
TYPES = {"json": JSON}  # of the column; text for other formats


@dataclass(frozen=True, slots=True)
class _Planned:
    """The query or write of EXPLAIN, bound in `seconds`."""

    statement: Bound
    seconds: float


@dataclass(frozen=True, slots=True)
class _Executed:
    """The measurements of EXPLAIN ANALYZE: the number of rows, and the milliseconds to the first rows and to the last one."""

    rows: int
    first: float
    last: float


def bind(session: Session, bound: Bound, statement: s.Explain) -> Bound:
    """Sets the columns of the result."""
    if _as_entity(session, statement):
        return replace(bound, columns=entities.COLUMNS)
    return replace(bound, columns=(Field("QUERY PLAN", TYPES.get(statement.format, TEXT)),))


def planned(bound: Bound, inner: Bound, seconds: float = 0.0) -> Bound:
    """Returns EXPLAIN of a query or a write, which was bound in `seconds`. Raises 0A000 for other statements, which EXECUTE may name."""
    if not isinstance(inner.statement, EXPLAINED):
        raise e.FeatureNotSupported("EXPLAIN EXECUTE is supported for SELECT, INSERT, UPDATE, DELETE and MERGE only")
    return replace(bound, parameters=inner.parameters, body=_Planned(inner, seconds))


async def run(session: Session, bound: Bound, statement: s.Explain, values: Sequence[object]) -> Tagged:
    if isinstance(bound.body, _Planned):
        lines: Sequence[str] = await _of_planned(session, bound.body, statement, values)
    else:
        lines = await _lines(session, bound, statement)
    if _as_entity(session, statement):
        entity = await _entity(session, statement, lines)
        document, entry = json.dumps(entity, ensure_ascii=False), session.serving.progress.state.n
        table = pa.table([pa.array([document], pa.string()), pa.array([entry], pa.int64())], names=["c0", "c1"])
    else:
        table = pa.table([pa.array(lines, pa.string())], names=["c0"])
    return Tagged(TableRows(bound.columns or (), table), "EXPLAIN", counted=False)


def _as_entity(session: Session, statement: s.Explain) -> bool:
    """Returns whether the result is an entity of ksqlDB's HTTP API."""
    return session.settings.dialect == HTTP and isinstance(statement.target, s.QueryId | s.KsqldbQuery)


async def _entity(session: Session, statement: s.Explain, plan: Sequence[str]) -> Entity:
    """Returns the entity of EXPLAIN of a query of ksqlDB, with the lines of its plan."""
    if isinstance(statement.target, s.KsqldbQuery):
        reset = session.settings["auto.offset.reset"]
        return explained_query(statement.target.statement, statement.target.text, plan, session.catalog, reset)
    assert isinstance(statement.target, s.QueryId)
    item = session.catalog.find_query(statement.target.id)
    if item is None:
        raise e.UndefinedObject(f'query "{statement.target.id}" does not exist')
    broken = waiting(await session.control.status(lags=False), session.catalog)
    return entities.query_description(item, plan, session.catalog, session.access.may_see, broken)


async def _of_planned(session: Session, planned: _Planned, statement: s.Explain, values: Sequence[object]) -> list[str]:
    """Returns the lines of EXPLAIN for a query or a write, which ANALYZE executes."""
    plan = await _plan(session, planned.statement)
    lane, times = _lane(session, planned.statement), {"Planning Time": round(planned.seconds * 1000, 3)}
    executed = await _execute(session, planned.statement, values) if statement.analyze else None
    if executed is not None:
        times["Execution Time"] = executed.last
    if statement.format != "text":
        node = dict(plan.document)
        if executed is not None and statement.timing:
            node |= {"Actual Startup Time": executed.first, "Actual Total Time": executed.last}
        if executed is not None:
            node |= {"Actual Rows": executed.rows, "Actual Loops": 1}
        return [explain_formats.document({"Plan": node, **({"Lane": lane, **times} if statement.summary else {})}, statement.format)]
    first, *others = plan.lines
    if executed is not None:
        time = f"time={executed.first:.3f}..{executed.last:.3f} " if statement.timing else ""
        first = f"{first} (actual {time}rows={executed.rows} loops=1)"
    summary = [f"Lane: {lane}", *(f"{name}: {ms:.3f} ms" for name, ms in times.items())]
    return [first, *others, *(summary if statement.summary else ())]


def _lane(session: Session, bound: Bound) -> Lane:
    """Returns how a query or write is answered. That of a look-up is `memory`."""
    prepared = bound.prepared
    is_lookup = prepared is not None and session.gateway.answers.lookups.of(prepared) is not None
    return "memory" if is_lookup else lane_of(bound)


async def _plan(session: Session, bound: Bound) -> Explained:
    """Returns the plan of a query or a write. Raises 42501 if the role may not run it."""
    workers = session.serving.workers
    if bound.is_catalog:
        raise e.FeatureNotSupported("EXPLAIN of a query of the system catalog is not supported")
    if bound.prepared is not None:
        return await workers.run_bounded(explained, session.access.authorize(bound.prepared).plan.packed)
    write: WritePlan = bound.body
    session.access.authorize(write)
    assert bound.catalog is not None
    oids = tuple(type.oid for type in bound.parameters)
    in_worker = partial(plans.explained_in_worker, bound.text, oids, bound.catalog)
    if isinstance(bound.statement, LongWrite):
        return await workers.run_in_worker(in_worker)
    return await workers.run_bounded(plans.explained, bound.statement, oids, bound.catalog, in_worker=in_worker)


async def _execute(session: Session, bound: Bound, values: Sequence[object]) -> _Executed:
    """Executes a query or a write and counts its rows, which no client gets."""
    begin, count = perf_counter(), 0
    if not isinstance(bound.statement, s.Select):
        time_expressions.check_writable(session)
        count = (await committing.run(session, bound.body, values)).count
        last = round((perf_counter() - begin) * 1000, 3)
        return _Executed(count, last, last)
    rows = await queries.select(session, bound, bound.statement, values)
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
        return (await session.serving.workers.run_bounded(explained, session.access.authorize(prepared).plan.packed)).lines
    await temporary_relations.answer(session, bound)
    return (await catalog_changes.send(session, bound)).lines
