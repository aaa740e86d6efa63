"""GROUPING SETS, ROLLUP, CUBE.

The plan is a union of one Reduce for each set, with NULL for the keys that are not in the set.

    GROUP BY a, ROLLUP (b, c)   =   the sets (a, b, c), (a, b), (a)

Source: PostgreSQL 15, src/backend/parser/parse_agg.c expand_grouping_sets().
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

from sqlglot import exp

from tailgate.lake.errors import GroupingError, ProgramLimitExceeded, StatementTooComplex, TailgateError, TooManyArguments
from tailgate.lake.types import INT4, Field
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import AggregateCall, Column, Literal, Project, Reduce, Relation, Scalar, UnionAll
from tailgate.sql.plan.grouping import aggregated

SETS_MAX = 4096  # the same limit as in PostgreSQL
GROUPING_MAX = 31  # arguments of grouping(), each a bit of an int4
GROUPING = Function("grouping", ("any",), "int4", kind="aggregate", strict=False, variadic=True)
Nodes = tuple[exp.Expr, ...]


def sets_of(clause: exp.Expr) -> list[Nodes]:
    """Returns the grouping sets of a GROUP BY as lists of expressions. Raises 54001."""
    items = [_sets(node, inside=False) for node in clause.expressions]
    count = 1
    for item in items:
        count *= len(item)
        if count > SETS_MAX:
            raise StatementTooComplex(f"too many grouping sets present (maximum {SETS_MAX})")
    return [tuple(n for part in parts for n in part) for parts in product(*items)]


def _sets(node: exp.Expr, *, inside: bool) -> list[Nodes]:
    match node:
        case exp.GroupingSets():
            return [s for inner in node.expressions for s in _sets(inner, inside=True)]
        case exp.Rollup():
            parts = [_columns(e) for e in node.expressions]
            return [tuple(n for p in parts[:count] for n in p) for count in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_columns(e) for e in node.expressions]
            if len(parts) > 12:  # 4096 sets
                raise ProgramLimitExceeded("CUBE is limited to 12 elements")
            return [tuple(n for p in chosen for n in p) for count in range(len(parts), -1, -1) for chosen in combinations(parts, count)]
    return [_columns(node)]


def _columns(node: exp.Expr) -> Nodes:
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def grouping_call(arguments: tuple[Scalar, ...], at: int | None) -> AggregateCall:
    """Returns a call of grouping(…). Raises 54023."""
    if len(arguments) > GROUPING_MAX:
        raise TooManyArguments(f"GROUPING must have fewer than {GROUPING_MAX + 1} arguments", position=at)
    return AggregateCall(GROUPING, arguments, INT4, position=at)


def not_grouped(at: int | None) -> TailgateError:
    return GroupingError("arguments to GROUPING must be grouping expressions of the associated query level", position=at)


def over_sets(input: Relation, keys: tuple[Scalar, ...], calls: tuple[AggregateCall, ...], sets: tuple[frozenset[int], ...]) -> Relation:
    """Returns the aggregates over each of the grouping sets.

    `sets` contain indexes of `keys`. The columns are all keys, then all calls, including
    grouping().
    """
    if sets == (frozenset(range(len(keys))),) and not any(c.function is GROUPING for c in calls):
        return aggregated(input, keys, calls)
    parts = tuple(_over(input, keys, calls, some) for some in sets)
    if len(parts) == 1:
        return parts[0]
    columns = tuple(Field(f.name, f.type, any(p.columns[i].nullable for p in parts)) for i, f in enumerate(parts[0].columns))
    return UnionAll(parts, columns)


def _over(input: Relation, keys: tuple[Scalar, ...], calls: tuple[AggregateCall, ...], some: frozenset[int]) -> Relation:
    """Returns the aggregates over one grouping set, with the columns of `over_sets`."""
    real = tuple(c for c in calls if c.function is not GROUPING)
    aggregate = aggregated(input, tuple(keys[i] for i in sorted(some)), real)
    places = {number: i for i, number in enumerate(sorted(some))}
    whole = Reduce(input, keys, real).columns

    def call(of: AggregateCall) -> tuple[Scalar, Field]:
        if of.function is GROUPING:
            value = 0
            for argument in of.arguments:
                value = value << 1 | (keys.index(argument) not in some)
            return Literal(value, INT4), Field("grouping", INT4, False)
        index = len(some) + real.index(of)
        return Column(index, of.type), aggregate.columns[index]

    shown: list[tuple[Scalar, Field]] = []
    for i, key in enumerate(keys):
        if i in places:
            shown.append((Column(places[i], key.type), aggregate.columns[places[i]]))
        else:
            shown.append((Literal(None, key.type), Field(whole[i].name, key.type)))
    shown += map(call, calls)
    return Project(aggregate, tuple(s for s, _ in shown), tuple(f for _, f in shown))


Resolve = Callable[[exp.Expr], Scalar]


def numbered(clause: exp.Expr, resolve: Resolve) -> tuple[tuple[Scalar, ...], tuple[frozenset[int], ...]]:
    """Returns the distinct keys of a GROUP BY, and its grouping sets as sets of indexes of keys."""
    keys: list[Scalar] = []
    sets: list[frozenset[int]] = []
    for nodes in sets_of(clause):
        indexes = set()
        for node in nodes:
            key = resolve(node)
            if key not in keys:
                keys.append(key)
            indexes.add(keys.index(key))
        if not (clause.meta.get("distinct") and frozenset(indexes) in sets):
            sets.append(frozenset(indexes))
    return tuple(keys), tuple(sets)
