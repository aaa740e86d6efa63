"""A schema registry for the tests of sources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.ddl import cdc


@pytest.fixture(scope="session")
def schemas() -> Iterator[str]:
    """Yields the URL of a registry with the schemas of the recorded messages."""
    with cdc.registry_of_fixtures() as url:
        yield url
