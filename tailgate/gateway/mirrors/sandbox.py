"""The DuckDB instance that runs users' statements: no files, network, extensions or settings.

It is locked before the first user statement, and `lock_configuration` prevents unlocking it. Rows
enter only as Arrow tables from our own code. User queries arrive as SQL that `sql.render.duckdb` renders
from a bound plan, so the sandbox is the second line of defense.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa

MEMORY_LIMIT = 4 << 30  # bytes for mirrors, running queries and results that are not yet fetched
THREADS = 1  # per statement: a look-up takes 170 µs with one, 232 µs with two; statements run concurrently
TEMPORARY_LIMIT = "10GB"  # of sorts and joins that spill to the instance's folder

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
    """An in-memory instance and its folder. `cursor()` opens a connection, for one thread at a time."""

    connection: duckdb.DuckDBPyConnection
    folder: Path

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self.connection.cursor()

    def close(self) -> None:
        self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Runs the block in a transaction, which is undone if the block or its COMMIT fails."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        with contextlib.suppress(duckdb.Error):  # a COMMIT that fails has ended the transaction
            connection.rollback()
        raise


def stand_in_for_pandas() -> None:
    """Puts an empty module in the place of pandas, if it is not imported: for processes that do not need it.

    DuckDB compares each Python value of a parameter, also in lists, with pandas.NaT and pandas.NA. If it cannot import pandas, it
    tries again for the next value: 9 µs each, 1 ms of an UPDATE of 12 rows.
    """
    pa.array([None])  # pyarrow looks for pandas once, at the first array, and must not find this module
    if "pandas" not in sys.modules:
        module: Any = ModuleType("pandas")
        module.NaT = module.NA = object()
        sys.modules[module.__name__] = module


def open_sandbox(
    prepare: Callable[[duckdb.DuckDBPyConnection], None] = lambda connection: None,
    *,
    memory_limit: int = MEMORY_LIMIT,
    threads: int = THREADS,
    scratch: Path | None = None,
) -> Sandbox:
    """Opens a locked instance.

    `scratch` is the parent of its folder, by default the system's temporary folder. `prepare` is
    called before locking, to install functions and macros.
    """
    folder = Path(tempfile.mkdtemp(prefix="tailgate-duckdb-", dir=scratch))
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads,
        "memory_limit": f"{memory_limit // 1024}KiB",
        "allocator_background_threads": True,  # they return freed memory to the system, which otherwise stays resident
        "temp_directory": str(folder),
        "max_temp_directory_size": TEMPORARY_LIMIT,
    }
    connection = duckdb.connect(":memory:", config=config)
    prepare(connection)
    for setting in (*SETTINGS, LOCK):
        connection.execute(setting)
    return Sandbox(connection, folder)
