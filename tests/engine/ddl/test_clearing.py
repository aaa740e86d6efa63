"""TRUNCATE and a new snapshot of a Debezium table that is larger than the JVM's heap."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]  # `test_debezium` has the same events with few rows

# By default, Spark reserves 300 MB and refuses a heap of less than 450 MB.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError -Dspark.testing.reservedMemory=50000000"


def cleared(folder: Path, rows: int, size: int, heap: str, event: str, kind: str) -> tuple[int, int]:
    environment = {**os.environ, "TAILGATE_JAVA_OPTIONS": f"{OPTIONS} -Xmx{heap}"}
    command = [sys.executable, "-m", "tests.engine.ddl.clearing", str(folder), str(rows), str(size), event, kind]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    went, came = map(int, process.stdout.split())
    return went, came


@pytest.mark.parametrize(("event", "kind"), [("truncate", "key"), ("snapshot", "key"), ("truncate", "bag")])
def test_a_table_larger_than_the_heap(tmp_path: Path, event: str, kind: str) -> None:
    """There are 270 MB of rows and a heap of 272 MB, half of which Spark needs."""
    rows = 13_500
    assert cleared(tmp_path, rows, 20_000, "272m", event, kind) == (rows, 1 if event == "snapshot" else 0)


@pytest.mark.parametrize("event", ["truncate", "snapshot"])
def test_five_million_rows(tmp_path: Path, event: str) -> None:
    rows = 5_000_000
    assert cleared(tmp_path, rows, 200, "2g", event, "key") == (rows, 1 if event == "snapshot" else 0)
