"""The golden scripts of `golden/`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engine.plan.golden import SCRIPTS, World, cases, written


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda p: p.stem)
def test_script(path: Path) -> None:
    world = World()
    script = cases(path)
    answers = [world.run(c.command) for c in script]
    if os.environ.get("TAILGATE_UPDATE"):
        for case, answer in zip(script, answers, strict=True):
            case.answer = answer
        path.write_text(written(script))
    for case, answer in zip(script, answers, strict=True):
        assert answer == case.answer, case.command
