"""The scheduling priority of the engine's processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tailgate.engine.runtime.spark.jvm import AUTOGROUP, NICE

PROGRAM = "import os; from tailgate.engine.runtime.spark import jvm; jvm.lower_priority(); print(os.nice(0), jvm.AUTOGROUP.read_text())"


def grouped() -> bool:
    """Returns whether the session is a group of the scheduler. The file is empty for processes of another group, as in some containers."""
    return AUTOGROUP.exists() and bool(AUTOGROUP.read_text())


@pytest.mark.skipif(not grouped(), reason="this kernel does not schedule sessions as groups, or the processes are in another group")
@pytest.mark.parametrize("leads", [True, False])
def test_the_priority_of_a_session(leads: bool) -> None:
    """That of a session with processes of others remains."""
    before = AUTOGROUP.read_text().split()[-1]
    result = subprocess.run([sys.executable, "-c", PROGRAM], start_new_session=leads, capture_output=True, text=True, check=True)
    nice, *_, group = result.stdout.split()
    assert int(nice) == min(os.nice(0) + NICE, 19)
    assert group == (str(NICE) if leads else before)
