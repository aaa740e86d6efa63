"""Evaluates the queries of alerts for `tailgate watch`, with the privileges of their owners.

    {"n": catalog's entry, "rows": [[key, {column: value}], …]}      the newest rows, at most ROWS_MAX
    {"error": SQLSTATE}                                             of a query that fails

The key of a row are the columns that a key of the query proves, or all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tailgate.gateway.encode.json_rows import row_writer
from tailgate.gateway.execute.monitoring.owned_queries import OwnedQueries
from tailgate.gateway.serving.prepared import Prepared, bind
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.catalog import Alert, Catalog, Item, known_columns
from tailgate.lake.errors import TailgateError
from tailgate.sql.authorization import renamed
from tailgate.sql.plan.properties import key
from tailgate.sql.statements import QueryText
from tailgate.values import raw

ROWS_MAX = 1_000  # as many as there can be active alerts
TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class BoundAlert:
    """The bound query of an alert, and the positions of the columns that identify a row."""

    prepared: Prepared
    key: tuple[int, ...]


def bind_alert(item: Item, catalog: Catalog, catalog_n: int) -> BoundAlert:
    """Binds the query of an alert. Raises the errors of a query that can no longer be read."""
    assert isinstance(item, Alert)
    prepared = bind(QueryText(item.query), (), catalog.stored, catalog_n, known_columns(item))
    prepared = replace(prepared, demands=renamed(prepared.demands, item.id))
    positions = key(prepared.query.plan)
    return BoundAlert(prepared, tuple(range(len(prepared.columns))) if positions is None else positions)


class AlertQueries:
    """The queries of the alerts of the newest catalog."""

    def __init__(self, gateway: Gateway) -> None:
        self._serving = gateway.serving
        self._queries = OwnedQueries(gateway, bind_alert)

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the answer for an alert; an empty one if it does not exist."""
        catalog, catalog_n = self._serving.progress.known
        item = catalog.items.get(request["id"])
        if not isinstance(item, Alert) or not item.query:
            return {}
        try:
            bound = await self._queries.bound(item, catalog, catalog_n)
            rows = await self._queries.rows(bound.prepared, item, catalog, TIMEOUT_S)
            return {"n": catalog_n, "rows": _identified(bound, rows.slice(0, ROWS_MAX))}
        except TailgateError as error:
            return {"error": error.sqlstate}


def _identified(bound: BoundAlert, table: pa.Table) -> list[tuple[str, dict[str, Any]]]:
    """Returns the key and the object of each row."""
    columns = bound.prepared.columns
    write = row_writer(columns)
    values = [raw.values(raw.stored(table.column(i), c.type), c.type) for i, c in enumerate(columns)]
    objects = [json.loads(write(row)) for row in zip(*values, strict=True)]
    return [(", ".join(_text(row[columns[i].name]) for i in bound.key), row) for row in objects]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
