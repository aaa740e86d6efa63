"""The causes of failed ticks, as Spark reports them."""

from __future__ import annotations

from typing import Any

import pytest

from tailgate.engine.runtime.ticks.failures import disk_full, state_lost

pytestmark = pytest.mark.spark

FULL = "While open a file for appending: /scratch/000012.sst: No space left on device"


class Failed(Exception):
    """A failed tick."""

    def __init__(self, java_exception: Any) -> None:
        self.java_exception = java_exception


@pytest.mark.parametrize(("message", "lost", "full"), [("no such file", True, False), (FULL, False, True)])
def test_state_that_has_no_space_to_be_opened_is_not_lost(session: Any, message: str, lost: bool, full: bool) -> None:
    """The disk is full: the tick waits, and no view is filled again."""
    jvm = session._jvm
    failure = Failed(jvm.tailgate.state.StateLost("the state cannot be loaded", jvm.java.io.IOException(message)))
    assert (state_lost(failure), disk_full(failure)) == (lost, full)
