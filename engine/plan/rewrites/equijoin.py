"""Inner joins in the form which the circuit has: columns that are equal, and a filter of what else was asked.

    L ⋈_{f(l) = g(r) ∧ c} R  =  π_{l, r}(σ_c(π_{l, f(l)}(L) ⋈_{f = g} π_{r, g(r)}(R)))

Both sides of a key are of one type: where an operator takes two (numeric(10,2) = numeric(12,4)), both are cast to one that holds
either. Only equalities that cannot fail become keys, because below the join more rows are asked; if there is no other equality
then those that can fail do after all. After this pass every inner join's condition is `column = column and …`.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.plan.fallible import fallible
from engine.plan.relations import bottom_up, project
from engine.plan.scalars import columns_of, conjunction, conjuncts, renumber, shift
from lake.types import NUMERIC_PRECISION, Field, Type
from sql.plan import Call, Column, Filter, Join, Project, Relation, Scalar


@dataclass(frozen=True, slots=True)
class Key:
    """Equal scalars: `left` over the left's columns, `right` over the right's; `equal` is what said so."""

    left: Scalar
    right: Scalar
    equal: Call


def split_joins(relation: Relation) -> Relation:
    return bottom_up(relation, _split)


def keys_of(join: Join) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The key columns of a join in the form of this pass, of the left and of the right; None if it is not in that form."""
    if join.condition is None:
        return None
    width = len(join.left.columns)
    pairs = []
    for condition in conjuncts(join.condition):
        match condition:
            case Call(function, (Column(index=a, type=t), Column(index=b, type=u))) if (
                function.name == "=" and a < width <= b and t.spark == u.spark
            ):
                pairs.append((a, b - width))
            case _:
                return None
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def _split(relation: Relation) -> Relation:
    if not isinstance(relation, Join) or relation.kind != "inner" or relation.condition is None or keys_of(relation) is not None:
        return relation
    conditions = conjuncts(relation.condition)
    found = [(c, key) for c in conditions if (key := _key(relation, c)) is not None]
    sure = [(c, key) for c, key in found if not fallible(c)]
    chosen = sure or found
    if not chosen:
        return relation
    left, left_at = _with(relation.left, tuple(key.left for _, key in chosen))
    right, right_at = _with(relation.right, tuple(key.right for _, key in chosen))
    width, wide = len(relation.left.columns), len(left.columns)
    on = tuple(
        Call(key.equal.function, (Column(a, left.columns[a].type), Column(wide + b, right.columns[b].type)), key.equal.type)
        for (_, key), a, b in zip(chosen, left_at, right_at, strict=True)
    )
    joined: Relation = Join(left, right, "inner", conjunction(on), relation.position)
    place = {i: i for i in range(width)} | {width + i: wide + i for i in range(len(relation.right.columns))}
    rest = tuple(c for c in conditions if all(c is not k for k, _ in chosen))
    if rest:
        joined = Filter(joined, conjunction(tuple(renumber(c, place) for c in rest)))
    if len(joined.columns) == len(relation.columns):
        return joined
    columns = relation.columns
    return project(joined, tuple(Column(place[i], f.type) for i, f in enumerate(columns)), columns)


def _key(join: Join, condition: Scalar) -> Key | None:
    if not isinstance(condition, Call) or condition.function.name != "=" or condition.function.kind != "operator":
        return None
    width = len(join.left.columns)
    one, other = condition.arguments
    if _within(other, 0, width) and _within(one, width, len(join.columns)):
        one, other = other, one
    if not _within(one, 0, width) or not _within(other, width, len(join.columns)):
        return None
    return _of_one_type(Key(one, shift(other, -width), condition))


def _within(scalar: Scalar, start: int, end: int) -> bool:
    used = columns_of(scalar)
    return bool(used) and all(start <= i < end for i in used)


def _of_one_type(key: Key) -> Key | None:
    a, b = key.left.type, key.right.type
    if a.spark == b.spark:
        return key
    common = _common(a, b)
    return None if common is None else Key(_cast(key.left, common), _cast(key.right, common), key.equal)


def _common(a: Type, b: Type) -> Type | None:
    """The numeric that holds both exactly, or None."""
    if a.name != "numeric" or b.name != "numeric" or a.is_array or b.is_array:
        return None
    (precision, scale), (other_precision, other_scale) = a.decimal, b.decimal
    wide = max(precision - scale, other_precision - other_scale)
    exact = max(scale, other_scale)
    return Type("numeric", (min(wide + exact, NUMERIC_PRECISION), exact), declared=False)


def _cast(scalar: Scalar, to: Type) -> Scalar:
    if scalar.type.spark == to.spark:
        return scalar
    from sql.functions import cast

    return Call(cast(scalar.type, to), (scalar,), to)


def _with(relation: Relation, keys: tuple[Scalar, ...]) -> tuple[Relation, tuple[int, ...]]:
    """The relation with a column for each key, and where those are."""
    columns = relation.columns
    fields, added, places = list(columns), list[Scalar](), []
    for key in keys:
        if isinstance(key, Column):
            places.append(key.index)
        elif key in added:
            places.append(len(columns) + added.index(key))
        else:
            places.append(len(fields))
            added.append(key)
            fields.append(Field("?column?", key.type))
    if not added:
        return relation, tuple(places)
    own = tuple(Column(i, f.type) for i, f in enumerate(columns))
    return Project(relation, own + tuple(added), tuple(fields)), tuple(places)
