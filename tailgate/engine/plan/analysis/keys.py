"""Derives keys: sets of columns that identify a row of a plan.

The grouping columns are a key of an aggregate. A key of the left and a key of the right together
are a key of a join; columns that equal the other side's key can be left out. NULLs count as equal
here: (NULL, 1) is one group.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from tailgate.sql.plan import (
    AggregateCall,
    ArrivalJoin,
    Call,
    Column,
    Distinct,
    Filter,
    Join,
    Limit,
    Literal,
    Project,
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
)
from tailgate.sql.plan.grouping import ONE_OF
from tailgate.sql.plan.rewriting import conjuncts
from tailgate.sql.plan.sort_keys import sort_key

Keys = frozenset[frozenset[int]]

NO_KEYS: Keys = frozenset()
# per relation: a join of many inputs would have all combinations of their keys
KEYS_MAX = 16


def key(relation: Relation) -> tuple[int, ...] | None:
    """Returns the shortest key as sorted column positions, or None if no key has a column."""
    candidates = sorted((tuple(sorted(k)) for k in keys(relation) if k), key=lambda k: (len(k), k))
    return candidates[0] if candidates else None


def keys(relation: Relation) -> Keys:
    """Returns keys of a relation, at most KEYS_MAX. A relation can have keys that are not found."""
    match relation:
        case Scan(key=None) | Values() | UnionAll():
            return frozenset()
        case Scan(key=tuple() as positions):
            return frozenset([frozenset(positions)])
        case TopK(input, split, _, Literal(value=1), ties=False) if all(isinstance(k, Column) for k in split):
            return _minimal([*keys(input), frozenset(k.index for k in split if isinstance(k, Column))])
        case Filter(input) | Sort(input) | Limit(input) | TopK(input) | Window(input):
            return keys(input)
        case Project(input, expressions):
            places: dict[int, list[int]] = {}
            for new, e in enumerate(expressions):
                if isinstance(e := _narrow(e), Column):
                    places.setdefault(e.index, []).append(new)
            return _minimal(frozenset(places[i][0] for i in k) for k in keys(input) if k <= places.keys())
        case Reduce(keys=groups, aggregates=calls):
            width = len(groups)
            shown = {groups.index(k): width + n for n, call in enumerate(calls) if (k := _grouped(call)) in groups}
            return frozenset([frozenset(range(width)), frozenset(shown.get(i, i) for i in range(width))])
        case Distinct(input):
            return keys(input) or frozenset([frozenset(range(len(input.columns)))])
        case SetOperation(left, right, kind, bags):
            of_inputs = keys(left) | keys(right) if kind == "intersect" else keys(left)
            return _minimal(of_inputs) or (NO_KEYS if bags else frozenset([frozenset(range(len(relation.columns)))]))
        case ArrivalJoin():
            return keys(relation.as_join())
        case Join(left, right, kind, condition):
            if kind in ("semi", "anti"):
                return keys(left)
            width = len(left.columns)
            equal = {} if condition is None else _equal(conjuncts(condition), width)
            both = [(a, frozenset(width + i for i in b)) for a, b in product(keys(left), keys(right))]
            if kind == "full":  # a row of NULLs and an unmatched row whose key is NULL would look the same
                nulls = [f.nullable for f in left.columns + right.columns]
                return _minimal(a | b for a, b in both if not all(nulls[i] for i in a | b))
            candidates = [a | b for a, b in both]
            if kind != "right":
                candidates += [a for a, b in both if all(i in equal.values() for i in b)]  # at most one match on the right
                candidates += [a | frozenset(i for i in b if i not in equal.values()) for a, b in both]
            if kind != "left":
                candidates += [b for a, b in both if all(i in equal for i in a)]
            return _minimal(candidates)
    return frozenset()


def _grouped(call: AggregateCall) -> Scalar | None:
    """Returns the sort key that a group of general numerics has if the call returns one of them (`sql.plan.grouping`)."""
    return sort_key(call.arguments[0]) if call.function is ONE_OF and call.arguments[0].type.general else None


def _equal(conditions: tuple[Scalar, ...], width: int) -> dict[int, int]:
    """Returns the columns of the left that equal a column of the right, with that column."""
    out = {}
    for condition in conditions:
        match condition:
            case Call(function, (Column(index=a), Column(index=b))) if function.name == "=":
                low, high = sorted((a, b))
                if low < width <= high:
                    out[low] = high
    return out


def _narrow(scalar: Scalar) -> Scalar:
    """Returns the argument of a cast that only gives a numeric more digits, which keeps different values different."""
    match scalar:
        case Call(function, (argument,), type) if function.kind == "cast" and argument.type.name == type.name == "numeric":
            if argument.type.general or type.general:
                return scalar
            (precision, scale), (digits, same) = argument.type.decimal, type.decimal
            return argument if scale == same and precision <= digits and not type.is_array else scalar
    return scalar


def _minimal(candidates: Iterable[frozenset[int]]) -> Keys:
    """Drops keys that are supersets of another key, and returns the KEYS_MAX shortest of the others."""
    minimal: list[frozenset[int]] = []
    for k in sorted(set(candidates), key=lambda k: (len(k), sorted(k))):
        if not any(other <= k for other in minimal):
            minimal.append(k)
    return frozenset(minimal[:KEYS_MAX])
