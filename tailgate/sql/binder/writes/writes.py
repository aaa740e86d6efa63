"""INSERT, UPDATE, DELETE, TRUNCATE and the columns of COPY, bound against the catalog.

Source: PostgreSQL 15, src/backend/parser/analyze.c, parse_target.c (transformAssignedExpr),
parse_clause.c (infer_arbiter_indexes).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import (
    InvalidColumnReference,
    SyntaxError_,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from tailgate.lake.types import BOOL, INT8, UNKNOWN, Field, Type
from tailgate.sql.authorization import Demand
from tailgate.sql.binder import scope as scopes
from tailgate.sql.binder.context import Level
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.name_lookup import find_table, said_item
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.queries.from_items import beside
from tailgate.sql.binder.queries.output_columns import column_name
from tailgate.sql.binder.queries.queries import Queries, written_out
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Named, Scope, Source, Table, placed
from tailgate.sql.binder.types.coercion import coerce
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.writes.targets import (
    assigned,
    checks_of,
    columns_named,
    constraint_of,
    default_of,
    fields_of,
    nowhere,
    written_table,
)
from tailgate.sql.decorrelate import decorrelate
from tailgate.sql.functions import catalogue
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Aggregate, AggregateCall, And, Column, Filter, Join, Literal, Not, Project, Relation, Scalar, Scan, nullable
from tailgate.sql.plan.properties import fixed
from tailgate.sql.plan.writes import INCOMING, PLACE, ChangeRows, Checks, InsertRows, TruncateTables
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import (
    Assignment,
    ColumnName,
    CopyFrom,
    Default,
    Delete,
    Expression,
    Given,
    Insert,
    Returned,
    Truncate,
    Update,
)


class Writes:
    """The binder of one statement that writes. `parameters`: see `sql.bind.bind_query`."""

    def __init__(self, catalog: Catalog, parameters: tuple[Type, ...] | None) -> None:
        self.catalog = catalog
        self.parameters = Parameters(parameters or (), parameters is not None)
        self.names = Names(catalog)
        self.queries = Queries(self.parameters)
        self.level = Level(self.queries, self.names)

    def _with(self, clause: exp.With | None) -> None:
        """Adds the queries of a WITH before the statement to the known names."""
        if clause is not None:
            self.names = self.queries.ctes(clause, self.names)
            self.level = replace(self.level, names=self.names)

    # ---- INSERT ------------------------------------------------------------------------------------------------------------

    def insert(self, statement: Insert) -> InsertRows:
        """Binds INSERT with ON CONFLICT and RETURNING. Raises 42601, 42703, 42804 and others."""
        self._with(statement.ctes)
        table = written_table(statement.table, self.catalog)
        targets = columns_named(table, statement.columns)
        named = statement.columns
        match statement.rows:
            case None:
                row = self._filled(table, {})
                rows: Relation = written_out((row,), fields_of(table.columns, [row]))
            case QueryText() as query:
                rows = self._selected(table, targets, named, query)
            case given:
                rows = self._values(table, targets, named, given)
        existing, conflict = self._existing(table, statement)
        incoming = Scan(INCOMING, (*table.columns, PLACE), (len(table.columns),), statement.alias or table.name)
        scope = scopes.of(statement.alias or table.name, table.columns, relation=table.name, item=0 if statement.alias else table.id)
        self.level.tables.extend(scope.tables)
        returning = self._returning(incoming, scope, statement.returning)
        plans = (None if p is None else decorrelate(p) for p in (existing, returning))
        bound = InsertRows(table, decorrelate(rows), next(plans), conflict, next(plans), self._types(), (), _checks(table))
        privileges = ["INSERT", *(["UPDATE", "SELECT"] if conflict == "update" else []), *(["SELECT"] if statement.returning else [])]
        return replace(bound, demands=self._demands(table, *privileges))

    def copy(self, statement: CopyFrom) -> tuple[InsertRows, tuple[int, ...]]:
        """Binds COPY … FROM. Returns the write and the indexes of the columns in the input.

        Columns that are not in the input get their defaults.
        """
        self.catalog.check_schema(statement.table)
        table = written_table(statement.table, self.catalog, "copy to")
        targets = columns_named(table, statement.columns)
        rows: Relation | None = None
        if targets != tuple(range(len(table.columns))):
            given = tuple(table.columns[i] for i in targets)
            found: dict[int, Scalar] = {t: Column(i, table.columns[t].type) for i, t in enumerate(targets)}
            incoming = Scan(INCOMING, (*given, PLACE), (len(given),), table.name)
            filled = self._filled(table, found)
            rows = Project(incoming, filled, fields_of(table.columns, [filled]))
        existing, conflict = self._existing(table, Insert(statement.table, None))
        return InsertRows(table, rows, existing, conflict, demands=self._demands(table, "INSERT"), checks=_checks(table)), targets

    def _values(
        self, table: Item, targets: tuple[int, ...], named: tuple[ColumnName, ...], given: tuple[tuple[Given, ...], ...]
    ) -> Relation:
        width = len(given[0])
        for row in given:
            if len(row) != width:
                raise SyntaxError_("VALUES lists must all be the same length", position=_place(row[0]))
        if width > len(targets):
            raise SyntaxError_("INSERT has more expressions than target columns", position=_place(given[0][len(targets)]))
        if named and width < len(targets):
            raise SyntaxError_("INSERT has more target columns than expressions", position=named[width].position)
        binder = Expressions(Scope(), self.level, "VALUES", aggregates=False)
        defaults = {i: self._default(table, i) for i in range(len(table.columns))}
        rows = []
        for row in given:
            found = {t: self._assigned(table, t, value, binder) for t, value in zip(targets, row, strict=False)}
            rows.append(tuple(found.get(i, defaults[i]) for i in range(len(table.columns))))
        fields = fields_of(table.columns, rows)
        return written_out(tuple(self._level(row, fields) for row in rows), fields)

    def _level(self, row: tuple[Scalar, ...], fields: tuple[Field, ...]) -> tuple[Scalar, ...]:
        """Casts a row of VALUES to the common types of all rows, which differ only in scale."""

        def one(scalar: Scalar, type: Type) -> Scalar:
            if scalar.type == type:
                return scalar
            return (
                replace(scalar, type=type) if isinstance(scalar, Literal) else coerce(scalar, type, self.parameters, "explicit") or scalar
            )

        return tuple(one(s, f.type) for s, f in zip(row, fields, strict=True))

    def _filled(self, table: Item, found: dict[int, Scalar]) -> tuple[Scalar, ...]:
        """Returns a whole row: the scalars in `found`, by column index, and defaults elsewhere."""
        return tuple(found[i] if i in found else self._default(table, i) for i in range(len(table.columns)))

    def _selected(self, table: Item, targets: tuple[int, ...], named: tuple[ColumnName, ...], query: QueryText) -> Relation:
        tree = query.tree
        shown = tree.expressions if isinstance(tree, exp.Select) else []
        for target, node in zip(targets, shown, strict=False):
            if isinstance(node, exp.Parameter):  # a parameter without a type gets the column's type
                parameter = self.parameters.at(int(node.name), position(node))
                if parameter.type == UNKNOWN:
                    coerce(parameter, table.columns[target].type, self.parameters, "assignment")
        body = self.level.queries.query(tree, self.names)
        width = len(body.columns)
        if width > len(targets):
            place = position(shown[len(targets)]) if len(shown) == width else None
            raise SyntaxError_("INSERT has more expressions than target columns", position=place)
        if named and width < len(targets):
            raise SyntaxError_("INSERT has more target columns than expressions", position=named[width].position)
        found: dict[int, Scalar] = {}
        for i, target in zip(range(width), targets, strict=False):
            scalar: Scalar = Column(i, body.columns[i].type)
            node = shown[i] if len(shown) == width else None
            if isinstance(node, (exp.Literal, exp.Null)) and (isinstance(node, exp.Null) or node.is_string):
                value = None if isinstance(node, exp.Null) else node.this
                scalar = Literal(value, UNKNOWN, position(node))
            found[target] = self._fitted(table, target, scalar, leftmost(node) if node is not None else None)
        filled = self._filled(table, found)
        return Project(body, filled, fields_of(table.columns, [filled]))

    def _default(self, table: Item, index: int) -> Scalar:
        return default_of(table.columns[index], table.options.get("defaults", {}).get(table.columns[index].name))

    def _assigned(self, table: Item, index: int, value: Given, binder: Expressions) -> Scalar:
        if isinstance(value, Default):
            return self._default(table, index)
        return self._fitted(table, index, binder.bind(value.tree), leftmost(value.tree))

    def _fitted(self, table: Item, index: int, scalar: Scalar, place: int | None) -> Scalar:
        """Casts a scalar to the type of a column, as an assignment does. Raises 42804."""
        return assigned(table.columns[index], scalar, self.parameters, place)

    def _existing(self, table: Item, statement: Insert) -> tuple[Relation | None, str]:
        """Returns the plan of the stored rows that conflict with new ones, and the action for them.

        The plan is None if the table has no primary key. The action is 'error', 'nothing' or
        'update'.
        """
        clause = statement.conflict
        if clause is not None:
            self._check_arbiter(table, statement)
        if table.key is None:
            return None, "error"
        width = len(table.columns)
        incoming = Scan(INCOMING, (*table.columns, PLACE), (width,), "excluded")
        stored = Scan(table.id, table.columns, table.key, table.name)
        alias = statement.alias or table.name
        pairs: list[Scalar] = [_equal(self.parameters, k, width + 1 + k, table.columns[k].type) for k in table.key]
        joined = Join(incoming, stored, "inner", pairs[0] if len(pairs) == 1 else And(tuple(pairs)))
        shown: list[Scalar] = [Column(width, INT8), *(Column(width + 1 + i, f.type) for i, f in enumerate(table.columns))]
        fields = [PLACE, *table.columns]
        if clause is None or clause.update is None:
            return Project(joined, tuple(shown), tuple(fields)), "error" if clause is None else "nothing"
        old = scopes.of(alias, table.columns, relation=table.name, item=0 if statement.alias else table.id).moved(width + 1)
        excluded = tuple(Named(f.name, Column(i, f.type)) for i, f in enumerate(table.columns))
        scope = Scope(old.columns, (*old.tables, Table("excluded", excluded)))
        binder = Expressions(scope, self.level, "UPDATE", aggregates=False)
        passes: Scalar = Literal(True, BOOL)
        if clause.where is not None:
            passes = replace(binder, clause="WHERE").boolean(clause.where.tree, "WHERE")
        new = self._set(table, clause.update, binder, width + 1)
        shown += [passes, *new]
        fields += [Field("passes", BOOL), *fields_of(table.columns, [new])]
        return Project(joined, tuple(shown), tuple(fields)), "update"

    def _check_arbiter(self, table: Item, statement: Insert) -> None:
        """Raises 42704, 42601, 42703 or 42P10 for an ON CONFLICT that is not on the primary key."""
        clause = statement.conflict
        assert clause is not None
        if clause.constraint is not None:
            if clause.constraint != constraint_of(table):
                raise UndefinedObject(f'constraint "{clause.constraint}" for table "{table.name}" does not exist')
            return
        if not clause.columns:
            if clause.update is not None:
                raise SyntaxError_(
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    hint="For example, ON CONFLICT (column_name).",
                    position=clause.position,
                )
            return
        names = [c.name for c in table.columns]
        for column in clause.columns:
            if column.name not in names:
                raise UndefinedColumn(f'column "{column.name}" does not exist', position=column.position)
        if table.key is None or {names.index(c.name) for c in clause.columns} != set(table.key):
            raise InvalidColumnReference("there is no unique or exclusion constraint matching the ON CONFLICT specification")

    # ---- UPDATE, DELETE ----------------------------------------------------------------------------------------------------

    def update(self, statement: Update) -> ChangeRows:
        table = written_table(statement.table, self.catalog, "update")
        return self._changed(table, statement, statement.assignments)

    def delete(self, statement: Delete) -> ChangeRows:
        table = written_table(statement.table, self.catalog, "delete from")
        return self._changed(table, statement, None)

    def _changed(self, table: Item, statement: Update | Delete, assignments: tuple[Assignment, ...] | None) -> ChangeRows:
        """Binds UPDATE, or DELETE if `assignments` is None.

        The rows of the plan are the old row, its number of copies, for UPDATE the new row, and then
        the columns of RETURNING.
        """
        self._with(statement.ctes)
        alias = statement.alias or table.name
        width = len(table.columns)
        target, weight = _counted(table)
        source = Source(target, scopes.of(alias, table.columns, relation=table.name, item=0 if statement.alias else table.id))
        self.level.tables.extend(source.scope.tables)
        for node in statement.sources:
            source = beside(source, node, self.level, position(node))
        plan = source.plan
        binder = Expressions(source.scope, self.level, "UPDATE", aggregates=False)
        pinned = False
        if statement.where is not None:
            condition = replace(binder, clause="WHERE").boolean(statement.where.tree, "WHERE")
            plan = Filter(plan, condition)
            pinned = not statement.sources and table.key is not None and set(table.key) <= fixed(condition)
        old: tuple[Scalar, ...] = tuple(Column(i, f.type) for i, f in enumerate(table.columns))
        new = self._set(table, assignments, binder, 0) if assignments is not None else ()
        others = tuple(Column(i, f.type) for i, f in enumerate(plan.columns))[len(target.columns) :]
        fields = (*table.columns, PLACE, *(fields_of(table.columns, [new]) if new else ()), *plan.columns[len(target.columns) :])
        rows: Relation = Project(plan, (*old, weight, *new, *others), fields)
        returning = None
        if statement.returning:
            # The table's names refer to its new values. The columns of the other relations now come
            # after them.
            begin = width + 1 if new else 0
            table_scope = scopes.of(alias, table.columns, relation=table.name, item=0 if statement.alias else table.id).moved(begin)
            behind = width + 1 + len(new)
            moved = source.scope.moved(behind - len(target.columns))
            tables = (*table_scope.tables, *(t for t in moved.tables if t.alias != alias))
            columns = (*table_scope.columns, *moved.columns[width:])
            outputs = self._outputs(Scope(columns, tables), statement.returning)
            kept = tuple(Column(i, f.type) for i, f in enumerate(fields[:behind]))
            returning = tuple(Field(n, s.type, nullable(s, fields)) for n, s in outputs)
            rows = Project(rows, (*kept, *(s for _, s in outputs)), (*fields[:behind], *returning))
        else:
            behind = width + 1 + len(new)
            if len(fields) > behind:
                rows = Project(rows, tuple(Column(i, f.type) for i, f in enumerate(fields[:behind])), fields[:behind])
        updates = assignments is not None
        demands = self._demands(table, "UPDATE" if updates else "DELETE", "SELECT")
        return ChangeRows(table, decorrelate(rows), updates, pinned, returning, self._types(), demands, _checks(table) if updates else ())

    def _set(self, table: Item, assignments: tuple[Assignment, ...], binder: Expressions, begin: int) -> tuple[Scalar, ...]:
        """Returns the new row.

        Columns that are not set keep their old values, which begin at index `begin`.
        """
        names = [c.name for c in table.columns]
        found: dict[int, Scalar] = {}
        for assignment in assignments:
            if assignment.column not in names:
                raise UndefinedColumn(
                    f'column "{assignment.column}" of relation "{table.name}" does not exist', position=assignment.position
                )
            index = names.index(assignment.column)
            if index in found:
                raise SyntaxError_(f'multiple assignments to same column "{assignment.column}"')
            found[index] = self._assigned(table, index, assignment.value, binder)
        return tuple(found.get(i, Column(begin + i, f.type)) for i, f in enumerate(table.columns))

    # ---- RETURNING ---------------------------------------------------------------------------------------------------------

    def _returning(self, input: Relation, scope: Scope, items: tuple[Returned, ...]) -> Relation | None:
        if not items:
            return None
        outputs = self._outputs(scope, items)
        fields = tuple(Field(n, s.type, nullable(s, input.columns)) for n, s in outputs)
        return Project(input, tuple(s for _, s in outputs), fields)

    def _outputs(self, scope: Scope, items: tuple[Returned, ...]) -> list[tuple[str, Scalar]]:
        binder = Expressions(scope, self.level, "RETURNING", aggregates=False)
        found: list[tuple[str, Scalar]] = []
        for item in items:
            node = item.tree
            if isinstance(node, exp.Star):
                found += [(c.name, placed(c.scalar, position(node))) for c in scope.columns]
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
                found += [
                    (c.name, c.scalar) for c in find_table(binder, node.text("table"), position(node), said_item(binder, node)).columns
                ]
            else:
                inner = node.this if isinstance(node, exp.Alias) else node
                scalar = binder.typed(inner)
                found.append((node.alias if isinstance(node, exp.Alias) else column_name(node, scalar), scalar))
        return found

    def _demands(self, table: Item, *privileges: str) -> tuple[Demand, ...]:
        """Returns these privileges on the table and those that the plans need.

        All plans must be bound before.
        """
        own = dict.fromkeys(Demand(privilege, table.id) for privilege in privileges)
        return (*own, *(d for d in self.names.demanded() if d not in own))

    def _types(self) -> tuple[Type, ...]:
        return tuple(self.parameters.types)

    def truncate(self, statement: Truncate) -> TruncateTables:
        """Binds TRUNCATE. Raises 42809 for anything but tables."""
        tables = []
        for name in statement.tables:
            item = self.catalog.named(replace(name, position=None))
            if item.kind != "table":
                raise WrongObjectType(f'"{item.name}" is not a table')
            if item not in tables:
                tables.append(item)
        return TruncateTables(tuple(tables))


def _checks(table: Item) -> Checks:
    """Returns for each CHECK its name and a plan for the places of the rows that violate it."""
    incoming = Scan(INCOMING, (*table.columns, PLACE), (len(table.columns),), table.name)
    place = Column(len(table.columns), INT8)
    return tuple((name, Project(Filter(incoming, Not(check)), (place,), (PLACE,))) for name, check in checks_of(table))


def _equal(parameters: Parameters, left: int, right: int, type: Type) -> Scalar:
    return Expressions(Scope(), nowhere(parameters)).operate("=", [Column(left, type), Column(right, type)], None)


def _counted(table: Item) -> tuple[Relation, Scalar]:
    """Returns the table's distinct rows and, as a scalar, the number of copies of each row."""
    scan = Scan(table.id, table.columns, table.key, table.name)
    if table.key is not None:
        return scan, Literal(1, INT8)
    every = tuple(Column(i, f.type) for i, f in enumerate(table.columns))
    count = next(f for f in catalogue.calls("count") if not f.arguments)
    return Aggregate(scan, every, (AggregateCall(count, (), INT8),)), Column(len(every), INT8)


def _place(given: Given) -> int | None:
    return given.position if isinstance(given, Default) else leftmost(given.tree) if isinstance(given, Expression) else None
