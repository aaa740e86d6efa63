"""A gateway that was killed leaves nothing behind: its scratch folder is in the lake's, and the next start removes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tailgate.gateway.serving.service import Serving
from tailgate.lake.folder import Lake

GATEWAY = """
import sys, time
from pathlib import Path
from tailgate.gateway.serving.service import Serving
from tailgate.lake.folder import Lake
serving = Serving(Lake(Path(sys.argv[1])))
print("ready", flush=True)
time.sleep(600)
"""


def test_the_folder_of_a_killed_gateway_is_removed(tmp_path: Path) -> None:
    lake, temporary = Lake.create(tmp_path / "lake"), tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    killed = subprocess.Popen([sys.executable, "-c", GATEWAY, str(lake.path)], stdout=subprocess.PIPE, env=environment)
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"ready\n"
    (left,) = (lake.path / "scratch").iterdir()
    killed.send_signal(signal.SIGKILL)
    killed.stdout.close()
    killed.wait()
    assert list(temporary.iterdir()) == []
    assert left.exists()
    serving = Serving(lake)
    (own,) = (lake.path / "scratch").iterdir()
    assert own != left
    del serving
