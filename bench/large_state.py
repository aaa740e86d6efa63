"""Times of an engine with a large state: it is replaced, it is killed, and its state moves to another number of partitions.

The state is that of the source of `bench/scale.py`, some 25 bytes on the disk for each key, or more with random names.
While 100 of the keys change each second, a second engine starts with `--hand-over`; then it is killed, and a third one
starts. At the end `tailgate repartition` moves the state to two partitions, and an engine continues with them.

    .venv/bin/python bench/large_state.py [--rows 1500000] [--name-length 0]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from scale import Run  # a module of this folder

from bench.w1.usage import Usage
from tailgate.embedded.children import Child
from tailgate.lake.log.entry import Header
from testing.engine_process import EngineProcess, until

CHANGES = 100.0  # per second
STEADY_S = 5.0
ANSWER_S = 600.0
PARTITIONS = 2
LOOK_S = 0.5


def mib(folder: Path) -> int:
    """Returns the size of the files of a folder."""
    words = subprocess.run(["du", "-sm", str(folder)], capture_output=True, text=True, check=False).stdout.split()
    return int(words[0]) if words else 0


class Space(threading.Thread):
    """The largest sizes of some folders of a lake until `stop`, in MiB."""

    def __init__(self, lake: Path, names: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self._lake, self._ended = lake, threading.Event()
        self.peak = dict.fromkeys(names, 0)

    def run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.peak = {name: max(peak, mib(self._lake / name)) for name, peak in self.peak.items()}

    def stop(self) -> dict[str, int]:
        self._ended.set()
        self.join()
        return self.peak


class Engines:
    """The engines of a run, one after the other."""

    def __init__(self, run: Run, stack: ExitStack) -> None:
        self._run, self._stack = run, stack
        self.engine = run.engine
        self.figures = {"rows": run.rows, "state_mib": mib(run.lake_folder / "state"), "filled_s": run.figures["filled_s"]}

    def _started(self, *arguments: str) -> EngineProcess:
        engine = EngineProcess(self._run.lake_folder, *arguments)
        self._stack.callback(engine.stop)
        engine.start()
        return engine

    def _newest(self) -> Header:
        newest = self._run.lake.log.newest()
        assert newest is not None
        return newest

    def _ticked(self, epoch: int) -> Header:
        """Waits for a tick of a later epoch that has read records, and returns its entry."""
        until(lambda: self._newest().epoch > epoch and self._newest().kind == "tick", ANSWER_S)
        return self._newest()

    def hand_over(self) -> None:
        begin = self._newest()
        engine = self._started("--hand-over")
        self._ticked(begin.epoch)
        time.sleep(STEADY_S)
        times = [entry.header.time for entry in self._run.lake.log.after(begin.n, self._newest().n)]
        self.figures["hand_over_s"] = max(later - earlier for earlier, later in pairwise(times)) / 1000
        self.engine.stop()
        self.engine = engine
        self._run.progress.say(f"handed over: {self.figures['hand_over_s']} s between two ticks")

    def kill(self) -> None:
        last = self._newest()
        began = time.monotonic()
        self.engine.kill(jvm=True)
        self.engine = self._started()
        self._ticked(last.epoch)
        self.figures["killed_s"] = round(time.monotonic() - began, 2)
        self._run.progress.say(f"killed: the next tick after {self.figures['killed_s']} s")
        time.sleep(STEADY_S)

    def repartition(self) -> None:
        self.engine.stop()
        folder = self._run.lake_folder
        space, before = Space(folder, ("state", "scratch")), mib(folder / "state")
        space.start()
        words = ["repartition", "--data", str(folder), "--parallelism", str(PARTITIONS)]
        began = time.monotonic()
        child = Child("repartition", [sys.executable, "-m", "tailgate", *words], log=folder.parent / "repartition.log")
        with Usage({"repartition": [child]}) as usage:
            assert child.wait(timedelta(seconds=ANSWER_S)) == 0, (folder.parent / "repartition.log").read_text()
            self.figures["repartition_s"] = round(time.monotonic() - began, 1)
        peak = space.stop()
        self.figures |= {f"repartition_{name}_mib": size for name, size in peak.items()} | {
            "before_mib": before,
            "after_mib": mib(folder / "state"),
        }
        self.figures["repartition_memory_mib"] = usage.peak_mib["repartition"]
        self._run.progress.say(f"moved to {PARTITIONS} partitions in {self.figures['repartition_s']} s")
        last = self._newest()
        began = time.monotonic()
        self.engine = self._started("--parallelism", str(PARTITIONS))
        self._ticked(last.epoch)
        self.figures["repartitioned_start_s"] = round(time.monotonic() - began, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--name-length", type=int, default=0, help="characters of random names (0: one of a thousand names)")
    options = parser.parse_args()
    with ExitStack() as stack:
        run = Run(options.rows, stack, options.name_length)
        engines = Engines(run, stack)
        run.change(CHANGES)
        time.sleep(STEADY_S)
        engines.hand_over()
        engines.kill()
        engines.repartition()
        print(json.dumps(engines.figures))


if __name__ == "__main__":
    main()
