"""EXPLAIN: the plan of a query, which the gateway runs, or of a view or sink, which the engine maintains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.execute import catalog_changes, time_expressions
from tailgate.gateway.execute.temporary import relations as temporary_relations
from tailgate.gateway.ksqldb import entities
from tailgate.gateway.results.rows import TableRows, Tagged
from tailgate.gateway.serving.prepared import explained
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e
from tailgate.lake.types import TEXT, Field
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.dialect import HTTP


def bind(session: Session, bound: Bound, statement: s.Explain, oids: Sequence[int]) -> Bound:
    if _as_entity(session, statement):
        return replace(bound, columns=entities.COLUMNS)
    return replace(bound, columns=(Field("QUERY PLAN", TEXT),))


async def run(session: Session, bound: Bound, statement: s.Explain, values: Sequence[object]) -> Tagged:
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


async def _lines(session: Session, bound: Bound, statement: s.Explain) -> Sequence[str]:
    """Returns the lines of EXPLAIN: for a query the plan that is run, for views and other statements the engine's answer."""
    target = statement.target
    if isinstance(target, s.Tail):
        query = target.target if isinstance(target.target, s.QueryText) else time_expressions.of_relation(target.target)
        target = s.Select(query)
    if isinstance(target, s.Select):
        prepared = await session.serving.binder.analyzed(target, (), session.naming.seen)
        if isinstance(prepared, CatalogQuery):
            raise e.FeatureNotSupported("EXPLAIN of a query of the system catalog is not supported")
        return await session.serving.workers.run_bounded(explained, session.access.authorize(prepared).plan.packed)
    await temporary_relations.answer(session, bound)
    return (await catalog_changes.send(session, bound)).lines
