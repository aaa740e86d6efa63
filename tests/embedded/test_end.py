"""Tests the end of a process of `tailgate`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROCESSES = 8  # with a normal exit, about half of them crash
END_S = 60.0

# A command that ends while a thread writes a Delta table.
WRITES = """
import sys, threading
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from tailgate import cli

path = sys.argv.pop()
rows = pa.table({"k": list(range(2000))})
written = threading.Event()

def write():
    while True:
        write_deltalake(path, rows, mode="append")
        written.set()
        merge = DeltaTable(path).merge(rows, "t.k = s.k", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

def run(options):
    threading.Thread(target=write, daemon=True).start()
    written.wait()
    print("ends")
    return 1

cli._sinks = run
sys.argv[1:] = ["sinks", "--data", path]
cli.process()
"""


@pytest.mark.long
def test_a_process_ends_while_a_thread_writes_a_table(tmp_path: Path) -> None:
    """Regression: delta-rs used memory that the exit had destroyed, and the process ended with SIGSEGV."""
    commands = [[sys.executable, "-c", WRITES, str(tmp_path / str(n))] for n in range(PROCESSES)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    assert [(process.communicate(timeout=END_S)[0], process.returncode) for process in running] == [("ends\n", 1)] * PROCESSES
