"""The DuckDB instance that runs what users send: no files, no network, no extensions, no settings.

The instance is closed before the first statement of a user reaches it and cannot be opened again: `lock_configuration` is the last
setting made. Rows come in as Arrow only, from our own code. A query of a user reaches it as text that `sql.duckdb` wrote from a bound
plan, so this is the second wall and not the first.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

MEMORY_LIMIT = 4 << 30  # bytes of the instance: mirrors, running queries and their results before they are fetched
THREADS = 1  # of one statement: 170 µs for a look-up with one, 232 with two (reference: postgres-wire 5.3); statements run side by side
TEMPORARY_LIMIT = "10GB"  # what sorts and joins above the memory limit may spill into the instance's own folder

SETTINGS = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL enable_external_access = false",
)
LOCK = "SET GLOBAL lock_configuration = true"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """An instance in memory with a folder of its own; `cursor()` is a connection of its own, safe to use from one thread at a time."""

    connection: duckdb.DuckDBPyConnection
    folder: Path

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self.connection.cursor()

    def close(self) -> None:
        self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def open_sandbox(
    prepare: Callable[[duckdb.DuckDBPyConnection], None] = lambda connection: None,
    *,
    memory_limit: int = MEMORY_LIMIT,
    threads: int = THREADS,
    scratch: Path | None = None,
) -> Sandbox:
    """A closed instance. `scratch`: where its folder is; the system's temporary folder if left out. `prepare` is called before it is
    closed: the place for functions and macros."""
    folder = Path(tempfile.mkdtemp(prefix="tailgate-duckdb-", dir=scratch))
    config = {
        "threads": threads,
        "memory_limit": f"{memory_limit // 1024}KiB",
        "allocator_background_threads": True,  # which give back what a statement took; without them it stays resident for good
        "temp_directory": str(folder),
        "max_temp_directory_size": TEMPORARY_LIMIT,
    }
    connection = duckdb.connect(":memory:", config=config)
    prepare(connection)
    for setting in (*SETTINGS, LOCK):
        connection.execute(setting)
    return Sandbox(connection, folder)
