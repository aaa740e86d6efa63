"""Plans of statements that write: those of `sql.plan.writes` with their queries rendered as DuckDB SQL.

They are made when the statement is bound: in the event loop, or in a worker process if the
statement is long (`gateway.workers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tailgate.gateway.serving.prepared import declared
from tailgate.gateway.writes.constraints.rules import Checks, Rules, RulesByTable, relations, rendered, size
from tailgate.gateway.writes.rows.query import Query, numbered
from tailgate.lake.catalog import Catalog, Table, items
from tailgate.lake.constraints import Key
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import TEXT, UNKNOWN, Field, Type
from tailgate.sql import statements as s
from tailgate.sql.authorization import Demand
from tailgate.sql.binder.relation_names import NO_WIDTHS
from tailgate.sql.binder.writes.merges import Merges
from tailgate.sql.binder.writes.modifying_with import ModifyingWith
from tailgate.sql.binder.writes.writes import Writes
from tailgate.sql.plan import Project, Relation, Values
from tailgate.sql.plan.explain import Explained, explained_write
from tailgate.sql.plan.session_calls import moves_constants
from tailgate.sql.plan.writes import (
    RETURNED,
    BoundWrite,
    ChangeRows,
    CurrentRow,
    InsertRows,
    MergeRows,
    TableRules,
    TruncateTables,
    WithRows,
    is_item,
)
from tailgate.sql.plan.writes import Checks as PlannedChecks
from tailgate.sql.time_zones import in_zone

Write: TypeAlias = s.Insert | s.Update | s.Delete | s.Merge | s.Truncate | s.WithWrites


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """A rendered `sql.plan.writes.InsertRows`."""

    table: Table
    rows: Query | None
    existing: Query | None
    conflict: str
    arbiter: Key | None
    returning: Query | None
    parameters: tuple[Type, ...]
    demands: tuple[Demand, ...]
    rules: RulesByTable
    view_checks: Checks = ()

    @property
    def queries(self) -> tuple[Query, ...]:
        """Returns all its queries but those of the rules."""
        checks = (check for _, check in self.view_checks)
        return tuple(q for q in (self.rows, self.existing, self.returning, *checks) if q is not None)

    @property
    def size(self) -> int:
        return sum(query.size for query in self.queries) + size(self.rules)

    @property
    def own(self) -> Rules:
        """Returns the rules of the table."""
        return self.rules[self.table.id]

    @property
    def scans(self) -> tuple[int, ...]:
        """Returns the relation id of each scan in its queries."""
        return tuple(id for query in self.queries for id in query.scans)

    @property
    def reads(self) -> frozenset[int]:
        """Returns the relations that it reads as a whole. The scan that searches existing keys reads only rows with these keys."""
        scans = list(self.scans)
        if self.existing is not None:
            scans.remove(self.table.id)
        return frozenset(filter(is_item, scans))

    @property
    def relations(self) -> frozenset[int]:
        """Returns all relations that its evaluation reads."""
        own = frozenset((self.table.id,)) if self.own.keys else frozenset()
        return frozenset(filter(is_item, self.scans)) | own | (relations(self.rules) - {self.table.id})


@dataclass(frozen=True, slots=True)
class _RowsPlan:
    """A plan whose rows are matched rows of its table, and what becomes of them."""

    table: Table
    rows: Query
    returning: Query | None
    parameters: tuple[Type, ...]
    demands: tuple[Demand, ...]
    rules: RulesByTable
    view_checks: Checks

    @property
    def queries(self) -> tuple[Query, ...]:
        """Returns all its queries but those of the rules."""
        return tuple(q for q in (self.rows, self.returning, *(check for _, check in self.view_checks)) if q is not None)

    @property
    def size(self) -> int:
        return sum(query.size for query in self.queries) + size(self.rules)

    @property
    def scans(self) -> tuple[int, ...]:
        """Returns the relation id of each scan in its queries."""
        return tuple(id for query in self.queries for id in query.scans)

    @property
    def own(self) -> Rules:
        """Returns the rules of the table."""
        return self.rules[self.table.id]

    @property
    def reads(self) -> frozenset[int]:
        """Returns the relations that its queries read as a whole."""
        return frozenset(filter(is_item, self.scans))

    @property
    def relations(self) -> frozenset[int]:
        """Returns all relations that its evaluation reads."""
        return frozenset(filter(is_item, self.scans)) | relations(self.rules)


@dataclass(frozen=True, slots=True)
class ChangePlan(_RowsPlan):
    """A rendered `sql.plan.writes.ChangeRows`."""

    updates: bool
    pinned: bool
    current: CurrentRow | None


@dataclass(frozen=True, slots=True)
class MergePlan(_RowsPlan):
    """A rendered `sql.plan.writes.MergeRows`."""

    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TruncatePlan:
    """A rendered `sql.plan.writes.TruncateTables`."""

    tables: tuple[Table, ...]
    parameters: tuple[Type, ...]
    demands: tuple[Demand, ...]
    rules: RulesByTable
    cascaded: tuple[str, ...]
    restarted: tuple[items.Sequence, ...]


Part: TypeAlias = Query | InsertPlan | ChangePlan | MergePlan


@dataclass(frozen=True, slots=True)
class WithPlan:
    """A rendered `sql.plan.writes.WithRows`.

    `parts`: by the relation id of their rows, in the order of their evaluation. `first`: the number of parts that are evaluated
    before `body`, which reads their rows; as in PostgreSQL, the others are evaluated after it, and a query that is not read is left out.
    """

    parts: tuple[tuple[int, Part], ...]
    first: int
    body: Part
    parameters: tuple[Type, ...]
    demands: tuple[Demand, ...]
    rules: RulesByTable

    @property
    def all(self) -> tuple[Part, ...]:
        """Returns the parts and the body."""
        return (*(plan for _, plan in self.parts), self.body)

    @property
    def writes(self) -> tuple[InsertPlan | ChangePlan | MergePlan, ...]:
        """Returns all parts that write, with the body if it does."""
        return tuple(plan for plan in self.all if not isinstance(plan, Query))

    @property
    def size(self) -> int:
        return sum(plan.size for plan in self.all)

    @property
    def reads(self) -> frozenset[int]:
        """Returns the relations that its queries read as a whole, without those of the parts that write."""
        return frozenset(scan for plan in self.all if isinstance(plan, Query) for scan in plan.scans if is_item(scan))

    @property
    def relations(self) -> frozenset[int]:
        """Returns all relations that its evaluation reads."""
        return self.reads.union(*(plan.relations for plan in self.writes), relations(self.rules))


WritePlan: TypeAlias = InsertPlan | ChangePlan | MergePlan | TruncatePlan | WithPlan


def bound(
    statement: Write, oids: Sequence[int], catalog: Catalog, widths: Mapping[int, int] = NO_WIDTHS, *, compact: bool = False
) -> tuple[tuple[Field, ...] | None, WritePlan]:
    """Returns the columns of RETURNING or None, and the plan. `widths`: as in `bind_query`."""
    with in_zone(catalog.time_zone):
        return _planned(statement, oids, catalog, widths, compact=compact)


def _planned(
    statement: Write, oids: Sequence[int], catalog: Catalog, widths: Mapping[int, int], *, compact: bool
) -> tuple[tuple[Field, ...] | None, WritePlan]:
    match write := _named(statement, oids, catalog, widths):
        case InsertRows():
            plan = insert_plan(write, compact=compact)
            return _returned(plan), plan
        case ChangeRows():
            change = _change_plan(write, compact=compact)
            return _returned(change), change
        case MergeRows():
            return None, _merge_plan(write, compact=compact)
        case TruncateTables():
            rules = rendered(write.rules, len(write.parameters), compact=compact)
            return None, TruncatePlan(write.tables, write.parameters, write.demands, rules, write.cascaded, write.restarted)
        case WithRows():
            plan_of_all = with_plan(write, compact=compact)
            body = plan_of_all.body
            return body.columns if isinstance(body, Query) else _returned(body), plan_of_all


def _named(statement: Write, oids: Sequence[int], catalog: Catalog, widths: Mapping[int, int] = NO_WIDTHS) -> BoundWrite:
    """Returns the statement with its names resolved, before its queries are rendered."""
    types = declared(oids, catalog)
    match statement:
        case s.Insert():
            return Writes(catalog, types, widths).insert(statement)
        case s.Update():
            return Writes(catalog, types, widths).update(statement)
        case s.Delete():
            return Writes(catalog, types, widths).delete(statement)
        case s.Merge():
            return Merges(catalog, types).merge(statement)
        case s.WithWrites():
            return ModifyingWith(catalog, types, widths).with_writes(statement)
        case s.Truncate():
            return Writes(catalog, types, widths).truncate(statement)


def _returned(plan: InsertPlan | ChangePlan | MergePlan) -> tuple[Field, ...] | None:
    return None if plan.returning is None else plan.returning.columns


def bound_in_worker(text: str, oids: Sequence[int], catalog: Catalog) -> tuple[tuple[Field, ...] | None, WritePlan]:
    """Does the same as `bound` in a worker process, from the statement's text."""
    return bound(_parsed(text), oids, catalog, compact=True)


