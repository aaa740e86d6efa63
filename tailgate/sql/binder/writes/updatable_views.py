"""The relation that a statement writes: a table, or a view that is updated automatically, a simple one over one such relation.

    INSERT INTO v (x) …   ──►  INSERT INTO t (c) …, where the column x of v is the column c of t
    UPDATE v SET x = …    ──►  UPDATE t SET c = … WHERE condition of v AND …

Source: PostgreSQL 15, src/backend/rewrite/rewriteHandler.c (view_query_is_auto_updatable, view_col_is_auto_updatable,
rewriteTargetView).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Item, Source, Table, View
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    ObjectNotInPrerequisiteState,
    SyntaxError_,
    TailgateError,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.sql.authorization import SELECT, SESSION, Demand
from tailgate.sql.binder import scope as scopes
from tailgate.sql.binder.context import QueryBinder
from tailgate.sql.binder.queries.queries import Queries
from tailgate.sql.binder.queries.views import plan_of_view
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Named, Scope
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.writes.targets import check_writable, columns_named, scope_of
from tailgate.sql.grammar.parser import parse_query
from tailgate.sql.plan import Column, Filter, Generate, Project, Reduce, Relation, Scalar, Scan, Sort, Window
from tailgate.sql.plan.rewriting import conjunction, substituted
from tailgate.sql.statements.writes import ColumnName, IndexColumn, OnConflict

NOT_A_COLUMN = "View columns that are not columns of their base relation are not updatable."
CLAUSES = {
    "distinct": "DISTINCT", "group": "GROUP BY", "having": "HAVING", "with_": "WITH", "limit": "LIMIT or OFFSET",
    "offset": "LIMIT or OFFSET",
}  # fmt: skip
# the statement, what must be provided, the rule
VERBS = {"insert into": ("inserting into", "INSERT"), "update": ("updating", "UPDATE"), "delete from": ("deleting from", "DELETE")}


Written: TypeAlias = Mapping[str, Sequence[Named] | None]  # privileges, and the columns of the relation; None for the whole relation


@dataclass(frozen=True, slots=True)
class Base:
    """A relation below a view. `columns`: as of `Target`. `read`: the demand for SELECT on the columns that the view reads."""

    columns: tuple[Named, ...]
    read: Demand


@dataclass(frozen=True, slots=True)
class Target:
    """A table, seen as itself or through views.

    `relation`: as the statement names it. `columns`: of that, over the columns of the table. `conditions`: those of the rows that
    the views have, of inner views first. `checks`: of each view with CHECK OPTION, the name and the condition of new rows. `bases`:
    the relations below the views. `demands`: privileges that the conditions need.
    """

    table: Table
    relation: Item
    columns: tuple[Named, ...]
    conditions: tuple[Scalar, ...] = ()
    checks: tuple[tuple[str, Scalar], ...] = ()
    bases: tuple[Base, ...] = ()
    demands: tuple[Demand, ...] = ()

    def scope(self, alias: str | None) -> Scope:
        """Returns the names of the columns."""
        item, oid = 0 if alias else self.relation.id, self.relation.id if isinstance(self.relation, Table) else 0
        return Scope(self.columns, (scopes.Table(alias or self.relation.name, self.columns, self.relation.name, item=item, oid=oid),))

    def position(self, name: str, at: int | None, verb: str = "update") -> int:
        """Returns the position in the table of a column. Raises 42703, and 0A000 if it is computed. `verb`: of the error."""
        column = next((column for column in self.columns if column.name == name), None)
        if column is None:
            raise UndefinedColumn(f'column "{name}" of relation "{self.relation.name}" does not exist', position=at)
        if not isinstance(column.scalar, Column):
            raise FeatureNotSupported(f'cannot {verb} column "{name}" of view "{self.relation.name}"', detail=NOT_A_COLUMN)
        return column.scalar.index

    def positions(self, columns: tuple[ColumnName, ...], count: int) -> tuple[int, ...]:
        """Returns the positions in the table of the columns of an INSERT with this number of values, which may name none."""
        if self.relation is self.table:
            return columns_named(self.table, columns)
        names = [column.name for column in columns]
        if (again := next((column for i, column in enumerate(columns) if column.name in names[:i]), None)) is not None:
            raise DuplicateColumn(f'column "{again.name}" specified more than once', position=again.position)
        shown = columns or tuple(ColumnName(column.name) for column in self.columns[:count])
        positions = tuple(self.position(column.name, column.position, "insert into") for column in shown)
        for i, position in enumerate(positions):
            if position in positions[:i]:
                raise SyntaxError_(f'multiple assignments to same column "{self.table.columns[position].name}"')
        return positions

    def clause(self, clause: OnConflict) -> OnConflict:
        """Returns ON CONFLICT with the names of the table's columns. Raises 0A000 for an expression of a view."""
        if self.relation is self.table:
            return clause
        if clause.condition is not None or any(column.expression is not None for column in clause.columns):
            raise FeatureNotSupported("an expression in ON CONFLICT of a view is not supported", position=clause.position)
        scalars = {column.name: column.scalar for column in self.columns}
        columns = list[IndexColumn]()
        for column in clause.columns:
            scalar = scalars.get(column.name)
            if scalar is None:
                raise UndefinedColumn(f'column "{column.name}" does not exist', position=column.position)
            if not isinstance(scalar, Column):
                raise InvalidColumnReference("there is no unique or exclusion constraint matching the ON CONFLICT specification")
            columns.append(replace(column, name=self.table.columns[scalar.index].name))
        return replace(clause, columns=tuple(columns))

    def named(self, names: Iterable[str]) -> tuple[Named, ...]:
        """Returns the columns with these names, which exist."""
        columns = {column.name: column for column in self.columns}
        return tuple(columns[name] for name in names)

    def at(self, positions: Collection[int]) -> tuple[Named, ...]:
        """Returns the columns that are columns of the table at these positions."""
        return tuple(c for c in self.columns if isinstance(c.scalar, Column) and c.scalar.index in positions)

    def demanded(self, written: Written, read: Sequence[Demand]) -> tuple[Demand, ...]:
        """Returns the demands for privileges on the relation, and for the same privileges of the owners of views on what these read.

        `read`: those for columns of the relation that the statement reads. With any, the owners of views need SELECT on all columns that
        these read.
        """
        demands = [*_demanded(Demand(SELECT, self.relation.id), written), *read]
        for base in self.bases:
            below = {
                privilege: None if columns is None else [next(c for c in base.columns if c.scalar == column.scalar) for column in columns]
                for privilege, columns in written.items()
            }
            demands += [*_demanded(base.read, below), *((base.read,) if read else ())]
        return (*demands, *self.demands)


