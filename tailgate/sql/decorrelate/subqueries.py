"""Finds the subqueries in a plan and joins each one to the input of the node that reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.decorrelate import subquery_joins
from tailgate.sql.decorrelate.in_any_all import as_exists, negated
from tailgate.sql.decorrelate.unnested import equal
from tailgate.sql.plan import And, Filter, Join, JoinKind, Literal, Not, Or, Project, Reduce, Relation, Scalar, UnionAll
from tailgate.sql.plan.correlation import has_subqueries, subqueries_of
from tailgate.sql.plan.properties import is_volatile, key
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, moved, rebuild, shifted
from tailgate.sql.plan.subqueries import Dependent, Subquery, as_scalar, dependent, subquery
from tailgate.sql.plan.traversal import column, inputs, project, scalars_of, take, with_inputs, with_scalars

Rewritten = dict[int, tuple[Relation, Relation]]  # by id(): a relation and its rewritten form


def decorrelate(relation: Relation, rewritten: Rewritten | None = None) -> Relation:
    """Returns the relation without subqueries, or the same object if it has none. Raises 0A000.

    `rewritten` holds the relations that are already rewritten. A relation that occurs several times in
    a plan therefore remains one object.
    """
    rewritten = {} if rewritten is None else rewritten
    if id(relation) not in rewritten:
        rewritten[id(relation)] = relation, _decorrelated(relation, rewritten)
    return rewritten[id(relation)][1]


def _decorrelated(relation: Relation, rewritten: Rewritten) -> Relation:
    """Rewrites the inputs of a relation, then its subqueries."""
    if (join := dependent(relation)) is not None:
        return _dependent(replace(join, left=decorrelate(join.left, rewritten), right=decorrelate(join.right, rewritten)), rewritten)
    relation = with_inputs(relation, tuple(decorrelate(i, rewritten) for i in inputs(relation)))
    if not any(map(has_subqueries, scalars_of(relation))):
        return relation
    match relation:
        case Filter(input, condition):
            return _filter(input, conjuncts(condition), rewritten)
        case Join():
            return _join(relation, rewritten)
        case Project(input=input) | Reduce(input=input):
            row = ExtendedRelation(input, rewritten)
            node = with_scalars(relation, row.value)
            return with_inputs(node, (row.relation,))
    (input,) = inputs(relation)
    row = ExtendedRelation(input, rewritten)
    wide = with_inputs(with_scalars(relation, row.value), (row.relation,))
    added, width = len(row.relation.columns) - len(input.columns), len(input.columns)
    return take(wide, (*range(width), *range(width + added, len(wide.columns))))


def _dependent(join: Dependent, rewritten: Rewritten) -> Relation:
    if join.condition is None or not has_subqueries(join.condition):
        return subquery_joins.lateral(join)
    if join.kind == "inner":
        return _filter(subquery_joins.lateral(replace(join, condition=None)), conjuncts(join.condition), rewritten)
    raise FeatureNotSupported("a subquery in the ON of a LEFT JOIN LATERAL is not supported", position=join.position)


@dataclass
class ExtendedRelation:
    """A relation that gets a column for each subquery whose value is read.

    Equal subqueries have one column, but with volatile functions one for each position in the text.
    """

    input: Relation
    rewritten: Rewritten
    relation: Relation = field(init=False)
    values: dict[tuple[Subquery, int | None], Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.relation = self.input

    def value(self, scalar: Scalar) -> Scalar:
        """Returns the scalar over the extended relation, without subqueries."""
        inner = subquery(scalar)
        if inner is None:
            return rebuild(scalar, self.value)
        if inner.kind == "any":
            return self.value(as_exists(inner, self.relation.columns))
        for place in ((inner, None), (inner, inner.position)):
            if place in self.values:
                return self.values[place]
        arguments = tuple(map(self.value, inner.arguments))
        closed = replace(inner, arguments=arguments, relation=decorrelate(inner.relation, self.rewritten))
        # The domain is taken from the original rows, unless an argument is a subquery's value.
        own = all(i < len(self.input.columns) for a in arguments for i in columns_of(a))
        self.relation, scalar = subquery_joins.value(self.relation, self.input if own else self.relation, closed)
        self.values[inner, inner.position if is_volatile(closed.relation) else None] = scalar
        return scalar


def _filter(input: Relation, conditions: tuple[Scalar, ...], rewritten: Rewritten) -> Relation:
    """Filters by plain conditions, then by semi and anti joins, then by values of subqueries."""
    plain = tuple(c for c in conditions if not has_subqueries(c))
    relation = Filter(input, conjunction(plain)) if plain else input
    waiting = [term for c in conditions if has_subqueries(c) for term in conjuncts(_pushed(c))]
    values = list[Scalar]()
    while waiting:
        term = waiting.pop(0)
        positive = term.argument if isinstance(term, Not) else term
        inner = subquery(positive)
        if inner is not None and inner.kind == "any":
            waiting[:0] = negated(inner, relation.columns) if isinstance(term, Not) else [as_exists(inner, (), sure=True)]
        elif inner is not None and inner.kind == "exists" and not any(map(has_subqueries, inner.arguments)):
            closed = replace(inner, relation=decorrelate(inner.relation, rewritten))
            joined = subquery_joins.exists(relation, closed, "anti" if isinstance(term, Not) else "semi")
            if joined is None:
                values.append(term)
            else:
                relation = joined
        else:
            values.append(term)
    if not values:
        return relation
    row = ExtendedRelation(relation, rewritten)
    condition = conjunction(tuple(row.value(v) for v in values))
    return take(Filter(row.relation, condition), tuple(range(len(input.columns))))


def _pushed(condition: Scalar) -> Scalar:
    """Moves NOT below AND and OR, so that a subquery under NOT can become a join."""
    match condition:
        case Not(argument=Not(argument=inner)):
            return _pushed(inner)
        case Not(argument=Or(arguments=terms)):
            return And(tuple(_pushed(Not(t)) for t in terms))
        case Not(argument=And(arguments=terms)):
            return Or(tuple(_pushed(Not(t)) for t in terms))
        case And(arguments=terms):
            return And(tuple(map(_pushed, terms)))
    return condition


def _join(join: Join, rewritten: Rewritten) -> Relation:
    """Rewrites the subqueries in the ON of a join.

    Those of an inner join become a filter above it. Those of an outer join are joined to the side
    whose columns they read.
    """
    conditions = conjuncts(join.condition)
    plain = tuple(c for c in conditions if not has_subqueries(c))
    asking = tuple(c for c in conditions if has_subqueries(c))
    if join.kind == "inner":
        kind: JoinKind = "inner" if plain else "cross"
        return _filter(Join(join.left, join.right, kind, conjunction(plain) if plain else None, join.position), asking, rewritten)
    subqueries = [s for c in asking for s in subqueries_of(c)]
    read = frozenset(i for s in subqueries for a in s.arguments for i in columns_of(a))
    width = len(join.left.columns)
    if all(i >= width for i in read):
        row = ExtendedRelation(join.right, rewritten)
        rewritten_conditions = _replaced(asking, lambda s: shifted(row.value(shifted(s, -width)), width))
        return take(replace(join, right=row.relation, condition=conjunction(plain + rewritten_conditions)), tuple(range(len(join.columns))))
    if all(i < width for i in read):
        row = ExtendedRelation(join.left, rewritten)
        for inner in subqueries:
            row.value(as_scalar(inner))
        added = len(row.relation.columns) - width
        apart = tuple(moved(c, width, added) for c in conditions)
        wide = replace(join, left=row.relation, condition=conjunction(_replaced(apart, row.value)))
        return take(wide, (*range(width), *range(width + added, len(wide.columns))))
    return _with_unmatched(join, rewritten)


def _with_unmatched(join: Join, rewritten: Rewritten) -> Relation:
    """Returns an outer join as the inner join and the rows of a side that have no row in it. Raises 0A000 for sides that are volatile.

    L ⟕ R = (L ⋈ R) ∪ ((L ▷ (L ⋈ R)) × NULL), where ▷ compares the columns of L, or those of its key.
    """
    if is_volatile(join.left) or is_volatile(join.right):
        what = "a subquery in the ON of an outer join that reads both its sides, one of which is volatile,"
        raise FeatureNotSupported(f"{what} is not supported", position=join.position)
    matched = _join(replace(join, kind="inner"), rewritten)
    width, fields = len(join.left.columns), join.columns
    nulls = tuple(Literal(None, field.type) for field in fields)
    parts = [matched]
    for kind, side, first in (("left", join.left, 0), ("right", join.right, width)):
        if join.kind not in (kind, "full"):
            continue
        identifying = key(side)
        places = tuple(range(len(side.columns))) if identifying is None else tuple(identifying)
        of_matched = take(matched, tuple(first + i for i in places))
        same = tuple(equal(column(side, i), column(of_matched, n, len(side.columns)), nulls=True) for n, i in enumerate(places))
        unmatched = Join(side, of_matched, "anti", conjunction(same))
        own = tuple(column(side, i) for i in range(len(side.columns)))
        parts.append(project(unmatched, (*nulls[:first], *own, *nulls[first + len(own) :]), fields))
    return UnionAll(tuple(parts), fields)


def _replaced(scalars: tuple[Scalar, ...], new: Callable[[Scalar], Scalar]) -> tuple[Scalar, ...]:
    """Replaces each subquery in the scalars by `new`."""

    def replaced(scalar: Scalar) -> Scalar:
        return new(scalar) if subquery(scalar) is not None else rebuild(scalar, replaced)

    return tuple(map(replaced, scalars))
