from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.lake.folder import Lake
from tailgate.lake.store import Store
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.store.folder import FolderStore
from testing.s3 import BUCKET, S3

_prefixes = itertools.count()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    server = S3(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture
def bucket(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketStore]:
    """Returns a store below a new prefix."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    yield BucketStore(f"s3://{BUCKET}/test/{next(_prefixes)}")
    s3.set()


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
