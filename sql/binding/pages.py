"""ctid in ranges of pages, as parallel readers cut a table with them (DuckDB's PostgreSQL reader: `ctid BETWEEN '(0,0)' AND '(9,0)'`).

Rows have no place here that could be told. All rows of a relation count as those of its first page, so a range of whole pages has all of
them or none, and ranges that follow each other have each row once. Anything else of ctid is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from lake.errors import FeatureNotSupported
from lake.types import BOOL
from sql.grammar.names import position
from sql.plan import Literal, Scalar

if TYPE_CHECKING:
    from sql.binding.expressions import Expressions

TID = re.compile(r"\s*\((\d+),(\d+)\)\s*")


def bind_range(binder: Expressions, node: exp.Between) -> Scalar | None:
    """TRUE or FALSE; None if `node` is about something else. Views have no ctid, as in PostgreSQL, and can read none."""
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


def _has_pages(binder: Expressions, alias: str) -> bool:
    """Whether it is ctid of a relation that has rows of its own, and no column's name."""
    if any(c.name == "ctid" for c in binder.scope.columns):
        return False
    catalog = binder.level.names.catalog
    return any(t.item and catalog[t.item].kind != "view" for t in binder.scope.tables if alias in ("", t.alias))


def _tid(node: exp.Expr) -> tuple[int, int] | None:
    """Page and row of a literal, with its type or without."""
    if isinstance(node, exp.Cast) and str(node.args["to"].args.get("kind")) == "tid":
        node = node.this
    found = TID.fullmatch(node.this) if isinstance(node, exp.Literal) and node.is_string else None
    return (int(found[1]), int(found[2])) if found else None
