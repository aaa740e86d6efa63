"""Tests the metrics of views, which are sums over their operators."""

from __future__ import annotations

from pathlib import Path

from tailgate.engine.plan.explain import OperatorStatistics
from tailgate.engine.runtime.control.metrics import VIEW_VALUES, Samples, of_operators, size_below
from tailgate.lake.catalog import MaterializedView
from tailgate.lake.folder import Lake


def test_operators_that_views_share_count_for_each() -> None:
    samples = Samples({1: OperatorStatistics(1, 1, 2_000_000_000, 10, 100), 2: OperatorStatistics(1, 1, 500_000_000, 5, 7)})
    one = MaterializedView(16384, "one", nodes=(("a", 1),))
    both = MaterializedView(16386, "both", nodes=(("a", 1), ("b", 2), ("c", 3)))
    values = {name: [of_operators(samples, value, view) for view in (one, both)] for name, value in VIEW_VALUES.items()}
    assert values == {"view_seconds": [2.0, 2.5], "view_state_rows": [10, 15], "view_state_bytes": [100, 107]}


def test_the_size_of_the_state_is_that_of_all_its_folders(tmp_path: Path) -> None:
    store = Lake.create(tmp_path / "lake").store
    for name, size in (("state/1/0/1_a.changelog", 5), ("state/1/0/SSTs/2_b.sst", 100), ("state/2/0/1_a.zip", 20)):
        store.put(name, b"x" * size)
    assert (size_below(store, "state"), size_below(store, "state/1"), size_below(store, "missing")) == (125, 105, 0)


def test_a_view_that_was_not_sampled_has_no_value() -> None:
    assert of_operators(Samples(), VIEW_VALUES["view_seconds"], MaterializedView(16384, "v", nodes=(("a", 1),))) is None
