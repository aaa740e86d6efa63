"""The law catches each change rule that is broken on purpose.

Operators are replaced in the running JVM, rewrites in this process. Each mutation is a test: `-k
"TopK"` selects those of a file, and `--last-failed` continues an earlier run. The worlds are the
first ones of a fixed seed, in order. So the printed number of cases is that of the law with this
seed; worlds whose circuits do not run the mutated code are skipped.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.views import catalog_graph
from testing.random_queries import REGRESSIONS, VARIANCES
from testing.views import Straight
from tests.engine.ddl import test_debezium
from tests.engine.plan import test_lives, test_recursion, test_rewrites
from tests.engine.plan.forms import FORMS
from tests.engine.plan.law import FORMED, OVER, Case, Law
from tests.engine.plan.mutations import JAVA, KEEPERS, LOOPS, PYTHON, Mutation, broken

pytestmark = [pytest.mark.spark, pytest.mark.long]

SEED = 1
WORLDS = int(os.environ.get("TAILGATE_WORLDS", "50"))  # 600 cases
GRAPHS = 20  # of a recursion
PLANS_OF = 40  # random plans per world, if only plans are compared
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def session(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns a session whose JVM allows classes to be replaced."""
    folder = tmp_path_factory.mktemp("agent")
    manifest = folder / "manifest"
    manifest.write_text("Agent-Class: tailgate.Mutant\nCan-Redefine-Classes: true\n")
    classes = ROOT / "tailgate" / "engine" / "java" / "target" / "test-classes"
    subprocess.run(["jar", "cfm", folder / "agent.jar", manifest, "-C", classes, "tailgate/Mutant.class"], check=True)
    pid = session._jvm.java.lang.ProcessHandle.current().pid()
    subprocess.run(["jcmd", str(pid), "JVMTI.agent_load", folder / "agent.jar"], check=True, stdout=subprocess.DEVNULL)
    return session


NODES: dict[str, type] = {
    "Join": operators.Join, "ConditionalJoin": operators.Join, "Reduce": operators.Reduce, "SetOperation": operators.SetOperation,
    "TopK": operators.TopK, "TemporalFilter": operators.TemporalFilter, "Window": operators.Window,
    "WindowCall": operators.Window, "PartitionWindow": operators.Window,
}  # fmt: skip
CALLS = {
    "Bits": "bool_and bool_or every bit_and bit_or bit_xor", "BitStringTotals": "bit_and bit_or bit_xor", "Sums": "sum avg",
    "GeneralTotals": " ".join(("sum avg", *VARIANCES)), "Moments": " ".join((*VARIANCES, *REGRESSIONS)),
    "ExtremeAccumulator": "min max min_by max_by earliest_by_offset latest_by_offset",
    "OrderedAccumulator": "string_agg array_agg jsonb_agg jsonb_object_agg json_agg json_object_agg mode percentile_cont percentile_disc "
    "range_agg range_intersect_agg",
}  # fmt: skip


def runs(file: str, graph: Graph) -> bool:
    """Returns whether a circuit may run the code of a file."""
    if file in NODES:
        matches = [o for o in graph.operators if isinstance(o, NODES[file])]
        return bool(matches) and (
            file != "ConditionalJoin" or any(isinstance(o, operators.Join) and o.condition is not None for o in matches)
        )
    calls = [a for o in graph.operators if isinstance(o, operators.Reduce) for a in o.aggregates]
    calls += [f.function for o in graph.operators if isinstance(o, operators.Window) for f in o.functions]
    if file == "Once":
        return any(c.distinct for c in calls)
    return file not in CALLS or any(c.function in CALLS[file].split() for c in calls)


class Worlds:
    """The law's worlds, created on first use, without a mutation."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.cases: list[tuple[Straight, Case, Graph]] = []
        self.held: set[int] = set()

    def __getitem__(self, number: int) -> tuple[Straight, Case, Graph]:
        while number >= len(self.cases):
            views, case = self.law.create(SEED, len(self.cases))
            views.end()
            self.cases.append((views, case, graph(views)))
        return self.cases[number]

    def hold(self, number: int) -> bool:
        """Returns whether the law holds without a mutation."""
        if number not in self.held and not self.broken(*self[number][:2]):
            self.held.add(number)
        return number in self.held

    def broken(self, views: Straight, case: Case) -> bool:
        """Returns whether the law fails for views with an existing circuit."""
        try:
            views.anew()
            self.law.run(views, case)
        except Exception:  # noqa: BLE001  # any effect of a mutation
            return True
        finally:
            views.end()
        return False

    def planned_otherwise(self, number: int) -> bool:
        """Returns whether the plans of a world's views have changed, or cannot be made."""
        views, _, before = self.cases[number]
        try:
            return graph(views) != before
        except Exception:  # noqa: BLE001
            return True

    def broken_afresh(self, number: int) -> bool:
        """Returns whether the law fails for views that are created again."""
        try:
            views, case = self.law.create(SEED, number)
            try:
                self.law.run(views, case)
            finally:
                self.law.closed(views)
        except Exception:  # noqa: BLE001
            return True
        return False