def explained(statement: Write, oids: Sequence[int], catalog: Catalog) -> Explained:
    """Returns the plan for EXPLAIN."""
    return explained_write(_named(statement, oids, catalog))


def explained_in_worker(text: str, oids: Sequence[int], catalog: Catalog) -> Explained:
    """Does the same as `explained` in a worker process, from the statement's text."""
    return explained(_parsed(text), oids, catalog)


def _parsed(text: str) -> Write:
    """Returns the statement of a text, which may be that of EXPLAIN or COPY."""
    outer = s.parse(text)
    statement = outer.target if isinstance(outer, s.Explain) else outer.statement if isinstance(outer, s.CopyTo) else outer
    assert isinstance(statement, Write)
    return statement


def insert_plan(write: InsertRows, *, compact: bool = False) -> InsertPlan:
    if not _is_one_row(write.rows):
        _check_constants(write.rows, write.existing, write.returning)
    existing, returning = (_query(r, write, compact=compact) for r in (write.existing, write.returning))
    return InsertPlan(
        write.table,
        _query(write.rows, write, compact=compact),
        existing,
        write.conflict,
        write.arbiter,
        returning,
        parameter_types(write.parameters),
        write.demands,
        rendered(write.rules, len(write.parameters), compact=compact),
        _checks(write.view_checks, write, compact=compact),
    )


