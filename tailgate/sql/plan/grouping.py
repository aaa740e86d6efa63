"""Grouping, DISTINCT, INTERSECT and EXCEPT for types whose equal values may have different stored forms.

Rows are grouped by sort keys (`sql.plan.sort_keys`). The result has the smallest stored form of each group,
so it is deterministic.

    SELECT data, count(*) … GROUP BY data   ──►   π_{form, count}(γ_{order(data); count(*), one_of(data) as form})
    A EXCEPT B                              ──►   δ(A) ▷_{order(a) = order(b)} B
    A EXCEPT ALL B                          ──►   the same, of rows with the number of the row among equal ones, without δ
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.types import INT4, INT8, Field
from tailgate.sql.functions import windows
from tailgate.sql.functions.aggregates import COLLECTING
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import (
    AggregateCall,
    Column,
    Distinct,
    Filter,
    Generate,
    IsDistinct,
    Join,
    Limit,
    Literal,
    Not,
    Project,
    Reduce,
    Relation,
    Scalar,
    SetOperation,
    Sort,
    SortKey,
    Values,
    Window,
    WindowCall,
)
from tailgate.sql.plan.properties import is_volatile
from tailgate.sql.plan.rewriting import conjunction, shifted
from tailgate.sql.plan.sort_keys import has_equal_forms, sort_key
from tailgate.sql.plan.subqueries import as_relation, dependent
from tailgate.sql.plan.traversal import column

ONE_ROW = Values(((),), ())  # the input of SELECT without FROM
ROW_NUMBER = next(row for row in windows.ROWS if row.name == "row_number")
ONE_OF = Function("one_of", ("any",), "any", "min({0})", "min({0})", "aggregate", strict=False)


def aggregated(input: Relation, keys: tuple[Scalar, ...], calls: tuple[AggregateCall, ...]) -> Relation:
    """Returns an aggregation: one row per distinct keys, with the keys and then the aggregates.

    Without keys and aggregates the result is one row without columns.
    """
    if not keys and not calls:
        return ONE_ROW
    forms = [i for i, key in enumerate(keys) if has_equal_forms(key.type)]
    plain = Reduce(input, keys, calls)
    if not forms:
        return plain
    one_of = tuple(AggregateCall(ONE_OF, (keys[i],), keys[i].type) for i in forms)
    grouped = Reduce(input, tuple(map(sort_key, keys)), (*calls, *one_of))
    width = len(plain.columns)
    places = [width + forms.index(i) if i in forms else i for i in range(width)]
    return Project(grouped, tuple(Column(p, f.type) for p, f in zip(places, plain.columns, strict=True)), plain.columns)


def in_order_of_rows(input: Relation, calls: tuple[AggregateCall, ...]) -> tuple[Relation, tuple[AggregateCall, ...]]:
    """Returns the aggregates that collect values without ORDER BY with the order of the rows of a subquery, a function or VALUES.

    The input has more columns then, behind its own. A volatile one stays as it is, because other places may share its rows.
    """
    if not any(_is_unordered(call) for call in calls) or is_volatile(input):
        return input, calls
    ordered, keys = _with_order(input)
    return ordered, tuple(replace(call, order=keys) if _is_unordered(call) else call for call in calls)


def sorted_as_rows(relation: Relation) -> Relation:
    """Returns a relation without ORDER BY in the order of the rows of a subquery, a function or VALUES below it."""
    ordered, keys = (relation, ()) if is_volatile(relation) else _with_order(relation)
    if not keys:
        return relation
    return Project(Sort(ordered, keys), tuple(column(relation, i) for i in range(len(relation.columns))), relation.columns)


def _is_unordered(call: AggregateCall) -> bool:
    return call.function.name in COLLECTING and not call.order and not call.distinct


def _with_order(relation: Relation) -> tuple[Relation, tuple[SortKey, ...]]:
    """Returns a relation with more columns, by which its rows are in the order of ORDER BY, of a function's result, or as written."""
    if (lateral := dependent(relation)) is not None:
        right, keys = _with_order(lateral.right)
        width = len(lateral.left.columns)
        moved = tuple(replace(key, expression=shifted(key.expression, width)) for key in keys)
        return as_relation(replace(lateral, right=right)), moved
    match relation:
        case Sort(keys=keys):
            return relation, keys
        case Limit() | Filter():
            below, keys = _with_order(relation.input)
            return replace(relation, input=below), keys
        case Project(input=input, expressions=expressions, columns=columns):
            below, keys = _with_order(input)
            own = tuple(key.expression for key in keys)
            fields = tuple(Field(f"?order{i}?", scalar.type) for i, scalar in enumerate(own))
            moved = tuple(replace(key, expression=Column(len(columns) + i, key.expression.type)) for i, key in enumerate(keys))
            return (Project(below, (*expressions, *own), (*columns, *fields)), moved) if keys else (relation, ())
        case Generate():
            numbered = replace(relation, ordinality=True)
            return numbered, (SortKey(Column(len(numbered.columns) - 1, INT8), False, False),)
        case Values(rows=rows, columns=columns) if len(rows) > 1:
            places = tuple((*row, Literal(i, INT4)) for i, row in enumerate(rows))
            number = Field("?order?", INT4, False)
            return Values(places, (*columns, number)), (SortKey(Column(len(columns), INT4), False, False),)
    return relation, ()


def distinct(input: Relation) -> Relation:
    """Returns the distinct rows of a relation."""
    if not any(has_equal_forms(f.type) for f in input.columns):
        return Distinct(input)
    return aggregated(input, tuple(column(input, i) for i in range(len(input.columns))), ())


def set_operation(node: SetOperation) -> Relation:
    """Returns INTERSECT or EXCEPT, as a semi or anti join if equal rows may have different stored forms."""
    if not any(has_equal_forms(f.type) for f in node.columns):
        return node
    left, right = (_numbered(node.left), _numbered(node.right)) if node.all else (distinct(node.left), node.right)
    width = len(left.columns)
    pairs = ((column(left, i), column(right, i)) for i in range(width))
    same = tuple(Not(IsDistinct(sort_key(a), shifted(sort_key(b), width))) for a, b in pairs)
    joined = Join(left, right, "semi" if node.kind == "intersect" else "anti", conjunction(same))
    if not node.all:
        return joined
    return Project(joined, tuple(Column(i, f.type) for i, f in enumerate(node.columns)), node.columns)


def _numbered(input: Relation) -> Relation:
    """Returns the rows with a number, which counts equal rows from 1."""
    keys = tuple(sort_key(column(input, i)) for i in range(len(input.columns)))
    return Window(input, keys, (), (WindowCall(ROW_NUMBER, (), INT8),))
