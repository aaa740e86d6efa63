from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docs.system import System


@pytest.fixture(scope="package")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Starts a system for all pages and examples."""
    with System(tmp_path_factory.mktemp("docs")) as system:
        yield system
