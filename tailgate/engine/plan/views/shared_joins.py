"""The columns that joins of a view keep so that views with other filters and columns can share them.

    joins of the view, and of the others ──► MaterializedView.join_columns ──► Scan.join_columns ──► rewrites.shared

Views share operators that are equal (`views.sharing`), and joins with other filters or columns are not. For a join of
relations that other views also join by the same columns, there are three cases:

- An equal join exists: the view shares it as it is.
- A join without filters exists that has all columns that the view needs: the view filters its output.
- The separate joins together, with that of the view, would store more than SEPARATE_MAX times the rows of the
  relations: the view gets a join without filters, with the columns that all of them need. Later views share it.

The choice is stored with the view, as its `sizes` are. It is made once: a view that is filled again keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tailgate.engine.plan.analysis.estimate import rows, values
from tailgate.engine.plan.rewrites.equijoin import matching
from tailgate.engine.plan.rewrites.passes import rewrite
from tailgate.engine.plan.rewrites.shared import Side, join_sides
from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.sizes import joins_among
from tailgate.engine.plan.views.streams import bound_plan, plan_key
from tailgate.lake.catalog import Catalog, MaterializedView
from tailgate.sql.definition_cache import DefinitionCache
from tailgate.sql.definitions import bind_definition
from tailgate.sql.plan import Filter, Join, JoinKind, Relation, Scan
from tailgate.sql.plan.rewriting import conjunction
from tailgate.sql.plan.traversal import walk

# rows that separate joins of the same relations may store together, in multiples of the rows of the relations
SEPARATE_MAX = 2.0


@dataclass(frozen=True, slots=True)
class _RelationJoin:
    """A join of relations. `keys`: the columns of the scans by which it joins."""

    kind: JoinKind
    sides: tuple[Side, Side]
    keys: tuple[tuple[int, int, bool], ...]

    def joins_same(self, other: _RelationJoin) -> bool:
        """Returns whether both join the same relations by the same columns."""
        same_relations = all(a.scan == b.scan for a, b in zip(self.sides, other.sides, strict=True))
        return same_relations and self.kind == other.kind and self.keys == other.keys

    @property
    def relations(self) -> frozenset[int]:
        """Returns the ids of the relations: one, if it joins a relation with itself."""
        return frozenset(side.scan.relation for side in self.sides)

    def starts(self, view: MaterializedView) -> list[Mapping[str, int] | None]:
        """Returns where a view of this join began in the topics of the relations. Views that began elsewhere cannot share it."""
        return [view.starts.get(side.scan.relation) for side in self.sides]

    @property
    def is_whole(self) -> bool:
        """Returns whether it joins all rows of the relations."""
        return not any(side.conditions for side in self.sides)

    def has(self, other: _RelationJoin) -> bool:
        """Returns whether it has all columns that the other join needs."""
        return all(theirs.needed <= set(ours.columns) for ours, theirs in zip(self.sides, other.sides, strict=True))


def with_shared_joins(item: MaterializedView, catalog: Catalog) -> MaterializedView:
    """Returns the view, not numbered yet, with the columns of the joins that it shares.

    Changes of columns that the view does not read pass a shared join, and are messages of a ksqlDB table; therefore a derived item
    of ksqlDB shares only equal joins. Relations that are about to be replaced have no columns here: the view has the same plan before
    and after the replacement, which has another id. Views that are about to be replaced do not count: one of them may be this view,
    with its earlier definition.
    """
    coming = catalog.replacements()
    remaining = {relation: columns for relation, columns in item.join_columns.items() if relation not in coming}
    if item.join_columns or item.ksqldb is not None:
        return replace(item, join_columns=remaining)
    own = [join for join in _relation_joins(item, catalog) if not join.relations & coming.keys() and len(join.relations) == 2]
    if not own:
        return item
    remaining_views = [i for i in catalog.each(MaterializedView) if i.ready and i.id != item.id and i.id not in coming]
    others = [i for i in remaining_views if i.ksqldb is None and nodes.is_maintained(i)]
    existing = [(other, join) for other in others for join in _relation_joins(other, catalog)]
    theirs = frozenset[str]().union(*map(nodes.digests, others))

    def shared(view: MaterializedView) -> int:
        return joins_among(view, catalog, theirs)

    for join in own:
        starts = join.starts(item)
        others_of_join = list(dict.fromkeys(e for other, e in existing if e.joins_same(join) and e.starts(other) == starts))
        if join.relations & item.join_columns.keys() or join in others_of_join:
            continue
        item = _with_existing(item, join, others_of_join, shared) or _with_new(item, join, others_of_join)
    return item


def _with_existing(
    item: MaterializedView, join: _RelationJoin, others: list[_RelationJoin], shared: Callable[[MaterializedView], int]
) -> MaterializedView | None:
    """Returns the view with the columns of the narrowest join that it can share, or None. `shared`: counts the joins that a view shares."""
    before = shared(item)
    for other in sorted((o for o in others if o.is_whole and o.has(join)), key=_widths):
        view = _with_columns(item, (side.columns for side in other.sides), join)
        if shared(view) > before:
            return view
    return None


def _with_new(item: MaterializedView, join: _RelationJoin, others: list[_RelationJoin]) -> MaterializedView:
    """Returns the view with the columns of all these joins if they store too much separately, else the view itself."""
    joins = (join, *others)
    whole = sum(rows(side.scan) for side in join.sides)
    if sum(_stored(j, join) for j in joins) <= SEPARATE_MAX * whole:
        return item
    return _with_columns(item, (sorted(frozenset[int]().union(*(j.sides[i].needed for j in joins))) for i in range(2)), join)


def _with_columns(item: MaterializedView, columns: Iterable[Iterable[int]], join: _RelationJoin) -> MaterializedView:
    """Returns the view with these columns for the sides of a join."""
    by_relation = {side.scan.relation: tuple(positions) for side, positions in zip(join.sides, columns, strict=True)}
    return replace(item, join_columns={**item.join_columns, **by_relation})


def _stored(join: _RelationJoin, sized: _RelationJoin) -> float:
    """Returns the estimated number of rows that a join stores. `sized`: a join of the same relations, with their sizes."""
    return sum(_stored_of_side(side, of.scan) for side, of in zip(join.sides, sized.sides, strict=True))


def _stored_of_side(side: Side, scan: Scan) -> float:
    """Returns the estimated number of rows of a side; rows that are equal in its columns may be stored as one."""
    passing = rows(Filter(scan, conjunction(side.conditions)) if side.conditions else scan)
    return min(passing, values(scan, frozenset(side.columns)))


def _widths(join: _RelationJoin) -> tuple[int, tuple[tuple[int, ...], ...]]:
    columns = tuple(side.columns for side in join.sides)
    return sum(map(len, columns)), columns


_joins: DefinitionCache[tuple[_RelationJoin, ...]] = DefinitionCache()


def _relation_joins(item: MaterializedView, catalog: Catalog) -> tuple[_RelationJoin, ...]:
    """Returns the joins of relations in the plan of a view."""
    stored = catalog.stored

    def joins_of_plan() -> tuple[_RelationJoin, ...]:
        plan = rewrite(bound_plan(item, stored))
        return tuple(join for node in walk(plan) if (join := _relation_join(node)) is not None)

    return _joins.get(plan_key(item), stored, joins_of_plan, lambda _: bind_definition(item, stored).depends, item.query)


def _relation_join(relation: Relation) -> _RelationJoin | None:
    sides = join_sides(relation)
    if sides is None:
        return None
    assert isinstance(relation, Join)
    on, (left, right) = matching(relation), sides
    keys = sorted((left.columns[a], right.columns[b], safe) for a, b, safe in zip(on.left, on.right, on.null_safe, strict=True))
    return _RelationJoin(relation.kind, sides, tuple(keys))
