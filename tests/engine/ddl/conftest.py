"""A Spark session and a schema registry for the tests of sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.ddl import cdc


@pytest.fixture(scope="package")
def schemas() -> Iterator[str]:
    """Yields the URL of a registry with the schemas of the recorded messages."""
    with cdc.registry_of_fixtures() as url:
        yield url


@pytest.fixture(scope="package")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tailgate.engine.runtime import session

    running = session.start(tmp_path_factory.mktemp("spark"), 2)
    yield running
    running.stop()
