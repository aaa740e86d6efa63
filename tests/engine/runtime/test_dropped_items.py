"""What an engine has in memory about an item leaves with it: clients of push queries create and drop views all the time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tailgate.engine.plan.views.nodes import source_node
from tailgate.engine.runtime.control.status import Status
from tailgate.engine.runtime.ticks.tick_figures import TickFigures
from tailgate.engine.runtime.ticks.tick_runner import TickRunner
from tailgate.engine.runtime.ticks.view_errors import Failing
from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.folder import Lake
from tailgate.lake.readers.failed import error_change
from tailgate.lake.types import INT8, Field
from tests.lake.relations import item

VIEW = replace(item(16384, (Field("a", INT8),), None), errors=16385)


def test_errors(tmp_path: Path) -> None:
    failing = Failing(Lake.create(tmp_path / "lake"), Catalog())
    failing.watch(Change(put=(VIEW,)))
    failing.add([(VIEW.errors, error_change("it fails", 1))])
    assert failing.has_error(VIEW)
    failing.watch(Change(drop=(VIEW.id, VIEW.errors)))
    assert not failing.has_error(VIEW)
    failing.add([(VIEW.errors, error_change("it fails", 1))])
    assert not failing.has_error(VIEW)


def test_figures_of_ticks() -> None:
    figures = TickFigures()
    figures.rows.add(str(VIEW.id))
    figures.bytes.add(str(VIEW.id))
    runner: Any = SimpleNamespace(counters={source_node(VIEW): {"records": 1}, 1: {"records": 2}}, figures=figures)
    TickRunner.dropped(runner, [VIEW])
    assert (runner.counters, figures.rows.series(), figures.bytes.series()) == ({1: {"records": 2}}, {}, {})


def test_figures_of_the_status() -> None:
    runner = SimpleNamespace(durations=(), ticks=0, pacing=SimpleNamespace(lineage=0))
    engine = SimpleNamespace(catalog=Catalog(), runner=runner, newest=SimpleNamespace(n=1, time=1))
    status = Status(SimpleNamespace(engine=engine), dict)  # type: ignore[arg-type]
    status._errors[VIEW.id] = "it fails"
    status._rate(VIEW.id, 7)
    status(lags=False)
    assert not status._errors and not status._counted