def _demanded(of: Demand, written: Written) -> Iterator[Demand]:
    """Yields the demands for privileges, of the readers and on the relation of another demand."""
    for privilege, columns in written.items():
        yield of._replace(privilege=privilege, columns=None if columns is None else ())
        for demand in (column.demand for column in columns or ()):
            assert demand is not None  # for each column of a target
            yield demand._replace(privilege=privilege)


def of_table(table: Table, width: int | None = None, readers: tuple[int, ...] = (SESSION,)) -> Target:
    """Returns a table as a target. `width`: the number of its columns that are known. `readers`: of the demands for its columns."""
    return Target(table, table, scope_of(table, None, width, readers).columns)


def target_of(name: Name, names: Names, queries: QueryBinder, verb: str) -> Target:
    """Returns the relation that a statement writes, and records its use. Raises 42P01, 42809, 55000."""
    item = names.catalog.relation(name)
    target = _target(item, names, queries, verb, cascaded=False)
    names.use(item, name.position)
    return target


def _target(item: Item, names: Names, queries: QueryBinder, verb: str, *, cascaded: bool) -> Target:
    """Returns the relation as a target. `cascaded`: whether a view above it has CASCADED CHECK OPTION."""
    if isinstance(item, View):
        return _of_view(item, names, queries, verb, cascaded=cascaded)
    if not isinstance(item, Table):
        hint = "Rows come from Kafka." if isinstance(item, Source) else None
        raise WrongObjectType(f'cannot change {item.kind} "{item.name}"', hint=hint)
    check_writable(item)
    return of_table(item, names.widths.get(item.id), names.readers)


