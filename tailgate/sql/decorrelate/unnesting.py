"""Rewrites a relation that reads arguments, so that its rows hold them in additional columns.

    R(d), for each d            ──►  R', the columns of R and d; R(d) = the rows of R' for d

    σ_{c = d}(R)                ──►  R with c as the column of d
    σ_{p(d)}(R)                 ──►  R ⋈_p D, where the domain D is the distinct arguments
    γ_{k; f}(R)                 ──►  γ_{k, d; f}(R')
    γ_{f}(R)                    ──►  D ⟕ γ_{d; f}(R'), with 0 for a count without rows
    R ⋈ S                       ──►  R' ⋈_{d = d} S'
    top-k, window by k          ──►  by k, d
    R ∪ S, R ∩ S, R - S         ──►  of R' and S', each with all arguments

A relation that reads no arguments stays unchanged, because it is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from typing_extensions import assert_never

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field
from tailgate.sql.decorrelate.aggregates import over_nothing
from tailgate.sql.decorrelate.unnested import Unnested, arranged, equal, name_of, nulls_of, placed, rejects_null
from tailgate.sql.functions.comparison import TYPES
from tailgate.sql.plan import (
    ArrivalJoin,
    Call,
    Closing,
    Coalesce,
    Column,
    Distinct,
    Filter,
    Generate,
    IsNull,
    Join,
    Limit,
    Not,
    Project,
    Recursive,
    Reduce,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Sort,
    TopK,
    UnionAll,
    Values,
    Window,
    WithinJoin,
    WorkingTable,
    nullable,
)
from tailgate.sql.plan.correlation import arguments_of
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.properties import key
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, moved, rebuild
from tailgate.sql.plan.subqueries import Argument, argument
from tailgate.sql.plan.traversal import column, cross_join, inputs, project, read_by, scalars_of, with_inputs, with_scalars


class Unnesting:
    """The rewriting of one closure (a subquery with its arguments).

    `depth` is the closure's depth. `arguments` are scalars over the rows of `base`.

    `_exact` is set if an expression can fail. Then nothing may be computed for arguments that no
    row of `base` has, so the domain is joined even where an equality could supply the argument.
    """

    def __init__(self, depth: int, arguments: tuple[Scalar, ...], base: Relation) -> None:
        self.depth = depth
        self.arguments = list(arguments)
        self._base = base
        self._all: frozenset[int] = frozenset()
        self._exact = False
        # by id(): a relation that occurs several times in a plan remains one object
        self._known: dict[int, tuple[Relation, Unnested]] = {}
        self._reads: dict[int, tuple[Relation, frozenset[int]]] = {}
        self._domains: dict[tuple[int, ...], Relation] = {}

    def of(self, relation: Relation) -> Unnested:
        """Unnests a whole subquery."""
        self._begin(relation)
        return self(relation)

    def groups_of(self, node: Reduce) -> Unnested:
        """Unnests a whole subquery that is an aggregate; see `groups`."""
        self._begin(node)
        return self.groups(node)

    def _begin(self, relation: Relation) -> None:
        self._all = self.reads(relation)
        self._exact = self._may_fail(relation, set())

    def _may_fail(self, relation: Relation, visited: set[int]) -> bool:
        """Returns whether a relation or an input of it reads arguments and can fail."""
        if id(relation) in visited or not self.reads(relation):
            return False
        visited.add(id(relation))
        return any(map(fallible, scalars_of(relation))) or any(self._may_fail(i, visited) for i in inputs(relation))

    def reads(self, relation: Relation) -> frozenset[int]:
        """Returns the numbers of the closure's arguments that a relation reads."""
        if id(relation) not in self._reads:
            numbers = self.read(*scalars_of(relation)).union(*map(self.reads, inputs(relation)))
            self._reads[id(relation)] = relation, numbers
        return self._reads[id(relation)][1]

    def read(self, *scalars: Scalar) -> frozenset[int]:
        """Returns the numbers of the closure's arguments that scalars read."""
        return frozenset(a.number for s in scalars for a in arguments_of(s) if a.depth == self.depth)

    def given(self, scalar: Scalar) -> Scalar:
        """Returns a scalar over the rows of `base`, with arguments replaced by their values."""
        return self._replaced(scalar, lambda a: self.arguments[a.number])

    def __call__(self, relation: Relation) -> Unnested:
        """Unnests a part of the subquery. Returns it unchanged if it reads no arguments."""
        if not self.reads(relation):
            return Unnested(relation)
        if id(relation) not in self._known:
            self._known[id(relation)] = relation, self._unnested(relation)
        return self._known[id(relation)][1]

    def _unnested(self, relation: Relation) -> Unnested:
        match relation:
            case Filter(input, condition):
                return self.filtered(self(input), conjuncts(condition))
            case Project(input, expressions, columns):
                below = self._bound(self(input), *expressions)
                return self._over(below, expressions, columns)
            case Join():
                return self._join(relation)
            case Reduce():
                groups = self.groups(relation)
                return groups if relation.keys else self._total(relation, groups)
            case Distinct(input):
                below = self(input)
                return replace(below, relation=Distinct(below.relation))
            case Sort(input):
                return self(input)
            case Limit(Sort(input, keys), count, offset, position):
                return self(TopK(input, (), keys, count, offset, position=position))
            case Limit(input, count, offset, position):
                return self(TopK(input, (), (), count, offset, position=position))
            case ArrivalJoin(position=at) | WithinJoin(position=at) | Closing(position=at):
                raise FeatureNotSupported("a join or window of streams in a correlated subquery is not supported", position=at)
            case TopK() | Window() | Generate():
                return self._by_arguments(relation)
            case UnionAll(each, columns):
                parts = self._alike(tuple(map(self, each)), len(columns))
                fields = parts[0].relation.columns[len(columns) :]
                return replace(parts[0], relation=UnionAll(tuple(p.relation for p in parts), columns + fields))
            case SetOperation(left, right, columns=columns):
                one, other = self._alike((self(left), self(right)), len(columns))
                fields = one.relation.columns[len(columns) :]
                return replace(one, relation=replace(relation, left=one.relation, right=other.relation, columns=columns + fields))
            case Recursive():
                raise FeatureNotSupported("WITH RECURSIVE that reads a query around it is not supported")
            case Scan() | Values() | WorkingTable():
                raise AssertionError("reads nothing")
            case _:
                assert_never(relation)

    # ---- one input ---------------------------------------------------------------------------------------------------------------

    def filtered(self, below: Unnested, conditions: tuple[Scalar, ...]) -> Unnested:
        """Filters a relation.

        An equality can supply an argument. Other conditions on arguments that have no column yet
        become conditions of the join with the domain.
        """
        waiting: list[Scalar] = []
        for condition in conditions:
            bound = self._given_by(condition, below) if self.read(condition) - below.places.keys() and not self._exact else None
            if bound is None:
                waiting.append(condition)
            else:
                below = bound
        joined = tuple(c for c in waiting if self.read(c) - below.places.keys())
        if joined:
            below = self._with_domain(below, self.read(*joined), joined)
        rest = tuple(self._inside(c, below) for c in waiting if c not in joined)
        return replace(below, relation=Filter(below.relation, conjunction(rest))) if rest else below

    def _given_by(self, condition: Scalar, below: Unnested) -> Unnested | None:
        """Adds an argument's column if the condition is that a value of the relation equals it.

        Returns None for any other condition.
        """
        if not isinstance(condition, Call) or condition.function.name != "=" or condition.function.kind != "operator":
            return None
        name = condition.arguments[0].type.name
        if condition.function.arguments != (name, name) or name not in TYPES:
            return None
        one, other = condition.arguments
        for outside, inside in ((one, other), (other, one)):
            if columns_of(outside) or not self.read(outside) or fallible(outside):
                continue
            if columns_of(inside) and not self.read(inside) - below.places.keys():
                return placed(below, self._number(outside), self._inside(inside, below))
        return None

    def _number(self, scalar: Scalar) -> int:
        """Returns the number of the argument that equals a scalar.

        An expression over arguments becomes a new argument.
        """
        reference = argument(scalar)
        if reference is not None:
            return reference.number
        self.arguments.append(self.given(scalar))
        return len(self.arguments) - 1

    def _by_arguments(self, relation: TopK | Window | Generate) -> Unnested:
        """Unnests a node that works on the rows of each argument separately."""
        below = self._bound(self(relation.input), *scalars_of(relation))
        places = tuple(column(below.relation, p) for p in below.places.values())
        node = with_inputs(with_scalars(relation, lambda s: self._inside(s, below)), (below.relation,))
        if isinstance(node, TopK):
            node = replace(node, keys=node.keys + places)
        elif isinstance(node, Window):
            node = replace(node, partition=node.partition + places)
        width, wide = len(relation.input.columns), len(below.relation.columns)
        return arranged(replace(below, relation=node), (*range(width), *range(wide, len(node.columns))))

    def groups(self, node: Reduce) -> Unnested:
        """Groups by the keys and the arguments.

        Without keys, arguments that have no rows have no group.
        """
        below = self._bound(self(node.input), *node.keys, *(s for c in node.aggregates for s in read_by(c)))
        moved = with_scalars(node, lambda s: self._inside(s, below))
        assert isinstance(moved, Reduce)
        numbers, keys = tuple(below.places), len(node.keys)
        places = tuple(column(below.relation, p) for p in below.places.values())
        reduced = Reduce(below.relation, moved.keys + places, moved.aggregates)
        unnested = Unnested(reduced, {n: keys + i for i, n in enumerate(numbers)}, below.nulls)
        return arranged(unnested, (*range(keys), *range(keys + len(places), len(reduced.columns))))

    def _total(self, node: Reduce, groups: Unnested) -> Unnested:
        """Adds a row for each argument that has no group."""
        numbers = tuple(groups.places)
        domain, count = self._domain(numbers), len(numbers)
        pairs = (
            equal(column(domain, i), column(groups.relation, groups.places[n], count), n in groups.nulls) for i, n in enumerate(numbers)
        )
        joined = Join(domain, groups.relation, "left", conjunction(tuple(pairs)))
        calls = tuple(over_nothing(c, column(groups.relation, i, count)) for i, c in enumerate(node.aggregates))
        places = tuple(column(domain, i) for i in range(count))
        totals = project(joined, calls + places, node.columns + domain.columns)
        return Unnested(totals, {n: len(calls) + i for i, n in enumerate(numbers)}, self._nullable(numbers))

    # ---- joins, unions and set operations ----------------------------------------------------------------------------------------

    def _join(self, join: Join) -> Unnested:
        """Unnests both sides of a join and joins them on their common arguments as well.

        A side whose rows are kept without a match must have all arguments before the join, so the
        domain is joined to it first.
        """
        left, right = self(join.left), self(join.right)
        conditions = conjuncts(join.condition)
        need = (self.read(*conditions) | left.places.keys() | right.places.keys()) if join.kind not in ("inner", "cross") else frozenset()
        if join.kind in ("left", "full", "semi", "anti"):
            left = self._with_domain(left, need, ())
        if join.kind in ("right", "full"):
            right = self._with_domain(right, need, ())
        if join.kind == "full":
            left, right = self._without_junk(left, need), self._without_junk(right, need)
        width, wide = len(join.left.columns), len(left.relation.columns)
        shared = left.places.keys() & right.places.keys()
        pairs = tuple(
            equal(
                column(left.relation, left.places[n]),
                column(right.relation, right.places[n], wide),
                n in left.nulls & right.nulls,
            )
            for n in sorted(shared)
        )
        behind = {n: wide + p for n, p in right.places.items()}
        both = Unnested(join, {**behind, **left.places}, nulls_of(left, right))

        def apart(scalar: Scalar) -> Scalar:
            """Returns a scalar over the columns of both unnested sides."""
            return self._inside(moved(scalar, width, wide - width), both)

        now = tuple(c for c in conditions if not self.read(c) - both.places.keys())
        terms = pairs + tuple(map(apart, now))
        kind = "cross" if not terms and join.kind == "inner" else "inner" if terms and join.kind == "cross" else join.kind
        result = Join(left.relation, right.relation, kind, conjunction(terms) if terms else join.condition, join.position)
        if join.kind in ("semi", "anti"):
            return replace(left, relation=result)
        columns = (*range(width), *range(wide, wide + len(join.right.columns)))
        if join.kind == "full":
            return self._coalesced(result, columns, left, replace(right, places=behind))
        places = {"left": left.places, "right": behind}.get(join.kind, both.places)
        nulls = {"left": left.nulls, "right": right.nulls}.get(join.kind, both.nulls)
        unnested = arranged(Unnested(result, places, nulls), columns)
        return self.filtered(unnested, tuple(c for c in conditions if c not in now))

    def _coalesced(self, join: Join, columns: tuple[int, ...], left: Unnested, right: Unnested) -> Unnested:
        """Takes the arguments of a full join's rows from the side that has them.

        NULL in an argument column is the argument's value if it is so on either side. On the other
        side, rows with NULL there have been removed by `_without_junk`.
        """
        own = tuple(column(join, i) for i in columns)
        places = tuple(Coalesce((column(join, p), column(join, right.places[n])), self.arguments[n].type) for n, p in left.places.items())
        fields = tuple(join.columns[i] for i in columns) + tuple(Field("?column?", p.type) for p in places)
        numbers = {n: len(own) + i for i, n in enumerate(left.places)}
        return Unnested(project(join, own + places, fields), numbers, left.nulls | right.nulls)

    def _alike(self, parts: tuple[Unnested, ...], width: int) -> tuple[Unnested, ...]:
        """Gives all parts the same argument columns in one order, after their `width` columns."""
        numbers = frozenset(n for p in parts for n in p.places)
        parts = tuple(self._with_domain(p, numbers, ()) for p in parts)
        nulls = frozenset(n for p in parts for n in p.nulls)
        parts = tuple(self._without_junk(p, nulls) for p in parts)
        aligned = (replace(p, places={n: p.places[n] for n in sorted(numbers)}, nulls=nulls) for p in parts)
        return tuple(arranged(p, tuple(range(width))) for p in aligned)

    def _without_junk(self, part: Unnested, numbers: frozenset[int]) -> Unnested:
        """Removes rows that belong to no arguments.

        This is needed before NULL in an argument column can stand for the argument's value.
        """
        columns = part.relation.columns
        terms = tuple(
            Not(IsNull(column(part.relation, p)))
            for n, p in part.places.items()
            if n in numbers - part.nulls and columns[p].nullable and n in self._nullable((n,))
        )
        return replace(part, relation=Filter(part.relation, conjunction(terms))) if terms else part

    # ---- the domain --------------------------------------------------------------------------------------------------------------

    def _bound(self, below: Unnested, *scalars: Scalar) -> Unnested:
        """Adds a column for each argument that the scalars read."""
        return self._with_domain(below, self.read(*scalars), ())

    def _with_domain(self, below: Unnested, numbers: frozenset[int], conditions: tuple[Scalar, ...]) -> Unnested:
        """Joins the domain if one of these arguments has no column.

        `conditions` become join conditions.
        """
        if not numbers - below.places.keys():
            return below
        arguments = tuple(sorted(numbers | below.places.keys() | (self._all if self._exact else frozenset())))
        domain, width = self._domain(arguments), len(below.relation.columns)
        pairs = tuple(
            equal(column(below.relation, below.places[n]), column(domain, i, width), n in below.nulls)
            for i, n in enumerate(arguments)
            if n in below.places
        )
        new = {n: width + i for i, n in enumerate(arguments) if n not in below.places}
        nulls = self._nullable(tuple(n for n in new if not any(rejects_null(c, self.depth, n) for c in conditions)))
        unnested = Unnested(below.relation, {**below.places, **new}, below.nulls | nulls)
        terms = pairs + tuple(self._inside(c, unnested) for c in conditions)
        joined = Join(below.relation, domain, "inner", conjunction(terms)) if terms else cross_join(below.relation, domain)
        return replace(unnested, relation=joined)

    def _domain(self, numbers: tuple[int, ...]) -> Relation:
        """Returns the distinct values of these arguments."""
        if numbers in self._domains:
            return self._domains[numbers]
        scalars = tuple(self.arguments[n] for n in numbers)
        fields = tuple(Field(name_of(s, self._base), s.type, nullable(s, self._base.columns)) for s in scalars)
        domain = project(self._base, scalars, fields)
        self._domains[numbers] = domain if key(domain) is not None else Distinct(domain)
        return self._domains[numbers]

    def _nullable(self, numbers: tuple[int, ...]) -> frozenset[int]:
        """Returns those of the arguments whose values can be NULL."""
        return frozenset(n for n in numbers if nullable(self.arguments[n], self._base.columns))

    # ---- scalars -----------------------------------------------------------------------------------------------------------------

    def _over(self, below: Unnested, expressions: tuple[Scalar, ...], columns: tuple[Field, ...]) -> Unnested:
        """Projects the expressions, followed by the argument columns."""
        own = tuple(self._inside(e, below) for e in expressions)
        places_of_arguments = tuple(column(below.relation, p) for p in below.places.values())
        fields = columns + tuple(below.relation.columns[p] for p in below.places.values())
        places = {n: len(own) + i for i, n in enumerate(below.places)}
        return replace(below, relation=project(below.relation, own + places_of_arguments, fields), places=places)

    def _inside(self, scalar: Scalar, below: Unnested) -> Scalar:
        """Returns a scalar over the columns of `below`, with columns in place of arguments."""
        return self._replaced(scalar, lambda a: Column(below.places[a.number], a.type, a.position))

    def _replaced(self, scalar: Scalar, new: Callable[[Argument], Scalar]) -> Scalar:
        reference = argument(scalar)
        if reference is not None and reference.depth == self.depth:
            return new(reference)
        return rebuild(scalar, lambda s: self._replaced(s, new))
