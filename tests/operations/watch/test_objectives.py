"""Tests objectives: statements, verdicts, burn rates and the error budget."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest

from tailgate.lake.catalog import Objective
from tailgate.lake.folder import Lake
from tailgate.operations.sketch import STEP_S, Sketch
from tailgate.operations.watch.history import HOUR_STEPS
from tailgate.operations.watch.objectives import BAD, GOOD, MARKS_MAX, Objectives, State, Verdict, states, verdict
from tests.wire.live import Live

ITEM = Objective(id=2000, name="fresh", depends=(7,), limits_ms={"p95": 100, "max": 1000}, window_ms=60_000, availability_ppm=990_000)


def lags(*values: float, unknown: int = 0) -> Sketch:
    sketch = Sketch(missing=unknown)
    for value in values:
        sketch.add(value)
    return sketch


# ---- verdicts ----------------------------------------------------------------------------------------------------------------


def test_a_verdict() -> None:
    assert verdict(ITEM, lags(*[50] * 99, 500)) == Verdict()
    assert verdict(ITEM, lags(50, 1500)) == Verdict(1400, "the p95 of its freshness lag is above 100 ms")
    assert verdict(ITEM, lags(*[50] * 99, 1500)) == Verdict(500, "the max of its freshness lag is above 1000 ms")
    assert verdict(ITEM, lags(50, 60, unknown=1)) == Verdict(None, "its freshness lag was unknown 1 times of 3")
    assert verdict(ITEM, lags()) == Verdict()


def test_a_state_counts_steps() -> None:
    state = State("", 0, 99)
    state = state.after(100, Verdict()).after(101, Verdict(None, "unknown")).after(102, Verdict(5, "slow"))
    assert (state.state, state.since, state.marks, state.good, state.bad) == ("violated", 101 * STEP_S * 1000, "gbb", 1, 2)
    # steps without the watch are neither good nor bad
    state = state.after(106, Verdict())
    assert (state.state, state.since, state.marks) == ("met", 106 * STEP_S * 1000, "gbb---g")
    assert state.burn_rate(1, 990_000) == 0
    assert state.burn_rate(7, 990_000) == 50
    assert State("", 0, 0).burn_rate(7, 990_000) is None


def test_the_marks_are_bounded() -> None:
    state = State("met", 0, 10_000, marks=GOOD * MARKS_MAX)
    assert state.after(10_001, Verdict(1, "slow")).marks == GOOD * (MARKS_MAX - 1) + BAD
    assert state.after(10**9, Verdict(1, "slow")).marks == "-" * (MARKS_MAX - 1) + BAD


def test_the_budget_begins_again_with_the_month() -> None:
    day = 24 * HOUR_STEPS
    november = 1_793_491_200 // STEP_S  # 2026-11-01
    state = State("met", 0, november - 2, month="2026-10", good=10, bad=10).after(november - 1, Verdict(1, "slow"))
    assert (state.month, state.good, state.bad) == ("2026-10", 10, 11)
    state = state.after(november, Verdict(1, "slow"))
    assert (state.month, state.good, state.bad) == ("2026-11", 0, 1)
    # a tenth of November is its budget
    assert State("met", 0, november, month="2026-11", bad=round(1.5 * day)).budget_left(900_000) == 50
    assert State("met", 0, november, month="2026-11", bad=6 * day).budget_left(900_000) == -100
    assert State("met", 0, november, month="2026-12", bad=round(1.55 * day)).budget_left(900_000) == 50


# ---- statements --------------------------------------------------------------------------------------------------------------


FRESH = "CREATE OBJECTIVE fresh ON v (FRESHNESS p95 '5 s', FRESHNESS max '10 s', AVAILABILITY '99 %') OVER '20 s'"


def judged(lake: Lake, *verdicts: Sketch) -> Objectives:
    """Judges all objectives after one step for each of the lags, up to now."""
    (item,) = lake.catalog().each(Objective)
    objectives, first = Objectives(lake), int(time.time()) // STEP_S - len(verdicts)
    for number, of in enumerate(verdicts):
        objectives.judge(lake.catalog(), [(first + number, {item.depends[0]: of})])
    return objectives


def test_an_objective_and_its_state(live: Live, sql: psycopg.Connection[Any]) -> None:
    lake = live.model.lake
    sql.execute(FRESH)
    query = "SELECT schema, name, on_name, goals, state, above_ms, reason FROM tailgate.objectives"
    goals = "FRESHNESS p95 '5000 ms', FRESHNESS max '10000 ms', AVAILABILITY '99 %' OVER '20 s'"
    assert sql.execute(query).fetchall() == [("public", "fresh", "v", goals, None, None, None)]
    objectives = judged(lake, lags(100), lags(12_000), lags(100))
    reason = "the p95 of its freshness lag is above 5000 ms"
    assert sql.execute(query).fetchall() == [("public", "fresh", "v", goals, "violated", 7_000, reason)]
    (condition,) = objectives.violated(lake.catalog()).values()
    assert (condition.alert, condition.key) == ("objective_violated", "fresh")
    assert condition.summary == f"objective fresh of v is violated: {reason}"
    figures = (
        "SELECT burn_rate_5_minutes, burn_rate_6_hours, budget_left_percent < 100, now() - since < '1 minute' FROM tailgate.objectives"
    )
    assert sql.execute(figures).fetchall() == [(66.67, 66.67, True, True)]
    # the window of 20 s has two steps
    (item,) = lake.catalog().each(Objective)
    again = Objectives(lake)
    step = states(lake)[item.id].step
    again.judge(lake.catalog(), [(step + 1, {item.depends[0]: lags(100)}), (step + 2, {item.depends[0]: lags(100)})])
    assert again.violated(lake.catalog()) == {}
    assert sql.execute(query).fetchall() == [("public", "fresh", "v", goals, "met", None, None)]
    assert [row[:5] for row in sql.execute("SHOW OBJECTIVES").fetchall()] == [
        ("fresh", "v", goals, "met", sql.execute("SELECT since FROM tailgate.objectives").fetchall()[0][0])
    ]
    sql.execute("DROP OBJECTIVE fresh")
    again.judge(lake.catalog(), [])
    assert states(lake) == {}
    assert sql.execute(query).fetchall() == []


def test_or_replace_keeps_the_state_and_the_dependents(sql: psycopg.Connection[Any], live: Live) -> None:
    sql.execute("CREATE OR REPLACE OBJECTIVE fresh ON v (FRESHNESS p95 '5 s')")
    sql.execute("CREATE ALERT on_fresh ON fresh")
    sql.execute("COMMENT ON OBJECTIVE fresh IS 'for the shop'")
    lake = Lake(live.model.lake.path)
    (before,) = lake.catalog().each(Objective)
    assert sql.execute("CREATE OR REPLACE OBJECTIVE fresh ON v (FRESHNESS max '7 s') OVER '20 s'").statusmessage == "CREATE OBJECTIVE"
    (item,) = lake.catalog().each(Objective)
    assert (item.id, item.owner, item.comments, item.limits_ms) == (before.id, before.owner, before.comments, {"max": 7000})
    sql.execute("CREATE OR REPLACE ALERT on_fresh AS SELECT name FROM v WHERE amount > 3 SEVERITY 'ticket'")
    assert sql.execute("SHOW ALERTS").fetchall() == [("on_fresh", None, "ticket", 0, 0, 0, 0)]
    with pytest.raises(psycopg.errors.WrongObjectType, match='"on_fresh" is not an objective'):
        sql.execute("CREATE OR REPLACE OBJECTIVE on_fresh ON v (FRESHNESS max '7 s')")
    with pytest.raises(psycopg.errors.SyntaxError):
        sql.execute("CREATE OR REPLACE OBJECTIVE IF NOT EXISTS fresh ON v (FRESHNESS max '7 s')")
    sql.execute("DROP ALERT on_fresh")
    sql.execute("DROP OBJECTIVE fresh")


def test_the_latency_of_an_endpoint(live: Live, sql: psycopg.Connection[Any]) -> None:
    lake = live.model.lake
    for statement in ("CREATE ROLE ann LOGIN SUPERUSER", "CREATE ROLE bea LOGIN", "CREATE SCHEMA own AUTHORIZATION bea"):
        sql.execute(statement.encode())
    with psycopg.connect(live.dsn, user="ann", autocommit=True) as ann, psycopg.connect(live.dsn, user="bea", autocommit=True) as bea:
        ann.execute("CREATE ENDPOINT v GET '/v' AS SELECT 1 AS one")  # the view has this name, too
        create = "CREATE OBJECTIVE own.quick ON v (LATENCY p95 '5 ms', LATENCY max '1 s') OVER '20 s'"
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for endpoint v"):
            bea.execute(create.encode())
        ann.execute("GRANT EXECUTE ON ENDPOINT v TO bea")
        bea.execute(create.encode())
        query = "SELECT on_name, goals, state, reason FROM tailgate.objectives"
        goals = "LATENCY p95 '5 ms', LATENCY max '1000 ms', AVAILABILITY '99.9 %' OVER '20 s'"
        assert ann.execute(query).fetchall() == [("v", goals, None, None)]
        objectives = judged(lake, lags(2, 3), lags(2, 3, 40))
        assert ann.execute(query).fetchall() == [("v", goals, "violated", "the p95 of its latency is above 5 ms")]
        (condition,) = objectives.violated(lake.catalog()).values()
        assert condition.summary == "objective own.quick of v is violated: the p95 of its latency is above 5 ms"
        assert "tailgate.statements" in condition.hint
        (item,) = lake.catalog().each(Objective)
        again, step = Objectives(lake), states(lake)[item.id].step
        again.judge(lake.catalog(), [(step + 1, {}), (step + 2, {})])  # no request
        assert again.violated(lake.catalog()) == {}
        with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop endpoint v"):
            ann.execute("DROP ENDPOINT v")
        ann.execute("ALTER ENDPOINT v RENAME TO w")
        assert "ON w (LATENCY" in ann.execute("SHOW CREATE OBJECTIVE own.quick").fetchall()[0][1]
        ann.execute("DROP ENDPOINT w CASCADE")
        assert ann.execute(query).fetchall() == []


def test_an_objective_depends_on_its_relation(sql: psycopg.Connection[Any]) -> None:
    statement = FRESH.replace("ON v", "ON names")
    sql.execute("CREATE VIEW names AS SELECT name FROM v")
    sql.execute(statement.encode())
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        sql.execute("DROP VIEW names")
    assert error.value.diag.message_detail == "objective fresh depends on view names"
    assert sql.execute("SHOW CREATE OBJECTIVE fresh").fetchall() == [("fresh", statement)]
    sql.execute("ALTER VIEW names RENAME TO w")
    sql.execute("ALTER OBJECTIVE fresh RENAME TO fresher")
    text = statement.replace("fresh ON names", "fresher ON w")
    assert sql.execute("SHOW CREATE OBJECTIVE fresher").fetchall() == [("fresher", text)]
    sql.execute("CREATE SCHEMA other")
    sql.execute("ALTER OBJECTIVE fresher SET SCHEMA other")
    assert sql.execute("SELECT schema, name FROM tailgate.objectives").fetchall() == [("other", "fresher")]
    sql.execute("COMMENT ON OBJECTIVE other.fresher IS 'for the shop'")
    sql.execute("DROP VIEW w CASCADE")
    assert sql.execute("SELECT name FROM tailgate.objectives").fetchall() == []


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE OBJECTIVE o ON nothing (FRESHNESS p95 '5 s')", "42P01", 'relation "nothing" does not exist'),
        ("CREATE OBJECTIVE o ON v (FRESHNESS p90 '5 s')", "42601", 'syntax error at or near "p90"'),
        ("CREATE OBJECTIVE o ON v ()", "42601", 'syntax error at or near ")"'),
        ("CREATE OBJECTIVE o ON v (AVAILABILITY '99 %')", "42P17", "an objective needs a goal for the freshness lag or the latency"),
        ("CREATE OBJECTIVE o ON v (FRESHNESS p95 '5 s', FRESHNESS p95 '6 s')", "42P17", "goal p95 specified more than once"),
        ("CREATE OBJECTIVE o ON v (FRESHNESS p95 'soon')", "22007", 'invalid input syntax for type interval: "soon"'),
        ("CREATE OBJECTIVE o ON v (FRESHNESS p95 '0 s')", "22023", 'invalid FRESHNESS p95: "0 s"'),
        ("CREATE OBJECTIVE o ON v (FRESHNESS p95 '5 s') OVER '1 day'", "22023", 'invalid OVER: "1 day"'),
        ("CREATE OBJECTIVE o ON v (FRESHNESS p95 '5 s', AVAILABILITY '100 %')", "22023", 'invalid AVAILABILITY: "100 %"'),
        ("CREATE OBJECTIVE o ON v (FRESHNESS p95 '5 s', AVAILABILITY 'all')", "22023", 'invalid AVAILABILITY: "all"'),
        ("CREATE OBJECTIVE o ON v (LATENCY p95 '5 ms')", "42704", 'endpoint "v" does not exist'),
        ("CREATE OBJECTIVE o ON v (LATENCY p95 '0.1 ms')", "42704", 'endpoint "v" does not exist'),
        (
            "CREATE OBJECTIVE o ON v (LATENCY p95 '5 ms', FRESHNESS max '5 s')",
            "42P17",
            "an objective cannot have both FRESHNESS and LATENCY",
        ),
        ("DROP OBJECTIVE nothing", "42704", 'objective "nothing" does not exist'),
        ("DROP OBJECTIVE v", "42809", '"v" is not an objective'),
    ],
)
def test_an_invalid_statement(statement: str, sqlstate: str, message: str, sql: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error) as error:
        sql.execute(statement.encode())
    assert (error.value.sqlstate, error.value.diag.message_primary) == (sqlstate, message)


def test_privileges(live: Live, sql: psycopg.Connection[Any]) -> None:
    for statement in ("CREATE ROLE ann LOGIN SUPERUSER", "CREATE ROLE bea LOGIN", "CREATE SCHEMA own AUTHORIZATION bea"):
        sql.execute(statement.encode())
    with psycopg.connect(live.dsn.replace("ann", "bea"), autocommit=True) as bea:
        statement = FRESH.replace("fresh ON v", "own.fresh ON v").encode()
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for materialized view v"):
            bea.execute(statement)
        sql.execute("GRANT SELECT ON v TO bea")
        bea.execute(statement)
        sql.execute(FRESH)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner of objective fresh"):
            bea.execute("DROP OBJECTIVE public.fresh")
        bea.execute("DROP OBJECTIVE own.fresh")


def test_if_not_exists(sql: psycopg.Connection[Any]) -> None:
    sql.execute(FRESH)
    sql.execute(FRESH.replace("OBJECTIVE", "OBJECTIVE IF NOT EXISTS"))
    with pytest.raises(psycopg.errors.DuplicateTable):
        sql.execute(FRESH)
