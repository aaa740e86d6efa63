"""Measures the age of an order when a reader of the view receives it: workload W1 (bench/w1).

Broker, load, engine, gateway and reader are processes on two cores. One run follows the view with
`COPY (TAIL …)`, one reads it with a SELECT every 20 ms. Each begins with an empty lake and ends when
the reader's copy of the view equals a recompute. The last line is JSON. With `--bucket PUT,GET`, the lake is in a bucket on
this machine, whose requests have these delays in ms. With `--new-view`, the ages are those in a second view, which is created
after the warm-up, from the first row that its reader has received: of the first second, and of the time after it. With
`--profile`, the engine also sends traces of its ticks, from which a table shows where the time of a tick goes.

    .venv/bin/python bench/freshness.py [--rate 5000] [--changes 50] [--customers 10000]
        [--for 60] [--warm-up 15] [--reader tail] [--bucket 20,10] [--new-view] [--profile]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from bench.w1 import report, turns
from bench.w1.orders import Workload
from bench.w1.profile import STEPS, profile
from bench.w1.readers import POLL_S
from bench.w1.systems import Tailgate
from testing.collector import Collector

# Marks of ages in ms with TAIL, by orders per second; polling adds half of its interval.
MARKS = {5_000: {"p50": 45, "p95": 80, "p99": 150}, 1_000: {"p50": 35, "p95": 70}}
BUCKET_MARKS = {(20, 10): {"p50": 250, "p95": 400}, (100, 60): {"p50": 450, "p95": 800}}  # at 1,000 orders per second
NEW_VIEW_MARKS = {"the first second": 600, "after it": 250}  # of the largest age in a new view, in ms
COLUMNS = ("orders", "p50 ms", "p95 ms", "p99 ms", "max ms", "engine and gateway: cores", "peak MiB", "load late, p99 ms")
READERS = {"tail": 0.0, "select": POLL_S * 1000 / 2}  # addition to the marks, by reader


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    turns.add_options(parser, rate=5_000, changes=50, seconds=60)
    parser.add_argument("--reader", choices=READERS, help="only this one")
    parser.add_argument("--bucket", type=delays, metavar="PUT,GET", help="the delays of a bucket's requests in ms")
    parser.add_argument("--new-view", action="store_true", help="measure a view that is created while the load runs")
    parser.add_argument("--profile", action="store_true", help="show where the time of a tick goes")
    return parser.parse_args()


def delays(text: str) -> tuple[float, float]:
    """Returns the two delays of `--bucket`."""
    put, get = text.split(",")
    return float(put), float(get)


def main() -> None:
    chosen = options()
    report.use_cores()
    print(report.header(), flush=True)
    if chosen.new_view:
        new_view(chosen)
        return
    print(report.head(("reader", *COLUMNS)), flush=True)
    turns_by_reader, profiles = {}, {}
    for reader, allowance in READERS.items():
        if chosen.reader not in (None, reader):
            continue
        turn, profiles[reader] = measured(partial(Tailgate, reader=reader, bucket=chosen.bucket), chosen)
        turns_by_reader[reader] = asdict(turn)
        cells = (turn.orders, *turn.ages_ms.values(), turn.cores["system"], turn.peak_mib, turn.late_ms["p99"])
        print(report.line((turn.reader, *cells)), flush=True)
        if marks := MARKS.get(chosen.rate) if chosen.bucket is None else BUCKET_MARKS.get(chosen.bucket):
            met = [report.mark(age, marks[name] + allowance) if name in marks else "" for name, age in turn.ages_ms.items()]
            print(report.line(("its marks", "", *met, "", "", "")), flush=True)
    for reader, reader_turn in turns_by_reader.items():
        print(f"\n{reader_turn['reader']}: where the time of the oldest order of a tick goes\n")
        print(report.head(("step", "p50 ms", "p95 ms", "p99 ms", "max ms")))
        for step, ages in reader_turn["steps_ms"].items():
            print(report.line((step, *ages.values())))
        if chosen.profile:
            print("\nWhere the time of a tick goes\n")
            print(report.head(("step", "mean ms", "p50 ms", "p95 ms")))
            for step, figures in profiles[reader].items():
                print(report.line((STEPS[step], *(f"{ms:.1f}" for ms in figures.values()))))
    print("\nThe reader's copy of the view equals the recompute.\n")
    result = {"rate": chosen.rate, "changes": chosen.changes, "customers": chosen.customers, **turns_by_reader}
    print(json.dumps({**result, **({"profile_ms": profiles} if chosen.profile else {})}))


def measured(system: Callable[..., Tailgate], chosen: argparse.Namespace) -> tuple[turns.Freshness, dict[str, dict[str, float]]]:
    """Returns the ages of one run, and the profile of its ticks with `--profile`."""
    collector = Collector() if chosen.profile else None
    try:
        traced = system if collector is None else partial(system, collector=collector.url)
        turn = turns.freshness(traced, Workload(chosen.customers), chosen.rate, chosen.changes, chosen.warm_up, chosen.seconds)
        return turn, {} if collector is None else profile(collector.traces().values(), chosen.seconds)
    finally:
        if collector is not None:
            collector.stop()


def new_view(chosen: argparse.Namespace) -> None:
    """Measures the ages in a new view, and prints them."""
    system = partial(Tailgate, reader=chosen.reader or "tail", bucket=chosen.bucket)
    parts = turns.new_view(system, Workload(chosen.customers), chosen.rate, chosen.changes, chosen.warm_up, chosen.seconds)
    print(report.head(("ages in a new view", *(f"{name} ms" for name in parts[0]), "mark")))
    for (name, most), ages in zip(NEW_VIEW_MARKS.items(), parts, strict=True):
        print(report.line((name, *ages.values(), report.mark(ages["max"], most))))
    print(json.dumps({"rate": chosen.rate, "new_view": dict(zip(NEW_VIEW_MARKS, parts, strict=True))}))


if __name__ == "__main__":
    main()
