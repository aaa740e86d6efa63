"""MERGE, bound against the catalog: the source is joined with the table, and each row gets the first clause whose condition is true.

Source: PostgreSQL 15, src/backend/parser/parse_merge.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tailgate.lake.catalog import items
from tailgate.lake.errors import DuplicateAlias, FeatureNotSupported, SyntaxError_
from tailgate.lake.types import INT4, Field
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.queries.from_items import bind_table
from tailgate.sql.binder.scope import Named, Scope
from tailgate.sql.binder.writes.rules import rules_of
from tailgate.sql.binder.writes.targets import (
    check_writable,
    columns_named,
    counted,
    empty_level,
    fields_of,
    identity_columns,
    scope_of,
    with_defaults,
)
from tailgate.sql.binder.writes.updatable_views import Target, Written, of_table
from tailgate.sql.binder.writes.writes import Writes, inserted_columns
from tailgate.sql.decorrelate import decorrelate
from tailgate.sql.numeric_types import WITH_GENERAL, typed_by
from tailgate.sql.plan import Case, Column, Filter, IsNull, Join, Literal, Not, Project, Scalar
from tailgate.sql.plan.writes import PLACE, MergeRows
from tailgate.sql.statements.writes import Insert, Merge, MergeClause

NO_CLAUSE = -1  # the number of the clause of a row for which no condition is true, or that does nothing
CLAUSE = Field("clause", INT4, False)


@dataclass(frozen=True, slots=True)
class _Scopes:
    """The names of the source, and of the source and the table. `begin`: the index of the table's first column."""

    source: Scope
    both: Scope
    begin: int


