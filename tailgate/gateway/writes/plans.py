"""Plans of statements that write: those of `sql.plan.writes` with their queries rendered as DuckDB SQL.

They are made when the statement is bound: in the event loop, or in a worker process if the
statement is long (`gateway.workers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from tailgate.gateway.serving.prepared import PLAN_FACTOR, check_joins, declared, numbers, scans
from tailgate.gateway.writes.constants import constants
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import FeatureNotSupported, StatementTooComplex
from tailgate.lake.types import TEXT, UNKNOWN, Field, Type
from tailgate.sql import plan
from tailgate.sql import statements as s
from tailgate.sql.authorization import Demand
from tailgate.sql.binder.writes.writes import Writes
from tailgate.sql.plan.sequences import SequenceCall, separated
from tailgate.sql.plan.writes import INCOMING, ChangeRows, InsertRows, TruncateTables
from tailgate.sql.render.duckdb import render

Write: TypeAlias = s.Insert | s.Update | s.Delete | s.Truncate


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a write, rendered for DuckDB.

    `constants` are long literals, passed as parameters; `used` has the numbers of the statement's
    parameters in the SQL. `scans` has the relation id of each scan. `written` is set for a VALUES
    list, which may need no DuckDB; rows of literals alone may already be a table. `calls`, `source`: as in
    `sql.plan.sequences.Numbered`.
    """

    sql: str
    constants: tuple[plan.Value, ...] = field(repr=False)
    used: frozenset[int]
    columns: tuple[Field, ...]
    scans: tuple[int, ...]
    written: plan.Values | pa.Table | None = field(default=None, compare=False, repr=False)
    calls: tuple[SequenceCall, ...] = ()
    source: Query | None = None

    def literal(self, values: Sequence[object]) -> pa.Table | None:
        """Returns the rows of a VALUES list of literals and parameters, otherwise None."""
        return constants(self.written, values) if isinstance(self.written, plan.Values) else self.written

    @property
    def size(self) -> int:
        rows = self.written
        return len(self.sql) + (int(rows.nbytes) if isinstance(rows, pa.Table) else PLAN_FACTOR * len(rows.rows) if rows else 0)


Checks: TypeAlias = tuple[tuple[str, Query], ...]


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """A rendered `sql.plan.writes.InsertRows`."""

    table: Item
    rows: Query | None
    existing: Query | None
    conflict: str
    returning: Query | None
    parameters: tuple[Type, ...]
    demands: tuple[Demand, ...]
    checks: Checks

    @property
    def size(self) -> int:
        return sum(q.size for q in (self.rows, self.existing, self.returning, *(c for _, c in self.checks)) if q is not None)

    @property
    def scans(self) -> tuple[int, ...]:
        """Returns the relation id of each scan in its queries."""
        return tuple(id for q in (self.rows, self.existing, self.returning) if q is not None for id in q.scans)

    @property
    def reads(self) -> frozenset[int]:
        """Returns the relations that it reads as a whole. The scan that searches existing keys reads only rows with these keys."""
        scans = list(self.scans)
        if self.existing is not None:
            scans.remove(self.table.id)
        return frozenset(scans) - {INCOMING}


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """A rendered `sql.plan.writes.ChangeRows`."""

    table: Item
    rows: Query
    updates: bool
    pinned: bool
    returning: tuple[Field, ...] | None
    parameters: tuple[Type, ...]
    demands: tuple[Demand, ...]
    checks: Checks

    @property
    def size(self) -> int:
        return self.rows.size + sum(c.size for _, c in self.checks)


WritePlan: TypeAlias = InsertPlan | ChangePlan | TruncateTables


def numbered(relation: plan.Relation, parameters: int, *, compact: bool) -> Query:
    """Renders a plan that may call sequences. `parameters`: the number of the statement's parameters."""
    parts = separated(relation, parameters + 1)
    query = query_of(parts.relation, compact=compact)
    if parts.source is None:
        return replace(query, calls=parts.calls)
    source = query_of(parts.source, compact=compact)
    return replace(query, calls=parts.calls, source=source, scans=(*query.scans, *source.scans))


def query_of(relation: plan.Relation, *, compact: bool) -> Query:
    """Renders a plan. `compact`: this is a worker process, so the result must be small."""
    check_joins(relation)
    used = numbers(relation)
    written: plan.Values | pa.Table | None = relation if isinstance(relation, plan.Values) else None
    if compact and written is not None and not used:
        written = constants(written, ()) or written
    long_literals: list[plan.Value] = []
    sql = ""
    if not isinstance(written, pa.Table):
        try:
            sql = render(relation, constants=long_literals)
        except StatementTooComplex:  # VALUES lists seldom need their SQL
            if written is None:
                raise
    return Query(sql, tuple(long_literals), used, relation.columns, tuple(scan.relation for scan in scans(relation)), written)


def bound(statement: Write, oids: Sequence[int], catalog: Catalog, *, compact: bool = False) -> tuple[tuple[Field, ...] | None, WritePlan]:
    """Returns the columns of RETURNING or None, and the plan."""
    binder = Writes(catalog, declared(oids))
    match statement:
        case s.Insert():
            plan = insert_plan(binder.insert(statement), compact=compact)
            return (None if plan.returning is None else plan.returning.columns), plan
        case s.Update():
            change = _change_plan(binder.update(statement), compact=compact)
            return change.returning, change
        case s.Delete():
            change = _change_plan(binder.delete(statement), compact=compact)
            return change.returning, change
        case s.Truncate():
            return None, binder.truncate(statement)


def bound_in_worker(text: str, oids: Sequence[int], catalog: Catalog) -> tuple[tuple[Field, ...] | None, WritePlan]:
    """Does the same as `bound` in a worker process, from the statement's text."""
    statement = s.parse(text)
    assert isinstance(statement, Write)
    return bound(statement, oids, catalog, compact=True)


def insert_plan(write: InsertRows, *, compact: bool = False) -> InsertPlan:
    existing, returning = (None if r is None else query_of(r, compact=compact) for r in (write.existing, write.returning))
    return InsertPlan(
        write.table,
        None if write.rows is None else numbered(write.rows, len(write.parameters), compact=compact),
        existing,
        write.conflict,
        returning,
        parameter_types(write.parameters),
        write.demands,
        _checks(write.checks, compact),
    )


def _change_plan(write: ChangeRows, *, compact: bool) -> ChangePlan:
    rows, checks = numbered(write.rows, len(write.parameters), compact=compact), _checks(write.checks, compact)
    if rows.calls and write.table.key is None:
        raise FeatureNotSupported(
            f"{rows.calls[0].name} in UPDATE of a table without a primary key is not supported", hint="Equal rows would get equal values."
        )
    return ChangePlan(
        write.table, rows, write.updates, write.pinned, write.returning, parameter_types(write.parameters), write.demands, checks
    )


def _checks(checks: tuple[tuple[str, plan.Relation], ...], compact: bool) -> Checks:
    return tuple((name, query_of(forbidden, compact=compact)) for name, forbidden in checks)


def parameter_types(parameters: tuple[Type, ...]) -> tuple[Type, ...]:
    """Replaces unknown parameter types with text, as PostgreSQL does."""
    return tuple(TEXT if t == UNKNOWN else t for t in parameters)
