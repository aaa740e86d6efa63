"""`make test-cdc`: real databases, Debezium and Kafka with a complete Tailgate, and kills.

    python -m tests.cdc.run [--for SECONDS] [--seed N] [--no-kills] [--keep] [scenario:database:mode …]

One Kafka, registry, engine, gateway and sinks process (`tailgate up`) serve all cases. Each case has a
separate database server, worker and schema. At the end, databases, views and sinks must be equal. The
run prints one line for each check. The exit code is 1 if a check failed, 2 if a requirement is missing.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from tailgate.embedded.children import ChildFailed, free_port
from tailgate.embedded.supervisor import Plan, Supervisor
from tests.cdc import needed
from tests.cdc.cases import Case, Words
from tests.cdc.worker import Worker
from tests.chaos import faults
from tests.chaos.faults import Fault, Faults
from tests.chaos.report import Report

DEFAULT = ("shop:mariadb:standalone", "service:postgres:distributed")
SECONDS = 300.0
STEP_S = 0.2
PROGRESS_S = 20.0
GAP_S = (2.0, 12.0)  # between two kills
PAUSE_S = (0.0, 3.0)  # until a worker is restarted; the supervisor has other delays


def kills(supervisor: Supervisor, workers: list[Worker]) -> list[Fault]:
    kinds = [*faults.engine_kills(supervisor), *2 * [faults.kill(supervisor, "sinks", "the sinks")]]
    for worker in workers:
        name = worker.name
        kinds += 2 * [Fault(name, f"kill the worker of {name}", worker.kill, worker.start, PAUSE_S)]
        kinds.append(Fault(name, f"restart the connector of {name}", worker.restart))
        if worker.forgetful:
            kinds.append(Fault(name, f"kill the worker of {name} and remove its offsets", worker.lose_offsets, worker.start, PAUSE_S))
    return kinds


class Run(Report):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="tailgate-cdc-")), options.seed)
        self.options = options
        self.wrong: dict[str, str | None] = {}  # by case, errors found during the run

    def all(self) -> int:
        words = [Words.of(text) for text in self.options.cases or DEFAULT]
        self.say(f"seed {self.seed}; {self.options.seconds:g} s; {', '.join(self.options.cases or DEFAULT)}")
        port = free_port()
        plan = Plan(self.folder / "tailgate", f"127.0.0.1:{port}", "embedded", "embedded", parallelism=self.options.parallelism)
        with Supervisor(plan, self.say) as supervisor:
            assert supervisor.kafka is not None and supervisor.registry is not None
            dsn = f"host=127.0.0.1 port={port} dbname=tailgate user=cdc"
            cases = [Case(w, self.folder, supervisor.kafka, supervisor.registry, dsn, self.seed) for w in words]
            try:
                for case in cases:
                    case.start()
                    self.say(f"{case.name}: its sources, views and sinks are made")
                self.live(supervisor, cases)
                self.check(supervisor, cases)
            finally:
                for case in cases:
                    case.stop()
        return self.end()

    def live(self, supervisor: Supervisor, cases: list[Case]) -> None:
        """Runs the writers and kills processes until the time is over."""
        workers = [case.worker for case in cases if case.worker is not None]
        killer = Faults(self.seed, kills(supervisor, workers), GAP_S, self.say, faults.starting(supervisor))
        for case in cases:
            case.write()
        end = time.monotonic() + self.options.seconds
        reported = time.monotonic()
        alter = end - self.options.seconds / 2
        while time.monotonic() < end:
            supervisor.watch()
            for case in cases:
                case.check_writers()
            if self.options.kills:
                killer.step()
            if time.monotonic() > alter:
                alter = end + 1
                for case in cases:
                    case.alter()
                    self.say(f"{case.name}: {'; '.join(case.scenario.alters)}")
            if time.monotonic() > reported + PROGRESS_S:
                reported = time.monotonic()
                self.say(", ".join(f"{case.name}: {case.transactions} transactions" for case in cases))
                for case in cases:
                    self.wrong[case.name] = self.wrong.get(case.name) or case.glance()
                    if alter > end:
                        case.refresh()
            time.sleep(STEP_S)
        killer.end()
        self.say(", ".join(f"{name}: {n}" for name, n in sorted(killer.counts.items())) or "nobody was killed")

    def check(self, supervisor: Supervisor, cases: list[Case]) -> None:
        for case in cases:
            case.settle(supervisor.watch)
        for case in cases:
            case.await_last(supervisor.watch)
            self.say(f"{case.name}: {case.transactions} transactions have arrived: {case.amount()}")
            self.record(f"{case.name}: views were their queries whenever looked at, {case.glances} times", self.wrong.get(case.name))
        for case in cases:
            case.checks(lambda check, wrong, case=case: self.record(f"{case.name}: {check}", wrong))  # type: ignore[misc]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="test-cdc", description="Real databases through Debezium into a Tailgate that is killed again and again."
    )
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="SCENARIO:DATABASE:MODE",
        help=f"shop|service:mariadb|postgres:standalone|distributed ({' '.join(DEFAULT)})",
    )
    parser.add_argument("--for", dest="seconds", type=float, default=SECONDS, help=f"seconds of transactions and kills ({SECONDS:g})")
    parser.add_argument("--seed", type=int, help="of another run, whose transactions and kills come again")
    parser.add_argument("--no-kills", dest="kills", action="store_false", help="let everybody live")
    parser.add_argument("--parallelism", type=int, default=1, help="partitions of the engine's state (1)")
    parser.add_argument("--keep", action="store_true", help="leave the folder with the logs, also if all was well")
    options = parser.parse_args(words)
    print(f"test-cdc: needs Debian's mariadb-server and postgresql: {needed.DEBIAN}", flush=True)
    try:
        for name in needed.MARIADB:
            needed.program(name)
        needed.postgresql()
        run = Run(options)
    except (needed.Missing, ValueError) as error:
        print(f"test-cdc: {error}", file=sys.stderr)
        return 2
    code = 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers and folders are removed
    try:
        code = run.all()
    except (ChildFailed, AssertionError) as error:
        run.say(f"FAILED: {error} (seed {run.seed})")
    finally:
        run.clean(code, keep=options.keep)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