def _of_view(view: View, names: Names, queries: QueryBinder, verb: str, *, cascaded: bool) -> Target:
    tree, below = parse_query(view.query), names.below(view)
    base = _base(tree, below.catalog)
    own = replace(names, demands={}, levels=[])
    plan = plan_of_view(view, own, queries, None)
    detail = _refusal(tree, base, plan)
    if detail is not None or base is None:
        raise _not_updatable(view, verb, detail)
    cascaded = cascaded or view.check_option == "cascaded"
    under = _target(base, below, queries, verb, cascaded=cascaded)
    scalars, conditions = _flat(plan)
    if verb != "delete from" and not any(isinstance(scalar, Column) for scalar in scalars):
        raise _not_updatable(view, verb, "Views that have no updatable columns are not automatically updatable.")
    needs = [Demand(SELECT, view.id, names.readers, columns=(i,)) for i in range(len(scalars))]
    columns = tuple(Named(view.columns[i].name, scalar, demand=needs[i]) for i, scalar in enumerate(scalars))
    new = conditions[len(under.conditions) :]
    checks = under.checks if not new or not (cascaded or view.check_option) else (*under.checks, (view.name, conjunction(new)))
    read = next(d for d in own.demanded() if (d.privilege, d.item, d.readers) == (SELECT, base.id, (view.id,)))
    bases = (Base(under.columns, read), *under.bases)
    reads = any(node.find(exp.Select) is not None for node in [tree.args.get("where")] if node is not None)
    demands = under.demands + tuple(d for d in own.demanded() if reads or d not in {base.read for base in bases})
    return Target(under.table, view, columns, conditions, checks, bases, demands)


def _not_updatable(view: View, verb: str, detail: str | None) -> ObjectNotInPrerequisiteState:
    what, event = VERBS[verb]
    rule = f"provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
    return ObjectNotInPrerequisiteState(f'cannot {verb} view "{view.name}"', detail=detail, hint=f"To enable {what} the view, {rule}")


def _base(tree: exp.Expr, catalog: Catalog) -> Item | None:
    """Returns the relation of a query with a single one, a table or view, in FROM; otherwise None."""
    source = tree.args.get("from_") if isinstance(tree, exp.Select) else None
    if source is None or tree.args.get("joins"):
        return None
    node = source.this
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or node.args.get("joins"):
        return None
    item = catalog.relation(Name(node.name, node.text("db") or None))
    return item if isinstance(item, Table | View) else None


def _refusal(tree: exp.Expr, base: Item | None, plan: Relation) -> str | None:
    """Returns why a view with this query is not updated automatically, or None."""
    clause = "UNION, INTERSECT, or EXCEPT" if isinstance(tree, exp.SetOperation) else None
    clause = clause or next((word for key, word in CLAUSES.items() if tree.args.get(key)), None)
    if clause is not None:
        return f"Views containing {clause} are not automatically updatable."
    for kind, functions in ((Reduce, "aggregate"), (Window, "window"), (Generate, "set-returning")):
        if _has(plan, kind):
            return f"Views that return {functions} functions are not automatically updatable."
    if base is None:
        return "Views that do not select from a single table or view are not automatically updatable."
    return None


def _has(plan: Relation, kind: type[Relation]) -> bool:
    """Returns whether the query of a view computes its rows or columns with this node."""
    while isinstance(plan, Project | Filter | Sort):
        plan = plan.input
    return isinstance(plan, kind)


def _flat(plan: Relation) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """Returns the columns and the conditions of a projection of rows of a table, over the table. Those of inner views are first."""
    match plan:
        case Scan():
            return tuple(Column(i, column.type) for i, column in enumerate(plan.columns)), ()
        case Sort():
            return _flat(plan.input)
        case Filter():
            columns, conditions = _flat(plan.input)
            return columns, (*conditions, substituted(plan.condition, columns))
        case Project():
            columns, conditions = _flat(plan.input)
            return tuple(substituted(scalar, columns) for scalar in plan.expressions), conditions
    raise AssertionError(plan)


def updatable(view: View, catalog: Catalog) -> tuple[Literal[0, 16, 28], frozenset[str]]:
    """Returns the events of pg_relation_is_updatable(), and the names of the columns that can be changed."""
    try:
        target = _of_view(view, Names(catalog), Queries(Parameters()), "delete from", cascaded=False)
    except TailgateError:
        return 0, frozenset()
    names = frozenset(column.name for column in target.columns if isinstance(column.scalar, Column))
    return (28 if names else 16), names


def check_option(view: View, catalog: Catalog) -> None:
    """Raises 0A000 if a view in the catalog has CHECK OPTION and is not updated automatically."""
    if not view.check_option:
        return
    try:
        _of_view(view, Names(catalog), Queries(Parameters()), "update", cascaded=False)
    except ObjectNotInPrerequisiteState as error:
        raise FeatureNotSupported("WITH CHECK OPTION is supported only on automatically updatable views", hint=error.detail) from None


def copied_table(name: Name, names: Names) -> Table:
    """Returns the table of COPY … FROM, and records its use. Raises 42P01, 42809."""
    item = names.catalog.relation(name)
    if isinstance(item, View):
        hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger."
        raise WrongObjectType(f'cannot copy to view "{item.name}"', hint=hint)
    names.use(item, name.position)
    return _target(item, names, Queries(Parameters()), "copy to", cascaded=False).table
