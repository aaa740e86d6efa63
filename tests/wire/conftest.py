from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wire.live import Live


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    live = Live(tmp_path / "lake")
    try:
        yield live
    finally:
        live.close()
