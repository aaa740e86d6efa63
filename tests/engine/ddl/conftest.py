"""A schema registry for the tests of sources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing import change_data


@pytest.fixture(scope="session")
def schemas() -> Iterator[str]:
    """Yields the URL of a registry with the schemas of the recorded messages."""
    with change_data.registry_of_fixtures() as url:
        yield url
