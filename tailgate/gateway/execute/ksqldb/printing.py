"""PRINT: the records that a topic has. By ksqlDB's HTTP API it continues with new records, until its client leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tailgate.gateway.engine_connection import Printed
from tailgate.gateway.execute import catalog_changes
from tailgate.gateway.results.rows import Rows, TableRows, Tagged
from tailgate.gateway.results.topic import TopicRows
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.types import TEXT, Field
from tailgate.sql.ksqldb.dialect import HTTP
from tailgate.sql.statements import Print


def bind(session: Session, bound: Bound, statement: Print, oids: Sequence[int]) -> Bound:
    return replace(bound, columns=(Field("record", TEXT),))


async def run(session: Session, bound: Bound, statement: Print, values: Sequence[object]) -> Tagged:
    """Returns the records of a topic. Raises 42501 unless the role is a superuser."""
    session.access.check_superuser("look into topics")
    rows: Rows
    if session.settings.dialect == HTTP:
        rows = await _following(session, bound, statement)
    else:
        lines = (await catalog_changes.send(session, bound)).lines
        rows = TableRows(bound.columns or (), pa.table([pa.array(lines, pa.string())], names=["c0"]))
    return Tagged(rows, "PRINT", counted=False)


async def _following(session: Session, bound: Bound, statement: Print) -> TopicRows:
    async def execute(resolution: Resolution) -> Printed:
        return await session.control.print(bound.text, catalog_changes.settings_of(session, statement), resolution)

    return TopicRows(bound.columns or (), await catalog_changes.resolved(session, statement, bound.text, execute))
