"""PostgreSQL 15's own rows of the system catalog, from the file `postgres15.zip`: a stream of Arrow for each relation."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import pyarrow as pa

FILE = resources.files("tailgate.gateway.catalog.relations") / "postgres15.zip"
SUFFIX = ".arrow"


@cache
def names() -> frozenset[str]:
    """Returns the names of the relations that have rows."""
    with FILE.open("rb") as stream, zipfile.ZipFile(stream) as file:
        return frozenset(name.removesuffix(SUFFIX) for name in file.namelist())


def rows(relation: str) -> pa.Table:
    with FILE.open("rb") as stream, zipfile.ZipFile(stream) as file:
        return pa.ipc.open_stream(file.read(relation + SUFFIX)).read_all()


def values(relation: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Returns the values of some columns of each row."""
    return zip(*(column.to_pylist() for column in rows(relation).select(columns).columns), strict=True)
