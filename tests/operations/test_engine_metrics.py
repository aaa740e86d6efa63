"""Tests the metrics of views, which are sums over their operators."""

from __future__ import annotations

from tailgate.engine.plan.explain import OperatorStatistics
from tailgate.engine.runtime.control.metrics import VIEW_VALUES, Samples, of_operators
from tailgate.lake.catalog import MaterializedView


def test_operators_that_views_share_count_for_each() -> None:
    samples = Samples({1: OperatorStatistics(1, 1, 2_000_000_000, 10, 100), 2: OperatorStatistics(1, 1, 500_000_000, 5, 7)})
    one = MaterializedView(16384, "one", nodes=(("a", 1),))
    both = MaterializedView(16386, "both", nodes=(("a", 1), ("b", 2), ("c", 3)))
    values = {name: [of_operators(samples, value, view) for view in (one, both)] for name, value in VIEW_VALUES.items()}
    assert values == {"view_seconds": [2.0, 2.5], "view_state_rows": [10, 15], "view_state_bytes": [100, 107]}


def test_a_view_that_was_not_sampled_has_no_value() -> None:
    assert of_operators(Samples(), VIEW_VALUES["view_seconds"], MaterializedView(16384, "v", nodes=(("a", 1),))) is None
