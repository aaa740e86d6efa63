"""Sends random statements to a gateway and to PostgreSQL 15, and compares the answers.

    TAILGATE_STATEMENTS=n pytest tests/generator    sends n statements

Internal errors, hangs and crashes are failures, too. A failure prints its seed, its number and the
shrunk statement. docs/sql/differences.md lists the differences that are allowed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.generator import world
from tests.generator.comparing import Comparison, now
from tests.generator.maintained import BATCH, Materialized
from tests.generator.parts import Both
from tests.generator.statements import Case, Statements
from tests.generator.trees import node

pytestmark = pytest.mark.spark

COUNT = int(os.environ.get("TAILGATE_STATEMENTS", "300"))
VIEWS = int(os.environ.get("TAILGATE_MAINTAINED", "10"))
PROGRESS_S = 30.0
LONG = 1000  # with at least this many statements, progress is printed
FAILURES_MAX = 10  # failures after which the test stops
EVALUATED_MAX = 0.02  # limit of the share of statements for which a row fails on one server only
REFUSED_MAX = 0.1
FOUND = Path(__file__).parent / "found.txt"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Both]:
    servers = Both(tmp_path_factory.mktemp("statements"), str(seed))
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


def test_known_failures(both: Both) -> None:
    wrong = []
    for line in FOUND.read_text().splitlines():
        text, _, values = line.partition(" -- ")
        if not text or text.startswith("#"):
            continue
        case = Case("found", node("text", text), values=tuple(json.loads(values)) if values else None)
        theirs, ours = case.run(both.theirs, ours=False), case.run(both.ours, ours=True)
        verdict = case.verdict(theirs, ours)
        if verdict not in ("same", "failed", "evaluated"):
            wrong.append(f"{verdict}: {line}: {ours.sqlstate} {ours.message} {[r.rows[:4] for r in ours.results]}")
    assert not wrong, "\n".join(wrong)


def test_random_statements(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = Comparison(Statements(both.seed, world.RELATIONS, world.TABLES), both.theirs, both.ours, both.gateway.revive)
    failures: list[str] = []
    began = reported = now()
    for number in range(COUNT):
        failure = comparison.run(number)
        if failure is not None:
            failures.append(str(failure))
            with capsys.disabled():
                print(f"\n{failure}", flush=True)
        if len(failures) >= FAILURES_MAX:
            break
        if COUNT >= LONG and now() - reported > PROGRESS_S:
            reported = now()
            with capsys.disabled():
                print(f"\n{number + 1} of {COUNT} statements in {reported - began:.0f} s, seed {both.seed}", end="", flush=True)
    with capsys.disabled():
        print(f"\n{comparison.report(now() - began)}\n  seed {both.seed}, {both.gateway.lives} lives of the gateway")
    assert not failures, "\n\n".join(failures)
    assert comparison.verdicts["refused"] < max(REFUSED_MAX * COUNT, 10), comparison.refusals
    assert comparison.verdicts["evaluated"] < max(EVALUATED_MAX * COUNT, 10)


def test_random_materialized_views(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    views = Materialized(both.seed, both.theirs, both.ours)
    wrong: list[str] = []
    began = reported = now()
    for number in range(VIEWS // BATCH):
        wrong += views.batch(number)
        if VIEWS >= LONG // 5 and now() - reported > PROGRESS_S:
            reported = now()
            with capsys.disabled():
                print(f"\n{(number + 1) * BATCH} of {VIEWS} materialized views in {reported - began:.0f} s", end="", flush=True)
        if len(wrong) >= FAILURES_MAX:
            break
    with capsys.disabled():
        print(f"\n{VIEWS} materialized views: {dict(views.verdicts)}")
    assert not wrong, "\n\n".join(wrong)


def test_no_internal_errors_are_recorded(both: Both) -> None:
    """The gateway has recorded no internal error either."""
    answer = both.ours.query("SELECT process, sqlstate, error, statement, count FROM tailgate.internal_errors")
    assert [r.rows for r in answer.results] == [[]]
