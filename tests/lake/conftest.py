from __future__ import annotations

from pathlib import Path

import pytest

from tailgate.lake.folder import Lake
from tailgate.lake.store import Store
from tailgate.lake.store.folder import FolderStore


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """Returns a new lake, in a folder. With `relations.BOTH_STORES`, the test runs for a bucket, too."""
    if getattr(request, "param", "folder") == "folder":
        return Lake.create(tmp_path / "lake")
    return Lake.create(request.getfixturevalue("bucket").location(""))


@pytest.fixture
def folder(tmp_path: Path) -> FolderStore:
    return FolderStore.made(tmp_path / "lake", ["log"])


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest) -> Store:
    """Returns each of the implementations."""
    implementation: Store = request.getfixturevalue(request.param)
    return implementation
