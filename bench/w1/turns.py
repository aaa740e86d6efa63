"""One run of one system, which measures the ages of orders or the time for a backlog.

Kafka ──► load: customers and a backlog ──► system ──► reader: the first row
      ──► load at its rates, warm-up and measured interval ──► reader equals the recompute ──► ages
      ──► load at its rates, warm-up, a second view ──► reader: its first row ──► measured interval ──► …
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.w1.ages import ages_ms, quantiles
from bench.w1.load import Load, Produced
from bench.w1.orders import Workload
from bench.w1.readers import Reader
from bench.w1.systems import System, Tailgate
from bench.w1.usage import Usage
from tailgate.embedded.kafka import Kafka

FIRST = 1_000  # orders before the load begins, so that the view has rows
FIRST_S = 180.0  # for a JVM's start and a first result, on a busy machine
EQUAL_S = 300.0  # from the last message to the complete view; a longer time means that the system cannot hold the load
CATCH_UP_S = 600.0
SAMPLE_S = 0.5
BROKER = ("-Xms1g", "-Xmx1g")  # as Kafka starts a broker: with the JVM's second compiler

Make = Callable[[Path, str], System]
OneSystem = TypeVar("OneSystem", bound=System)


@dataclass(frozen=True, slots=True)
class Freshness:
    """Ages in ms of the orders of the measured interval.

    `parts` has those of its equal parts, in order.
    """

    orders: int
    ages_ms: dict[str, float]
    parts: tuple[dict[str, float], ...]
    late_ms: dict[str, float]  # delay of the load behind its schedule
    cores: dict[str, float]  # used in the measured interval, by process
    peak_mib: int  # of the system, without broker, load and reader
    reader: str
    steps_ms: dict[str, dict[str, float]]  # of the newest rows, sampled in the measured interval, if the system knows them


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The time from the start of the system's first process until the reader has the complete view."""

    seconds: float
    cpu_s: float
    peak_mib: int
    reader: str


@contextmanager
def prepared(
    make: Callable[[Path, str], OneSystem], workload: Workload, orders: int, changing: bool
) -> Iterator[tuple[Kafka, Load, Produced, OneSystem, ExitStack]]:
    """Starts a broker with the topics, customers and orders, and a load; the system is not yet started."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailgate-bench-")))
        kafka = Kafka(folder / "kafka", jvm=BROKER)
        stack.callback(kafka.stop)
        kafka.start()
        system = make(folder, kafka.address)
        stack.callback(system.stop)
        load = Load(kafka.address, workload)
        stack.callback(load.stop)
        load.prepare(system.topics)
        produced = load.fill(orders, changing)
        try:
            yield kafka, load, produced, system, stack
        except Exception:
            system.check()  # the error of a process that has ended is better than a reader's timeout
            raise


def add_options(parser: argparse.ArgumentParser, rate: float, changes: float, seconds: float) -> None:
    """Adds the options of a run of `freshness`, with these defaults."""
    add_load(parser, rate, changes)
    parser.add_argument("--for", dest="seconds", type=float, default=seconds, metavar="SECONDS", help="measured interval (%(default)s)")


def add_load(parser: argparse.ArgumentParser, rate: float, changes: float) -> None:
    """Adds the options of the load and its warm-up, with these defaults."""
    parser.add_argument("--rate", type=float, default=rate, help="orders per second (%(default)s)")
    parser.add_argument("--changes", type=float, default=changes, help="changes of customers per second (%(default)s)")
    parser.add_argument("--customers", type=int, default=10_000, help="an even number (%(default)s)")
    parser.add_argument("--warm-up", type=float, default=15, metavar="SECONDS", help="before the measurement (%(default)s)")


def freshness(make: Make, workload: Workload, rate: float, changes: float, warm_up: float, seconds: float, parts: int = 1) -> Freshness:
    """Measures ages. Raises if the view is wrong, or if an order of the interval was not received."""
    with prepared(make, workload, FIRST, False) as (kafka, load, _, system, stack):
        reader = Reader()
        stack.callback(reader.stop)
        system.start()
        reader.read(system.output)
        reader.await_first(FIRST_S)
        began = load.start(rate, changes, warm_up + seconds)
        since, until = began + warm_up, began + warm_up + seconds
        with Usage({"system": system.children, "broker": [kafka], "load": [load], "reader": [reader]}) as usage:
            _sleep_until(since, system)
            before = usage.cpu_s()
            steps = _sleep_until(until, system, sampling=True)
            after = usage.cpu_s()
        produced = load.finish()
        reader.await_answer(workload.answer(len(produced.times), produced.changes), EQUAL_S)
        groups = workload.groups(len(produced.times))
        ages, times = ages_ms(produced.times, groups, reader.received(), since, until)
        bounds = np.linspace(since, until, parts + 1)
        return Freshness(
            orders=len(ages),
            ages_ms=quantiles(ages),
            parts=tuple(quantiles(ages[(times >= low) & (times < high)]) for low, high in pairwise(bounds)),
            late_ms=quantiles(produced.late_ms),
            cores={name: round((after[name] - before[name]) / seconds, 2) for name in before},
            peak_mib=usage.peak_mib["system"],
            reader=system.output.words,
            steps_ms=_quantiles_of_steps(steps),
        )


def new_view(
    make: Callable[[Path, str], Tailgate], workload: Workload, rate: float, changes: float, warm_up: float, seconds: float
) -> list[dict[str, float]]:
    """Measures the ages of orders in a view that is created while the load runs, from the first row that its reader has received.

    Returns those of the first second, and of the rest of the interval. Raises as `freshness` does.
    """
    with prepared(make, workload, FIRST, False) as (_, load, _, system, stack):
        reader = Reader()
        stack.callback(reader.stop)
        system.start()
        _sleep_until(load.start(rate, changes) + warm_up, system)
        reader.read(system.second_view())
        since = reader.await_first(FIRST_S)
        _sleep_until(since + seconds, system)
        produced = load.finish()
        reader.await_answer(workload.answer(len(produced.times), produced.changes), EQUAL_S)
        ages, times = ages_ms(produced.times, workload.groups(len(produced.times)), reader.received(), since, since + seconds)
        first = times < since + 1
        return [quantiles(ages[first]), quantiles(ages[~first])]


def catch_up(make: Make, workload: Workload, orders: int) -> CatchUp:
    """Measures a backlog. Raises if the view does not become equal to the recompute."""
    with prepared(make, workload, orders, True) as (_, _, produced, system, stack), Usage({"system": system.children}) as usage:
        answer = workload.answer(len(produced.times), produced.changes)
        reader = Reader()
        stack.callback(reader.stop)
        began = time.monotonic()
        system.start()
        reader.read(system.output)
        ended = reader.await_answer(answer, CATCH_UP_S)
        return CatchUp(round(ended - began, 1), round(usage.cpu_s()["system"], 1), usage.peak_mib["system"], system.output.words)


def _sleep_until(moment: float, system: System, *, sampling: bool = False) -> list[dict[str, float]]:
    """Waits, and returns samples of the system's steps."""
    samples: list[dict[str, float]] = []
    while (left := moment - time.monotonic()) > 0:
        system.check()
        time.sleep(min(left, SAMPLE_S))
        if sampling and (steps := system.steps()):
            samples.append(steps)
    return samples


def _quantiles_of_steps(samples: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Returns the quantiles of each step."""
    return {step: quantiles(np.array([sample[step] for sample in samples])) for step in (samples[0] if samples else {})}
