"""Checks rows by NOT NULL and CHECK, and makes PostgreSQL's errors for violated constraints.

Source: PostgreSQL 15, src/backend/executor/execMain.c (ExecConstraints, ExecBuildSlotValueDescription),
src/backend/access/nbtree/nbtinsert.c (_bt_check_unique), src/backend/utils/adt/ri_triggers.c (ri_ReportViolation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.writes.constraints.keys import shown
from tailgate.gateway.writes.constraints.rules import Checks, Rules
from tailgate.gateway.writes.constraints.shown_values import ShownValues
from tailgate.gateway.writes.rows.query import Query
from tailgate.lake.catalog import Item
from tailgate.lake.constraints import Key, Reference
from tailgate.lake.errors import (
    CheckViolation,
    ForeignKeyViolation,
    NotNullViolation,
    TailgateError,
    UniqueViolation,
    WithCheckOptionViolation,
)
from tailgate.lake.types import Field
from tailgate.sql.authorization import Demand
from tailgate.sql.binder.domains import check_violation, null_violation
from tailgate.sql.plan.writes import DomainCheck
from tailgate.values.codec.style import Style
from tailgate.values.registry import text_column

DETAIL_CHARACTERS_MAX = 64  # of a value in `Failing row contains`, as in PostgreSQL


@dataclass(frozen=True, slots=True)
class Violations:
    """`query` evaluates a check on the rows that `incoming` registers; `values`: those that messages show."""

    query: Callable[[Query], pa.Table]
    incoming: Callable[[pa.Table], AbstractContextManager[None]]
    style: Style
    shown: ShownValues

    def of(self, demands: tuple[Demand, ...]) -> Violations:
        """Returns the same for a part of a WITH, whose errors show the columns that it writes, and not those that other parts write."""
        return replace(self, shown=replace(self.shown, demands=demands))

    def allowed(self, rules: Rules, rows: pa.Table, before: int | None = None) -> None:
        """Raises 23502 or 23514 for the first row, up to `before`, that violates NOT NULL, CHECK or a domain."""
        table, (place, failed) = rules.table, self._first(rules, rows)
        if place == len(rows) or (before is not None and place > before):
            return
        if failed < 0:
            raise of_row(place, domain_violation(table, rules.domains[failed][0]))
        detail = self._failing(table, rows.slice(place, 1))
        if failed < len(table.columns):
            name = table.columns[failed].name
            message = f'null value in column "{name}" of relation "{table.name}" violates not-null constraint'
            raise of_row(place, NotNullViolation(message, detail=detail, names={**self._names(table), "c": name}))
        name = rules.checks[failed - len(table.columns)][0]
        message = f'new row for relation "{table.name}" violates check constraint "{name}"'
        raise of_row(place, CheckViolation(message, detail=detail, names={**self._names(table), "n": name}))

    def check_views(self, table: Item, checks: Checks, rows: pa.Table) -> None:
        """Raises 44000 for the first row that violates the CHECK OPTION of a view."""
        if not checks or not rows.num_rows:
            return
        with self.incoming(rows):
            violations = [self.query(check).column(0) for _, check in checks]
        places = [(pc.min(column).as_py(), number) for number, column in enumerate(violations) if len(column)]
        if places:
            place, number = min(places)
            message = f'new row violates check option for view "{checks[number][0]}"'
            raise of_row(place, WithCheckOptionViolation(message, detail=self._failing(table, rows.slice(place, 1))))

    def _failing(self, table: Item, row: pa.Table) -> str | None:
        """Returns the values of a row for the detail of an error, or None if it may show no value."""
        texts, columns = self._texts(table.columns, row), self.shown.columns(table)
        if columns is None:
            values = (text for text, column in zip(texts, table.columns, strict=True) if not column.is_dropped)
            return f"Failing row contains ({', '.join(values)})."
        if not columns:
            return None
        return f"Failing row contains ({shown(columns, table.columns)}) = ({', '.join(texts[column] for column in columns)})."

    def _first(self, rules: Rules, rows: pa.Table) -> tuple[int, int]:
        """Returns the place of the first row that violates a constraint, and the number of the constraint.

        Constraints of domains have numbers below 0, then follow NOT NULL of the columns, then the checks.
        """
        table, first = rules.table, (len(rows), 0)
        for i, column in enumerate(table.columns):
            if not column.nullable and rows.column(i).null_count:
                first = min(first, (pc.index(pc.is_null(rows.column(i)), True).as_py(), i))
        queries = [*enumerate((query for _, query in rules.domains), -len(rules.domains))]
        queries += enumerate((query for _, query in rules.checks), len(table.columns))
        if queries and rows.num_rows:
            with self.incoming(rows):
                for i, forbidden in queries:
                    places = self.query(forbidden).column(0)
                    first = min(first, (pc.min(places).as_py(), i)) if len(places) else first
        return first

    def duplicate(self, rules: Rules, key: Key, row: pa.Table) -> UniqueViolation:
        """Returns the error for a row whose key exists."""
        return self.duplicate_in(rules.table, rules.fields, key, row)

    def duplicate_in(self, table: Item, fields: Sequence[Field], key: Key, row: pa.Table) -> UniqueViolation:
        """Returns the same error. `fields`: the columns that the key numbers."""
        return UniqueViolation(
            f'duplicate key value violates unique constraint "{key.name}"',
            detail=self._key(table, fields, key, row, "already exists"),
            names={**self._names(table), "n": key.name},
        )

    def not_unique(self, rules: Rules, key: Key, row: pa.Table) -> UniqueViolation:
        """Returns the error for existing rows with equal keys."""
        return UniqueViolation(
            f'could not create unique index "{key.name}"',
            detail=self._key(rules.table, rules.fields, key, row, "is duplicated"),
            names={**self._names(rules.table), "n": key.name},
        )

    def _key(self, table: Item, fields: Sequence[Field], key: Key, row: pa.Table, what: str) -> str | None:
        """Returns the detail of an error about a key, or None if it may not show the values."""
        if not self.shown.shows(table, key.columns):
            return None
        return f"Key {self._values(fields, key.columns, row)} {what}."

    def missing(self, reference: Reference, row: pa.Table) -> ForeignKeyViolation:
        """Returns the error for a row that references a key that does not exist, or with MATCH FULL has NULL in a part of it."""
        values = self._referenced_values(reference.table, reference.constraint.columns, row)
        detail = f'Key{values} is not present in table "{reference.referenced.name}".'
        if any(row.column(column).null_count for column in reference.columns):
            detail = "MATCH FULL does not allow mixing of null and nonnull key values."
        return ForeignKeyViolation(
            f'insert or update on table "{reference.table.name}" violates foreign key constraint "{reference.name}"',
            detail=detail,
            names={**self._names(reference.table), "n": reference.name},
        )

    def still_referenced(self, reference: Reference, row: pa.Table) -> ForeignKeyViolation:
        """Returns the error for a removed key that is referenced."""
        values = self._referenced_values(reference.referenced, reference.constraint.references, row)
        referenced, table = reference.referenced.name, reference.table.name
        return ForeignKeyViolation(
            f'update or delete on table "{referenced}" violates foreign key constraint "{reference.name}" on table "{table}"',
            detail=f'Key{values} is still referenced from table "{table}".',
            names={**self._names(reference.table), "n": reference.name},
        )

    def _referenced_values(self, table: Item, columns: tuple[int, ...], row: pa.Table) -> str:
        """Returns the values of columns behind a space, or an empty text if the error may not show them."""
        return f" {self._values(table.columns, columns, row)}" if self.shown.shows(table, columns) else ""

    def _values(self, fields: Sequence[Field], columns: tuple[int, ...], row: pa.Table) -> str:
        """Returns the values of columns as `(a, b)=(1, 2)`."""
        texts = self._texts(fields, row)
        return f"({shown(columns, fields)})=({', '.join(texts[column] for column in columns)})"

    def _names(self, table: Item) -> dict[str, str]:
        return {"s": self.shown.catalog.schema_of(table).name, "t": table.name}

    def _texts(self, fields: Sequence[Field], row: pa.Table) -> list[str]:
        texts = []
        for column, values in zip(fields, row.columns, strict=True):
            value = text_column(values.combine_chunks(), column.type, self.style)[0].as_py()
            text = "null" if value is None else value.decode()
            texts.append(text if len(text) <= DETAIL_CHARACTERS_MAX else text[:DETAIL_CHARACTERS_MAX] + "...")
        return texts


def domain_violation(table: Item, check: DomainCheck) -> TailgateError:
    """Returns the error for a value that violates a constraint of the domain of its column."""
    domain = table.columns[check.column].domain
    assert domain is not None, check
    return null_violation(domain) if check.constraint is None else check_violation(domain, check.constraint)


def of_row(row: int, error: TailgateError) -> TailgateError:
    """Sets the row of an error."""
    error.row = row
    return error
