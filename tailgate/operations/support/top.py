"""The live view of `tailgate top`: the status again and again, with rates since the last time."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator

from tailgate.lake.folder import Lake
from tailgate.operations import status
from tailgate.operations.settings.quantities import Quantity
from tailgate.operations.status import Report

CLEAR = "\x1b[H\x1b[2J"  # the cursor to the corner, and an empty screen
INTERVAL_S = 2.0


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command besides the data folder."""
    command.add_argument("--count", type=Quantity(1, 10**9), metavar="N", help="end after N views (Ctrl-C ends it)")


def run(options: argparse.Namespace) -> int:
    """Prints views until Ctrl-C, or `--count` of them. Returns 0."""
    lake, before = Lake.open(options.data, options.work_dir), None
    terminal = sys.stdout.isatty()
    for number in itertools.count(1):
        now = time.monotonic()
        report = status.report(lake)
        print((CLEAR if terminal else "") + "\n".join(view(report, before, now)), flush=True)
        before = (report, now)
        if number == options.count:
            return 0
        time.sleep(INTERVAL_S)
    return 0


def view(report: Report, before: tuple[Report, float] | None, now: float) -> Iterator[str]:
    """Yields the lines of a view. `before`: the last report and its time in seconds, from which rates are computed."""
    yield from status.text(report)
    if before is not None and report["ticks"] is not None and before[0]["ticks"] is not None and now > before[1]:
        ticks = max(0, report["ticks"] - before[0]["ticks"]) / (now - before[1])
        yield ", ".join([f"ticks     {ticks:.1f}/s", *(f"{name} {ms} ms" for name, ms in (report["tick_ms"] or {}).items())])
    for name, item in report["sources"].items():
        if item.get("per_second") is not None:
            yield f"rate      {name}: {item['per_second']:.1f} records/s"