def graph(views: Straight) -> Graph:
    views.plans.clear()
    return catalog_graph.compile_catalog(views.catalog, views.streams(views.catalog))


@pytest.fixture(scope="module")
def worlds(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(Law(session, tmp_path_factory.mktemp("law") / "state"))


@contextmanager
def java(session: Any, mutation: Mutation) -> Iterator[None]:
    path = mutation.source
    text = path.read_text()
    session._jvm.tailgate.Mutant.replace(path.name, mutation.applied(text))
    try:
        yield
    finally:
        session._jvm.tailgate.Mutant.replace(path.name, text)


def caught(worlds: Worlds, file: str, breaking: Callable[[], AbstractContextManager[None]], fails: Callable[[int], bool]) -> int | None:
    """Returns the number of cases until the law fails, or None."""
    for number in range(WORLDS):
        if not runs(file, worlds[number][2]):
            continue
        with breaking():
            failed = fails(number)
        if failed:
            assert worlds.hold(number), "the law holds while nothing is broken"
            return (number + 1) * (FORMED + OVER)
    return None


def report(capsys: pytest.CaptureFixture[str], mutation: Mutation, cases: int | None, seconds: float) -> None:
    with capsys.disabled():
        print(f"\n| {mutation} | {'not caught' if cases is None else cases} | {seconds:.0f} s |", end="", flush=True)
    assert cases is not None, f"not caught within {WORLDS * (FORMED + OVER)} cases: {mutation.old} → {mutation.new}"


@pytest.mark.parametrize("mutation", JAVA, ids=str)
def test_a_broken_operator_is_caught(mutation: Mutation, session: Any, worlds: Worlds, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    fails = worlds.broken_afresh if mutation.built else lambda n: worlds.broken(*worlds[n][:2])
    cases = caught(worlds, mutation.file, partial(java, session, mutation), fails)
    report(capsys, mutation, cases, time.monotonic() - began)


@pytest.mark.parametrize("mutation", PYTHON, ids=str)
def test_a_broken_rewrite_is_caught(mutation: Mutation, worlds: Worlds, capsys: pytest.CaptureFixture[str]) -> None:
    """Compares plans with the reference for mutations of plan rewrites.

    The law catches the others, and those that this comparison misses.
    """
    began = time.monotonic()
    rewrites = mutation.file.startswith(("tailgate.engine.plan.rewrites", "tailgate.engine.plan.analysis.scalars"))
    cases = means_otherwise(mutation) if rewrites and not mutation.file.endswith("temporal") else None
    if cases is None:
        cases = caught(worlds, mutation.file, partial(broken, mutation), lambda n: worlds.planned_otherwise(n) and worlds.broken_afresh(n))
    report(capsys, mutation, cases, time.monotonic() - began)


def means_otherwise(mutation: Mutation) -> int | None:
    """Returns the number of plans until a pass changes the meaning of one, or None."""
    for number in range(WORLDS):
        try:
            with broken(mutation):
                test_rewrites.compare_forms([number])
                test_rewrites.compare(range(number * PLANS_OF, (number + 1) * PLANS_OF))
        except Exception:  # noqa: BLE001
            return (number + 1) * (len(FORMS) + PLANS_OF)
    return None


@pytest.mark.parametrize("mutation", LOOPS, ids=str)
def test_a_broken_loop_is_caught(mutation: Mutation, session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began, caught_by = time.monotonic(), None
    for number in range(GRAPHS):
        try:
            with java(session, mutation):
                test_recursion.check_graph(session, tmp_path / str(number), "any" if number % 2 else "acyclic", number)
        except Exception:  # noqa: BLE001
            caught_by = number + 1
            break
    report(capsys, mutation, caught_by, time.monotonic() - began)


@pytest.mark.parametrize("mutation", KEEPERS, ids=str)
def test_a_broken_source_is_caught(mutation: Mutation, session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Random histories of keyed topics and the tests of change data catch them."""
    tests = lives(session, tmp_path) if mutation.file == "Upsert" else change_data(session, tmp_path)
    began, failed_test = time.monotonic(), None
    with java(session, mutation):
        for name, test in tests.items():
            try:
                test()
            except Exception:  # noqa: BLE001
                failed_test = name
                break
    with capsys.disabled():
        print(f"\n| {mutation} | {failed_test} | {time.monotonic() - began:.0f} s |", end="", flush=True)
    assert failed_test


def lives(session: Any, folder: Path) -> dict[str, Callable[[], None]]:
    return {f"life {n}": partial(test_lives.test_lives, session, folder / f"life{n}", SEED, n) for n in range(3)}


def change_data(session: Any, folder: Path) -> dict[str, Callable[[], None]]:
    tests = {name: f for name, f in vars(test_debezium).items() if name.startswith("test_")}
    alone = {name: f for name, f in tests.items() if [*signature(f).parameters] == ["session", "tmp_path"]}
    placed = {name: f for name, f in tests.items() if [*signature(f).parameters] == ["session", "tmp_path", "partitions"]}
    calls = {name: partial(f, session, folder / name) for name, f in alone.items()}
    return calls | {f"{name}, in {n}": partial(f, session, folder / f"{name}{n}", n) for name, f in placed.items() for n in (1, 2)}
