"""Joins a subquery Q to the relation L that reads it.

EXISTS in a condition         L ⋉ Q, L ▷ Q
EXISTS as a value             L ⟕ (distinct arguments of Q); true if a row matches
(SELECT aggregate …)          L ⟕ γ(Q); count is 0 if no row matches
(SELECT …)                    L ⟕ γ_{count, value}(Q), or L ⟕ Q if at most one row can match
LATERAL                       L ⋈ Q, L ⟕ Q

If more than one row of a scalar subquery matches, reading its value raises 21000.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal as OneOf

from tailgate.lake.types import BOOL, Field
from tailgate.sql.decorrelate.aggregates import collect, count_rows, over_nothing, positive, single_row, single_value
from tailgate.sql.decorrelate.unnested import Unnested, equal
from tailgate.sql.decorrelate.unnesting import Unnesting
from tailgate.sql.plan import (
    Case,
    Coalesce,
    Column,
    Distinct,
    Filter,
    Generate,
    IsNull,
    Join,
    Limit,
    Literal,
    Not,
    Project,
    Reduce,
    Relation,
    Scalar,
    Sort,
    SortKey,
    Values,
)
from tailgate.sql.plan.correlation import arguments_read
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.properties import is_volatile, unique_by
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, moved, rebuild, shifted, substituted
from tailgate.sql.plan.subqueries import Dependent, Subquery
from tailgate.sql.plan.traversal import column, cross_join, is_one_row, project, take
from tailgate.values.composites.dimensions import EMPTY

TRUE = Literal(True, BOOL)


def exists(left: Relation, subquery: Subquery, kind: OneOf["semi", "anti"]) -> Relation | None:
    """Returns the left rows for which the subquery has a row (semi) or has none (anti).

    Returns None if the subquery reads no outer values, so that the answer is the same for all rows.
    """
    core = _rows_alone(subquery.relation)
    unnesting = Unnesting(subquery.depth, subquery.arguments, left)
    if not unnesting.reads(core):
        return None
    conditions, core = _split(core, unnesting)
    unnested = unnesting.of(core)
    return Join(left, unnested.relation, kind, conjunction(_terms(left, unnested, unnesting, conditions)), None)


def value(relation: Relation, base: Relation, subquery: Subquery) -> tuple[Relation, Scalar]:
    """Returns the relation with additional columns, and the subquery's value as a scalar over it.

    `base` is the relation over which the arguments are computed.
    """
    match subquery.kind:
        case "exists":
            return _whether(relation, base, subquery)
        case "scalar":
            return _scalar(relation, base, subquery)
        case "array":
            return _scalar(relation, base, replace(subquery, kind="scalar", relation=_collected(subquery)))
    raise AssertionError("ANY is EXISTS by now")


def lateral(join: Dependent) -> Relation:
    """Returns the pairs of a left row and a row of the right side evaluated for that left row."""
    left, right = join.left, join.right
    unnesting = Unnesting(join.depth, join.arguments, left)
    outputs, core = _outputs(right, unnesting, whole=_is_total(right))
    width = len(left.columns)
    on = () if join.condition is None or join.condition == TRUE else conjuncts(join.condition)
    wide: Relation
    if is_one_row(core) and (join.kind == "inner" or not on):
        wide, columns = left, tuple(map(unnesting.given, outputs))
    elif (generated := _generated(join, core, outputs, unnesting)) is not None and not on:
        wide, columns = generated, tuple(_above(o, _columns(core, width), unnesting) for o in outputs)
    elif isinstance(core, Reduce) and not core.keys and (join.kind == "inner" or not on):
        wide, scalars = _one_row(left, core, unnesting)
        columns = tuple(_above(o, scalars, unnesting) for o in outputs)
    else:
        conditions, core = _split(core, unnesting)
        unnested = unnesting.of(core)
        shown = tuple(_above(o, _columns(core, width), unnesting) for o in outputs)
        if join.kind == "left" and not all(isinstance(o, Column) and o.index >= width for o in shown):
            unnested, mark = _marked(unnested)
            columns = tuple(o if isinstance(o, Column) and o.index >= width else _if(Column(width + mark, BOOL), o) for o in shown)
        else:
            columns = shown
        both = tuple(column(left, i) for i in range(width)) + shown
        terms = _terms(left, unnested, unnesting, conditions) + tuple(substituted(c, both) for c in on)
        on = ()
        if join.kind == "left":
            wide = Join(left, unnested.relation, "left", conjunction(terms or (TRUE,)), join.position)
        else:
            wide = (
                Join(left, unnested.relation, "inner", conjunction(terms), join.position) if terms else cross_join(left, unnested.relation)
            )
    result: Relation = project(wide, tuple(column(left, i) for i in range(width)) + columns, join.columns)
    return Filter(result, conjunction(on)) if on else result


def _generated(join: Dependent, core: Relation, outputs: tuple[Scalar, ...], unnesting: Unnesting) -> Relation | None:
    """Returns a Generate over the left rows if the right side is just a function, else None."""
    if not isinstance(core, Generate) or not is_one_row(core.input) or join.kind not in ("inner", "left"):
        return None
    if join.kind == "left" and not all(isinstance(o, Column) for o in outputs):
        return None
    arguments = tuple(map(unnesting.given, core.arguments))
    return replace(core, input=join.left, arguments=arguments, kind="left" if join.kind == "left" else core.kind)


# ---- values ------------------------------------------------------------------------------------------------------------------------


def _whether(relation: Relation, base: Relation, subquery: Subquery) -> tuple[Relation, Scalar]:
    """Does the work of `value` for EXISTS."""
    core = _rows_alone(subquery.relation)
    unnesting = Unnesting(subquery.depth, subquery.arguments, base)
    if is_one_row(core):
        return relation, TRUE
    width = len(relation.columns)
    unnested = unnesting.of(core)
    if not unnested.places:
        counted = Reduce(core, (), (count_rows(),))
        return cross_join(relation, counted), positive(Column(width, counted.columns[0].type))
    marked, mark = _marked(_distinct(unnested))
    joined = Join(relation, marked.relation, "left", conjunction(_terms(relation, marked, unnesting)))
    return joined, Not(IsNull(Column(width + mark, marked.relation.columns[mark].type)))


def _distinct(unnested: Unnested) -> Unnested:
    """Returns the distinct arguments of the rows, without the other columns."""
    places = tuple(unnested.places.values())
    return replace(unnested, relation=Distinct(take(unnested.relation, places)), places={n: i for i, n in enumerate(unnested.places)})


def _marked(unnested: Unnested) -> tuple[Unnested, int]:
    """Returns the relation with a boolean column that is never NULL, and the index of that column.

    After a left join, NULL in this column means that no row matched.
    """
    for index, column_ in enumerate(unnested.relation.columns):
        if not column_.nullable and column_.type == BOOL:
            return unnested, index
    width = len(unnested.relation.columns)
    own = tuple(column(unnested.relation, i) for i in range(width))
    wide = project(unnested.relation, (*own, TRUE), (*unnested.relation.columns, Field("found", BOOL, False)))
    return replace(unnested, relation=wide), width


def _scalar(relation: Relation, base: Relation, subquery: Subquery) -> tuple[Relation, Scalar]:
    """Does the work of `value` for a subquery that returns at most one row.

    Volatile functions are evaluated once if the subquery reads no outer values, as in PostgreSQL.
    """
    unnesting = Unnesting(subquery.depth, subquery.arguments, base)
    core = subquery.relation
    outputs: tuple[Scalar, ...] = tuple(column(core, i) for i in range(len(core.columns)))
    if not is_volatile(core) or any(arguments_read(core)):
        outputs, core = _outputs(core, unnesting, whole=_is_total(core))
    output, width = outputs[subquery.column], len(relation.columns)
    if is_one_row(core):
        return relation, unnesting.given(output)
    if isinstance(core, Reduce) and not core.keys:
        wide, scalars = _one_row(relation, core, unnesting)
        return wide, _above(output, scalars, unnesting)
    unnested = unnesting.of(core)
    indexes = tuple(sorted(columns_of(output)))
    places = tuple(unnested.places.values())
    if places and unique_by(unnested.relation, frozenset(places)):
        return _at_most_one(relation, unnested, unnesting, indexes, output)
    own = tuple(column(unnested.relation, p) for p in places)
    calls = (count_rows(), *(single_value(column(unnested.relation, c)) for c in indexes))
    grouped = Reduce(unnested.relation, own, calls)
    groups = Unnested(grouped, {n: i for i, n in enumerate(unnested.places)}, unnested.nulls)
    wide = _left(relation, groups, unnesting)
    rows = Column(width + len(own), calls[0].type)
    checked = {c: single_row(Column(rows.index + 1 + i, calls[1 + i].type), rows, subquery.position) for i, c in enumerate(indexes)}
    shown = _above(output, checked, unnesting)
    if isinstance(output, Column):
        return wide, shown
    return wide, Case(
        ((positive(rows), shown if indexes else single_row(shown, rows, subquery.position)),), Literal(None, shown.type), shown.type
    )


def _collected(subquery: Subquery) -> Relation:
    """Returns one row with the array of the subquery's first column, in the subquery's order.

    The array is empty if the subquery has no rows.
    """
    core, output = subquery.relation, column(subquery.relation, 0)
    shown: Scalar = output
    while isinstance(core, Project):
        shown, core = substituted(shown, core.expressions), core.input
    order: tuple[SortKey, ...] = ()
    match core:
        case Sort(input=input, keys=keys):
            core, order = input, keys
        case Limit(input=Sort(keys=keys)):
            order = keys
    grouped = Reduce(core, (), (collect(shown, order, subquery.type, subquery.position),))
    nothing = ((), EMPTY) if subquery.type.multidimensional else ()
    array = Coalesce((column(grouped, 0), Literal(nothing, subquery.type)), subquery.type)
    return project(grouped, (array,), (Field("array", subquery.type, False),))


def _at_most_one(
    relation: Relation, unnested: Unnested, unnesting: Unnesting, indexes: tuple[int, ...], output: Scalar
) -> tuple[Relation, Scalar]:
    """Joins a subquery that has at most one row for its arguments.

    `indexes`: the columns that `output` reads.
    """
    width = len(relation.columns)
    narrow = take(unnested.relation, (*indexes, *unnested.places.values()))
    narrowed = replace(unnested, relation=narrow, places={n: len(indexes) + i for i, n in enumerate(unnested.places)})
    scalars: dict[int, Scalar] = {c: Column(width + i, unnested.relation.columns[c].type) for i, c in enumerate(indexes)}
    shown = _above(output, scalars, unnesting)
    if isinstance(output, Column):
        return _left(relation, narrowed, unnesting), shown
    narrowed, mark = _marked(narrowed)
    return _left(relation, narrowed, unnesting), _if(Column(width + mark, BOOL), shown)


def _one_row(relation: Relation, core: Reduce, unnesting: Unnesting) -> tuple[Relation, dict[int, Scalar]]:
    """Joins an aggregate without keys, which has one row for each row of `relation`.

    Returns the join and the aggregate's columns in it, by their index.
    """
    groups, width = unnesting.groups_of(core), len(relation.columns)
    if not groups.places:
        return cross_join(relation, groups.relation), dict(_columns(core, width))
    wide = _left(relation, groups, unnesting)
    return wide, {i: over_nothing(c, Column(width + i, c.type)) for i, c in enumerate(core.aggregates)}


def _left(relation: Relation, unnested: Unnested, unnesting: Unnesting) -> Relation:
    if not unnested.places:
        return cross_join(relation, unnested.relation)
    return Join(relation, unnested.relation, "left", conjunction(_terms(relation, unnested, unnesting)))


# ---- helpers -----------------------------------------------------------------------------------------------------------------------


def _terms(left: Relation, unnested: Unnested, unnesting: Unnesting, conditions: Iterable[Scalar] = ()) -> tuple[Scalar, ...]:
    """Returns the terms of the join condition: the arguments are equal, and `conditions` hold."""
    width = len(left.columns)
    on = tuple(
        equal(unnesting.arguments[n], Column(width + p, unnested.relation.columns[p].type), n in unnested.nulls)
        for n, p in unnested.places.items()
    )
    return on + tuple(unnesting.given(shifted(c, width)) for c in conditions)


def _above(output: Scalar, columns: dict[int, Scalar], unnesting: Unnesting) -> Scalar:
    """Returns an output of the subquery as a scalar over the joined rows.

    `columns` has the subquery's columns there, by index. Arguments become scalars over the outer
    row.
    """

    def inside(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Column):
            return columns[scalar.index]
        return unnesting.given(scalar) if not columns_of(scalar) else rebuild(scalar, inside)

    return inside(output)


def _columns(core: Relation, width: int) -> dict[int, Scalar]:
    return {i: Column(width + i, f.type) for i, f in enumerate(core.columns)}


def _if(condition: Scalar, then: Scalar) -> Scalar:
    """Returns `then` where `condition` is not NULL, and NULL elsewhere."""
    return Case(((Not(IsNull(condition)), then),), Literal(None, then.type), then.type)


def _split(relation: Relation, unnesting: Unnesting) -> tuple[tuple[Scalar, ...], Relation]:
    """Returns the topmost conditions that read arguments, and the relation without them.

    The join can test these conditions instead.
    """
    if not isinstance(relation, Filter):
        return (), relation
    above, below = _split(relation.input, unnesting)
    own = conjuncts(relation.condition)
    conditions = tuple(c for c in own if unnesting.read(c))
    rest = tuple(c for c in own if c not in conditions)
    return above + conditions, Filter(below, conjunction(rest)) if rest else below


def _outputs(relation: Relation, unnesting: Unnesting, *, whole: bool) -> tuple[tuple[Scalar, ...], Relation]:
    """Splits a relation into its output expressions and the relation over which they are computed.

    Only projections for which `_is_late` holds become output expressions; with `whole`, all do.
    """
    outputs: tuple[Scalar, ...] = tuple(column(relation, i) for i in range(len(relation.columns)))
    while True:
        if isinstance(relation, Sort) or (whole and isinstance(relation, Limit)):
            relation = relation.input
        elif isinstance(relation, Project) and (whole or _is_late(relation, unnesting)):
            outputs = tuple(substituted(o, relation.expressions) for o in outputs)
            relation = relation.input
        else:
            return outputs, relation


def _is_late(relation: Project, unnesting: Unnesting) -> bool:
    """Returns whether a projection is computed after the join.

    This is so if its input is one row, if it reads arguments, or if it can fail.
    """
    return is_one_row(relation.input) or bool(unnesting.read(*relation.expressions)) or any(map(fallible, relation.expressions))


def _is_total(relation: Relation) -> bool:
    """Returns whether the relation is an aggregate without keys, and so has exactly one row.

    Projections, sorts and LIMIT n with n > 0 over the aggregate are allowed.
    """
    match relation:
        case Project(input=input) | Sort(input=input):
            return _is_total(input)
        case Limit(input=input, count=Literal(value=int() as count), offset=None):
            return count > 0 and _is_total(input)
        case Reduce(keys=()):
            return True
    return False


def _rows_alone(relation: Relation) -> Relation:
    """Returns a simpler relation that has rows if and only if this one has.

    Its columns can differ.
    """
    match relation:
        case Project(input=input) | Sort(input=input) | Distinct(input=input):
            return _rows_alone(input)
        case Limit(input=input, count=Literal(value=int() as count), offset=None) if count > 0:
            return _rows_alone(input)
        case Reduce(input=input, keys=keys):
            return _rows_alone(input) if keys else Values(((),), ())
    return _semi_to_inner(relation)


def _semi_to_inner(relation: Relation) -> Relation:
    """Replaces semi joins by inner joins, whose conditions can supply arguments.

    The result has the same rows, possibly with duplicates and additional columns.
    """
    match relation:
        case Filter(input=input):
            return replace(relation, input=_semi_to_inner(input))
        case Join(left=left, kind="semi", condition=condition) if condition is not None:
            wide, width = _semi_to_inner(left), len(left.columns)
            return replace(relation, left=wide, kind="inner", condition=moved(condition, width, len(wide.columns) - width))
    return relation
