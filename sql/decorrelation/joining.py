"""A subquery joined to the rows that read it.

EXISTS in a condition         L ⋉ Q, L ▷ Q
EXISTS as a value             L ⟕ (distinct arguments of Q): whether there was a partner
(SELECT aggregate …)          L ⟕ γ(Q), count is 0 without a partner
(SELECT …)                    L ⟕ γ_{count, value}(Q), or L ⟕ Q where at most one row can be; more than one is 21000 where it is read
LATERAL                       L ⋈ Q, L ⟕ Q
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal as OneOf

from lake.types import BOOL, Field
from sql.decorrelation.aggregates import collect, count_rows, over_nothing, positive, single_row, single_value
from sql.decorrelation.unnested import Unnested, equal
from sql.decorrelation.unnesting import Unnesting
from sql.fallible import fallible
from sql.plan import (
    Aggregate,
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
    Relation,
    Scalar,
    Sort,
    SortKey,
    Values,
)
from sql.properties import unique_by
from sql.relations import column, crossed, is_one_row, project, take
from sql.rewrite import columns_of, conjunction, conjuncts, moved, rebuilt, shifted, substituted
from sql.subqueries import Dependent, Subquery

TRUE = Literal(True, BOOL)


def exists(left: Relation, asked: Subquery, kind: OneOf["semi", "anti"]) -> Relation | None:
    """The rows of the left for which the subquery has a row, or for which it has none; None if that is the same for all of them."""
    core = _rows_alone(asked.relation)
    unnesting = Unnesting(asked.depth, asked.arguments, left)
    if not unnesting.reads(core):
        return None
    conditions, core = _split(core, unnesting)
    found = unnesting.of(core)
    return Join(left, found.relation, kind, conjunction(_terms(left, found, unnesting, conditions)), None)


def value(relation: Relation, base: Relation, asked: Subquery) -> tuple[Relation, Scalar]:
    """The relation with more columns, and the subquery's value over them. `base`: the rows that the arguments are computed from."""
    match asked.kind:
        case "exists":
            return _whether(relation, base, asked)
        case "scalar":
            return _scalar(relation, base, asked)
        case "array":
            return _scalar(relation, base, replace(asked, kind="scalar", relation=_collected(asked)))
    raise AssertionError("ANY is EXISTS by now")


def lateral(join: Dependent) -> Relation:
    """The pairs of a left row and a row of what its right side is for it."""
    left, right = join.left, join.right
    unnesting = Unnesting(join.depth, join.arguments, left)
    outputs, core = _outputs(right, unnesting, whole=_is_total(right))
    width = len(left.columns)
    on = () if join.condition is None or join.condition == TRUE else conjuncts(join.condition)
    wide: Relation
    if is_one_row(core) and (join.kind == "inner" or not on):
        wide, made = left, tuple(map(unnesting.given, outputs))
    elif (generated := _generated(join, core, outputs, unnesting)) is not None and not on:
        wide, made = generated, tuple(_above(o, _columns(core, width), unnesting) for o in outputs)
    elif isinstance(core, Aggregate) and not core.keys and (join.kind == "inner" or not on):
        wide, scalars = _one_row(left, core, unnesting)
        made = tuple(_above(o, scalars, unnesting) for o in outputs)
    else:
        conditions, core = _split(core, unnesting)
        found = unnesting.of(core)
        shown = tuple(_above(o, _columns(core, width), unnesting) for o in outputs)
        if join.kind == "left" and not all(isinstance(o, Column) and o.index >= width for o in shown):
            found, mark = _marked(found)
            made = tuple(o if isinstance(o, Column) and o.index >= width else _if(Column(width + mark, BOOL), o) for o in shown)
        else:
            made = shown
        both = tuple(column(left, i) for i in range(width)) + shown
        terms = _terms(left, found, unnesting, conditions) + tuple(substituted(c, both) for c in on)
        on = ()
        if join.kind == "left":
            wide = Join(left, found.relation, "left", conjunction(terms or (TRUE,)), join.position)
        else:
            wide = Join(left, found.relation, "inner", conjunction(terms), join.position) if terms else crossed(left, found.relation)
    result: Relation = project(wide, tuple(column(left, i) for i in range(width)) + made, join.columns)
    return Filter(result, conjunction(on)) if on else result


def _generated(join: Dependent, core: Relation, outputs: tuple[Scalar, ...], unnesting: Unnesting) -> Relation | None:
    """The function in FROM asked of each row of the left, if the right side is no more than one."""
    if not isinstance(core, Generate) or not is_one_row(core.input) or join.kind not in ("inner", "left"):
        return None
    if join.kind == "left" and not all(isinstance(o, Column) for o in outputs):
        return None
    arguments = tuple(map(unnesting.given, core.arguments))
    return replace(core, input=join.left, arguments=arguments, kind="left" if join.kind == "left" else core.kind)


