"""Brings joins into the form of the circuit: pairs of equal columns, and a residual condition.

    L ⋈_{f(l) = g(r) ∧ c} R  =  π_{l, r}(σ_c(π_{l, f(l)}(L) ⋈_{f = g} π_{r, g(r)}(R)))

In an inner join c becomes a filter above the join. In the others c determines which rows have a
match, so it stays in the join condition.

Both sides of a key have the same type. If an operator compares two types (numeric(10,2) =
numeric(12,4)), both sides are cast to one that holds all values of both. Equalities that can fail
do not become keys, because they would be evaluated for more rows below the join. They do become
keys if the join has no other equality. `matching` reads the resulting form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailgate.engine.plan.analysis.labels import label, names
from tailgate.engine.plan.analysis.scalars import equated, renumber
from tailgate.engine.plan.casts import cast_to
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import BOOL, FLOAT8, INT4, INT8, NUMERIC_PRECISION, TEXT, TIMESTAMP, TIMESTAMPTZ, Field, Type
from tailgate.sql.binder.types.coercion import same
from tailgate.sql.binder.types.overloads import operator
from tailgate.sql.plan import ArrivalJoin, Call, Column, Filter, IsDistinct, Join, Literal, Not, Project, Relation, Scalar, WithinJoin
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, shifted
from tailgate.sql.plan.sort_keys import EQUAL_KEYS, GENERAL_KEY, has_equal_forms, sort_key
from tailgate.sql.plan.traversal import bottom_up, project, with_inputs

TRUE = Literal(True, BOOL)

# a type, and the types whose values it can represent exactly
WIDER: dict[Type, frozenset[str]] = {
    INT4: frozenset({"int2", "int4"}),
    INT8: frozenset({"int2", "int4", "int8"}),
    FLOAT8: frozenset({"float4", "float8"}),
    TIMESTAMP: frozenset({"date", "timestamp"}),
    TIMESTAMPTZ: frozenset({"date", "timestamp", "timestamptz"}),
}


@dataclass(frozen=True, slots=True)
class Key:
    """An equality of `left`, over the left's columns, and `right`, over the right's.

    `equal` is the condition that states it.
    """

    left: Scalar
    right: Scalar
    equal: Scalar


@dataclass(frozen=True, slots=True)
class Matching:
    """A join condition: these pairs of columns are equal, and `rest` is true.

    `null_safe`: for each pair of columns, whether NULL equals NULL.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    null_safe: tuple[bool, ...]
    rest: tuple[Scalar, ...]


def split_joins(relation: Relation) -> Relation:
    """Brings all joins of a plan into the form of the circuit."""
    return bottom_up(relation, _split_any)


def _split_any(relation: Relation) -> Relation:
    match relation:
        case ArrivalJoin():
            return _arrival(_split(relation.as_join()))
        case WithinJoin():
            return _within_join(relation)
        case _:
            return _split(relation)


def _arrival(split: Relation) -> Relation:
    """Replaces the join at the end of `_split` by a join as of arrival."""
    match split:
        case Join(left, right, "inner" | "left" as kind, condition, position) if condition is not None:
            return ArrivalJoin(left, right, kind, condition, position)
        case Project(input) | Filter(input):
            return with_inputs(split, (_arrival(input),))
    raise FeatureNotSupported(
        "FOR SYSTEM_TIME AS OF PROCTIME() is only supported with an equality in ON", position=getattr(split, "position", None)
    )


def _within_join(join: WithinJoin) -> Relation:
    """Returns the join with columns for the sides of its equalities and for its times.

    Raises 0A000 for another condition.
    """
    plain, width = join.as_join(), len(join.left.columns)
    pairs = [_key(plain, c) for c in conjuncts(join.condition)]
    keys = [key for key in pairs if key is not None]
    if len(keys) < len(pairs):
        raise FeatureNotSupported("JOIN … WITHIN with other conditions than equalities in ON is not supported", position=join.position)
    left, left_at = _with(join.left, (*(key.left for key in keys), join.times[0]))
    right, right_at = _with(join.right, (*(key.right for key in keys), shifted(join.times[1], -width)))
    wide = len(left.columns)
    on = tuple(
        _equal(key.equal, Column(a, left.columns[a].type), Column(wide + b, right.columns[b].type))
        for key, a, b in zip(keys, left_at, right_at, strict=False)
    )
    times = Column(left_at[-1], join.times[0].type), Column(wide + right_at[-1], join.times[1].type)
    split = replace(join, left=left, right=right, condition=conjunction(on), times=times)
    if len(split.columns) == len(join.columns):
        return split
    places = (*range(width), *range(wide, wide + len(join.right.columns)), len(split.columns) - 1)
    return project(split, tuple(Column(i, f.type) for i, f in zip(places, join.columns, strict=True)), join.columns)


