"""Every pass keeps the rows of a plan, and adds no failing rows."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tailgate.engine.plan.analysis.scalars import equated
from tailgate.engine.plan.rewrites import early, equijoin, factor, merge, narrow, order, outer, prune, push, shared, top
from tailgate.engine.plan.rewrites.equijoin import matching
from tailgate.engine.plan.rewrites.passes import PASSES, rewrite
from tailgate.engine.plan.views.streams import as_planned
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Table
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field, Type
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import MAINTAINED
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of, conjuncts
from tailgate.sql.plan.traversal import walk
from testing.reference.evaluation import Result, at, evaluate
from testing.views import sizes
from tests.engine.plan.forms import FORMS, Forms
from tests.engine.plan.law import steps
from tests.engine.plan.random_plans import DECIMAL, TYPES, WIDE, Plans, aggregate
from tests.engine.plan.wide_world import Wide

PLANS = 4000
FORMS_OF = 12  # worlds, each with a view of every form


def tables(source: random.Random) -> tuple[tuple[int, tuple[Field, ...], None], ...]:
    out = []
    for id in (1, 2, 3):
        types = [source.choice((*TYPES, WIDE)) for _ in range(source.randint(1, 4))]
        out.append((id, tuple(Field(f"t{id}{'abcd'[i]}", t) for i, t in enumerate(types)), None))
    return tuple(out)


def rows(source: random.Random, columns: tuple[Field, ...]) -> Counter[Any]:
    def one(field: Field) -> Any:
        if source.random() < 0.15:
            return None
        match field.type.name:
            case "int4":
                return source.randint(-1, 3)
            case "text":
                return source.choice(("a", "b", "7", ""))
            case "bool":
                return source.random() < 0.5
            case "timestamp":
                return datetime(2026, 1, source.randint(1, 3))
        return Decimal(source.randint(-2, 4)) / (2 if field.type == DECIMAL else 4)

    return Counter({tuple(map(one, columns)): source.randint(1, 2) for _ in range(source.randint(0, 6))})


def agree(before: Result, after: Result) -> bool:
    """Returns whether a pass has kept the result.

    Without failing rows, the results are equal. A pass may make fewer rows fail, and then return
    more rows, but never the reverse.
    """
    if not before.errors:
        return before == after
    return all(after.errors[s] <= n for s, n in before.errors.items()) or not set(after.errors) - set(before.errors)


def keys_can_fail(join: plan.Join) -> bool:
    """Returns whether every usable equality may fail.

    After joins are reordered, one of them may be the only one.
    """
    may_fail = [fallible(c) for c in conjuncts(join.condition) if equality(join, c)]
    nested = any(isinstance(i, plan.Join) and i.kind in ("inner", "cross") for i in (join.left, join.right))
    return bool(may_fail) and (any(may_fail) if nested and join.kind == "inner" else all(may_fail))


def equality(join: plan.Join, condition: plan.Scalar) -> bool:
    width = len(join.left.columns)
    operands = equated(condition)
    if operands is None:
        return False
    sides = [{i < width for i in columns_of(a)} for a in operands]
    return sides in ([{True}, {False}], [{False}, {True}])


def guessed(relation: plan.Relation, seed: int) -> plan.Relation:
    """Returns the plan with estimated sizes of its scans, which differ from the actual ones, and with columns of shared joins."""
    scans = {(n.relation, n.key is not None) for n in walk(relation) if isinstance(n, plan.Scan)}
    source = random.Random(f"{seed} shared")
    widths = sorted({(n.relation, len(n.columns)) for n in walk(relation) if isinstance(n, plan.Scan)})
    columns = {id: tuple(i for i in range(width) if source.random() < 0.9) for id, width in widths if source.random() < 0.8}
    return as_planned(relation, MaterializedView(0, "v", sizes=sizes(str(seed), scans), join_columns=columns))


def compare(seeds: Iterable[int]) -> int:
    """Applies every pass to the plans of these seeds. Returns how many had no failing row."""
    compared = 0
    for seed in seeds:
        source = random.Random(seed)
        scans = tables(source)
        relation = guessed(Plans(source, scans).relation(), seed)
        stored = {id: rows(source, columns) for id, columns, _ in scans}
        before = evaluate(relation, stored)
        compared += not before.errors
        for change in PASSES:
            after = change(relation)
            assert [f.type.spark for f in after.columns] == [f.type.spark for f in relation.columns], (seed, change.__name__)
            if any(isinstance(n, plan.Join) and keys_can_fail(n) for n in walk(relation)):
                break  # no other equality remains, so its keys are evaluated for all rows, also without a match
            result = evaluate(after, stored) if after is not relation else before
            assert agree(before, result), (seed, change.__name__, relation, after, before, result)
            relation, before = after, result
    return compared


def compare_forms(seeds: Iterable[int]) -> int:
    """Applies every pass to views of every form, which use more features than random plans.

    Returns how many had no failing row.
    """
    compared = 0
    for seed in seeds:
        world = Wide(seed)
        forms = Forms(world.random, world.tables)
        queries = [forms(seed * len(FORMS) + n)[0] for n in range(len(FORMS))]
        # when the history is complete and nothing is deleted yet
        time = next(step.time for step in steps(world) if step.compared)
        put = tuple(Table(t.id, t.name, t.columns, t.key, stored=True) for t in world.tables)
        catalog = Catalog().apply(Change(put=put))
        for query in queries:
            try:
                relation = guessed(at(bind_query(query, catalog, view=True, numeric_rules=MAINTAINED).plan, time), seed)
            except TailgateError:
                continue
            before = evaluate(relation, world.rows)
            compared += not before.errors
            for change in PASSES:
                after = change(relation)
                if any(isinstance(n, plan.Join) and keys_can_fail(n) for n in walk(relation)):
                    break
                result = evaluate(after, world.rows) if after is not relation else before
                assert agree(before, result), (seed, change.__name__, query, before, result)
                relation, before = after, result
    return compared


@pytest.mark.parametrize("worlds", [range(4), pytest.param(range(4, FORMS_OF), marks=pytest.mark.long)])
def test_every_pass_keeps_the_meaning_of_every_form(worlds: range, seed: int) -> None:
    assert compare_forms(seed * FORMS_OF + world for world in worlds) > len(worlds) * len(FORMS) / 2


@pytest.mark.parametrize("part", [0, 1, 2, *(pytest.param(part, marks=pytest.mark.long) for part in range(3, 8))])
def test_every_pass_keeps_the_meaning(part: int, seed: int) -> None:
    assert compare(range(seed * PLANS + part, (seed + 1) * PLANS, 8)) > PLANS / 8 / 2


# broken rules: the comparison must notice each one
BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "conditions that can fail go below joins": lambda m: m.setattr(push, "fallible", lambda scalar: False),
    "expressions that can fail go below joins": lambda m: m.setattr(narrow, "fallible", lambda scalar: False),
    "a merged filter forgets a condition": lambda m: m.setattr(merge, "conjunction", lambda conditions: conditions[0]),
    "a filter of the right is taken for the left's": lambda m: m.setattr(push, "shifted", lambda scalar, by: scalar),
    "the columns of a join are mixed up": lambda m: m.setattr(equijoin, "renumber", lambda scalar, to: scalar),
    "arguments of aggregates are not read": lambda m: m.setattr(prune, "read_by", lambda call: ()),
    "pruned columns keep their places": lambda m: m.setattr(prune, "renumber", lambda scalar, to: scalar),
    "filters go into the side that a join fills with NULLs": lambda m: m.setitem(push.WHOLE, "left", (True, True)),
    "the condition of an outer join filters the side that it keeps": lambda m: m.setitem(push.MATCHED, "left", (True, True)),
    "the condition of an anti join filters its left": lambda m: m.setitem(push.MATCHED, "anti", (True, True)),
    "whatever a filter reads rejects NULLs": lambda m: m.setattr(outer, "rejects_null", columns_of),
    "of alternatives only the first is asked": lambda m: m.setattr(factor, "_factors", _first_alternative),
    "every left join finds one partner at most": lambda m: m.setattr(prune, "_at_most_one", lambda join: True),
    "NULL is told from NULL": lambda m: m.setattr(equijoin, "_equal", _equals),
    "filters of set operations are asked of the right alone": lambda m: m.setattr(push, "replace", _right_alone),
    "a shared join forgets all filters but one": lambda m: m.setattr(shared, "conjunction", lambda conditions: conditions[0]),
    "a shared join filters the wrong columns of the right": lambda m: m.setattr(shared, "shifted", lambda scalar, by: scalar),
    "joined in the wrong order": lambda m: m.setattr(order, "take", lambda relation, positions: relation),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_detected(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    BROKEN[rule](monkeypatch)
    with pytest.raises((AssertionError, IndexError, KeyError, AttributeError, TypeError)):
        compare(range(PLANS * 2))


def test_a_pass_that_changes_nothing_gives_the_same_object(seed: int) -> None:
    for number in range(500):
        source = random.Random(f"{seed} {number}")
        relation = rewrite(Plans(source, tables(source)).relation())
        for change in PASSES:
            again = change(relation)
            assert again is relation or again != relation, (number, change.__name__)


def test_rewriting_twice_changes_no_more_than_once(seed: int) -> None:
    settled = 0
    for number in range(300):
        source = random.Random(f"{seed} {number}")
        once = rewrite(Plans(source, tables(source)).relation())
        settled += rewrite(once) == once
    assert settled > 280


def test_joins_store_only_needed_columns() -> None:
    a = plan.Scan(1, tuple(Field(n, TYPES[0]) for n in "abcdef"))
    b = plan.Scan(2, tuple(Field(n, TYPES[0]) for n in "uvwxyz"))
    equal = plan.Call(_operator("="), (plan.Column(1, TYPES[0]), plan.Column(8, TYPES[0])), TYPES[3])
    joined = plan.Join(a, b, "inner", equal)
    top = plan.Project(joined, (plan.Column(4, TYPES[0]),), (Field("e", TYPES[0]),))
    (join,) = [n for n in walk(rewrite(top)) if isinstance(n, plan.Join)]
    assert [f.name for f in join.columns] == ["b", "e", "w"]


@pytest.mark.parametrize("rows", [0, 1])
def test_partial_counts_below_a_join_are_zero_without_rows(rows: int) -> None:
    """SELECT count(b.x), sum(b.x) FROM a JOIN b ON a.x = b.x, where no row has a match."""
    int4, int8 = TYPES[0], Type("int8")
    a, b = plan.Scan(1, (Field("x", int4),), (0,), rows=100), plan.Scan(2, (Field("x", int4),), rows=10_000)
    on = plan.Call(_operator("="), (plan.Column(0, int4), plan.Column(1, int4)), TYPES[3])
    calls = tuple(plan.AggregateCall(aggregate(name, int4, int8), (plan.Column(1, int4),), int8) for name in ("count", "sum"))
    before = plan.Reduce(plan.Join(a, b, "inner", on), (), calls)
    after = early.group_early(before)
    assert len([n for n in walk(after) if isinstance(n, plan.Reduce)]) == 2
    stored = {1: Counter({(1,): 1}), 2: Counter({(1 if rows else 2,): 3})}
    assert evaluate(after, stored) == evaluate(before, stored)
    assert evaluate(after, stored).rows == Counter({((3, 3) if rows else (0, None)): 1})


@pytest.mark.parametrize(
    ("having", "results", "limit"),
    [
        ("true", "{0}[1], {0}[3]", 3),
        ("{0}[2] > 4", "{0}[1]", 2),
        ("{0}[2] > 4", "{0}", None),
        ("{0} IS NOT NULL", "{0}[1]", None),
        ("true", "{0}[k]", None),
    ],
)
def test_only_the_elements_that_are_read_are_collected(having: str, results: str, limit: int | None) -> None:
    table = Table(16384, "t", tuple(Field(n, Type("int4")) for n in ("k", "v", "o")), (0, 1, 2), stored=True)
    array = "(array_agg(v ORDER BY o DESC))"
    query = f"SELECT k, {results.format(array)} FROM t GROUP BY k HAVING {having.format(array)}"
    before = bind_query(query, Catalog().apply(Change(put=(table,))), view=True).plan
    after = top.first_values(before)
    (reduce,) = [n for n in walk(after) if isinstance(n, plan.Reduce)]
    assert [call.limit for call in reduce.aggregates] == [limit]
    source = random.Random(having + results)
    for _ in range(20):
        stored = {table.id: Counter(tuple(source.randrange(9) for _ in range(3)) for _ in range(source.randrange(40)))}
        assert evaluate(after, stored) == evaluate(before, stored)


def test_join_order_gives_each_join_an_equality() -> None:
    """FROM a, b, c WHERE a.x = c.x AND b.y = c.y."""
    scans = [plan.Scan(i, (Field("x", TYPES[0]), Field("y", TYPES[0]))) for i in (1, 2, 3)]
    crossed = plan.Join(plan.Join(scans[0], scans[1], "cross", None), scans[2], "cross", None)
    conditions = tuple(
        plan.Call(_operator("="), (plan.Column(i, TYPES[0]), plan.Column(j, TYPES[0])), TYPES[3]) for i, j in ((0, 4), (3, 5))
    )
    joins = [n for n in walk(rewrite(plan.Filter(crossed, plan.And(conditions)))) if isinstance(n, plan.Join)]
    assert len(joins) == 2
    assert all(matching(j).left and not matching(j).rest for j in joins)


@pytest.mark.parametrize("broken", [False, True])
def test_reordered_joins_evaluate_fallible_conditions_on_whole_rows(monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    """FROM a, b JOIN c ON a.x = c.x AND b.y = c.y AND 1 / a.y > 0.

    The division is not evaluated for a row of a and c that has no match in b.
    """
    if broken:
        monkeypatch.setattr(order, "fallible", lambda scalar: False)
    a, b, c = (plan.Scan(i, (Field("x", TYPES[0]), Field("y", TYPES[0]))) for i in (1, 2, 3))
    column: Callable[[int], plan.Column] = lambda i: plan.Column(i, TYPES[0])  # noqa: E731
    one, zero = plan.Literal(1, TYPES[0]), plan.Literal(0, TYPES[0])
    conditions = (
        plan.Call(_operator("="), (column(0), column(4)), TYPES[3]),
        plan.Call(_operator("="), (column(3), column(5)), TYPES[3]),
        plan.Call(_operator(">"), (plan.Call(_operator("/"), (one, column(1)), TYPES[0]), zero), TYPES[3]),
    )
    after = order.order_joins(plan.Join(plan.Join(a, b, "cross", None), c, "inner", plan.And(conditions)))
    stored = {1: Counter({(1, 0): 1}), 2: Counter({(1, 2): 1}), 3: Counter({(1, 1): 1})}
    assert bool(evaluate(after, stored).errors) == broken


def test_a_guard_stays_before_the_guarded_expression() -> None:
    """FROM a, b WHERE a.x = b.x AND a.y <> 0 AND 1 / b.y > 0.

    The division is not evaluated for rows of b without a match.
    """
    a, b = (plan.Scan(i, (Field("x", TYPES[0]), Field("y", TYPES[0]))) for i in (1, 2))
    column: Callable[[int], plan.Column] = lambda i: plan.Column(i, TYPES[0])  # noqa: E731
    one, zero = plan.Literal(1, TYPES[0]), plan.Literal(0, TYPES[0])
    conditions = (
        plan.Call(_operator("="), (column(0), column(2)), TYPES[3]),
        plan.Call(_operator("<>"), (column(1), zero), TYPES[3]),
        plan.Call(_operator(">"), (plan.Call(_operator("/"), (one, column(3)), TYPES[0]), zero), TYPES[3]),
    )
    after = rewrite(plan.Filter(plan.Join(a, b, "cross", None), plan.And(conditions)))
    assert not evaluate(after, {1: Counter({(1, 1): 1}), 2: Counter({(2, 0): 1, (1, 1): 1})}).errors


def _first_alternative(term: plan.Scalar) -> tuple[plan.Scalar, ...]:
    return conjuncts(term.arguments[0]) if isinstance(term, plan.Or) else (term,)


def _right_alone(operation: plan.SetOperation, left: plan.Relation, right: plan.Relation) -> plan.SetOperation:
    return dataclasses.replace(operation, right=right)


def _equals(equal: plan.Scalar, left: plan.Column, right: plan.Column) -> plan.Scalar:
    """Returns an equality of two columns and ignores the original condition."""
    return plan.Call(_operator("="), (left, right), TYPES[3])


def _operator(sign: str) -> Any:
    from tests.engine.plan.random_plans import operator

    return operator(sign, TYPES[0])
