"""The JVM of an engine: what its start loads, and statements that its crash interrupts fail with 57P02, not with an internal error."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailgate.lake.errors import TailgateError
from testing.engine_process import EngineProcess, until

pytestmark = pytest.mark.spark

STATEMENTS = 8  # sent together; the engine may end before it reads the last of them
ENDED = "the connection ended"
FROM_JARS_MAX = 100  # classes that the archive lacks; 2,300 if it has linked classes only


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the file in which the JVM lists its classes."""
    return tmp_path_factory.mktemp("classes") / "loaded"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, loaded: Path) -> Iterator[EngineProcess]:
    engine = EngineProcess(tmp_path_factory.mktemp("crash") / "lake")
    with pytest.MonkeyPatch.context() as patch:
        options = os.environ.get("TAILGATE_JAVA_OPTIONS", "")
        patch.setenv("TAILGATE_JAVA_OPTIONS", f"{options} -Xlog:class+load:file={loaded}:none")
        engine.start()
    yield engine
    engine.stop()


def test_the_start_loads_classes_from_the_archive(engine: EngineProcess, loaded: Path) -> None:
    classes = loaded.read_text().splitlines()
    assert sum("source: shared objects file" in line for line in classes) > 5000, "make setup writes the archive"
    assert sum("source: file:" in line for line in classes) < FROM_JARS_MAX
    assert not [line for line in classes if line.startswith("scala.reflect.runtime.")]


def test_the_jvm_is_killed_during_statements(engine: EngineProcess) -> None:
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
