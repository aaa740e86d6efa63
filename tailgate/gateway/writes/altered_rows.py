"""The rows of a table that ALTER TABLE or CREATE UNIQUE INDEX concerns: new values of columns, and the check of new constraints.

Old rows are removed, and rows with the new values are added, in the entry that changes the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailgate.gateway.mirrors.incoming import registered, with_places
from tailgate.gateway.writes.constraints import keys
from tailgate.gateway.writes.constraints.reference_types import in_key_types
from tailgate.gateway.writes.constraints.rules import Rules, rendered
from tailgate.gateway.writes.constraints.violations import domain_violation
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.gateway.writes.rows.query import Query
from tailgate.gateway.writes.rows.query import numbered as calling
from tailgate.lake import constraints
from tailgate.lake.catalog import Catalog, Sequence, Table
from tailgate.lake.catalog.dropping import sequences_of
from tailgate.lake.constraints import Key, Reference
from tailgate.lake.errors import CheckViolation, NotNullViolation, TailgateError
from tailgate.lake.tables.weights import weighted
from tailgate.lake.types import Field, arrow_schema
from tailgate.sql.authorization import Demand
from tailgate.sql.binder.writes.rules import checks, domain_checks, rules_of
from tailgate.sql.binder.writes.targets import counted, default_of, fields_of
from tailgate.sql.plan import Column, Project
from tailgate.sql.sequence_definitions import numbers
from tailgate.sql.tables.alterations import Alteration
from tailgate.sql.tables.domains import DomainAlteration, concerned_columns


@dataclass(frozen=True, slots=True)
class AlteredRows:
    """The changes and checks of the rows of a table.

    Only the owner may alter a table, and needs no privilege on its rows, as in PostgreSQL.

    `rows`: a query of the old columns, the number of copies, and the values of the `retyped` and the new columns. `rewrites`: whether
    these are stored. `numbered`: added columns, by position, with new sequences that give each copy of a row a value. The other fields are
    the new rules that the rows must satisfy. `rules`: all rules of the table, if generated columns or keys are new. `generates`: whether
    generated columns are new. `violations`: queries of the places of rows that violate a domain, with the errors.
    """

    table: Table
    altered: Table
    rows: Query
    rewrites: bool
    retyped: tuple[int, ...] = ()
    not_null: tuple[int, ...] = ()
    checks: tuple[tuple[str, Query], ...] = ()
    keys: tuple[Key, ...] = ()
    references: tuple[Reference, ...] = ()
    numbered: tuple[tuple[int, Sequence], ...] = ()
    rules: Rules | None = None
    generates: bool = False
    violations: tuple[tuple[TailgateError, Query], ...] = ()
    demands: tuple[Demand, ...] = ()

    @property
    def relations(self) -> tuple[Table, ...]:
        """Returns the tables that are read."""
        return tuple({t.id: t for t in (self.table, *(r.referenced for r in self.references))}.values())


def plan(alteration: Alteration, before: Catalog) -> AlteredRows | None:
    """Returns the changes and checks of the rows, or None if there are none. `before`: the catalog before the statement."""
    table, altered, after = alteration.before, alteration.after, before.apply(alteration.change)
    width = len(table.columns)
    added = altered.columns[width:]
    new = {s: after.expect(Sequence, s) for _, s in sequences_of(altered) if s not in before.items}
    owners = {sequence.column: sequence for sequence in new.values()}
    numbered = tuple((width + i, owners[column.name]) for i, column in enumerate(added) if column.name in owners)
    defaults = [None if column.name in owners else altered.defaults.get(column.name) for column in added]
    not_null = tuple(i for i, c in enumerate(altered.columns) if not c.nullable and _is_new(i, alteration))
    new_checks = tuple((name, calling(forbidden, 0, compact=False)) for name, forbidden in checks(altered) if name in alteration.validated)
    old_keys = {key.index for key in constraints.keys_of(table, before)}
    retyped = alteration.values.keys()
    computed = altered.generated.keys() & {column.name for column in added}
    concerned = {*retyped, *range(width, len(altered.columns))}
    violations = tuple(
        (domain_violation(altered, check), calling(check.forbidden, 0, compact=False))
        for check in domain_checks(altered)
        if check.column in concerned
    )
    new_keys = tuple(k for k in constraints.keys_of(altered, after) if k.index not in old_keys or retyped & k.read)
    references = tuple(r for r in constraints.references_of(altered, after) if r.name in alteration.validated)
    rewrites = bool(retyped) or alteration.rewrites or bool(numbered) or bool(computed) or any(default is not None for default in defaults)
    rewrites = rewrites or any(column.domain is not None and column.domain.default is not None for column in added)
    if not (rewrites or not_null or new_checks or new_keys or references or violations):
        return None
    source, count = counted(table)
    fields = (*(altered.columns[i] for i in retyped), *added)
    values = (*alteration.values.values(), *(default_of(column, default) for column, default in zip(added, defaults, strict=True)))
    old = tuple(Column(i, column.type) for i, column in enumerate(table.columns))
    rows = Project(source, (*old, count, *values), (*table.columns, Field("copies", count.type, False), *fields_of(fields, [values])))
    query = calling(rows, 0, compact=False)
    rules = rendered(rules_of(altered, after, adds_only=True), 0, compact=False)[altered.id] if computed or new_keys else None
    return AlteredRows(
        table,
        altered,
        query,
        rewrites,
        tuple(retyped),
        not_null,
        new_checks,
        new_keys,
        references,
        numbered,
        rules,
        bool(computed),
        violations,
    )


def domain_plans(altered: DomainAlteration, before: Catalog) -> Iterator[AlteredRows]:
    """Yields for each column of the domain the check of its rows by the new constraint. `before`: the catalog before the statement."""
    for table, position in concerned_columns(altered, before):
        column = table.columns[position]
        names = {"s": before.schema_of(table).name, "t": table.name, "c": column.name}
        what = f'column "{column.name}" of table "{table.name}" contains'
        errors: dict[str | None, TailgateError] = {}
        if altered.not_null:
            errors[None] = NotNullViolation(f"{what} null values", names=names)
        if altered.validated is not None:
            errors[altered.validated] = CheckViolation(f"{what} values that violate the new constraint", names=names)
        violations = tuple(
            (errors[check.constraint], calling(check.forbidden, 0, compact=False))
            for check in domain_checks(table)
            if check.column == position and check.constraint in errors
        )
        source, count = counted(table)
        old = tuple(Column(i, c.type) for i, c in enumerate(table.columns))
        rows = Project(source, (*old, count), (*table.columns, Field("copies", count.type, False)))
        yield AlteredRows(table, table, calling(rows, 0, compact=False), rewrites=False, violations=violations)


def _is_new(position: int, alteration: Alteration) -> bool:
    """Returns whether values of a column may be NULL that was not NULL, or could be NULL, before."""
    old = alteration.before.columns
    return position >= len(old) or old[position].nullable or position in alteration.values


def changes(plan: AlteredRows, evaluation: Evaluation, names: dict[str, str]) -> pa.Table:
    """Returns the weighted changes of the table's rows. Raises 23502, 23514, 23505 or 23503 if they violate a new rule.

    `names`: the schema and the table, for errors.
    """
    table, altered = plan.table, plan.altered
    rows = _stored(plan, evaluation)
    width = len(table.columns)
    added = altered.columns[width:]
    old, weights = fitted(rows.select(range(width)), table.columns), rows.column(width).to_numpy()
    fields = (*(altered.columns[i] for i in plan.retyped), *added)
    values = dict(zip((*plan.retyped, *range(width, len(altered.columns))), _values(rows, width + 1, fields), strict=True))
    schema = arrow_schema(altered.columns)
    after = pa.Table.from_arrays([values.get(i, old.column(min(i, width - 1))) for i in range(len(altered.columns))], schema=schema)
    after, copies = _numbered(after, weights, plan.numbered)
    if plan.rules is not None and plan.generates:
        after = evaluation.stored.computed(plan.rules, after)
    _check(plan, evaluation, after, copies, names)
    if not plan.rewrites:
        return weighted(after.slice(0, 0), 0)
    if altered.id != table.id:
        return weighted(after, copies)
    nulls = [pa.nulls(rows.num_rows, column.type.arrow) for column in added]
    before = pa.Table.from_arrays([*old.columns, *nulls], schema=schema)
    return pa.concat_tables([weighted(before, -weights), weighted(after, copies)])


def _stored(plan: AlteredRows, evaluation: Evaluation) -> pa.Table:
    """Returns the rows of the query. If it calls nextval, each copy of a row is a separate row."""
    if plan.rows.source is None:
        return evaluation.query(plan.rows)
    source = evaluation.query(plan.rows.source)
    width = len(plan.table.columns)
    if plan.table.key is None:
        places = np.repeat(np.arange(source.num_rows), source.column(width).to_numpy())
        source = source.take(pa.array(places)).set_column(width, f"c{width}", pa.array(np.ones(len(places), np.int64)))
    return evaluation.numbered(plan.rows, source)


def _values(rows: pa.Table, begin: int, fields: tuple[Field, ...]) -> list[pa.ChunkedArray]:
    """Returns the columns of rows from `begin` on, with the modifiers of these fields applied."""
    return list(fitted(rows.select(range(begin, rows.num_columns)), fields).columns)


def _numbered(rows: pa.Table, weights: np.ndarray, columns: tuple[tuple[int, Sequence], ...]) -> tuple[pa.Table, np.ndarray]:
    """Returns the rows with the values of new sequences in these columns, and the weights of these rows: each copy has its own value."""
    if not columns:
        return rows, weights
    rows = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), weights)))
    for position, sequence in columns:
        field = rows.schema.field(position)
        rows = rows.set_column(position, field, pa.array(numbers(sequence, rows.num_rows)[1], field.type))
    return rows, np.ones(rows.num_rows, np.int64)


def _check(plan: AlteredRows, evaluation: Evaluation, rows: pa.Table, weights: np.ndarray, names: dict[str, str]) -> None:
    table = plan.altered
    with evaluation.incoming(rows):
        for error, forbidden in plan.violations:
            if evaluation.query(forbidden).num_rows:
                raise error
    for i in plan.not_null:
        if rows.column(i).null_count:
            name = table.columns[i].name
            raise NotNullViolation(f'column "{name}" of relation "{table.name}" contains null values', names={**names, "c": name})
    with evaluation.incoming(rows):
        for name, forbidden in plan.checks:
            if evaluation.query(forbidden).num_rows:
                message = f'check constraint "{name}" of relation "{table.name}" is violated by some row'
                raise CheckViolation(message, names={**names, "n": name})
    if plan.rules is not None and plan.keys:
        keyed = evaluation.stored.keyed(plan.rules, rows)
        for key in plan.keys:
            copies = np.flatnonzero((weights > 1) & np.array([h is not None for h in keys.row_hashes(key, keyed)], bool))
            again = [*copies[:1], *keys.repeated(key, keyed)[:1]]
            if again:
                raise evaluation.violations.not_unique(plan.rules, key, keyed.slice(int(min(again)), 1))
    for reference in plan.references:
        _check_reference(reference, evaluation, rows)


def _check_reference(reference: Reference, evaluation: Evaluation, rows: pa.Table) -> None:
    """Raises 23503 if a key that a row references does not exist."""
    every, rows = rows, rows.filter(pa.array(keys.checked(reference, rows)))
    placed = with_places(in_key_types(reference, rows))
    with registered(evaluation.cursor, "placed", placed) as name, _referenced(reference, evaluation, every) as referenced:
        condition = keys.same(reference.referenced.columns, reference.key, "p", "n")
        place = evaluation.cursor.execute(f"SELECT min(place) FROM {name} AS n ANTI JOIN {referenced} AS p ON {condition}").fetchone()
    if place is not None and place[0] is not None:
        raise evaluation.violations.missing(reference, rows.slice(place[0], 1))


@contextmanager
def _referenced(reference: Reference, evaluation: Evaluation, rows: pa.Table) -> Iterator[str]:
    """Returns the name of the referenced table in DuckDB; that of the altered rows if the table references itself."""
    if reference.referenced.id != reference.table.id:
        yield f"r{reference.referenced.id}"
        return
    own = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
    with registered(evaluation.cursor, "own", own) as name:
        yield name
