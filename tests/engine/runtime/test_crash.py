"""Statements that are interrupted by the crash of the engine's JVM fail with 57P02, and not with an internal error."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailgate.lake.errors import TailgateError
from testing.engine_process import EngineProcess, until

pytestmark = pytest.mark.spark

STATEMENTS = 8  # sent together; the engine may end before it reads the last of them
ENDED = "the connection ended"


def test_the_jvm_is_killed_during_statements(tmp_path: Path) -> None:
    engine = EngineProcess(tmp_path / "lake")
    engine.start()
    engine.execute("CREATE TABLE t (a int)")

    def create(n: int) -> str:
        try:
            return str(engine.execute(f"CREATE MATERIALIZED VIEW v{n} AS SELECT a + {n} AS a FROM t")["tag"])
        except TailgateError as error:
            return error.sqlstate
        except OSError:
            return ENDED

    os.kill(engine.jvm, signal.SIGSTOP)
    before = _threads(engine.pid)
    with ThreadPoolExecutor(STATEMENTS) as threads:
        answers = [threads.submit(create, n) for n in range(STATEMENTS)]
        until(lambda: _threads(engine.pid) >= before + STATEMENTS // 2)  # the engine handles half of them
        engine.kill(python=False, jvm=True)
    outcomes = {answer.result() for answer in answers}
    assert outcomes <= {"57P02", ENDED}
    assert "57P02" in outcomes


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))
