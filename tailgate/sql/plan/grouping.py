"""Grouping, DISTINCT, INTERSECT and EXCEPT for types whose equal values may have different stored forms.

Rows are grouped by sort keys (`sql.plan.sort_keys`). The result has the smallest stored form of each group,
so it is deterministic.

    SELECT data, count(*) … GROUP BY data   ──►   π_{form, count}(γ_{order(data); count(*), one_of(data) as form})
    A EXCEPT B                              ──►   δ(A) ▷_{order(a) = order(b)} B
"""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported
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
)
from tailgate.sql.plan.rewriting import conjunction, shifted
from tailgate.sql.plan.sort_keys import has_equal_forms, sort_key
from tailgate.sql.plan.traversal import column

ONE_ROW = Values(((),), ())  # the input of SELECT without FROM
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


def set_operation(node: SetOperation, position: int | None) -> Relation:
    """Returns INTERSECT or EXCEPT, as a semi or anti join if equal rows may have different stored forms.

    Raises 0A000 for INTERSECT ALL and EXCEPT ALL of such rows.
    """
    kinds = [f.type for f in node.columns if has_equal_forms(f.type)]
    if not kinds:
        return node
    if node.all:
        raise FeatureNotSupported(
            f"{node.kind.upper()} ALL of type {kinds[0]} is not supported", hint="Cast it to text.", position=position
        )
    left, width = distinct(node.left), len(node.columns)
    pairs = ((column(left, i), column(node.right, i)) for i in range(width))
    same = tuple(Not(IsDistinct(sort_key(a), shifted(sort_key(b), width))) for a, b in pairs)
    return Join(left, node.right, "semi" if node.kind == "intersect" else "anti", conjunction(same))
