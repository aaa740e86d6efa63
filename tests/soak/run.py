"""`make test-soak`: all clients and all faults for an hour; at the end everything must be equal.

    load (scenario 1) ──► topics ──► sources ──► views ──► sinks            processes: killed, paused
    writers ──► tables ──► views ──► sinks, followers, subscriptions        disk: full, twice
    DDL ──► views, indexes, sinks                                           clock: a day ahead, and back

    make test-soak SECONDS=600 ARGS="[--seed N] [--rate N] [--keep]"

Needs `make setup`. The full disk needs Linux and root (or user namespaces), the moved clock Linux and
gcc. Where one of them is missing, the run reports it and skips that fault. The exit code is 1 if a
check failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import KafkaException

from tailgate.embedded.children import ChildFailed, free_port
from tailgate.embedded.supervisor import Plan, Supervisor
from tailgate.examples.shop.demo import SINK_TOPIC, VIEW
from tailgate.examples.shop.recompute import Topics
from tailgate.lake.folder import Lake
from tailgate.lake.readers.verification import findings
from tests.chaos import faults
from tests.chaos.faults import Fault, Faults
from tests.chaos.report import Report
from tests.soak import checks, disk, writing
from tests.soak.changing import SCHEMA
from tests.soak.clock import Clock
from tests.soak.crowd import VIEWS, Crowd
from tests.soak.disk import Disk
from tests.soak.growth import Growth

SECONDS = 3600.0
EVENTS_AN_HOUR = 300
WRITES_AN_HOUR = 60  # minimum of the acknowledged writes during faults, so that the test means something
GAP_S = (3.0, 15.0)  # between two kills or pauses: 400 an hour
RATE = 200.0  # page views per second
DISK_BYTES = 6 << 30
FULL_S = 20.0
DAY_S = 86_400.0
# When the disk fills up and the clock moves, as a share of the run.
FULL_AT, AHEAD_AT, BACK_AT = (0.25, 0.75), 0.4, 0.6
HISTORY = 1 / 12  # retention as a share of the run, so that data is dropped several times
HISTORY_MIN_S = 60.0
STEP_S = 0.2
PROGRESS_S = 30.0
SETTLED_S = 60.0  # between the last fault and the end of the load
STATEMENT_MS = 120_000
CONNECT_S = 5
LAKE = ("log", "segments", "catalog", "tables", "inbox", "state", "readers", "gateways", "logs")


@dataclass
class Event:
    """An event that happens once, `at` seconds after the start."""

    at: float
    name: str
    act: Callable[[], None]
    finished: bool = False


class Run(Report):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="tailgate-soak-")), options.seed)
        self.options = options
        self.small = self.folder / "disk"
        self.disk: Disk | None = None
        self.clock: Clock | None = None
        self.events: list[Event] = []
        self.skipped: list[str] = []
        self.port = free_port()
        self.acknowledged = 0  # writes during the faults

    def connect(self) -> psycopg.Connection[Any]:
        words = f"host=127.0.0.1 port={self.port} user=soak dbname=tailgate connect_timeout={CONNECT_S}"
        return psycopg.connect(words, autocommit=True, options=f"-c statement_timeout={STATEMENT_MS}")

    def all(self) -> int:
        self.say(f"seed {self.seed}; {self.options.seconds:g} s; {self.options.rate:g} page views a second")
        self.prepare()
        with Supervisor(Plan(self.small / "data", f"127.0.0.1:{self.port}", "embedded", "embedded"), self.say) as supervisor:
            crowd = Crowd(self.connect, str(supervisor.kafka), str(supervisor.registry), self.options.rate, self.seed)
            crowd.make()
            crowd.start()
            self.say("sources, tables, views and sinks are made; faults begin")
            growth = Growth({name: self.small / "data" / name for name in LAKE} | {"scratch": self.small / "tmp"})
            struck = Faults(self.seed, _faults(supervisor), GAP_S, self.say, faults.starting(supervisor))
            self.live(supervisor, crowd, growth, struck)
            self.settle(supervisor, crowd)
            self.check(supervisor, crowd)
            self.judge(supervisor, crowd, growth, struck)
        return self.end()

    # ---- setup ----------------------------------------------------------------------------------

    def prepare(self) -> None:
        self.small.mkdir()
        if self._possible("disk filled", disk.missing()):
            small = self.disk = Disk(self.small, DISK_BYTES)
            for part in FULL_AT:
                self._at(part, 0.0, "the disk is full", small.fill)
                self._at(part, FULL_S, "the disk has space again", small.empty)
        if self._possible("clock moved", Clock.missing()):
            clock = self.clock = Clock(self.folder)
            os.environ |= clock.environment  # affects only the processes started from here on
            self._at(AHEAD_AT, 0.0, "the clock goes a day ahead", lambda: clock.move(DAY_S))
            self._at(BACK_AT, 0.0, "the clock goes a day back", lambda: clock.move(0.0))
        (self.small / "tmp").mkdir()
        os.environ["TMPDIR"] = str(self.small / "tmp")
        os.environ["TAILGATE_HISTORY"] = f"{round(max(HISTORY_MIN_S, HISTORY * self.options.seconds))}s"

    def _possible(self, what: str, missing: str | None) -> bool:
        if missing is not None:
            self.skipped.append(f"{what}: needs {missing}")
            self.say(f"SKIPPED  {self.skipped[-1]}")
        return missing is None

    def _at(self, part: float, more: float, name: str, act: Callable[[], None]) -> None:
        self.events.append(Event(part * self.options.seconds + more, name, act))

    # ---- the run --------------------------------------------------------------------------------

    def live(self, supervisor: Supervisor, crowd: Crowd, growth: Growth, struck: Faults) -> None:
        began = reported = time.monotonic()
        while (now := time.monotonic()) < began + self.options.seconds:
            supervisor.watch()
            for event in self.events:
                if not event.finished and now >= began + event.at:
                    event.finished = True
                    self.say(event.name)
                    event.act()
                    struck.counts[event.name] += 1
            struck.step()
            growth.step()
            if now > reported + PROGRESS_S:
                reported = now
                self.say(f"{crowd}; {sum(struck.counts.values())} events")
            time.sleep(STEP_S)
        struck.end()
        self.acknowledged = crowd.acknowledged
        self.say("faults end")

    def settle(self, supervisor: Supervisor, crowd: Crowd) -> None:
        """Waits SETTLED_S without faults, then stops all writers."""
        deadline = time.monotonic() + SETTLED_S
        while time.monotonic() < deadline:
            supervisor.watch()
            time.sleep(STEP_S)
        for name, stop in crowd.stops():
            self.record(f"{name} gets all its answers", _within(stop, supervisor))

    # ---- comparisons ----------------------------------------------------------------------------

    def check(self, supervisor: Supervisor, crowd: Crowd) -> None:
        topics = Topics(str(supervisor.kafka), str(supervisor.registry))
        changer = crowd.changer
        scratch = {f"{SCHEMA}.{name}": query for name, query in changer.views.items()}
        with self.connect() as connection:
            checks.view_over_topics(connection, topics, VIEW, supervisor.watch, self.record)
            self.record(f"tables hold what was acknowledged, once: {crowd}", writing.wrong(connection, crowd.writers))
            checks.views(connection, _newest(supervisor), VIEWS | scratch, self.record)
            rows = connection.execute(f"SELECT name FROM tailgate.materialized_views WHERE schema = '{SCHEMA}'").fetchall()
            more, less = {n for (n,) in rows} - set(changer.views), set(changer.views) - {n for (n,) in rows}
            wrong = f"too many: {sorted(more)}, missing: {sorted(less)}" if more or less else None
            self.record(f"the {len(changer.views)} views that DDL has left are there, and no others", wrong)
            self.check_followers(connection, supervisor, crowd)
            for name in (VIEW, *VIEWS, *scratch):
                checks.delta(connection, supervisor.plan.data, name, supervisor.watch, self.record)
            checks.sink(connection, topics, "pageviews_by_user_segment_sink", SINK_TOPIC, "debezium", VIEW, self.record)
            checks.sink(connection, topics, "totals_out", "soak-totals", "upsert", "ledger_totals", self.record)
            checks.sink(connection, topics, "largest_out", "soak-largest", "debezium", "largest", self.record)
            for name, topic in changer.sinks.items():
                checks.sink(connection, topics, f"{SCHEMA}.{name}", topic, "debezium", f"{SCHEMA}.{changer.view_of(name)}", self.record)
            checks.status(connection, self.record)
        for finding in findings(Lake(supervisor.plan.data)):
            self.record(f"verify: {finding.checked}", finding.problem)

    def check_followers(self, connection: psycopg.Connection[Any], supervisor: Supervisor, crowd: Crowd) -> None:
        for follower in crowd.followers:
            follower.upto = _newest(supervisor)
        for follower in crowd.followers:

            def look() -> str | None:
                if follower.error is not None:  # noqa: B023  # called at once
                    return f"{type(follower.error).__name__}: {follower.error}"  # noqa: B023
                ours, theirs = follower.what.rows, dict(checks.rows(connection, f"SELECT * FROM {follower.relation}"))  # noqa: B023
                return None if ours == theirs else f"it has {list(ours.items())[:3]}, the view {list(theirs.items())[:3]}"

            more = f", begun again {follower.restarts} times" if follower.restarts else ""
            wrong = checks.eventually(look, supervisor.watch)
            self.record(f"{follower.name} is the view, over {follower.connections} connections{more}", wrong)

    def judge(self, supervisor: Supervisor, crowd: Crowd, growth: Growth, struck: Faults) -> None:
        folders, memory = growth.wrong()
        self.record("no folder has grown beyond its retention", folders)
        self.record("memory is flat", memory)
        total = struck.counts.total()
        minimum = int(EVENTS_AN_HOUR * self.options.seconds / 3600)
        self.record(f"{total} events", None if total >= minimum else f"at least {minimum} were to happen")
        minimum = int(WRITES_AN_HOUR * self.options.seconds / 3600)
        enough = f"at least {minimum} were to be" if self.acknowledged < minimum else None
        self.record(f"{self.acknowledged} writes were acknowledged while faults happened", enough)
        others = {part: n - struck.fatal[part] for part, n in supervisor.ends.items() if n > struck.fatal[part]}
        lines = [
            f"Seed {self.seed}, {self.options.seconds:g} s: {crowd}.",
            "",
            "| event | times |",
            "|---|---|",
            *(f"| {name} | {n} |" for name, n in sorted(struck.counts.items())),
            *(f"| {skipped} | not possible here |" for skipped in self.skipped),
            f"| all | {total} |",
            "",
            "Changes of the catalog: " + _listed(crowd.changer.counts),
            f"Connections of followers: {sum(f.connections for f in crowd.followers)}",
            "Ends of processes that were no event: " + _listed(others),
            "",
            "| clients were told | times |",
            "|---|---|",
            *(f"| {error} | {n} |" for error, n in crowd.errors.most_common()),
            "",
            "The largest size in each quarter of the run, in MiB:",
            "",
            *growth.table(),
        ]
        print("\n" + "\n".join(lines) + "\n", flush=True)


def _faults(supervisor: Supervisor) -> list[Fault]:
    """Returns the faults. A third of them hit the engine, which takes longest to restart."""
    kinds = [*faults.engine_kills(supervisor), *faults.engine_pauses(supervisor), faults.kill_watcher()]
    for part, name in (("gateway", "the gateway"), ("sinks", "the sinks"), ("kafka", "the broker"), ("registry", "the registry")):
        kinds += [faults.kill(supervisor, part, name), faults.pause(supervisor, part, name)]
    return [*kinds, faults.kill(supervisor, "gateway", "the gateway"), faults.kill(supervisor, "sinks", "the sinks")]


def _newest(supervisor: Supervisor) -> int:
    """Returns the time of the newest entry."""
    newest = Lake(supervisor.plan.data).log.newest()
    assert newest is not None
    return newest.time


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items())) or "none"


def _within(wait: Callable[[], object], supervisor: Supervisor) -> str | None:
    """Runs `wait` in a thread while watching the processes. Returns its error as text, or None."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            wait()
        except BaseException as error:  # noqa: BLE001  # returned as text
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        supervisor.watch()
        thread.join(STEP_S)
    return f"{type(failed[0]).__name__}: {failed[0]}" if failed else None