def _query(relation: Relation | None, write: InsertRows | ChangeRows, *, compact: bool) -> Query | None:
    return None if relation is None else numbered(relation, len(write.parameters), compact=compact)


def _checks(checks: PlannedChecks, write: InsertRows | ChangeRows, *, compact: bool) -> Checks:
    return tuple((name, numbered(forbidden, len(write.parameters), compact=compact)) for name, forbidden in checks)


def _is_one_row(relation: Relation | None) -> bool:
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Values) and len(relation.rows) == 1


def _check_constants(*relations: Relation | None) -> None:
    """Raises 0A000 if some of the plans give values of a sequence, row by row, and others take its value as one for all rows."""
    if moves_constants(*(relation for relation in relations if relation is not None)):
        message = "currval and lastval in a statement that gives values of the sequence to several rows are not supported"
        raise FeatureNotSupported(message, hint="Return the column, or use several statements.")


def _change_plan(write: ChangeRows, *, compact: bool) -> ChangePlan:
    _check_constants(write.rows, write.returning)
    rows = numbered(write.rows, len(write.parameters), compact=compact)
    rules = rendered(write.rules, len(write.parameters), compact=compact)
    if rows.calls and write.table.key is None:
        raise FeatureNotSupported(
            f"{rows.calls[0].name} in UPDATE of a table without a primary key is not supported", hint="Equal rows would get equal values."
        )
    returning = _query(write.returning, write, compact=compact)
    checks, types = _checks(write.view_checks, write, compact=compact), parameter_types(write.parameters)
    return ChangePlan(write.table, rows, returning, types, write.demands, rules, checks, write.updates, write.pinned, write.current)


def _merge_plan(write: MergeRows, *, compact: bool) -> MergePlan:
    rows = numbered(write.rows, len(write.parameters), compact=compact)
    rules = rendered(write.rules, len(write.parameters), compact=compact)
    return MergePlan(write.table, rows, None, parameter_types(write.parameters), write.demands, rules, (), write.actions)


def with_plan(write: WithRows, *, compact: bool) -> WithPlan:
    everything = (*(part for _, part in write.parts), write.body)
    rules: dict[int, TableRules] = {}  # the one that knows the foreign keys of other tables, if a statement needs these
    for rule in (rule for part in everything if isinstance(part, InsertRows | ChangeRows | MergeRows) for rule in part.rules):
        if rule.table.id not in rules or rule.referring:
            rules[rule.table.id] = rule
    shared = tuple(rules.values())

    def planned(part: InsertRows | ChangeRows | MergeRows | Relation) -> Part:
        match part:
            case InsertRows():
                return insert_plan(replace(part, parameters=write.parameters, rules=shared), compact=compact)
            case ChangeRows():
                return _change_plan(replace(part, parameters=write.parameters, rules=shared), compact=compact)
            case MergeRows():
                return _merge_plan(replace(part, parameters=write.parameters, rules=shared), compact=compact)
        return numbered(part, len(write.parameters), compact=compact)

    _check_constants(*(relation for part in everything for relation in _relations(part)))
    *parts, last = map(planned, everything)
    order: dict[int, Part] = {}

    def visit(relations: Iterable[int]) -> None:
        for relation in relations:
            if relation >= RETURNED and relation not in order:
                part = parts[relation - RETURNED]
                visit(part.scans)
                order[relation] = part

    visit(last.scans)
    first = len(order)
    visit(RETURNED + i for i, part in enumerate(parts) if not isinstance(part, Query))
    own = next(part.rules for part in parts if not isinstance(part, Query))
    return WithPlan(tuple(order.items()), first, last, parameter_types(write.parameters), write.demands, own)


def _relations(part: InsertRows | ChangeRows | MergeRows | Relation) -> tuple[Relation | None, ...]:
    match part:
        case InsertRows():
            return part.rows, part.existing, part.returning
        case ChangeRows():
            return part.rows, part.returning
        case MergeRows():
            return (part.rows,)
    return (part,)


def parameter_types(parameters: tuple[Type, ...]) -> tuple[Type, ...]:
    """Replaces unknown parameter types with text, as PostgreSQL does."""
    return tuple(TEXT if t == UNKNOWN else t for t in parameters)
