"""The rules for the rows of tables that a statement writes: checks, keys and foreign keys, bound for their evaluation."""

from __future__ import annotations

from collections import deque

from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.constraints import Reference, keys_of, references_of, references_to, version
from tailgate.lake.types import INT8
from tailgate.sql.binder.queries.queries import values_plan
from tailgate.sql.binder.writes import generated
from tailgate.sql.binder.writes.index_expressions import key_values
from tailgate.sql.binder.writes.targets import checks_of, default_of, domain_conditions, fields_of
from tailgate.sql.plan import Column, Filter, IsNull, Not, Project, Relation, Scalar, Scan
from tailgate.sql.plan.rewriting import substituted
from tailgate.sql.plan.writes import CHANGING_ACTIONS, INCOMING, PLACE, Checks, DomainCheck, TableRules


def rules_of(table: Table, catalog: Catalog, *, adds_only: bool = False) -> tuple[TableRules, ...]:
    """Returns the rules of a table, and those of the tables that referential actions may change.

    `adds_only`: the statement removes and changes no row, so foreign keys of other tables do not concern it.
    """
    rules_by_id: dict[int, TableRules] = {}
    waiting = deque([table])
    while waiting:
        current = waiting.popleft()
        if current.id in rules_by_id:
            continue
        unchecked = current.storage.triggers_disabled
        referring = () if adds_only or unchecked else references_to(current, catalog)
        rules_by_id[current.id] = TableRules(
            current,
            checks(current),
            keys_of(current, catalog),
            () if unchecked else references_of(current, catalog),
            tuple((reference, _defaults(reference)) for reference in referring),
            version(current, catalog),
            generated.values(current),
            domain_checks(current),
            key_values(current, catalog),
        )
        waiting.extend(r.table for r in referring if CHANGING_ACTIONS & {r.constraint.on_delete, r.constraint.on_update})
    return tuple(rules_by_id.values())


def checks(table: Table) -> Checks:
    """Returns for each CHECK its name and a plan for the places of the rows that violate it."""
    return tuple((name, places(table, Not(check))) for name, check in checks_of(table))


def domain_checks(table: Table) -> tuple[DomainCheck, ...]:
    """Returns the constraints of the domains of the columns."""
    constraints = list[DomainCheck]()
    for i, column in enumerate(table.columns):
        if column.domain is None or column.is_dropped:
            continue
        value = Column(i, column.type)
        if column.domain.not_null:
            constraints.append(DomainCheck(i, None, places(table, IsNull(value))))
        for name, condition in domain_conditions(column):
            constraints.append(DomainCheck(i, name, places(table, Not(substituted(condition, (value,))))))
    return tuple(constraints)


def places(table: Table, condition: Scalar) -> Relation:
    """Returns a plan for the places of the incoming rows that satisfy a condition."""
    incoming = Scan(INCOMING, (*table.columns, PLACE), (len(table.columns),), table.name)
    return Project(Filter(incoming, condition), (Column(len(table.columns), INT8),), (PLACE,))


def _defaults(reference: Reference) -> Relation | None:
    """Returns a plan with one row, the defaults of the columns of a foreign key, if one of its actions is SET DEFAULT."""
    if "set default" not in (reference.constraint.on_delete, reference.constraint.on_update):
        return None
    table = reference.table
    columns = tuple(table.columns[i] for i in reference.columns)
    row = tuple(default_of(column, table.defaults.get(column.name)) for column in columns)
    return values_plan((row,), fields_of(columns, [row]))
