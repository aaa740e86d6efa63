"""The last steps of a query: DISTINCT, DISTINCT ON, ORDER BY, LIMIT, OFFSET, FETCH.

Source: PostgreSQL 15, src/backend/parser/parse_clause.c transformDistinctOnClause(),
transformLimitClause().
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tailgate.lake.errors import DatatypeMismatch, InvalidColumnReference, SyntaxError_, TailgateError
from tailgate.lake.types import BOOL, INT8, TEXT, Field
from tailgate.sql.binder.expressions.constructors import bind_text
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.queries.output_columns import Output, by_name, by_number
from tailgate.sql.binder.types.coercion import bare_type, coerce
from tailgate.sql.binder.types.comparability import require_equality, require_order
from tailgate.sql.binder.types.overloads import operator
from tailgate.sql.functions import windows
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error
from tailgate.sql.functions.text import ICU_KEY
from tailgate.sql.grammar.names import icu_locale, position
from tailgate.sql.numeric_types import is_ad_hoc
from tailgate.sql.plan import (
    And,
    Call,
    Coalesce,
    Column,
    Filter,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Sort,
    SortKey,
    TopK,
    Window,
    nullable,
)
from tailgate.sql.plan.correlation import arguments_of, has_subqueries
from tailgate.sql.plan.grouping import ROW_NUMBER
from tailgate.sql.plan.grouping import distinct as made_distinct
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.plan.scalars import WindowCall
from tailgate.sql.plan.sort_keys import sort_key

RANK = next(row for row in windows.ROWS if row.name == "rank")


def _not_negative(clause: str, sqlstate: str) -> Function:
    """Returns the function that checks a number of rows."""
    message = f"{clause} must not be negative"
    spark = f"CASE WHEN {{0}} < 0 THEN CAST({spark_error(sqlstate, message)} AS BIGINT) ELSE {{0}} END"
    return Function(clause.lower(), ("int8",), "int8", spark, f"CASE WHEN {{0}} < 0 THEN {duckdb_error(sqlstate, message)} ELSE {{0}} END")


CHECKED = {"LIMIT": _not_negative("LIMIT", "2201W"), "OFFSET": _not_negative("OFFSET", "2201X")}
Ordered = list[tuple[Scalar, exp.Expr]]  # expressions to sort by, over the input, each with its node


def order_of(nodes: list[exp.Expr], outputs: list[Output], binder: Expressions, clause: str = "ORDER BY") -> Ordered:
    """Binds the items of ORDER BY or DISTINCT ON.

    Names and numbers refer to output columns first.
    """
    pairs: Ordered = []
    for node in nodes:
        inner = node.this if isinstance(node, exp.Ordered) else node
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if clause == "ORDER BY" and isinstance(inner, exp.Collate) and is_ad_hoc() and (locale := icu_locale(inner.expression.name)):
            text = bind_text(binder.within("ORDER BY"), inner)
            # equal texts are only those with the same bytes
            pairs += [(Call(ICU_KEY, (text, Literal(locale, TEXT)), TEXT), node), (text, node)]
            continue
        output = by_name(inner, outputs, clause) or by_number(inner, outputs, clause)
        scalar = output.scalar if output is not None else binder.within("ORDER BY").typed(inner)
        (require_order if clause == "ORDER BY" else require_equality)(scalar.type, leftmost(inner))
        pairs.append((scalar, node))
    return pairs


@dataclass
class SelectTail:
    """The projection of a SELECT and the steps after it.

    `ordered` is of ORDER BY, `on` of DISTINCT ON.
    """

    tree: exp.Select
    binder: Expressions
    outputs: list[Output]
    ordered: Ordered
    on: Ordered

    def over(self, plan: Relation) -> Relation:
        """Returns the plan of these steps over `plan`.

        Columns that are only sorted by are dropped at the end.
        """
        expressions = [o.scalar for o in self.outputs]
        fields = tuple(Field(o.name, o.scalar.type, nullable(o.scalar, plan.columns)) for o in self.outputs)
        distinct = self.tree.args.get("distinct")
        hidden: list[Scalar] = []

        def column(scalar: Scalar) -> Column:
            if scalar not in (*expressions, *hidden):
                hidden.append(scalar)
            return Column([*expressions, *hidden].index(scalar), scalar.type)

        if distinct is not None and not self.on:
            for scalar, node in self.ordered:
                if scalar not in expressions:
                    raise InvalidColumnReference(
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list", position=leftmost(node.this)
                    )
            for output in self.outputs:
                require_equality(output.scalar.type, leftmost(output.node) if output.node is not None else None)
        keys = tuple(SortKey(column(s), bool(n.args.get("desc")), bool(n.args.get("nulls_first"))) for s, n in self.ordered)
        on = tuple(column(s) for s, _ in self.on)
        extra = tuple(Field(f"?order{i}?", s.type) for i, s in enumerate(hidden))
        result: Relation = Project(plan, (*expressions, *hidden), fields + extra)
        if self.on:
            self._check_on(on, keys)
            at = position(distinct) if distinct is not None else None
            result = TopK(result, tuple(map(sort_key, on)), keys, Literal(1, INT8), position=at)
        elif distinct is not None:
            result = made_distinct(result)
        result = sorted_and_cut(self.tree, result, keys, self.binder)
        if hidden:
            result = Project(result, tuple(Column(i, f.type) for i, f in enumerate(fields)), fields)
        return result

    def _check_on(self, on: tuple[Column, ...], keys: tuple[SortKey, ...]) -> None:
        """Raises 42P10 if ORDER BY has other expressions before those of DISTINCT ON."""
        others = False
        sorted_by: list[Scalar] = []
        for sort, (_, node) in zip(keys, self.ordered, strict=True):
            if sort.expression in sorted_by:
                continue
            if sort.expression in on and others:
                raise _mismatch(leftmost(node.this))
            others = others or sort.expression not in on
            sorted_by.append(sort.expression)
        if others and any(k not in sorted_by for k in on):
            raise _mismatch(leftmost(next(n for k, (_, n) in zip(on, self.on, strict=True) if k not in sorted_by)))


def _mismatch(at: int | None) -> TailgateError:
    return InvalidColumnReference("SELECT DISTINCT ON expressions must match initial ORDER BY expressions", position=at)


def sorted_and_cut(tree: exp.Expr, plan: Relation, keys: tuple[SortKey, ...], binder: Expressions) -> Relation:
    """Applies a query's ORDER BY, LIMIT and OFFSET."""
    order = tree.args.get("order")
    at = position(order) if order is not None else None
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    count = rows(limit.args["expression"], "LIMIT", binder) if limit is not None else None
    skipped = rows(offset.args["expression"], "OFFSET", binder) if offset is not None else None
    cut = position(limit or offset or tree)
    ties = limit is not None and bool(limit.meta.get("ties"))
    if ties and not keys:
        raise SyntaxError_("WITH TIES cannot be specified without ORDER BY clause")
    if any(of is not None and _is_computed(of, binder) for of in (count, skipped)):
        numbered = _cut_by_numbers(plan, keys, count, skipped, ties=ties)
        return Sort(numbered, keys, at) if keys else numbered
    if ties:
        return Sort(TopK(plan, (), keys, count, skipped, True, cut), keys, at)
    if keys:
        plan = Sort(plan, keys, at)
    return plan if limit is None and offset is None else Limit(plan, count, skipped, cut)