class Merges(Writes):
    """The binder of one MERGE."""

    @typed_by(WITH_GENERAL)
    def merge(self, statement: Merge) -> MergeRows:
        """Binds MERGE. Raises 42601, 42703, 42712, 42804, 0A000 and others."""
        self._with(statement.ctes)
        table = self._target(statement)
        source = bind_table(statement.source, self.level)
        target, copies = counted(table)
        own = scope_of(table, statement.alias)
        if any(other.alias == (statement.alias or table.name) for other in source.scope.tables):
            raise DuplicateAlias(
                f'name "{statement.alias or table.name}" specified more than once',
                detail="The name is used both as MERGE target table and data source.",
            )
        begin, width = len(source.plan.columns), len(table.columns)
        scopes = _Scopes(source.scope, source.scope.joined(own, begin), begin)
        self.level.tables.extend(own.tables)
        condition = self._binder(scopes.both, "JOIN/ON").boolean(statement.condition.tree, "JOIN/ON")
        every = tuple(Column(i, f.type) for i, f in enumerate(table.columns))
        right = Project(target, (*every, copies), (*table.columns, PLACE))
        joined = Join(source.plan, right, "left", condition)
        matched = Not(IsNull(Column(begin + width, PLACE.type)))
        clause = Case(((matched, self._clause(statement, scopes, matched=True)),), self._clause(statement, scopes, matched=False), INT4)
        columns = tuple(Column(i, f.type) for i, f in enumerate(joined.columns))
        chosen = Project(joined, (*columns, clause), (*joined.columns, CLAUSE))
        number = Column(len(columns), INT4)
        new = self._new_rows(table, statement, scopes, number)
        fields = (*joined.columns[begin:], CLAUSE, *fields_of(table.columns, [new]))
        acting = Filter(chosen, Not(self._is(number, NO_CLAUSE)))
        rows = Project(acting, (*columns[begin:], number, *new), fields)
        actions = tuple(clause.action for clause in statement.clauses)
        demands, rules = self._demands(of_table(table), _written(of_table(table), statement)), rules_of(table, self.catalog)
        return MergeRows(table, decorrelate(rows), actions, self._types(), demands, rules)

    def _target(self, statement: Merge) -> items.Table:
        """Returns the table. Raises 0A000 for another relation, and 42601 for a clause that is never reached."""
        item = self.catalog.relation(statement.table)
        if not isinstance(item, items.Table):
            raise FeatureNotSupported(
                f'cannot execute MERGE on relation "{item.name}"', detail=f"This operation is not supported for {item.kind}s."
            )
        check_writable(item)
        for matched in (True, False):
            clauses = [clause for clause in statement.clauses if clause.matched is matched]
            if any(clause.condition is None for clause in clauses[:-1]):
                raise SyntaxError_("unreachable WHEN clause specified after unconditional WHEN clause")
        return item

    def _binder(self, scope: Scope, clause: str) -> Expressions:
        return Expressions(scope, self.level, clause, aggregates=False)

    def _clause(self, statement: Merge, scopes: _Scopes, *, matched: bool) -> Scalar:
        """Returns the number of the first clause whose condition is true."""
        binder = self._binder(scopes.both if matched else scopes.source, "MERGE WHEN AND")
        branches: list[tuple[Scalar, Scalar]] = []
        otherwise = Literal(NO_CLAUSE, INT4)
        for number, clause in enumerate(statement.clauses):
            if clause.matched is not matched:
                continue
            value = Literal(NO_CLAUSE if clause.action == "nothing" else number, INT4)
            if clause.condition is None:
                otherwise = value
                break
            branches.append((binder.boolean(clause.condition.tree, "MERGE WHEN AND"), value))
        return Case(tuple(branches), otherwise, INT4) if branches else otherwise

    def _new_rows(self, table: items.Table, statement: Merge, scopes: _Scopes, number: Column) -> tuple[Scalar, ...]:
        """Returns the new row of the clause with this number. Its columns are NULL for DELETE."""
        rows: dict[int, tuple[Scalar, ...]] = {}
        for i, clause in enumerate(statement.clauses):
            if clause.action == "update":
                rows[i] = self._set(of_table(table), clause.assignments, self._binder(scopes.both, "UPDATE"), scopes.begin)
            elif clause.action == "insert":
                rows[i] = self._inserted(table, statement, clause, self._binder(scopes.source, "VALUES"))
        fields = fields_of(table.columns, list(rows.values()))
        rows = {i: self._level(row, fields) for i, row in rows.items()}
        return tuple(
            Case(tuple((self._is(number, i), row[c]) for i, row in rows.items()), Literal(None, f.type), f.type)
            if rows
            else Literal(None, f.type)
            for c, f in enumerate(fields)
        )

    def _inserted(self, table: items.Table, statement: Merge, clause: MergeClause, binder: Expressions) -> tuple[Scalar, ...]:
        """Returns the row of INSERT."""
        if clause.row is None:
            return self._filled(table, {})
        targets = columns_named(table, clause.columns)
        insert = Insert(statement.table, (clause.row,), clause.columns, overriding=clause.overriding)
        (row,) = with_defaults((clause.row,), identity_columns(table, targets, insert))
        self._check_width(row, targets, clause.columns)
        return self._filled(table, self._given(table, targets, clause.columns, row, binder))

    def _is(self, column: Column, number: int) -> Scalar:
        operands: Sequence[Scalar] = [replace(column), Literal(number, INT4)]
        return Expressions(Scope(), empty_level(self.parameters)).operate("=", list(operands), None)


def _written(target: Target, statement: Merge) -> Written:
    """Returns the privileges that the actions of the clauses need, and the columns that they write."""
    written: dict[str, list[Named] | None] = {}
    for clause in statement.clauses:
        columns = written.setdefault(clause.action.upper(), [])
        match clause.action:
            case "delete":
                written["DELETE"] = None
            case "update" if columns is not None:
                columns += target.named(assignment.column for assignment in clause.assignments)
            case "insert" if columns is not None:
                columns += inserted_columns(target, clause.columns, len(clause.row or ()))
    return {privilege: columns for privilege, columns in written.items() if privilege != "NOTHING"}
