"""The list of mutations matches the current engine. The slow `test_mutations.py` applies them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.engine.plan.mutations import ALL

JAVA = Path(__file__).parents[3] / "tailgate" / "engine" / "java" / "src" / "main" / "java" / "tailgate"


def test_each_text_is_there() -> None:
    for mutation in ALL:
        path = str(JAVA / f"{mutation.file}.java") if mutation.file[0].isupper() else importlib.import_module(mutation.file).__file__
        assert path is not None
        assert mutation.applied(Path(path).read_text())


def test_every_operator_and_total_has_some() -> None:
    kinds = re.compile(r"class \w+ extends (Operator|Join|Partitioned|Total|Total\.Keeping|Counts) \{")
    assert {f.stem for f in JAVA.glob("*.java") if kinds.search(f.read_text())} <= {m.file for m in ALL}


def test_no_rule_is_told_twice() -> None:
    assert len({str(m) for m in ALL}) == len(ALL)
