"""Conditions on ranges of ctid, with which parallel readers split a table into pages.

DuckDB's PostgreSQL reader, for example, sends `ctid BETWEEN '(0,0)' AND '(9,0)'`. Rows have no
physical position here, so all rows of a relation count as rows of its first page. A range of whole
pages then contains all rows or none, and adjacent ranges contain each row once. Any other use of
ctid raises 0A000.
"""

from __future__ import annotations

import re

from sqlglot import exp

from tailgate.lake.catalog import View
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import BOOL
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Literal, Scalar

TID = re.compile(r"\s*\((\d{1,10}),(\d{1,5})\)\s*")


def bind_range(binder: ExpressionBinder, node: exp.Between) -> Scalar | None:
    """Returns TRUE or FALSE for a range of ctid, None for other conditions. Raises 0A000.

    As in PostgreSQL, views have no ctid. The queries of views cannot read it, either.
    """
    column = node.this
    if not isinstance(column, exp.Column) or column.name != "ctid" or binder.view or not _has_pages(binder, column.text("table")):
        return None
    low, high = _tid(node.args["low"]), _tid(node.args["high"])
    if low is None or high is None or low[1] > 1 or (high[0] == 0 and high[1] > 0):
        raise FeatureNotSupported(
            "this use of ctid is not supported",
            hint="Ranges of whole pages are: ctid BETWEEN '(0,0)' AND '(9,0)'.",
            position=position(column),
        )
    return Literal(low[0] == 0 and high[0] > 0, BOOL, position(column))


def _has_pages(binder: ExpressionBinder, alias: str) -> bool:
    """Returns whether ctid is not the name of a column and a relation in scope stores rows."""
    if any(c.name == "ctid" for c in binder.scope.columns):
        return False
    catalog = binder.level.names.catalog
    return any(t.item and not isinstance(catalog[t.item], View) for t in binder.scope.tables if alias in ("", t.alias))


def _tid(node: exp.Expr) -> tuple[int, int] | None:
    """Returns the page and row of a tid literal, with or without a cast, or None."""
    if isinstance(node, exp.Cast) and str(node.args["to"].args.get("kind")) == "tid":
        node = node.this
    match = TID.fullmatch(node.this) if isinstance(node, exp.Literal) and node.is_string else None
    return (int(match[1]), int(match[2])) if match else None
