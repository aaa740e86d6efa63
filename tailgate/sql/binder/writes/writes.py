"""INSERT, UPDATE, DELETE, TRUNCATE and the columns of COPY, bound against the catalog.

Source: PostgreSQL 15, src/backend/parser/analyze.c, parse_target.c (transformAssignedExpr),
parse_clause.c (infer_arbiter_indexes).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import items
from tailgate.lake.constraints import Key, key_expressions, primary_key, references_to
from tailgate.lake.errors import FeatureNotSupported, SyntaxError_, WrongObjectType
from tailgate.lake.types import BOOL, INT8, UNKNOWN, Field, Type
from tailgate.sql.authorization import SELECT, SESSION, Demand, merged
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.name_lookup import find_table, named_item
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.queries.from_items import bind_cross_join, bind_table
from tailgate.sql.binder.queries.output_columns import column_name
from tailgate.sql.binder.queries.queries import values_plan
from tailgate.sql.binder.scope import Named, Scope, Source, Table, placed
from tailgate.sql.binder.types.coercion import coerce
from tailgate.sql.binder.types.parameters import parameter_number
from tailgate.sql.binder.writes.arbiters import arbiter_of, columns_of_arbiter
from tailgate.sql.binder.writes.copying import copied_columns
from tailgate.sql.binder.writes.index_expressions import stored_value
from tailgate.sql.binder.writes.parts import bound, with_part
from tailgate.sql.binder.writes.row_values import RowValues, place_of
from tailgate.sql.binder.writes.rules import places, rules_of
from tailgate.sql.binder.writes.targets import (
    check_truncated,
    check_writable,
    counted,
    empty_level,
    fields_of,
    identity_columns,
    with_defaults,
)
from tailgate.sql.binder.writes.updatable_views import Target, Written, copied_table, of_table, target_of
from tailgate.sql.decorrelate import decorrelate
from tailgate.sql.grammar.names import position
from tailgate.sql.numeric_types import WITH_GENERAL, typed_by
from tailgate.sql.plan import Case, Column, Filter, IsDistinct, Join, Literal, Not, Project, Relation, Scalar, Scan, nullable
from tailgate.sql.plan.properties import constant_columns
from tailgate.sql.plan.rewriting import conjunction, shifted
from tailgate.sql.plan.writes import CURRENT, INCOMING, PLACE, ChangeRows, Checks, CurrentRow, InsertRows, TruncateTables
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import (
    Assignment,
    ColumnName,
    CopyFrom,
    CurrentOf,
    Delete,
    Insert,
    InsertValue,
    ReturningItem,
    Truncate,
    Update,
)


class Writes(RowValues):
    """The binder of one statement that writes."""

    # ---- INSERT ------------------------------------------------------------------------------------------------------------

    @typed_by(WITH_GENERAL)
    def insert(self, statement: Insert) -> InsertRows:
        """Binds INSERT with ON CONFLICT and RETURNING. Raises 42601, 42703, 42804 and others."""
        self._with(statement.ctes)
        target = target_of(statement.table, self.names, self.queries, "insert into")
        table = target.table
        if not statement.columns and isinstance(statement.rows, tuple):
            self._check_width(statement.rows[0], tuple(range(len(target.columns))), ())
        targets = target.positions(statement.columns, _count(statement, target))
        columns = statement.columns
        identity = identity_columns(table, targets, statement)
        match statement.rows:
            case None:
                row, count = self._filled(table, {}), 0
                rows: Relation = values_plan((row,), fields_of(table.columns, [row]))
            case QueryText() as query:
                rows = selected = self._selected(table, targets, columns, query, identity)
                count = len(selected.input.columns)
            case given:
                rows, count = self._values(table, targets, columns, with_defaults(given, identity)), len(given[0])
        arbiter = None if statement.conflict is None else arbiter_of(table, target.clause(statement.conflict), self.catalog)
        existing = None if arbiter is None else self._existing(target, statement, arbiter)
        conflict = "error" if statement.conflict is None else "nothing" if existing is None else "update"
        incoming = Scan(INCOMING, (*table.columns, PLACE), (len(table.columns),), statement.alias or target.relation.name)
        scope = target.scope(statement.alias)
        self.level.tables.extend(scope.tables)
        returning = self._returning(incoming, scope, statement.returning)
        plans = (None if p is None else decorrelate(p) for p in (existing, returning))
        rules = rules_of(table, self.catalog, adds_only=conflict != "update")
        checks = _view_checks(target)
        bound = InsertRows(table, decorrelate(rows), next(plans), conflict, arbiter, next(plans), self._types(), (), rules, checks)
        written: dict[str, Sequence[Named] | None] = {"INSERT": inserted_columns(target, statement.columns, count)}
        if statement.conflict is not None and statement.conflict.update is not None:
            written["UPDATE"] = target.named(assignment.column for assignment in statement.conflict.update)
        if arbiter is not None and statement.conflict is not None:
            read = columns_of_arbiter(table, statement.conflict, arbiter)
            self.names.demand(*(column.demand for column in target.at(read)))
        return replace(bound, demands=self._demands(target, written))

    @typed_by(WITH_GENERAL)
    def copy(self, statement: CopyFrom) -> tuple[InsertRows, tuple[int, ...]]:
        """Binds COPY … FROM. Returns the write and the indexes of the columns in the input.

        Columns that are not in the input get their defaults.
        """
        self.catalog.check_schema(statement.table)
        table = copied_table(statement.table, self.names)
        targets = copied_columns(table, statement.columns)
        rows: Relation | None = None
        if targets != tuple(range(len(table.columns))):
            input_columns = tuple(table.columns[i] for i in targets)
            values: dict[int, Scalar] = {t: Column(i, table.columns[t].type) for i, t in enumerate(targets)}
            incoming = Scan(INCOMING, (*input_columns, PLACE), (len(input_columns),), table.name)
            filled = self._filled(table, values)
            rows = Project(incoming, filled, fields_of(table.columns, [filled]))
        target = of_table(table)
        demands, rules = self._demands(target, {"INSERT": target.at(targets)}), rules_of(table, self.catalog, adds_only=True)
        return InsertRows(table, rows, None, "error", demands=demands, rules=rules), targets

    def _values(
        self, table: items.Table, targets: tuple[int, ...], columns: tuple[ColumnName, ...], lists: tuple[tuple[InsertValue, ...], ...]
    ) -> Relation:
        width = len(lists[0])
        for row in lists:
            if len(row) != width:
                raise SyntaxError_("VALUES lists must all be the same length", position=place_of(row[0]))
        self._check_width(lists[0], targets, columns)
        binder = Expressions(Scope(), self.level, "VALUES", aggregates=False)
        defaults = {i: self._default(table, i) for i in range(len(table.columns))}
        rows = []
        for row in lists:
            values = self._given(table, targets, columns, row, binder)
            rows.append(tuple(values.get(i, defaults[i]) for i in range(len(table.columns))))
        fields = fields_of(table.columns, rows)
        return values_plan(tuple(self._level(row, fields) for row in rows), fields)

    def _selected(
        self, table: items.Table, targets: tuple[int, ...], columns: tuple[ColumnName, ...], query: QueryText, ignored: Collection[int]
    ) -> Project:
        tree = query.tree
        shown = tree.expressions if isinstance(tree, exp.Select) else []
        for i, (target, node) in enumerate(zip(targets, shown, strict=False)):
            if isinstance(node, exp.Parameter) and not (columns and columns[i].path):  # a parameter without a type gets the column's type
                parameter = self.parameters.at(parameter_number(node.name, position(node)), position(node))
                if parameter.type == UNKNOWN:
                    coerce(parameter, table.columns[target].type, self.parameters, "assignment")
        body = self.level.queries.query(tree, self.names)
        width = len(body.columns)
        if width > len(targets):
            place = position(shown[len(targets)]) if len(shown) == width else None
            raise SyntaxError_("INSERT has more expressions than target columns", position=place)
        if columns and width < len(targets):
            raise SyntaxError_("INSERT has more target columns than expressions", position=columns[width].position)
        values: dict[int, Scalar] = {}
        binder = Expressions(Scope(), self.level, "INSERT", aggregates=False)
        for i, target in zip(range(width), targets, strict=False):
            scalar: Scalar = Column(i, body.columns[i].type)
            node = shown[i] if len(shown) == width else None
            if isinstance(node, (exp.Literal, exp.Null)) and (isinstance(node, exp.Null) or node.is_string):
                value = None if isinstance(node, exp.Null) else node.this
                scalar = Literal(value, UNKNOWN, position(node))
            at = leftmost(node) if node is not None else None
            if columns and columns[i].path:
                before = values.get(target, Literal(None, table.columns[target].type))
                values[target] = with_part(table.columns[target], before, columns[i], bound(scalar), binder)
            elif i not in ignored:
                values[target] = self._fitted(table, target, scalar, at)
        filled = self._filled(table, values)
        return Project(body, filled, fields_of(table.columns, [filled]))

    def _existing(self, target: Target, statement: Insert, arbiter: Key) -> Relation | None:
        """Returns the plan of the stored rows that DO UPDATE changes; None for another action."""
        clause = statement.conflict
        if clause is None or clause.update is None:
            return None
        table = target.table
        width = len(table.columns)
        incoming = Scan(INCOMING, (*table.columns, PLACE), (width,), "excluded")
        stored = Scan(table.id, table.columns, table.key, table.name)
        joined = Join(incoming, stored, "inner", conjunction(self._met(table, arbiter)))
        shown: list[Scalar] = [Column(width, INT8), *(Column(width + 1 + i, f.type) for i, f in enumerate(table.columns))]
        fields = [PLACE, *table.columns]
        old = target.scope(statement.alias).moved(width + 1)
        scope = Scope(old.columns, (*old.tables, Table("excluded", target.columns)))
        binder = Expressions(scope, self.level, "UPDATE", aggregates=False)
        passes: Scalar = Literal(True, BOOL)
        if clause.where is not None:
            passes = replace(binder, clause="WHERE").boolean(clause.where.tree, "WHERE")
        for assignment in clause.update:
            target.position(assignment.column, assignment.position, "insert into")
        new = self._set(target, clause.update, binder, width + 1)
        shown += [passes, *new]
        fields += [Field("passes", BOOL), *fields_of(table.columns, [new])]
        return Project(joined, tuple(shown), tuple(fields))

    def _met(self, table: items.Table, key: Key) -> tuple[Scalar, ...]:
        """Returns the conditions on which an incoming row, before a stored row, has the same key."""
        width = len(table.columns)
        stored = [stored_value(table, expression) for expression in key_expressions(table, self.catalog)]
        values = [Column(k, table.columns[k].type) if k < width else stored[k - width] for k in key.columns]
        pairs = [(value, shifted(value, width + 1)) for value in values]
        binder = Expressions(Scope(), empty_level(self.parameters))
        equal = [binder.operate("=", [*pair], None) if key.nulls_distinct else Not(IsDistinct(*pair)) for pair in pairs]
        if key.condition is not None:
            condition = stored[key.condition - width]
            equal += [condition, shifted(condition, width + 1)]
        return tuple(equal)

    # ---- UPDATE, DELETE ----------------------------------------------------------------------------------------------------

    @typed_by(WITH_GENERAL)
    def update(self, statement: Update) -> ChangeRows:
        return self._changed(target_of(statement.table, self.names, self.queries, "update"), statement, statement.assignments)

    @typed_by(WITH_GENERAL)
    def delete(self, statement: Delete) -> ChangeRows:
        return self._changed(target_of(statement.table, self.names, self.queries, "delete from"), statement, None)

    def _changed(self, target: Target, statement: Update | Delete, assignments: tuple[Assignment, ...] | None) -> ChangeRows:
        """Binds UPDATE, or DELETE if `assignments` is None.

        The plans are those of `sql.plan.writes.ChangeRows`.
        """
        self._with(statement.ctes)
        table, alias = target.table, statement.alias or target.relation.name
        width = len(table.columns)
        stored, weight = counted(table)
        if target.conditions:
            stored = Filter(stored, conjunction(target.conditions))
        source = Source(stored, target.scope(statement.alias))
        self.level.tables.extend(source.scope.tables)
        if statement.sources:  # which cannot read the table, as in PostgreSQL
            others = bind_table(statement.sources[0], self.level)
            for node in statement.sources[1:]:
                others = bind_cross_join(others, node, self.level, position(node))
            scope = source.scope.joined(others.scope, len(stored.columns))
            source = Source(Join(stored, others.plan, "cross", None), scope)
        plan = source.plan
        binder = Expressions(source.scope, self.level, "UPDATE", aggregates=False)
        pinned, current = False, None
        if isinstance(statement.where, CurrentOf):
            plan, current = self._current(target, plan, statement.where)
            pinned = not statement.sources
        elif statement.where is not None:
            condition = replace(binder, clause="WHERE").boolean(statement.where.tree, "WHERE")
            plan = Filter(plan, condition)
            pinned = not statement.sources and table.key is not None and set(table.key) <= constant_columns(condition)
        old: tuple[Scalar, ...] = tuple(Column(i, f.type) for i, f in enumerate(table.columns))
        new = self._set(target, assignments, binder, 0) if assignments is not None else ()
        fields = plan.columns[len(stored.columns) :] if statement.returning else ()
        values = tuple(Column(len(stored.columns) + i, f.type) for i, f in enumerate(fields))
        new_fields = fields_of(table.columns, [new]) if new else ()
        rows = Project(plan, (*old, weight, *new, *values), (*table.columns, PLACE, *new_fields, *fields))
        moved = source.scope.moved(width - len(stored.columns))
        own = target.scope(statement.alias)
        tables = (*own.tables, *(t for t in moved.tables if t.alias != alias))
        scope = Scope((*own.columns, *moved.columns[len(own.columns) :]), tables)
        incoming = Scan(INCOMING, (*table.columns, *fields, PLACE), (width + len(fields),), alias)
        shown = self._returning(incoming, scope, statement.returning)
        returning = None if shown is None else decorrelate(shown)
        updates = assignments is not None
        written: Written = {"DELETE": None} if assignments is None else {"UPDATE": target.named(a.column for a in assignments)}
        demands = self._demands(target, written)
        rules, checks = rules_of(table, self.catalog), _view_checks(target) if updates else ()
        return ChangeRows(table, decorrelate(rows), updates, pinned, returning, self._types(), demands, rules, checks, current)

    def _current(self, target: Target, rows: Relation, where: CurrentOf) -> tuple[Relation, CurrentRow]:
        """Returns those rows, which begin with the columns of the table, that have the key of the current row of a cursor.

        Raises 0A000 for a view, and for a table without a primary key, whose rows have no identity.
        """
        table = target.table
        if target.relation is not table:
            raise FeatureNotSupported("WHERE CURRENT OF on a view is not implemented")
        key = primary_key(table, self.catalog)
        if key is None or key.deferrable:
            what = "without a primary key" if key is None else "with a deferrable primary key"
            raise FeatureNotSupported(f"WHERE CURRENT OF in a table {what} is not supported", hint="Name the row by a condition.")
        current = Scan(CURRENT, (*(table.columns[k] for k in key.columns), PLACE), (len(key.columns),), where.cursor)
        binder = Expressions(Scope(), empty_level(self.parameters))
        types, width = [table.columns[k].type for k in key.columns], len(rows.columns)
        pairs = [[Column(k, type), Column(width + i, type)] for i, (k, type) in enumerate(zip(key.columns, types, strict=True))]
        equal = conjunction(tuple(binder.operate("=", [*pair], None) for pair in pairs))
        return Join(rows, current, "semi", equal), CurrentRow(where.cursor, key.columns)

    # ---- RETURNING ---------------------------------------------------------------------------------------------------------

    def _returning(self, input: Relation, scope: Scope, items: tuple[ReturningItem, ...]) -> Project | None:
        if not items:
            return None
        outputs = self._outputs(scope, items)
        fields = tuple(Field(n, s.type, nullable(s, input.columns)) for n, s in outputs)
        return Project(input, tuple(s for _, s in outputs), fields)

    def _outputs(self, scope: Scope, items: tuple[ReturningItem, ...]) -> list[tuple[str, Scalar]]:
        binder = Expressions(scope, self.level, "RETURNING", aggregates=False)
        outputs: list[tuple[str, Scalar]] = []
        for item in items:
            node = item.tree
            if isinstance(node, exp.Star):
                self.names.demand(*(column.demand for column in scope.columns))
                outputs += [(c.name, placed(c.scalar, position(node))) for c in scope.columns]
                continue
            inner = node.this if isinstance(node, exp.Alias) else node  # an alias of table.* has no effect
            if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
                outputs += [
                    (c.name, c.scalar) for c in find_table(binder, inner.text("table"), position(inner), named_item(binder, inner)).columns
                ]
            else:
                scalar = binder.typed(inner)
                outputs.append((node.alias if isinstance(node, exp.Alias) else column_name(node, scalar), scalar))
        return outputs

    def _demands(self, target: Target, written: Written) -> tuple[Demand, ...]:
        """Returns the privileges to write the relation and those that the plans need.

        All plans must be bound before.
        """
        plans = self.names.demanded()
        read = [d for d in plans if (d.privilege, d.item, d.readers) == (SELECT, target.relation.id, (SESSION,))]
        return merged((*target.demanded(written, read), *plans))

    def _types(self) -> tuple[Type, ...]:
        return tuple(self.parameters.types)

    def truncate(self, statement: Truncate) -> TruncateTables:
        """Binds TRUNCATE. Raises 42809 for anything but tables."""
        tables = []
        for name in statement.tables:
            item = self.catalog.named(replace(name, position=None))
            if not isinstance(item, items.Table):
                raise WrongObjectType(f'"{item.name}" is not a table')
            check_writable(item)
            if item not in tables:
                tables.append(item)
        count = len(tables)  # of those that the statement names
        for table in tables:  # grows
            for reference in references_to(table, self.catalog) if statement.cascade else ():
                if reference.table not in tables:
                    tables.append(reference.table)
        check_truncated(tables, self.catalog)
        ids = {table.id for table in tables}
        restarted = tuple(s for s in self.catalog.each(items.Sequence) if statement.restart and ids & {*s.depends})
        rules = tuple(rules for table in tables for rules in rules_of(table, self.catalog, adds_only=True))
        return TruncateTables(tuple(tables), rules, tuple(table.name for table in tables[count:]), restarted=restarted)


def _count(statement: Insert, target: Target) -> int:
    """Returns the number of columns to which an INSERT without a list of columns gives values."""
    match statement.rows:
        case None:
            return 0
        case QueryText(tree=exp.Select(expressions=outputs)) if not any(output.find(exp.Star) for output in outputs):
            return len(outputs)
        case QueryText():
            return len(target.columns)
        case rows:
            return len(rows[0])


def inserted_columns(target: Target, columns: tuple[ColumnName, ...], count: int) -> tuple[Named, ...]:
    """Returns the columns to which a row with this number of values gives values, also DEFAULT. `columns`: that the statement names."""
    return target.named(column.name for column in columns) if columns else target.columns[:count]


def _view_checks(target: Target) -> Checks:
    """Returns for each view with CHECK OPTION its name and a plan for the places of new rows for which its condition is not true."""

    def violated(condition: Scalar) -> Scalar:
        return Case(((condition, Literal(False, BOOL)),), Literal(True, BOOL), BOOL)

    return tuple((name, decorrelate(places(target.table, violated(condition)))) for name, condition in target.checks)
