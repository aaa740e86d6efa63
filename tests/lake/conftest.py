from __future__ import annotations

from pathlib import Path

import pytest

from tailgate.lake.folder import Lake
from tailgate.lake.store.folder import FolderStore


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore.made(tmp_path / "lake", ["log"])