def rows(node: exp.Expr, clause: str, binder: Expressions) -> Scalar:
    """Binds the number of rows of LIMIT or OFFSET, which reads no columns.

    Raises 42804, 42P10, 0A000.
    """
    scalar = binder.within(clause).bind(node)
    count = coerce(scalar, INT8, binder.parameters, "assignment")
    if count is None:
        raise DatatypeMismatch(f"argument of {clause} must be type bigint, not type {bare_type(scalar.type)}", position=leftmost(node))
    column = next((c for c in node.find_all(exp.Column) if columns_of(count)), None)
    if column is not None:
        raise InvalidColumnReference(f"argument of {clause} must not contain variables", position=position(column))
    return Call(CHECKED[clause], (count,), INT8) if _is_computed(count, binder) else count


def _is_computed(count: Scalar, binder: Expressions) -> bool:
    """Returns whether no engine takes a number of rows as its limit: one from a subquery or an outer query, in a view any expression."""
    return has_subqueries(count) or bool(list(arguments_of(count))) or (binder.view and not isinstance(count, Literal))


def _cut_by_numbers(plan: Relation, keys: tuple[SortKey, ...], count: Scalar | None, skipped: Scalar | None, *, ties: bool) -> Relation:
    """Returns the rows whose number in the order is in the interval. `ties`: also those that are equal to the last one."""
    calls = (WindowCall(ROW_NUMBER, (), INT8), *((WindowCall(RANK, (), INT8),) if ties else ()))
    width, zero = len(plan.columns), Literal(0, INT8)
    number = Column(width, INT8)
    begin = zero if skipped is None else Coalesce((skipped, zero), INT8)
    above, up_to, minus = (operator(sign, (INT8, INT8), None) for sign in (">", "<=", "-"))
    conditions: list[Scalar] = [] if skipped is None else [Call(above, (number, begin), BOOL)]
    if count is not None:
        last = Column(width + 1, INT8) if ties else number
        place = last if skipped is None else Call(minus, (last, begin), INT8)  # number + count could be too large
        conditions.append(Coalesce((Call(up_to, (place, count), BOOL), Literal(True, BOOL)), BOOL))
    condition = conditions[0] if len(conditions) == 1 else And(tuple(conditions))
    rows = Filter(Window(plan, (), keys, calls), condition)
    return Project(rows, tuple(Column(i, field.type) for i, field in enumerate(plan.columns)), plan.columns)
