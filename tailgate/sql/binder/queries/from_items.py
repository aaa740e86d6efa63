"""Items of FROM: relations of the catalog, plain views (expanded), subqueries, CTEs and joins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Sequence, hidden_positions
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    SyntaxError_,
    UndefinedColumn,
)  # fmt: skip
from tailgate.lake.types import BOOL, Field
from tailgate.lake.uncommitted import is_evaluated
from tailgate.sql.authorization import SELECT, Demand
from tailgate.sql.binder import scope as scopes
from tailgate.sql.binder.context import Closure, Level
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.name_lookup import lateral_queries
from tailgate.sql.binder.queries.full_columns import with_fixed_columns
from tailgate.sql.binder.queries.locking import lock, of_item
from tailgate.sql.binder.queries.table_functions import bind_function, bind_rows_from
from tailgate.sql.binder.queries.time_windows import bind_windowed, is_windowed
from tailgate.sql.binder.queries.views import plan_of_view
from tailgate.sql.binder.queries.within import bind_within
from tailgate.sql.binder.scope import Named, Scope, Source, Table
from tailgate.sql.grammar.names import place, position
from tailgate.sql.numeric_types import keeps_general
from tailgate.sql.plan import And, ArrivalJoin, Coalesce, Column, Join, JoinKind, Literal, Project, Relation, Scalar, Scan, Values
from tailgate.sql.plan.correlation import has_subqueries
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.plan.session_calls import ROW, row_of
from tailgate.sql.plan.subqueries import Dependent, as_relation
from tailgate.sql.plan.writes import is_without_rows


def bind_table(node: exp.Expr, level: Level) -> Source:
    """Binds one item of FROM with its joins."""
    source = _primary(node, level)
    for join in node.args.get("joins") or []:
        source = _join(source, join, level)
    return source


def bind_cross_join(left: Source, node: exp.Expr, level: Level, at: int | None) -> Source:
    """Binds the item after a comma as a cross join.

    The item can read the left side if it is LATERAL.
    """
    closure = _around(left, level)
    right = bind_table(node, _within(level, closure))
    scope = left.scope.joined(right.scope, len(left.plan.columns))
    return Source(_joined(left, right, "cross", None, at, closure), scope)


def _around(left: Source, level: Level, kind: JoinKind = "inner") -> Closure:
    """Returns the closure through which an item of FROM reads the items to its left."""
    place = Expressions(left.scope, level, "FROM clause of their own query level", False)
    return Closure(place, item=True, refused=kind in ("right", "full"))


def _within(level: Level, closure: Closure) -> Level:
    return replace(level, queries=replace(level.queries, outer=closure))


def _joined(left: Source, right: Source, kind: JoinKind, condition: Scalar | None, at: int | None, closure: Closure) -> Relation:
    """Returns the join of two sources, which is a Dependent if the right side reads the left."""
    arguments = closure.arguments(right.plan)
    if not any(map(columns_of, arguments)):
        return Join(left.plan, right.plan, kind, condition, at)
    return as_relation(Dependent(left.plan, right.plan, closure.depth, arguments, "inner" if kind == "cross" else kind, condition, at))


def _primary(node: exp.Expr, level: Level) -> Source:
    """Binds one item of FROM without its joins, and adds its table to the level."""
    source = _unregistered(node, level)
    if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Table | exp.Subquery | exp.Lateral):
        level.tables.extend(t for t in source.scope.tables if t.alias)
    return source


def _unregistered(node: exp.Expr, level: Level) -> Source:
    """Binds one item of FROM without its joins. Raises 0A000."""
    at = position(node)
    match node:
        case exp.Subquery(this=exp.Table() | exp.Subquery() | exp.Lateral() as inner) if _is_join(inner):
            source = bind_table(inner, level)
            alias = node.args.get("alias")
            if alias is None:
                return source
            fields = tuple(Field(c.name, c.scalar.type) for c in source.scope.columns)
            plan = Project(source.plan, tuple(c.scalar for c in source.scope.columns), fields)
            return _aliased(plan, fields, alias, "", demands=tuple(c.demand for c in source.scope.columns))
    level = replace(level, names=of_item(level.names, node.alias_or_name))
    match node:
        case exp.Subquery():
            bound = level.queries.query(node.this, level.names)
            return _aliased(bound, bound.columns, node.args.get("alias"), "")
        case exp.Lateral() if isinstance(node.this, exp.Subquery):
            bound = lateral_queries(level).query(node.this.this, level.names)
            return _aliased(bound, bound.columns, node.args.get("alias"), "")
        case exp.Table() if node.args.get("rows_from"):
            binder = Expressions(Scope(), replace(level, queries=lateral_queries(level)), "functions in FROM", False)
            return Source(*bind_rows_from(node, binder, Values(((),), ())))
        case exp.Table() if is_windowed(node) and node.this.expressions:
            return Source(*bind_windowed(node, _cut(node.this.expressions[0], level), level))
        case exp.Lateral() | exp.Table() if not isinstance(node.this, exp.Identifier):
            binder = Expressions(Scope(), replace(level, queries=lateral_queries(level)), "functions in FROM", False)
            return Source(*bind_function(node, binder, Values(((),), ())))
        case exp.Table():
            if node.args.get("arrival"):
                raise SyntaxError_("FOR SYSTEM_TIME AS OF PROCTIME() is allowed on the right of JOIN … ON only", position=at)
            if node.args.get("sample"):
                raise FeatureNotSupported("TABLESAMPLE is not supported", position=position(node.args["sample"]))
            return _relation(node, level)
    raise FeatureNotSupported(f"{type(node).__name__} in FROM is not supported", position=at)


def _cut(node: exp.Expr, level: Level) -> Source:
    """Binds the first argument of a windowed relation: a name, or a query in parentheses."""
    if isinstance(node, exp.Column):
        schema = exp.Identifier(this=node.text("table")) if node.text("table") else None
        return _relation(place(exp.Table(this=node.this, db=schema), position(node) or 0), level)
    if isinstance(node, exp.Subquery):
        return _unregistered(node, level)
    raise SyntaxError_("the first argument must be a relation", position=position(node))


def _is_join(node: exp.Expr) -> bool:
    """Returns whether a node in parentheses is a join, not a query."""
    return not isinstance(node, exp.Query) or bool(node.args.get("joins"))


def _relation(node: exp.Table, level: Level) -> Source:
    """Binds the name of a CTE or of a relation of the catalog, and records its use.

    Raises 42P01, 0A000.
    """
    names, queries = level.names, level.queries
    at, name, schema = position(node), node.name, node.text("db")
    if schema == "" and name in names.ctes:
        if is_without_rows(names.ctes[name][0]):
            raise FeatureNotSupported(f'WITH query "{name}" does not have a RETURNING clause', position=at)
        plan, columns = _with_kept_types(*names.ctes[name])
        hidden = range(len(columns) - (0 if name in names.whole else names.hidden.get(name, 0)), len(columns))
        return _aliased(plan, columns, node.args.get("alias"), name, hidden=hidden)
    if node.text("catalog"):
        shown = f"{node.text('catalog')}.{schema}.{name}"
        raise FeatureNotSupported(f'cross-database references are not implemented: "{shown}"', position=at)
    item = names.catalog.relation(Name(name, schema or None, at), sequences=True)
    names.demand(Demand(SELECT, item.id, names.readers, columns=()))
    lock(names, item, at)
    names.use(item, at)
    if isinstance(item, Sequence):
        if queries.view or names.inside:
            raise FeatureNotSupported(f"a sequence in a {'view' if queries.view else 'function'} is not supported", position=at)
        return _aliased(row_of(item.id, at), ROW, node.args.get("alias"), name)
    columns = item.columns[: names.widths.get(item.id)]
    plan = plan_of_view(item, names, queries, at) if is_evaluated(item) else Scan(item.id, columns, item.key, item.name, at)
    present_positions = (i for i, column in enumerate(columns) if not column.is_dropped)
    demands = tuple(Demand(SELECT, item.id, names.readers, columns=(i,)) for i in present_positions)
    if any(column.is_dropped for column in columns):
        present = tuple(Column(i, column.type) for i, column in enumerate(columns) if not column.is_dropped)
        columns = tuple(column for column in columns if not column.is_dropped)
        plan = Project(plan, present, columns)
    plan, columns = _with_kept_types(plan, columns)
    source = _aliased(plan, columns, node.args.get("alias"), name, item.id, hidden_positions(item), demands)
    return source if is_evaluated(item) else Source(source.plan, source.scope.with_oid(item.id))


def _with_kept_types(plan: Relation, columns: tuple[Field, ...]) -> tuple[Relation, tuple[Field, ...]]:
    """Returns a relation with the names of its columns, with general numerics only where the rules allow them."""
    if keeps_general() or not any(column.type.general for column in columns):
        return plan, columns
    plan = with_fixed_columns(plan)
    return plan, tuple(Field(name.name, f.type, f.nullable) for name, f in zip(columns, plan.columns, strict=True))


def _aliased(
    plan: Relation,
    columns: tuple[Field, ...],
    alias: exp.Expr | None,
    name: str,
    item: int = 0,
    hidden: Collection[int] = (),
    demands: tuple[Demand | None, ...] = (),
) -> Source:
    shown = alias.name if alias is not None and alias.name else name
    names = tuple(c.name for c in alias.args.get("columns") or []) if alias is not None else ()
    if len(names) > len(columns):
        raise InvalidColumnReference(f'table "{shown}" has {len(columns)} columns available but {len(names)} columns specified')
    own = item if alias is None or not alias.name else 0
    return Source(plan, scopes.of(shown, columns, names, name, own, hidden, demands))


def _scope(left: Source, right: Source, kind: JoinKind) -> Scope:
    """Returns the scope of a join."""
    one = left.scope.as_optional() if kind in ("right", "full") else left.scope
    other = right.scope.as_optional() if kind in ("left", "full") else right.scope
    return one.joined(other, len(left.plan.columns))


SIDES: dict[str, JoinKind] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}


def _join(left: Source, node: exp.Join, level: Level) -> Source:
    at = position(node)
    if node.args.get("kind") == "CROSS":
        return bind_cross_join(left, node.this, level, at)
    kind = SIDES.get(node.args.get("side") or "", "inner")
    if node.this.args.get("arrival") and node.args.get("on") is not None and not node.this.args.get("joins"):
        return _arrival_join(left, node, kind, level)
    closure = _around(left, level, kind)
    right = bind_table(node.this, _within(level, closure))
    scope = _scope(left, right, kind)
    using = [i.name for i in node.args.get("using") or []]
    if node.args.get("method") == "NATURAL":
        rights = {c.name for c in right.scope.columns if not c.hidden}
        using = [c.name for c in left.scope.columns if c.name in rights and not c.hidden]
        if not using:
            return Source(_joined(left, right, "cross" if kind == "inner" else kind, _true(kind), at, closure), scope)
    if using or node.args.get("using"):
        return _using(left, right, using, kind, node, closure, level)
    condition = Expressions(scope, level, "JOIN conditions", False).boolean(node.args["on"], "JOIN/ON")
    if node.args.get("within"):
        return bind_within(left, right, kind, condition, node, Expressions(scope, level, "WITHIN", False))
    return Source(_joined(left, right, kind, condition, at, closure), scope)


def _arrival_join(left: Source, node: exp.Join, kind: JoinKind, level: Level) -> Source:
    """Binds JOIN relation FOR SYSTEM_TIME AS OF PROCTIME() ON …. Raises 0A000 for other kinds than INNER and LEFT."""
    at = position(node)
    if kind != "inner" and kind != "left":
        raise FeatureNotSupported(f"{kind.upper()} JOIN with FOR SYSTEM_TIME AS OF PROCTIME() is not supported", position=at)
    node.this.set("arrival", False)
    try:
        right = bind_table(node.this, level)
    finally:
        node.this.set("arrival", True)
    scope = _scope(left, right, kind)
    condition = Expressions(scope, level, "JOIN conditions", False).boolean(node.args["on"], "JOIN/ON")
    if has_subqueries(condition):
        raise FeatureNotSupported("a subquery in ON with FOR SYSTEM_TIME AS OF PROCTIME() is not supported", position=at)
    return Source(ArrivalJoin(left.plan, right.plan, kind, condition, at), scope)


def _true(kind: JoinKind) -> Scalar | None:
    return None if kind == "inner" else Literal(True, BOOL)


def _using(left: Source, right: Source, using: list[str], kind: JoinKind, node: exp.Join, closure: Closure, level: Level) -> Source:
    """Binds JOIN … USING (…) [AS alias].

    The merged columns appear once, before the other columns. The alias names only the merged
    columns.
    """
    at, alias = position(node), node.args.get("alias")
    width = len(left.plan.columns)
    moved = right.scope.moved(width)
    binder = Expressions(Scope(), closure.binder.level)
    conditions: list[Scalar] = []
    merged: list[Named] = []
    for number, name in enumerate(using):
        if name in using[:number]:
            raise DuplicateColumn(f'column name "{name}" appears more than once in USING clause')
        sides = []
        for word, side in (("left", left.scope), ("right", moved)):
            matches = [c for c in side.columns if c.name == name]
            if not matches:
                raise UndefinedColumn(f'column "{name}" specified in USING clause does not exist in {word} table')
            if len(matches) > 1:
                raise AmbiguousColumn(f'common column name "{name}" appears more than once in {word} table')
            sides.append(matches[0].scalar)
            level.names.demand(matches[0].demand)
        casts, type = binder.unify([exp.Null(), exp.Null()], sides, "JOIN/USING")
        conditions.append(binder.operate("=", list(sides), at))
        merged.append(Named(name, {"right": casts[1], "full": Coalesce(casts, type)}.get(kind, casts[0])))
    scope = _scope(left, right, kind)
    rest = tuple(c for c in scope.columns if c.name not in using)
    condition = conditions[0] if len(conditions) == 1 else And(tuple(conditions))
    tables = scope.tables
    if alias is not None:
        if any(t.alias == alias.name for t in tables):
            raise DuplicateAlias(f'table name "{alias.name}" specified more than once', position=position(alias))
        tables = (*tables, Table(alias.name, tuple(merged)))
    return Source(_joined(left, right, kind, condition, at, closure), Scope((*merged, *rest), tables))
