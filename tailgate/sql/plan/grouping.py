"""Grouping, DISTINCT, INTERSECT and EXCEPT for types whose equal values may have different stored forms.

Rows are grouped by sort keys (`sql.plan.sort_keys`). The result has the smallest stored form of each group,
so it is deterministic.

    SELECT data, count(*) … GROUP BY data   ──►   π_{form, count}(γ_{order(data); count(*), one_of(data) as form})
    A EXCEPT B                              ──►   δ(A) ▷_{order(a) = order(b)} B
    A EXCEPT ALL B                          ──►   the same, of rows with the number of the row among equal ones, without δ
"""

from __future__ import annotations

from tailgate.lake.types import INT8
from tailgate.sql.functions import windows
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import (
    AggregateCall,
    Column,
    Distinct,
    IsDistinct,
    Join,
    Not,
    Project,
    Reduce,
    Relation,
    Scalar,
    SetOperation,
    Values,
    Window,
    WindowCall,
)
from tailgate.sql.plan.rewriting import conjunction, shifted
from tailgate.sql.plan.sort_keys import has_equal_forms, sort_key
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
