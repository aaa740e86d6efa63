"""Each change rule broken on purpose is caught by the law: operators in the running JVM, rewrites in this process."""

from __future__ import annotations

import importlib
import os
import subprocess
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.engine.plan.law import FORMED, OVER, Case, Law
from tests.engine.plan.mutations import JAVA, PYTHON
from tests.engine.plan.views import Straight

pytestmark = [pytest.mark.spark, pytest.mark.long]

SEED = int(os.environ.get("TAILGATE_LAW_SEED", "1"))
WORLDS = int(os.environ.get("TAILGATE_WORLDS", "25"))  # 300 cases
ROOT = Path(__file__).parents[3]
ONLY = os.environ.get("TAILGATE_MUTATIONS", "")  # a part of the file's name


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session whose JVM lets classes be replaced; it has to be the first of this process."""
    from pyspark import SparkContext

    from engine.runtime import session

    assert SparkContext._gateway is None, "run this file by itself: a JVM takes an agent only at its start"
    folder = tmp_path_factory.mktemp("agent")
    manifest = folder / "manifest"
    manifest.write_text("Premain-Class: tailgate.Mutant\nCan-Redefine-Classes: true\n")
    classes = ROOT / "engine" / "java" / "target" / "test-classes"
    subprocess.run(["jar", "cfm", folder / "agent.jar", manifest, "-C", classes, "tailgate/Mutant.class"], check=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"-javaagent:{folder / 'agent.jar'}"
    running = session.start(folder / "spark", 1)
    yield running
    running.stop()


@contextmanager
def java(session: Any, name: str, old: str, new: str) -> Iterator[None]:
    path = ROOT / "engine" / "java" / "src" / "main" / "java" / "tailgate" / f"{name}.java"
    text = path.read_text()
    assert old in text, f"{name}.java has no more: {old}"
    session._jvm.tailgate.Mutant.replace(path.name, text.replace(old, new, 1))
    try:
        yield
    finally:
        session._jvm.tailgate.Mutant.replace(path.name, text)


@contextmanager
def python(name: str, old: str, new: str) -> Iterator[None]:
    """The functions of a module with the code of another text of it."""
    module = importlib.import_module(name)
    assert module.__file__ is not None
    text = Path(module.__file__).read_text()
    assert old in text, f"{name} has no more: {old}"
    broken = types.ModuleType(name)
    exec(compile(text.replace(old, new, 1), module.__file__, "exec", dont_inherit=True), broken.__dict__)
    pairs = list(functions(module, broken))
    kept = [mine.__code__ for mine, _ in pairs]
    for mine, theirs in pairs:
        mine.__code__ = theirs.__code__
    try:
        yield
    finally:
        for (mine, _), code in zip(pairs, kept, strict=True):
            mine.__code__ = code


def functions(module: Any, other: Any) -> Iterator[tuple[types.FunctionType, types.FunctionType]]:
    for key, value in vars(module).items():
        theirs = vars(other).get(key)
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__ and isinstance(theirs, types.FunctionType):
            yield value, theirs
        elif isinstance(value, type) and value.__module__ == module.__name__ and isinstance(theirs, type):
            yield from ((f, vars(theirs)[k]) for k, f in vars(value).items() if isinstance(f, types.FunctionType))


def rerun(law: Law, prepared: list[tuple[Straight, Case]]) -> int | None:
    """After how many cases the law fails, of views whose circuits are there already."""
    for number, (views, case) in enumerate(prepared, 1):
        try:
            views.anew()
            law.run(views, case)
        except Exception:  # noqa: BLE001  # whatever a broken rule comes to
            return number * (FORMED + OVER)
        finally:
            views.end()
    return None


def afresh(law: Law) -> int | None:
    """The same, of views that are planned with the broken rule."""
    for number in range(WORLDS):
        try:
            views, case = law.made(SEED, number)
            try:
                law.run(views, case)
            finally:
                law.closed(views)
        except Exception:  # noqa: BLE001
            return (number + 1) * (FORMED + OVER)
    return None


def test_every_broken_rule_is_caught(session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    law = Law(session, tmp_path / "state")
    prepared = [law.made(SEED, number) for number in range(WORLDS)]
    for views, _ in prepared:
        views.end()
    assert rerun(law, prepared) is None, "the law holds before anything is broken"
    missed = []
    broken: list[tuple[str, str, str, Any, Callable[[], int | None]]] = []
    broken += [(f"{n}.java", o, w, partial(java, session, n, o, w), partial(rerun, law, prepared)) for n, o, w in JAVA]
    broken += [(n, o, w, partial(python, n, o, w), partial(afresh, law)) for n, o, w in PYTHON]
    for name, old, new, breaking, caught in broken:
        if ONLY not in name:
            continue
        began = time.monotonic()
        with breaking():
            cases = caught()
        verdict = "NOT CAUGHT" if cases is None else f"caught within {cases} cases"
        with capsys.disabled():
            print(f"\n| {name} | `{old.strip()}` → `{new.strip()}` | {verdict} | {time.monotonic() - began:.0f} s", end="", flush=True)
        if cases is None:
            missed.append((name, old))
    assert not missed
