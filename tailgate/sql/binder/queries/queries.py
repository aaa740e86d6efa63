"""Queries: binds SELECT, VALUES, set operations and WITH, and returns plans.

FROM ─► WHERE ─► GROUP BY ─► HAVING ─► SELECT ─► DISTINCT ─► ORDER BY ─► LIMIT
Join    Filter   Reduce      Filter    Project   Distinct    Sort        Limit
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from tailgate.lake.errors import (
    DuplicateAlias,
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    InvalidRecursion,
    SyntaxError_,
    WindowingError,
)
from tailgate.lake.types import Field
from tailgate.sql.binder.context import Level, QueryBinder
from tailgate.sql.binder.expressions.columns import expanded_row
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.expressions.window_functions import Windows, named_windows
from tailgate.sql.binder.grouping import Groups, has_aggregates, has_windows
from tailgate.sql.binder.grouping_sets import numbered, over_sets
from tailgate.sql.binder.positions import aggregate_place, leftmost
from tailgate.sql.binder.queries.from_items import bind_cross_join, bind_table
from tailgate.sql.binder.queries.functional_dependency import with_identified
from tailgate.sql.binder.queries.locking import check_locked, locking, refuse_lock
from tailgate.sql.binder.queries.output_columns import Output, by_name, by_number, column_name
from tailgate.sql.binder.queries.recursion import bind_recursive, by_dependency, hinting_at, names_itself
from tailgate.sql.binder.queries.select_tail import SelectTail, order_of, sorted_and_cut
from tailgate.sql.binder.queries.set_operations import combined
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Scope, Source, placed
from tailgate.sql.binder.set_returning import expanded
from tailgate.sql.binder.types.comparability import require_equality, require_order
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.queries import written
from tailgate.sql.grammar.search_and_cycle import added_columns, clauses_of
from tailgate.sql.plan import (
    Column,
    Filter,
    Project,
    Relation,
    Scalar,
    SortKey,
    UnionAll,
    Values,
    nullable,
)  # fmt: skip
from tailgate.sql.plan.correlation import arguments_of, has_subqueries
from tailgate.sql.plan.grouping import ONE_ROW, in_order_of_rows

# clauses of SELECT that need the types of all output columns
SETTLING = ("distinct", "group", "having", "order", "limit", "offset")
REFUSED = {
    "into": "SELECT INTO inside another statement",
}


@dataclass(frozen=True)
class Queries(QueryBinder):
    """The binder of queries."""

    def query(self, tree: exp.Expr, names: Names, *, side: bool = False) -> Relation:
        """Binds a query with its WITH. See `QueryBinder.query`."""
        clause = tree.args.get("with_")
        if names.whole:
            names = replace(names, whole=frozenset())
        if clause is not None:
            names = replace(self.ctes(clause, names), whole=frozenset(cte.alias for cte in clause.expressions))
        return self._body(tree, names, side)

    def _body(self, tree: exp.Expr, names: Names, side: bool) -> Relation:
        match tree:
            case exp.Select():
                return self._select(tree, names, side and not any(tree.args.get(key) for key in SETTLING))
            case exp.SetOperation():
                return self._modified(tree, self._combined(tree, names), names)
            case exp.Values():
                return self._modified(tree, self._values(tree, names), names)
            case exp.Subquery():
                return self.query(tree.this, names, side=side)
        raise FeatureNotSupported(f"{type(tree).__name__} is not supported", position=position(tree))

    def ctes(self, clause: exp.Expr, names: Names, write: Callable[[object, str, Names], Relation] | None = None) -> Names:
        """Binds the queries of a WITH and returns the names with them. Raises 42712, 42P10, 42P19.

        `write` takes a statement that writes, or the plan of a query, with its name, and returns the plan of its rows.
        """
        cte_names: set[str] = set()
        for cte in clause.expressions:
            if cte.alias in cte_names:
                raise DuplicateAlias(f'WITH query name "{cte.alias}" specified more than once', position=position(cte))
            cte_names.add(cte.alias)
        queries = by_dependency(clause.expressions) if clause.args.get("recursive") else clause.expressions
        for place, cte in enumerate(queries):
            name = cte.alias
            recursive = clause.args.get("recursive") and names_itself(cte)
            below = replace(names, locking=None)
            statement = written(cte)
            assert statement is None or write is not None
            if statement is not None and recursive:
                raise InvalidRecursion(f'recursive query "{name}" must not contain data-modifying statements', position=position(cte))
            if clauses_of(cte) is not None and not recursive:
                raise SyntaxError_("WITH query is not recursive", position=position(cte))
            if statement is None:
                with hinting_at(() if clause.args.get("recursive") else queries[place:]):
                    statement = plan = bind_recursive(cte, below, self) if recursive else self.query(cte.this, below)
            if write is not None:
                plan = write(statement, name, below)
            column_names = [c.name for c in cte.args["alias"].args.get("columns") or []]
            if len(column_names) > len(plan.columns):
                raise InvalidColumnReference(
                    f'WITH query "{name}" has {len(plan.columns)} columns available but {len(column_names)} columns specified',
                    position=position(cte),
                )
            columns = (
                tuple(Field(n, f.type, f.nullable) for n, f in zip(column_names, plan.columns, strict=False))
                + plan.columns[len(column_names) :]
            )
            names = names.with_cte(name, plan, columns, added_columns(clauses_of(cte)))
        return names

    # --- SELECT

    def _select(self, tree: exp.Select, names: Names, side: bool) -> Relation:
        """Binds a SELECT.

        All expressions are bound over FROM first. Grouping, windows and set-returning functions
        then add their nodes to the plan, and each rewrites the remaining expressions over its
        columns.
        """
        for key, words in REFUSED.items():
            if tree.args.get(key):
                clause = tree.args[key]
                raise FeatureNotSupported(f"{words} is not supported", position=position(clause) if isinstance(clause, exp.Expr) else None)
        level = Level(self, replace(names, locking=None))
        source = self._from(tree, replace(level, names=locking(tree, names)))
        check_locked(tree, source.scope)
        plan, binder = source.plan, Expressions(source.scope, level, windows=named_windows(tree))
        outputs = self._outputs(tree, binder, source, side)  # before WHERE, for PostgreSQL's order of errors
        if (where := tree.args.get("where")) is not None:
            plan = Filter(plan, binder.within("WHERE").boolean(where.this, "WHERE"))
        groups = self._groups(tree, binder, outputs)
        order = tree.args.get("order")
        ordered = order_of(order.expressions if order is not None else [], outputs, binder)
        on = order_of(_distinct_on(tree), outputs, binder, "DISTINCT ON")
        having = tree.args.get("having")
        condition = binder.within("HAVING").boolean(having.this, "HAVING") if having is not None else None
        scalars = [o.scalar for o in outputs] + [s for s, _ in (*ordered, *on)]
        if groups is None and (condition is not None or any(map(has_aggregates, scalars))):
            groups = Groups((), source.scope, (frozenset(),))
        if groups is not None:
            refuse_lock(tree, "aggregate functions")
            plan, over = expanded(plan, groups.keys)
            groups = replace(groups, keys=tuple(map(over, groups.keys)))
            read = [*scalars, *([condition] if condition is not None else [])]
            groups = with_identified(groups, source.plan, read, names.catalog)
            outputs = [Output(o.name, over(o.scalar), o.node) for o in outputs]
            ordered, on = ([(over(s), n) for s, n in some] for some in (ordered, on))
            outputs = [Output(o.name, groups.over(o.scalar), o.node) for o in outputs]
            condition = groups.over(condition) if condition is not None else None
            ordered = [(groups.over(s), n) for s, n in ordered]
            on = [(groups.over(s), n) for s, n in on]
            plan, calls = (plan, tuple(groups.calls)) if self.view else in_order_of_rows(plan, tuple(groups.calls))
            plan = over_sets(plan, groups.keys, calls, groups.sets)
            if condition is not None:
                plan = Filter(plan, condition)
        windows = Windows(len(plan.columns))
        for scalar in (*(o.scalar for o in outputs), *(s for s, _ in (*ordered, *on))):
            windows.collect(scalar)
        if windows.calls:
            refuse_lock(tree, "window functions")
            plan = windows.plan(plan)
            outputs = [Output(o.name, windows.over(o.scalar), o.node) for o in outputs]
            ordered, on = ([(windows.over(s), n) for s, n in some] for some in (ordered, on))
        unexpanded = plan
        plan, over = expanded(plan, [*(o.scalar for o in outputs), *(s for s, _ in (*ordered, *on))])
        refuse_lock(tree, "set-returning functions in the target list", plan is not unexpanded)
        outputs = [Output(o.name, over(o.scalar), o.node) for o in outputs]
        ordered, on = ([(over(s), n) for s, n in some] for some in (ordered, on))
        return SelectTail(tree, binder, outputs, ordered, on).over(plan)

    def _from(self, tree: exp.Select, level: Level) -> Source:
        clause = tree.args.get("from_")
        if clause is None:
            return Source(ONE_ROW, Scope())
        source = bind_table(clause.this, level)
        for join in tree.args.get("joins") or []:
            source = bind_cross_join(source, join.this, level, position(join.this))
        return source

    def _outputs(self, tree: exp.Select, binder: Expressions, source: Source, side: bool) -> list[Output]:
        outputs: list[Output] = []
        for node in tree.expressions:
            if isinstance(node, exp.Star):
                if tree.args.get("from_") is None:
                    raise SyntaxError_("SELECT * with no tables specified is not valid", position=position(node))
                columns = [column for column in source.scope.columns if not column.hidden]
                binder.level.names.demand(*(column.demand for column in columns))
                outputs += [Output(column.name, placed(column.scalar, position(node))) for column in columns]
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            if (fields := expanded_row(binder, inner)) is not None:  # an alias has no effect
                outputs += [Output(field.name, field.scalar) for field in fields]
            else:
                scalar = binder.bind(inner) if side else binder.typed(inner)
                name = node.alias if isinstance(node, exp.Alias) else column_name(node, scalar)
                outputs.append(Output(name, scalar, inner))
        return outputs

    def _groups(self, tree: exp.Select, binder: Expressions, outputs: list[Output]) -> Groups | None:
        """Binds GROUP BY.

        An item can be the number or name of an output column. Returns None without GROUP BY.
        """
        clause = tree.args.get("group")
        if clause is None:
            return None
        inner = binder.within("GROUP BY")

        def resolve(item: exp.Expr) -> Scalar:
            while isinstance(item, exp.Paren):
                item = item.this
            output = by_number(item, outputs, "GROUP BY")
            if output is None and not _is_column(item, binder):
                output = by_name(item, outputs, "GROUP BY")
            if output is not None and has_windows(output.scalar):
                raise WindowingError("window functions are not allowed in GROUP BY", position=leftmost(item))
            if output is not None and has_aggregates(output.scalar):
                place = aggregate_place(output.node) if output.node is not None else None
                raise GroupingError("aggregate functions are not allowed in GROUP BY", position=place)
            key = output.scalar if output is not None else inner.typed(item)
            require_equality(key.type, leftmost(item))
            return key

        keys, sets = numbered(clause, resolve)
        return Groups(keys, binder.scope, sets)

    # --- set operations and VALUES

    def _combined(self, tree: exp.SetOperation, names: Names) -> Relation:
        sides = (tree.this, tree.args["expression"])
        left, right = (self.query(s.this if isinstance(s, exp.Subquery) else s, names, side=True) for s in sides)
        return combined(tree, left, right, self.parameters)

    def _values(self, tree: exp.Values, names: Names) -> Relation:
        rows = [row.expressions for row in tree.expressions]
        if any(len(r) != len(rows[0]) for r in rows):
            wrong = next(r for r in rows if len(r) != len(rows[0]))
            raise SyntaxError_("VALUES lists must all be the same length", position=leftmost(wrong[0]))
        binder = Expressions(Scope(), Level(self, names), "VALUES", False)
        bound = [[binder.bind(n) for n in row] for row in rows]
        fields = []
        for i in range(len(rows[0])):
            column, type = binder.unify([r[i] for r in rows], [b[i] for b in bound], "VALUES")
            for b, scalar in zip(bound, column, strict=True):
                b[i] = scalar
            fields.append(Field(f"column{i + 1}", type, any(nullable(b[i], ()) for b in bound)))
        return values_plan(tuple(map(tuple, bound)), tuple(fields))

    def _modified(self, tree: exp.Expr, plan: Relation, names: Names) -> Relation:
        """Applies ORDER BY and LIMIT of a set operation or VALUES. Raises 0A000.

        These sort only by the names and numbers of output columns.
        """
        refuse_lock(tree, "VALUES" if isinstance(tree, exp.Values) else "UNION/INTERSECT/EXCEPT")
        outputs = [Output(f.name, Column(i, f.type)) for i, f in enumerate(plan.columns)]
        binder = Expressions(Scope(), Level(self, names))
        order = tree.args.get("order")
        keys = []
        for node in order.expressions if order is not None else []:
            output = by_name(node.this, outputs, "ORDER BY") or by_number(node.this, outputs, "ORDER BY")
            if output is None:
                if isinstance(node.this, exp.Column):
                    binder.bind(node.this)
                raise FeatureNotSupported(
                    "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                    detail="Only result column names can be used, not expressions or functions.",
                    hint="Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
                    position=leftmost(node.this),
                )
            require_order(output.scalar.type, leftmost(node.this))
            keys.append(SortKey(output.scalar, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))))
        return sorted_and_cut(tree, plan, tuple(keys), binder)


def _distinct_on(tree: exp.Select) -> list[exp.Expr]:
    distinct = tree.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    return list(on.expressions) if on is not None else []


def values_plan(rows: tuple[tuple[Scalar, ...], ...], columns: tuple[Field, ...]) -> Relation:
    """Returns the rows of VALUES.

    If they contain subqueries or read outer columns, each row is a projection.
    """
    if any(has_subqueries(s) or list(arguments_of(s)) for row in rows for s in row):
        projections = tuple(Project(ONE_ROW, row, columns) for row in rows)
        return projections[0] if len(projections) == 1 else UnionAll(projections, columns)
    return Values(rows, columns)


def _is_column(node: exp.Expr, binder: Expressions) -> bool:
    """Returns whether a name without a table is a column of FROM.

    GROUP BY prefers these to output names.
    """
    return isinstance(node, exp.Column) and not node.args.get("table") and any(c.name == node.name for c in binder.scope.columns)
