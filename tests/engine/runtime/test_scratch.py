"""Scratch folders are in the lake's folder. The next start removes those of ended engines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tailgate.lake.host.scratch import scratch
from testing.engine_process import EngineProcess, until

# A process with a scratch folder, and a child that inherits its lock, like the engine and its JVM.
HOLDER = """
import subprocess, sys, time
from pathlib import Path
from tailgate.lake.host.scratch import scratch
with scratch(Path(sys.argv[1])) as own:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, pass_fds=(own.descriptor,))
    print(own.path, child.pid, flush=True)
    time.sleep(600)
"""


def folders(root: Path) -> set[Path]:
    return set(root.iterdir())


def test_a_folder_is_removed_after_the_last_process_that_uses_it(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(root)], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert holder.stdout is not None
    name, child = holder.stdout.readline().split()
    with scratch(root) as own:
        assert own.path.parent == root.resolve() != Path(name)
        assert folders(root) == {own.path, Path(name)}  # the folder of a running engine stays
    assert folders(root) == {Path(name)}
    os.kill(int(child), signal.SIGSTOP)  # a JVM notices with a delay that its engine was killed
    holder.kill()
    holder.stdout.close()
    holder.wait()
    with scratch(root) as own:
        assert folders(root) == {own.path, Path(name)}
    os.kill(int(child), signal.SIGKILL)

    def removed() -> bool:
        with scratch(root) as own:
            return folders(root) == {own.path}

    until(removed)
    assert folders(root) == set()


@pytest.mark.spark
@pytest.mark.long
def test_an_engine_that_was_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    engine = EngineProcess(tmp_path / "lake")
    engine.start()
    engine.execute("CREATE TABLE t (a int)")
    (first,) = folders(tmp_path / "lake" / "scratch")
    options = Path(f"/proc/{engine.jvm}/cmdline").read_text().split("\0")
    assert f"-Djava.io.tmpdir={first}" in options
    engine.kill(jvm=True)
    assert first.exists()
    snapshot = tmp_path / "lake" / "state" / "0" / "0" / ".7_id.zip.id.TID1.tmp"  # as the JVM leaves it if it is killed while it writes one
    snapshot.parent.mkdir(parents=True, exist_ok=True)
    snapshot.write_bytes(b"half")
    engine.start()
    until(lambda: not first.exists())
    until(lambda: not snapshot.exists())
    assert len(folders(tmp_path / "lake" / "scratch")) == 1
    assert engine.stop() == 0
    assert folders(tmp_path / "lake" / "scratch") == set()
    other = EngineProcess(tmp_path / "lake", "--scratch", str(tmp_path / "other"))
    other.start()
    assert len(folders(tmp_path / "other")) == 1
    assert folders(tmp_path / "lake" / "scratch") == set()
    other.stop()
