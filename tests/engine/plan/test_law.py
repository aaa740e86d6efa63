"""The law, with one, two and three partitions: a view equals its query over the rows at each time.

Random tables, views in every form and views of views. Their changes run through the real circuit,
directly over its state stores, with restarts and lost attempts. After each tick every view is
compared with the reference. To reproduce one failure:

    TAILGATE_SEED=… TAILGATE_LAW_WORLD=… pytest tests/engine/plan/test_law.py

TAILGATE_CASES is the number of views, which cover all features from COMPLETE on; above 1,000 progress is printed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.engine.plan.coverage import EVERY
from tests.engine.plan.law import FORMED, OVER, Law

pytestmark = pytest.mark.spark

CASES = int(os.environ.get("TAILGATE_CASES", "50"))
WORLD = os.environ.get("TAILGATE_LAW_WORLD")
COMPLETE = 300  # with this number of cases, all features are covered
PROGRESS_S = 30.0
REFUSED_MAX = 0.05  # maximum share of refused queries


def test_every_view_is_its_query(session: Any, tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    law = Law(session, tmp_path / "state")
    if WORLD is not None:
        law.world(seed, int(WORLD))
        return
    last_report = began = time.monotonic()
    number = 0
    while law.cases < CASES:
        law.world(seed, number)
        number += 1
        if CASES > 1000 and time.monotonic() - last_report > PROGRESS_S:
            last_report = time.monotonic()
            with capsys.disabled():
                print(
                    f"\n{law.cases} of {CASES} cases in {last_report - began:.0f} s, {law.exact} comparisons without an error",
                    end="",
                    flush=True,
                )
    with capsys.disabled():
        cpu = session._jvm.tailgate.circuit.CircuitDriver.cpu() + time.process_time()
        print(f"\n{law.cases} cases in {time.monotonic() - began:.0f} s, {cpu:.0f} s of CPU, {law.exact} comparisons without an error")
        if os.environ.get("TAILGATE_COVERAGE"):
            print("\n".join(f"{law.covered[name]:6d} {name}" for name in sorted(EVERY, key=lambda n: (law.covered[n], n))))
    assert law.exact > 4 * law.cases, "most comparisons are to be of views without errors"
    assert len(law.refused) < REFUSED_MAX * number * (FORMED + OVER), law.refused
    missing = sorted(EVERY - set(law.covered))
    assert CASES < COMPLETE or not missing, f"no view had {missing}"
