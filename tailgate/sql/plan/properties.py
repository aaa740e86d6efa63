"""Derives properties of a plan: its key, whether it is append-only, the relations that it reads."""

from __future__ import annotations

from itertools import chain

from typing_extensions import assert_never

from tailgate.lake.catalog import Catalog
from tailgate.sql.plan import (
    ArrivalJoin,
    Call,
    Closing,
    Column,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Literal,
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
)  # fmt: skip
from tailgate.sql.plan.correlation import nodes
from tailgate.sql.plan.rewriting import columns_of, conjuncts
from tailgate.sql.plan.rewriting import walk as walk_scalar
from tailgate.sql.plan.traversal import inputs, memoize_by_object, scalars_of, walk

Key = tuple[int, ...]


@memoize_by_object
def key(plan: Relation) -> Key | None:
    """Returns the positions of columns that identify a row.

    Returns () if there is at most one row, and None if there may be duplicate rows. NULLs count as
    equal, as in GROUP BY.
    """
    match plan:
        case Scan(key=found):
            return found
        case Values(rows=rows):
            return () if len(rows) <= 1 else None
        case Filter(input=input, condition=condition):
            return _without(key(input), constant_columns(condition))
        case Sort(input=input) | Limit(input=input) | TopK(input=input) | Window(input=input) | Closing(input=input):
            return key(input)
        case Project(input=input, expressions=expressions):
            return _projected(key(input), expressions)
        case Reduce(keys=keys):
            return tuple(range(len(keys)))
        case Distinct(input=input):
            below = key(input)
            return tuple(range(len(input.columns))) if below is None else below
        case Join():
            return _joined(plan)
        case ArrivalJoin():
            return _joined(plan.as_join())
        case WithinJoin():
            return None
        case UnionAll(inputs=all):
            return key(all[0]) if len(all) == 1 else None
        case SetOperation(left=left, all=all_rows):
            return key(left) or (None if all_rows else tuple(range(len(plan.columns))))
        case Generate(input=input, ordinality=ordinality):
            below = key(input)
            return None if below is None or not ordinality else (*below, len(plan.columns) - 1)
        case Recursive(all=often):
            return None if often else tuple(range(len(plan.columns)))
        case WorkingTable():
            return None
        case _:
            assert_never(plan)


def unique_by(plan: Relation, positions: frozenset[int]) -> bool:
    """Returns whether these columns are provably unique. False means that they may not be."""
    match plan:
        case Project(input=input, expressions=expressions):
            below = frozenset(e.index for i in positions if isinstance(e := expressions[i], Column))
            if unique_by(input, below):
                return True
        case TopK(keys=keys, count=Literal(value=1), ties=False):
            if all(isinstance(k, Column) and k.index in positions for k in keys):
                return True
        case _:
            pass
    unique_key = key(plan)
    return unique_key is not None and positions.issuperset(unique_key)


def _projected(below: Key | None, expressions: tuple[Scalar, ...]) -> Key | None:
    """Returns the key of a projection, or None if it drops a column of the key `below`."""
    if below is None:
        return None
    places = {e.index: i for i, e in reversed(list(enumerate(expressions))) if isinstance(e, Column)}
    return tuple(places[k] for k in below) if all(k in places for k in below) else None


def constant_columns(condition: Scalar) -> frozenset[int]:
    """Returns the columns that a condition restricts to a single value."""
    indexes = set()
    for term in conjuncts(condition):
        if isinstance(term, Call) and term.function.name == "=" and term.function.kind == "operator":
            for a, b in (term.arguments, term.arguments[::-1]):
                a = _widened(a)
                if isinstance(a, Column) and not columns_of(b):
                    indexes.add(a.index)
    return frozenset(indexes)


def _without(below: Key | None, fixed: frozenset[int]) -> Key | None:
    return None if below is None else tuple(k for k in below if k not in fixed)


def _joined(plan: Join) -> Key | None:
    """Returns the key of a join.

    It consists of the keys of both sides. The key of one side is enough if the condition compares the
    key of the other side with `=`.
    """
    left, right = key(plan.left), key(plan.right)
    if plan.kind in ("semi", "anti"):
        return left
    if left is None or right is None:
        return None
    width = len(plan.left.columns)
    pairs = _pairs(plan, through_casts=True)
    lefts, rights = {a for a, _ in pairs}, {b for _, b in pairs}
    if plan.kind in ("inner", "left") and set(right) <= rights:
        return left  # at most one match on the right
    if plan.kind in ("inner", "right") and set(left) <= lefts:
        return tuple(width + k for k in right)
    both = (*left, *(width + k for k in right))
    if plan.kind == "full":  # a NULL key could be that of a row without a match
        nulls = [f.nullable for f in plan.left.columns + plan.right.columns]
        return None if all(nulls[k] for k in both) else both
    return both


def equalities(plan: Join) -> tuple[tuple[int, int], ...]:
    """Returns pairs (position on the left, position on the right) of columns that the condition compares with `=`."""
    return _pairs(plan, through_casts=False)


def _widened(scalar: Scalar) -> Scalar:
    """Returns the argument of an implicit cast to a wider integer type, else the scalar.

    Such a cast maps different values to different values.
    """
    if isinstance(scalar, Call) and scalar.function.kind == "cast" and scalar.function.context == "implicit":
        (inner,) = scalar.arguments
        if inner.type.name in ("int2", "int4") and scalar.type.name in ("int4", "int8"):
            return inner
    return scalar


def _pairs(plan: Join, *, through_casts: bool) -> tuple[tuple[int, int], ...]:
    width = len(plan.left.columns)
    pairs = []
    for term in conjuncts(plan.condition):
        if isinstance(term, Call) and term.function.name == "=" and term.function.kind == "operator":
            a, b = map(_widened, term.arguments) if through_casts else term.arguments
            if isinstance(a, Column) and isinstance(b, Column):
                low, high = sorted((a.index, b.index))
                if low < width <= high:
                    pairs.append((low, high - width))
    return tuple(pairs)


def append_only(plan: Relation, catalog: Catalog) -> bool:
    """Returns whether the plan only ever adds rows, whatever happens to its inputs."""
    below = (plan.left,) if isinstance(plan, ArrivalJoin) else inputs(plan)
    return _appends(plan, catalog) and all(append_only(node, catalog) for node in below)


def _appends(node: Relation, catalog: Catalog) -> bool:
    """Returns whether a node only adds rows if its inputs only add rows."""
    match node:
        case Scan(relation=relation):
            return catalog[relation].append_only
        case Join(kind=kind):
            return kind in ("inner", "cross", "semi")
        case Closing(last=last, session=session):
            return last or session is None
        case Values() | Filter() | Project() | ArrivalJoin() | WithinJoin() | Distinct() | UnionAll():
            return True
        case Generate():
            return True
        case Reduce() | Sort() | Limit() | SetOperation() | TopK() | Window() | Recursive() | WorkingTable():
            return False
        case _:
            assert_never(node)


def is_volatile(relation: Relation) -> bool:
    """Returns whether the rows of a plan depend on volatile functions, also before decorrelation."""
    visited = tuple(nodes(relation))
    values = (scalar for node in visited if isinstance(node, Values) for row in node.rows for scalar in row)
    scalars = chain(values, *map(scalars_of, visited))
    return any(isinstance(part, Call) and part.function.volatility == "volatile" for scalar in scalars for part in walk_scalar(scalar))


def relations(plan: Relation) -> tuple[int, ...]:
    """Returns the ids of the relations that the plan reads, each once, in pre-order."""
    return tuple(dict.fromkeys(node.relation for node in walk(plan) if isinstance(node, Scan)))
