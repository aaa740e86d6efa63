"""Storage by its location: a folder, or s3://bucket/prefix."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tailgate.lake.store.folder import FolderStore
from tailgate.lake.store.interface import Store

BUCKET = "s3://"


def is_bucket(location: str | os.PathLike[str]) -> bool:
    return str(location).startswith(BUCKET)


def opened(location: str | os.PathLike[str]) -> Store:
    """Returns the storage at a location. Raises 55000 if it is a bucket that ignores the conditions of requests."""
    if is_bucket(location):
        from tailgate.lake.store.bucket import BucketStore  # most processes use a folder, and the library takes 10 ms to import

        return BucketStore.open(str(location))
    return FolderStore(Path(location).absolute())


def made(location: str | os.PathLike[str], folders: Iterable[str]) -> Store:
    """Returns the storage at a location. Creates a folder, and these folders in it; a bucket exists and has none."""
    return opened(location) if is_bucket(location) else FolderStore.made(Path(location).absolute(), folders)
