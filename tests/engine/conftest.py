"""A Spark session for the tests of a module.

A process has at most one Spark context, so no session outlives its module: another module's would
be the same one, and would stop it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cores() -> int:
    """Returns the number of tasks that run at once."""
    return 2


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, cores: int) -> Iterator[Any]:
    from tailgate.engine.runtime.spark import session

    running = session.start(tmp_path_factory.mktemp("spark"), cores)
    yield running
    running.stop()
