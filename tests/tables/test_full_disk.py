"""On a full disk, a write fails with 53100 and leaves nothing; engine and gateway continue."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import psycopg
import pytest

from tests.tables.world import World


def full(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_write_is_refused_and_later_ones_are_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (n int)")
        with monkeypatch.context() as patch:
            patch.setattr("tailgate.lake.host.files.write", full)
            with pytest.raises(psycopg.errors.DiskFull, match="could not write to the data folder: No space left on device"):
                connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("INSERT INTO t VALUES (2)")
        assert connection.execute("SELECT n FROM t").fetchall() == [(2,)]
