from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wire.live import Live
from tests.wire.statements import Statements


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    live = Live(tmp_path / "lake")
    try:
        yield live
    finally:
        live.close()


@pytest.fixture
def statements(live: Live) -> Iterator[Statements]:
    """Starts `live` with an engine for statements."""
    statements = Statements(live)
    yield statements
    statements.stop()