def seconds(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is not a time such as 90s, 10m or 1h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="test-soak", description="A whole Tailgate under load while everything fails.")
    parser.add_argument("--for", dest="seconds", type=seconds, default=SECONDS, help="how long faults happen: 10m, 1h (1h)")
    parser.add_argument("--seed", type=int, help="of another run, whose faults and statements come again")
    parser.add_argument("--rate", type=float, default=RATE, help=f"page views a second ({RATE:g})")
    parser.add_argument("--keep", action="store_true", help="leave the folder with logs and data, also if all was well")
    options = parser.parse_args(words)
    if options.seconds * (1 - max(FULL_AT)) < FULL_S:
        parser.error(f"--for must be at least {FULL_S / (1 - max(FULL_AT)):g} s, so that the disk has space again at the end")
    if disk.missing() is None:
        disk.enter("tests.soak.run", words)
    run = Run(options)
    code = 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        code = run.all()
    except (ChildFailed, AssertionError, KafkaException) as error:
        run.say(f"FAILED: {error} (seed {run.seed})")
    finally:
        if run.disk is not None and (code != 0 or options.keep):  # the file system ends with this process
            shutil.copytree(run.small, run.folder / "kept", symlinks=True, ignore_dangling_symlinks=True, dirs_exist_ok=True)
        run.clean(code, keep=options.keep)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