# ---- values ------------------------------------------------------------------------------------------------------------------------


def _whether(relation: Relation, base: Relation, asked: Subquery) -> tuple[Relation, Scalar]:
    core = _rows_alone(asked.relation)
    unnesting = Unnesting(asked.depth, asked.arguments, base)
    if is_one_row(core):
        return relation, TRUE
    width = len(relation.columns)
    found = unnesting.of(core)
    if not found.places:
        counted = Aggregate(core, (), (count_rows(),))
        return crossed(relation, counted), positive(Column(width, counted.columns[0].type))
    marked, mark = _marked(_distinct(found))
    joined = Join(relation, marked.relation, "left", conjunction(_terms(relation, marked, unnesting)))
    return joined, Not(IsNull(Column(width + mark, marked.relation.columns[mark].type)))


def _distinct(found: Unnested) -> Unnested:
    """Each argument that has a row once."""
    places = tuple(found.places.values())
    return replace(found, relation=Distinct(take(found.relation, places)), places={n: i for i, n in enumerate(found.places)})


def _marked(found: Unnested) -> tuple[Unnested, int]:
    """With a column that is not NULL, and where it is."""
    for index, column_ in enumerate(found.relation.columns):
        if not column_.nullable and column_.type == BOOL:
            return found, index
    width = len(found.relation.columns)
    own = tuple(column(found.relation, i) for i in range(width))
    wide = project(found.relation, (*own, TRUE), (*found.relation.columns, Field("found", BOOL, False)))
    return replace(found, relation=wide), width


def _scalar(relation: Relation, base: Relation, asked: Subquery) -> tuple[Relation, Scalar]:
    unnesting = Unnesting(asked.depth, asked.arguments, base)
    outputs, core = _outputs(asked.relation, unnesting, whole=_is_total(asked.relation))
    output, width = outputs[asked.column], len(relation.columns)
    if is_one_row(core):
        return relation, unnesting.given(output)
    if isinstance(core, Aggregate) and not core.keys:
        wide, scalars = _one_row(relation, core, unnesting)
        return wide, _above(output, scalars, unnesting)
    found = unnesting.of(core)
    wanted = tuple(sorted(columns_of(output)))
    places = tuple(found.places.values())
    if places and unique_by(found.relation, frozenset(places)):
        return _at_most_one(relation, found, unnesting, wanted, output)
    own = tuple(column(found.relation, p) for p in places)
    calls = (count_rows(), *(single_value(column(found.relation, c)) for c in wanted))
    grouped = Aggregate(found.relation, own, calls)
    made = Unnested(grouped, {n: i for i, n in enumerate(found.places)}, found.nulls)
    wide = _left(relation, made, unnesting)
    rows = Column(width + len(own), calls[0].type)
    checked = {c: single_row(Column(rows.index + 1 + i, calls[1 + i].type), rows, asked.position) for i, c in enumerate(wanted)}
    shown = _above(output, checked, unnesting)
    if isinstance(output, Column):
        return wide, shown
    return wide, Case(
        ((positive(rows), shown if wanted else single_row(shown, rows, asked.position)),), Literal(None, shown.type), shown.type
    )


def _collected(asked: Subquery) -> Relation:
    """One row: the array of the first column, in the order of the subquery; of no rows the empty array."""
    core, output = asked.relation, column(asked.relation, 0)
    shown: Scalar = output
    while isinstance(core, Project):
        shown, core = substituted(shown, core.expressions), core.input
    order: tuple[SortKey, ...] = ()
    match core:
        case Sort(input=input, keys=keys):
            core, order = input, keys
        case Limit(input=Sort(keys=keys)):
            order = keys
    grouped = Aggregate(core, (), (collect(shown, order, asked.type, asked.position),))
    made = Coalesce((column(grouped, 0), Literal((), asked.type)), asked.type)
    return project(grouped, (made,), (Field("array", asked.type, False),))


def _at_most_one(
    relation: Relation, found: Unnested, unnesting: Unnesting, wanted: tuple[int, ...], output: Scalar
) -> tuple[Relation, Scalar]:
    width = len(relation.columns)
    narrow = take(found.relation, (*wanted, *found.places.values()))
    made = replace(found, relation=narrow, places={n: len(wanted) + i for i, n in enumerate(found.places)})
    scalars: dict[int, Scalar] = {c: Column(width + i, found.relation.columns[c].type) for i, c in enumerate(wanted)}
    shown = _above(output, scalars, unnesting)
    if isinstance(output, Column):
        return _left(relation, made, unnesting), shown
    made, mark = _marked(made)
    return _left(relation, made, unnesting), _if(Column(width + mark, BOOL), shown)