def matching(join: Join) -> Matching:
    """Returns the equal columns and the residual conditions of a join."""
    keys, rest = [], []
    for condition in conjuncts(join.condition):
        key = _key(join, condition)
        if key is not None and isinstance(key.left, Column) and isinstance(key.right, Column):
            keys.append((key.left.index, key.right.index, isinstance(condition, Not)))
        elif condition != TRUE:
            rest.append(condition)
    return Matching(tuple(a for a, _, _ in keys), tuple(b for _, b, _ in keys), tuple(safe for _, _, safe in keys), tuple(rest))


def _split(relation: Relation) -> Relation:
    if not isinstance(relation, Join) or relation.condition is None:
        return relation
    conditions = conjuncts(relation.condition)
    candidates = [(c, key) for c in conditions if (key := _key(relation, c)) is not None]
    pairs = [(c, key) for c, key in candidates if not fallible(c)] or candidates
    rest = tuple(c for c in conditions if all(c is not k for k, _ in pairs))
    left, left_at = _with(relation.left, tuple(key.left for _, key in pairs))
    right, right_at = _with(relation.right, tuple(key.right for _, key in pairs))
    if left is relation.left and right is relation.right and not (rest and relation.kind == "inner"):
        return relation
    width, wide = len(relation.left.columns), len(left.columns)
    place = {i: i for i in range(width)} | {width + i: wide + i for i in range(len(relation.right.columns))}
    rest = tuple(renumber(c, place) for c in rest)
    on = tuple(
        _equal(key.equal, Column(a, left.columns[a].type), Column(wide + b, right.columns[b].type))
        for (_, key), a, b in zip(pairs, left_at, right_at, strict=True)
    )
    joined: Relation
    if relation.kind != "inner":
        joined = Join(left, right, relation.kind, conjunction(on + rest), relation.position)
    else:
        joined = Join(left, right, "inner" if on else "cross", conjunction(on) if on else None, relation.position)
        joined = Filter(joined, conjunction(rest)) if rest else joined
    columns = relation.columns
    if len(joined.columns) == len(columns):
        return joined
    return project(joined, tuple(Column(place[i], f.type) for i, f in enumerate(columns)), columns)


def _equal(equal: Scalar, left: Column, right: Column) -> Scalar:
    """Returns the equality `equal` with other sides."""
    if isinstance(equal, Call) and same(left.type, equal.arguments[0].type):
        return replace(equal, arguments=(left, right))
    if isinstance(equal, Call):
        function = EQUAL_KEYS if left.type == GENERAL_KEY else operator("=", (left.type, right.type), None)
        return Call(function, (left, right), BOOL)
    return Not(IsDistinct(left, right))


def _key(join: Join, condition: Scalar) -> Key | None:
    """Returns the key that a condition gives, or None if it is not an equality of the two sides."""
    sides = equated(condition)
    if sides is None:
        return None
    width, whole = len(join.left.columns), len(join.left.columns) + len(join.right.columns)
    one, other = sides
    if _within(other, 0, width) and _within(one, width, whole):
        one, other = other, one
    if not _within(one, 0, width) or not _within(other, width, whole):
        return None
    return _of_one_type(Key(one, shifted(other, -width), condition))


def _within(scalar: Scalar, start: int, end: int) -> bool:
    used = columns_of(scalar)
    return bool(used) and all(start <= i < end for i in used)


def _of_one_type(key: Key) -> Key | None:
    """Returns the key with both sides cast to one type that holds both exactly.

    Returns None without such a type, or if values that are equal would differ in it.
    """
    left, right = key.left.type, key.right.type
    if _alike(left, right):
        return key
    if same(left, right) and has_equal_forms(left):
        return Key(sort_key(key.left), sort_key(key.right), key.equal)
    common = _common(key.left.type, key.right.type)
    if common is None:
        return None
    return Key(cast_to(key.left, common), cast_to(key.right, common), key.equal)


def _alike(a: Type, b: Type) -> bool:
    """Returns whether values of these types are equal if and only if their stored forms are equal."""
    return a == b == GENERAL_KEY or (a.spark == b.spark and not any(has_equal_forms(t) or t.name == "record" for t in (a, b)))


def _common(a: Type, b: Type) -> Type | None:
    """Returns a type that holds all values of both types exactly, or None."""
    if a.is_array or b.is_array or {a.name, b.name} & {"interval", "jsonb", "record"}:
        return None
    if a.name == b.name == "numeric":
        (precision, scale), (other_precision, other_scale) = a.decimal, b.decimal
        wide, exact = max(precision - scale, other_precision - other_scale), max(scale, other_scale)
        return Type("numeric", (min(wide + exact, NUMERIC_PRECISION), exact), declared=False)
    if "bpchar" in (a.name, b.name):
        # trailing blanks are removed, because they are not significant
        return TEXT
    return next((t for t in WIDER if {a.name, b.name} <= WIDER[t]), None)


def _with(relation: Relation, keys: tuple[Scalar, ...]) -> tuple[Relation, tuple[int, ...]]:
    """Returns the relation with a column for each key, and the positions of these columns."""
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
            fields.append(Field(label(key, names(relation)), key.type))
    if not added:
        return relation, tuple(places)
    own = tuple(Column(i, f.type) for i, f in enumerate(columns))
    return Project(relation, own + tuple(added), tuple(fields)), tuple(places)
