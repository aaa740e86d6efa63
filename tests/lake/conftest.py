from __future__ import annotations

from pathlib import Path

import pytest

from tailgate.lake.folder import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")
