"""Evaluates the views of sinks over relations of the schema `tailgate`, for `tailgate sinks`, with the privileges of the sinks' owners.

    {"time": ms, "appended": false, "rows": …}        all rows, at the gateway's clock
    {"time": ms, "appended": true, "rows": …}         the rows of the next steps of the history, and the time of the last of these steps
    {"error": SQLSTATE, "message": …}                 of a query that fails

`rows` are changes: a table with weights in Arrow's streaming format, in base64.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailgate.gateway.execute.monitoring.owned_queries import OwnedQueries
from tailgate.gateway.serving.prepared import Prepared, bind
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.catalog import Catalog, Item, Sink, View
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import ProgramLimitExceeded, TailgateError
from tailgate.lake.tables.weights import total, weighted
from tailgate.lake.types import arrow_schema
from tailgate.sql.definitions import bind_definition
from tailgate.sql.statements import QueryText
from tailgate.sql.system_queries import HISTORY, follows_history

ROWS_MAX = 100_000  # of a view that is compared as a whole
BYTES_MAX = 20 << 20  # of the rows in an answer, compressed
TIMEOUT_S = 8.0
COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class BoundSink:
    """The bound query of a sink's view. `appended`: the view only gets rows of new steps of the history."""

    prepared: Prepared
    appended: bool


def bind_sink(item: Item, catalog: Catalog, catalog_n: int) -> BoundSink:
    """Binds the query of a sink. Raises the errors of a view that can no longer be read."""
    view = catalog[item.depends[0]]
    query = QueryText(f"TABLE {Name(view.name, catalog.schema_of(view).name).sql}")
    prepared = bind(query, (), catalog.stored, catalog_n)
    return BoundSink(prepared, follows_history(bind_definition(view, catalog)))


class SinkQueries:
    """The queries of the sinks of the newest catalog."""

    def __init__(self, gateway: Gateway) -> None:
        self._serving = gateway.serving
        self._queries = OwnedQueries(gateway, bind_sink)

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the answer for a sink that has written all rows up to the time `after`; an empty one if there is no such sink."""
        catalog, catalog_n = self._serving.progress.known
        item = catalog.items.get(request["id"])
        if not isinstance(item, Sink) or not isinstance(catalog[item.depends[0]], View):
            return {}
        try:
            bound = await self._queries.bound(item, catalog, catalog_n)
            if bound.appended:
                at, rows = await self._appended(bound.prepared, item, catalog, request["after"])
            else:
                at, rows = time.time_ns() // 1_000_000, await self._queries.rows(bound.prepared, item, catalog, TIMEOUT_S)
            return {"time": at, "appended": bound.appended, "rows": await self._serving.system.call(lambda: _encoded(rows, bound.prepared))}
        except TailgateError as error:
            return {"error": error.sqlstate, "message": error.message}

    async def _appended(self, query: Prepared, item: Item, catalog: Catalog, after: int) -> tuple[int, pa.Table]:
        """Returns the rows of the next steps of the history, and the time of the last of these steps; `after` if there is none."""
        relations = self._queries.system_relations(item, catalog)
        at, changes = await self._serving.system.call(lambda: relations.next_steps(after))
        return at, await self._queries.rows(query, item, catalog, TIMEOUT_S, {HISTORY.id: changes})


def _encoded(rows: pa.Table, query: Prepared) -> str:
    """Returns rows as the text of an answer. Raises 54000 if there are too many."""
    if rows.num_rows > ROWS_MAX:
        hint = "Restrict its query, or send each row of tailgate.freshness_history: CREATE SINK … FROM tailgate.freshness_history."
        raise ProgramLimitExceeded(f"a view over the schema tailgate that a sink sends may have at most {ROWS_MAX} rows", hint=hint)
    changes, sink = total([weighted(rows, 1)], arrow_schema(query.columns, weight=True)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, changes.schema, options=COMPRESSED) as stream:
        stream.write_table(changes)
    content = sink.getvalue()
    if content.size > BYTES_MAX:
        raise ProgramLimitExceeded(f"the rows of a view over the schema tailgate that a sink sends may have at most {BYTES_MAX >> 20} MiB")
    return base64.b64encode(content).decode()