def _one_row(relation: Relation, core: Aggregate, unnesting: Unnesting) -> tuple[Relation, dict[int, Scalar]]:
    """Joined with an aggregate without keys, which has one row for each of the rows; and its columns."""
    groups, width = unnesting.groups_of(core), len(relation.columns)
    if not groups.places:
        return crossed(relation, groups.relation), dict(_columns(core, width))
    wide = _left(relation, groups, unnesting)
    return wide, {i: over_nothing(c, Column(width + i, c.type)) for i, c in enumerate(core.aggregates)}


def _left(relation: Relation, found: Unnested, unnesting: Unnesting) -> Relation:
    if not found.places:
        return crossed(relation, found.relation)
    return Join(relation, found.relation, "left", conjunction(_terms(relation, found, unnesting)))


# ---- parts -------------------------------------------------------------------------------------------------------------------------


def _terms(left: Relation, found: Unnested, unnesting: Unnesting, conditions: Iterable[Scalar] = ()) -> tuple[Scalar, ...]:
    """What ties rows of the left to rows of the subquery: that they are for its arguments, and what else it asked of them."""
    width = len(left.columns)
    on = tuple(
        equal(unnesting.arguments[n], Column(width + p, found.relation.columns[p].type), n in found.nulls) for n, p in found.places.items()
    )
    return on + tuple(unnesting.given(shifted(c, width)) for c in conditions)


def _above(output: Scalar, columns: dict[int, Scalar], unnesting: Unnesting) -> Scalar:
    """An output over the joined rows: of the subquery's columns there, and of the rows around."""

    def inside(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Column):
            return columns[scalar.index]
        return unnesting.given(scalar) if not columns_of(scalar) else rebuilt(scalar, inside)

    return inside(output)


def _columns(core: Relation, width: int) -> dict[int, Scalar]:
    return {i: Column(width + i, f.type) for i, f in enumerate(core.columns)}


def _if(condition: Scalar, then: Scalar) -> Scalar:
    return Case(((Not(IsNull(condition)), then),), Literal(None, then.type), then.type)


def _split(relation: Relation, unnesting: Unnesting) -> tuple[tuple[Scalar, ...], Relation]:
    """The conditions at the top that read arguments, which the join can ask as well, and what is below."""
    if not isinstance(relation, Filter):
        return (), relation
    above, below = _split(relation.input, unnesting)
    own = conjuncts(relation.condition)
    asked = tuple(c for c in own if unnesting.read(c))
    rest = tuple(c for c in own if c not in asked)
    return above + asked, Filter(below, conjunction(rest)) if rest else below


def _outputs(relation: Relation, unnesting: Unnesting, *, whole: bool) -> tuple[tuple[Scalar, ...], Relation]:
    """What is computed at the top, and what from: only what reads arguments, or may fail, or (`whole`) all of it."""
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
    return is_one_row(relation.input) or bool(unnesting.read(*relation.expressions)) or any(map(fallible, relation.expressions))


def _is_total(relation: Relation) -> bool:
    """Whether it is an aggregate without keys, and so has one row, whatever is computed from it."""
    match relation:
        case Project(input=input) | Sort(input=input):
            return _is_total(input)
        case Limit(input=input, count=Literal(value=int() as count), offset=None):
            return count > 0 and _is_total(input)
        case Aggregate(keys=()):
            return True
    return False


def _rows_alone(relation: Relation) -> Relation:
    """A relation with rows if the other has: what it computes of them does not matter."""
    match relation:
        case Project(input=input) | Sort(input=input) | Distinct(input=input):
            return _rows_alone(input)
        case Limit(input=input, count=Literal(value=int() as count), offset=None) if count > 0:
            return _rows_alone(input)
        case Aggregate(input=input, keys=keys):
            return _rows_alone(input) if keys else Values(((),), ())
    return _often(relation)


def _often(relation: Relation) -> Relation:
    """The same rows, perhaps more often, and perhaps wider: inner joins in place of semi joins, whose conditions can give arguments."""
    match relation:
        case Filter(input=input):
            return replace(relation, input=_often(input))
        case Join(left=left, kind="semi", condition=condition) if condition is not None:
            wide, width = _often(left), len(left.columns)
            return replace(relation, left=wide, kind="inner", condition=moved(condition, width, len(wide.columns) - width))
    return relation
