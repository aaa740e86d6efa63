"""Runs the golden scripts. TAILGATE_UPDATE=1 records them again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sql.catalogs import make_catalog
from tests.sql.golden import SCRIPTS, Script, cases, written


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda p: p.stem)
def test_script(path: Path) -> None:
    all = cases(path)
    script = Script(make_catalog())
    recorded = written(all)
    for case in all:
        case.answer = script.answer(case.statement)
    if os.environ.get("TAILGATE_UPDATE"):
        path.write_text(written(all))
    else:
        assert written(all) == recorded
