"""Queries of writes, rendered as DuckDB SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tailgate.gateway.serving.prepared import PLAN_FACTOR, check_joins, numbers, scans, used_numbers
from tailgate.gateway.writes.rows.constants import Constants, constants
from tailgate.lake.errors import StatementTooComplex
from tailgate.lake.types import Field
from tailgate.sql import plan
from tailgate.sql.plan.session_calls import SessionCall, separated
from tailgate.sql.render.duckdb import render


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a write, rendered for DuckDB.

    `constants` are long literals, passed as parameters; `used` has the numbers of the statement's
    parameters in the SQL. `scans` has the relation id of each scan. `written` is set for a VALUES
    list, which may need no DuckDB; rows of literals alone may already be a table. `calls`, `source`, `session_values`:
    as `calls`, `source` and `constants` in `sql.plan.session_calls.Numbered`.
    """

    sql: str
    constants: tuple[plan.Value, ...] = field(repr=False)
    used: frozenset[int]
    columns: tuple[Field, ...]
    scans: tuple[int, ...]
    written: plan.Values | pa.Table | None = field(default=None, compare=False, repr=False)
    calls: tuple[SessionCall, ...] = ()
    source: Query | None = None
    session_values: tuple[SessionCall, ...] = ()

    def literal(self, values: Sequence[object]) -> pa.Table | None:
        """Returns the rows of a VALUES list of literals and parameters, otherwise None."""
        return _table(self.written, values) if isinstance(self.written, plan.Values) else self.written

    def literals(self, values: Sequence[object]) -> Constants | None:
        """Does the same, but does not convert the values. Returns None also for a long list, which is a table already."""
        return constants(self.written, values) if isinstance(self.written, plan.Values) else None

    @property
    def size(self) -> int:
        rows = self.written
        return len(self.sql) + (int(rows.nbytes) if isinstance(rows, pa.Table) else PLAN_FACTOR * len(rows.rows) if rows else 0)


def _table(rows: plan.Values, values: Sequence[object]) -> pa.Table | None:
    result = constants(rows, values)
    return None if result is None else result.table()


def numbered(relation: plan.Relation, parameters: int, *, compact: bool) -> Query:
    """Renders a plan with calls that depend on the session. `parameters`: the number of the statement's parameters."""
    parts = separated(relation, parameters + 1)
    query = replace(query_of(parts.relation, compact=compact), calls=parts.calls, session_values=parts.constants)
    if parts.source is None:
        return query
    source = replace(query_of(parts.source, compact=compact), session_values=parts.constants)
    return replace(query, source=source, scans=(*query.scans, *source.scans))


def inline(relation: plan.Relation) -> Query:
    """Renders a plan without parameters, for use as a part of another query."""
    return Query(render(relation), (), frozenset(), relation.columns, tuple(scan.relation for scan in scans(relation)))


def query_of(relation: plan.Relation, *, compact: bool) -> Query:
    """Renders a plan. `compact`: this is a worker process, so the result must be small."""
    check_joins(relation)
    planned = numbers(relation)
    written: plan.Values | pa.Table | None = relation if isinstance(relation, plan.Values) else None
    if compact and written is not None and not planned:
        written = _table(written, ()) or written
    long_literals: list[plan.Value] = []
    sql = ""
    if not isinstance(written, pa.Table):
        try:
            sql = render(relation, constants=long_literals)
        except StatementTooComplex:  # VALUES lists seldom need their SQL
            if written is None:
                raise
    used = used_numbers(planned, sql)
    return Query(sql, tuple(long_literals), used, relation.columns, tuple(scan.relation for scan in scans(relation)), written)
