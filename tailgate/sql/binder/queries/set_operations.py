"""UNION, INTERSECT and EXCEPT: combines two queries with the same number of columns.

Source: PostgreSQL 15, src/backend/parser/analyze.c, transformSetOperationTree.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tailgate.lake.errors import SyntaxError_
from tailgate.lake.types import UNKNOWN, Field
from tailgate.sql.binder.context import mismatch
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.types.coercion import coerce, common
from tailgate.sql.binder.types.comparability import require_equality
from tailgate.sql.binder.types.overloads import array_literal
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.plan import Column, Project, Relation, Scalar, SetOperation, UnionAll
from tailgate.sql.plan.grouping import distinct as made_distinct
from tailgate.sql.plan.grouping import set_operation

# whether a result column can be NULL, given whether the columns of the left and right side can
NULLABLE: dict[str, Callable[[bool, bool], bool]] = {
    "UNION": lambda a, b: a or b,
    "INTERSECT": lambda a, b: a and b,
    "EXCEPT": lambda a, b: a,
}


def combined(tree: exp.SetOperation, left: Relation, right: Relation, parameters: Parameters) -> Relation:
    """Returns the set operation of two bound sides.

    Raises 42601 if their numbers of columns differ, 42804 if their types have no common type.
    """
    word, second = type(tree).__name__.upper(), tree.args["expression"]
    if len(left.columns) != len(right.columns):
        raise SyntaxError_(f"each {word} query must have the same number of columns", position=leftmost(nth(second, 0)))
    fields: list[Field] = []
    casts: list[tuple[Scalar, Scalar]] = []
    for i, (a, b) in enumerate(zip(left.columns, right.columns, strict=True)):
        scalars = [_output(left, i), _output(right, i)]
        chosen = common(scalars, [None, leftmost(nth(second, i))], word)
        if chosen.is_array:
            scalars = [array_literal(s, chosen, parameters) for s in scalars]
            chosen = chosen.array(multidimensional=any(s.type.multidimensional for s in scalars))
        one, other = (coerce(s, chosen, parameters) for s in scalars)
        if one is None or other is None:
            raise mismatch(word, scalars[one is not None], chosen, leftmost(nth(second, i)))
        casts.append((one, other))
        fields.append(Field(a.name, chosen, NULLABLE[word](a.nullable, b.nullable)))
    columns, distinct = tuple(fields), bool(tree.args.get("distinct"))
    if distinct or not isinstance(tree, exp.Union):
        for i, field in enumerate(columns):
            require_equality(field.type, leftmost(nth(tree.this, i)))
    inputs = _side(left, tuple(a for a, _ in casts), columns), _side(right, tuple(b for _, b in casts), columns)
    if isinstance(tree, exp.Union):
        flat = tuple(i for p in inputs for i in (p.inputs if isinstance(p, UnionAll) else (p,)))
        return made_distinct(UnionAll(inputs, columns)) if distinct else UnionAll(flat, columns)
    node = SetOperation(*inputs, "intersect" if isinstance(tree, exp.Intersect) else "except", not distinct, columns)
    return set_operation(node)


def _output(plan: Relation, index: int) -> Scalar:
    """Returns a column of a side.

    One of unknown type is a NULL, a quoted literal or a parameter of its select list.
    """
    field = plan.columns[index]
    if field.type == UNKNOWN:
        assert isinstance(plan, Project)
        return plan.expressions[index]
    return Column(index, field.type)


def _side(plan: Relation, scalars: tuple[Scalar, ...], columns: tuple[Field, ...]) -> Relation:
    """Casts a side to the common column types."""
    unknown = [i for i, f in enumerate(plan.columns) if f.type == UNKNOWN]
    if unknown:
        assert isinstance(plan, Project)
        expressions = tuple(scalars[i] if i in unknown else e for i, e in enumerate(plan.expressions))
        fields = tuple(columns[i] if i in unknown else f for i, f in enumerate(plan.columns))
        plan = Project(plan.input, expressions, fields)
        scalars = tuple(Column(i, s.type) if i in unknown else s for i, s in enumerate(scalars))
    return _cast_to(plan, scalars, columns)


def _cast_to(plan: Relation, scalars: tuple[Scalar, ...], columns: tuple[Field, ...]) -> Relation:
    if all(isinstance(s, Column) and s.index == i and s.type == f.type for i, (s, f) in enumerate(zip(scalars, plan.columns, strict=True))):
        return plan
    return Project(plan, scalars, columns)


def nth(tree: exp.Expr, index: int) -> exp.Expr:
    """Returns the node of an output column, for its position."""
    while isinstance(tree, (exp.Subquery, exp.SetOperation)):
        tree = tree.this
    rows = tree.expressions
    if isinstance(tree, exp.Values):
        rows = rows[0].expressions
    return rows[index] if index < len(rows) else tree
