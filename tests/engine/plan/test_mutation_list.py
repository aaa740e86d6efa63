"""The list of rules that are broken on purpose is of the engine as it is (`test_mutations.py` breaks them, which takes long)."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.engine.plan.mutations import ALL, JAVA, KEEPERS, Mutation

JAVA_FILES = Path(__file__).parents[3] / "engine" / "java" / "src" / "main" / "java" / "tailgate"


@pytest.mark.parametrize("mutation", ALL, ids=str)
def test_its_text_is_there(mutation: Mutation) -> None:
    if mutation in JAVA or mutation in KEEPERS:
        assert mutation.applied((JAVA_FILES / f"{mutation.file}.java").read_text())
    else:
        path = importlib.import_module(mutation.file).__file__
        assert path is not None
        compile(mutation.applied(Path(path).read_text()), path, "exec")


def test_every_operator_has_some() -> None:
    operators = {f.stem for f in JAVA_FILES.glob("*.java") if f.read_text().count(" extends Operator {") or " extends Total" in f.read_text()}
    assert operators <= {m.file for m in ALL}


def test_no_rule_is_told_twice() -> None:
    assert len({str(m) for m in ALL}) == len(ALL)
