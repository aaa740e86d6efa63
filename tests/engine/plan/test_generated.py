"""Random queries as maintained views, and queries that once failed, compared with PostgreSQL 15.

TAILGATE_VIEWS is the number of views.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.generator.comparing import now
from tests.generator.parts import LIMITS
from tests.generator.servers import Server
from tests.generator.test_statements import FOUND
from tests.generator.trees import node
from tests.generator.views import BATCH, Maintenance, View, named

pytestmark = pytest.mark.spark

COUNT = int(os.environ.get("TAILGATE_VIEWS", str(BATCH)))
PROGRESS_S = 30.0
FAILURES_MAX = 5
LONG = 200  # above this number of views, progress is printed
REFUSED_MAX = 0.3


@pytest.fixture
def maintenance(session: Any, tmp_path: Path, postgres: str, seed: int) -> Iterator[Maintenance]:
    server = Server("PostgreSQL", int(postgres.rpartition(":")[2].partition("/")[0]), setup=LIMITS)
    of = Maintenance(str(seed), session, tmp_path / "state", server)
    of.prepare()
    yield of
    server.execute("DROP SCHEMA maintained CASCADE")
    server.close()


def test_known_failures(maintenance: Maintenance) -> None:
    """Covers the queries that can be views. View columns need distinct names."""
    views = []
    steps = maintenance.steps(random.Random(0))
    for line in FOUND.read_text().splitlines():
        if line.startswith("#") or not line or " -- " in line:
            continue
        answer = maintenance.server.query(line)
        if not answer.failed:
            views.append(View(len(views), node("text", line), named(line, len(answer.results[-1].names))))
    assert len(views) > 20
    wrong = [f"{why}: {view.query}" for view, why in maintenance.run(views, steps, 2, random.Random(0))]
    assert not wrong, "\n".join(wrong)


def test_random_views(maintenance: Maintenance, capsys: pytest.CaptureFixture[str]) -> None:
    failures: list[str] = []
    began = last_report = now()
    for number in range(COUNT // BATCH):
        for failure in maintenance.batch(number):
            failures.append(str(failure))
            with capsys.disabled():
                print(f"\n{failure}", flush=True)
        if len(failures) >= FAILURES_MAX:
            break
        if COUNT >= LONG and now() - last_report > PROGRESS_S:
            last_report = now()
            with capsys.disabled():
                print(
                    f"\n{(number + 1) * BATCH} of {COUNT} views in {last_report - began:.0f} s, seed {maintenance.seed}", end="", flush=True
                )
    with capsys.disabled():
        print(f"\n{COUNT} views in {now() - began:.0f} s: {dict(maintenance.verdicts)}, seed {maintenance.seed}")
    assert not failures, "\n\n".join(failures)
    assert maintenance.verdicts["refused"] < max(REFUSED_MAX * COUNT, 10), maintenance.refusals
