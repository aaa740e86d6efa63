"""Tests that a user's statement cannot reach files or settings, even if the binder failed to refuse it."""

import gc
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tailgate.gateway.mirrors.sandbox import open_sandbox

ESCAPES = [
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "SELECT * FROM '{folder}/secret.csv'",
    "SELECT * FROM read_csv('{folder}/secret.csv')",
    "SELECT * FROM read_text('{folder}/secret.csv')",
    "SELECT * FROM read_blob('{folder}/secret.csv')",
    "SELECT * FROM read_parquet('{folder}/secret.csv')",
    "SELECT * FROM read_json('http://127.0.0.1:1/x')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM delta_scan('{folder}')",
    "SELECT * FROM secret_frame",
    "ATTACH '{folder}/other.db'",
    "ATTACH '{folder}/secret.csv' AS x (TYPE sqlite)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/evil.duckdb_extension'",
    "INSTALL delta FROM community",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "SET enable_external_access = true",
    "SET GLOBAL enable_external_access = true",
    "SET python_enable_replacements = true",
    "SET lock_configuration = false",
    "SET memory_limit = '100GB'",
    "SET threads = 64",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET temp_directory = '{folder}'",
    "SET extension_directory = '{folder}'",
    "SET allow_unsigned_extensions = true",
    "SET log_query_path = '{folder}/log'",
    "RESET memory_limit",
    "PRAGMA memory_limit = '100GB'",
    "PRAGMA enable_logging",
    "SELECT getenv('HOME')",
    "CREATE TABLE t AS SELECT * FROM sniff_csv('{folder}/secret.csv')",
]


@pytest.mark.parametrize("statement", ESCAPES)
def test_refused(tmp_path: Path, statement: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n42\n")
    secret_frame = pa.table({"a": [42]})
    sandbox = open_sandbox()
    try:
        with pytest.raises(duckdb.Error):
            sandbox.cursor().execute(statement.format(folder=tmp_path)).fetchall()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["secret.csv"]
        assert secret_frame.num_rows == 1
    finally:
        sandbox.close()
        gc.collect()


def test_memory_is_limited() -> None:
    """A statement that needs more memory fails; the next one runs."""
    sandbox = open_sandbox(memory_limit=64 << 20)
    try:
        cursor = sandbox.cursor()
        with pytest.raises(duckdb.OutOfMemoryException):
            cursor.execute("SELECT list(repeat(i::VARCHAR, 100)) FROM range(10000000) t(i)").fetchall()
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]
    finally:
        sandbox.close()


def test_a_register_is_one_connections_own() -> None:
    sandbox = open_sandbox()
    try:
        mine, other = sandbox.cursor(), sandbox.cursor()
        mine.register("x", pa.table({"a": [1]}))
        assert mine.execute("SELECT * FROM x").fetchall() == [(1,)]
        with pytest.raises(duckdb.CatalogException):
            other.execute("SELECT * FROM x")
    finally:
        sandbox.close()


# Prints how often pandas is looked for, and what DuckDB reads, in a process that cannot import pandas.
WITHOUT_PANDAS = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    looked_for = 0

    def find_spec(self, name, *_):
        if name == "pandas":
            Hidden.looked_for += 1
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
import duckdb
import pyarrow as pa
from tailgate.gateway.mirrors.sandbox import stand_in_for_pandas

stand_in_for_pandas()
Hidden.looked_for = 0
connection = duckdb.connect()
query = "SELECT unnest(CAST($1 AS BIGINT[])), unnest(CAST($2 AS VARCHAR[])), unnest(CAST($3 AS DOUBLE[]))"
rows = connection.execute(query, [[1, None], ["a", None], [0.5, None]]).fetchall()
print(Hidden.looked_for, rows, pa.array([1, None]).to_pylist())
"""


def test_duckdb_does_not_look_for_pandas_for_each_value() -> None:
    process = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, check=True, timeout=60)
    assert process.stdout == "0 [(1, 'a', 0.5), (None, None, None)] [1, None]\n"


MEMORY = """
import resource, statistics, time
import tailgate.gateway
import duckdb
from tailgate.gateway.resources.memory import usage

connection = duckdb.connect(config={"threads": 1, "allocator_background_threads": True})
connection.execute("SET enable_progress_bar = false")
connection.execute("CREATE TABLE t AS SELECT range AS a, range::VARCHAR AS b FROM range(1000)")
faults = []
for _ in range(20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    connection.execute("UPDATE t SET b = a || b[:3] FROM (SELECT 1)")
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(statistics.median(faults))
before = usage()[0]
connection.execute("CREATE TEMP TABLE large AS SELECT range FROM range(3_000_000)")
large = usage()[0] - before
connection.execute("DROP TABLE large")
end = time.monotonic() + 10
while usage()[0] - before > large / 4 and time.monotonic() < end:
    time.sleep(0.05)
print(large >> 20, (usage()[0] - before) >> 20)
"""


def test_duckdb_reuses_freed_memory_and_returns_it() -> None:
    """A statement needs no new pages of the system if another one has just ended; a large one does not keep its memory."""
    words = [sys.executable, "-c", MEMORY]
    faults, large, left = map(float, subprocess.run(words, check=True, capture_output=True, text=True).stdout.split())
    assert faults < 3
    assert left <= large / 4 < large
