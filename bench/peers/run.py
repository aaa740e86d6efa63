"""Runs Tailgate and its peers on workload W1 (bench/w1), in turns, on the same two cores.

Each turn has a new broker, the same load and the same measuring client. `--turns 2` runs all systems
twice, one after the other, so that slow periods of the machine affect all of them. A system that cannot
hold the load, or whose result differs from the recompute, is printed with the reason.

    make bench-peers ARGS="[--turns 1] [--rate 5000] [--changes 50] [--customers 10000] [--for 60]
        [--warm-up 15] [--orders 1000000] [--systems tailgate,flink-sql] [--only freshness]"
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bench.peers.systems import systems
from bench.w1 import report, turns
from bench.w1.orders import Workload


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1, help="how often each system runs (1)")
    turns.add_options(parser, rate=5_000, changes=50, seconds=60)
    parser.add_argument("--orders", type=int, default=1_000_000, help="to catch up with (1000000)")
    parser.add_argument("--systems", default=",".join(systems()), help=f"some of {','.join(systems())}")
    parser.add_argument("--only", choices=("freshness", "catch-up"))
    return parser.parse_args()


def attempted(turn: Callable[[], Any]) -> tuple[Any, str]:
    """Runs a turn. Returns its result and '', or None and the reason of its failure."""
    try:
        return turn(), ""
    except Exception as error:  # noqa: BLE001  # the other systems still run
        print(f"{error!r}", file=sys.stderr, flush=True)
        return None, str(error).splitlines()[0]


def print_systems(chosen: list[str]) -> None:
    print(report.head(("system", "version", "guarantees", "SQL reader", "settings")))
    for word in chosen:
        kind, make = systems()[word]
        system = make(report.ROOT, "")
        print(report.line((kind.name, system.version, system.guarantee, "yes" if system.sql else "no", system.settings)))
    print(flush=True)


def freshness(options: argparse.Namespace, workload: Workload, chosen: list[str]) -> list[dict[str, Any]]:
    print(report.head(("system", "read by", "p50 ms", "p95 ms", "p99 ms", "max ms", "cores", "peak MiB", "cores of the broker")))
    results = []
    for word in chosen * options.turns:
        kind, make = systems()[word]
        turn, why = attempted(lambda: turns.freshness(make, workload, options.rate, options.changes, options.warm_up, options.seconds))  # noqa: B023
        if turn is None:
            print(report.line((kind.name, why, *[""] * 7)), flush=True)
            continue
        results.append({"system": word, **asdict(turn)})
        cells = (kind.name, turn.reader, *turn.ages_ms.values(), turn.cores["system"], turn.peak_mib, turn.cores["broker"])
        print(report.line(cells), flush=True)
    print()
    return results


def catch_up(options: argparse.Namespace, workload: Workload, chosen: list[str]) -> list[dict[str, Any]]:
    print(report.head(("system", "read by", f"s to catch up with {options.orders} orders", "CPU s", "peak MiB")))
    results = []
    for word in [word for word in chosen if word != "tailgate-select"] * options.turns:
        kind, make = systems()[word]
        turn, why = attempted(lambda: turns.catch_up(make, workload, options.orders))  # noqa: B023
        if turn is None:
            print(report.line((kind.name, why, *[""] * 3)), flush=True)
            continue
        results.append({"system": word, **asdict(turn)})
        print(report.line((kind.name, turn.reader, turn.seconds, turn.cpu_s, turn.peak_mib)), flush=True)
    print()
    return results


def main() -> None:
    settings = options()
    chosen = settings.systems.split(",")
    if unknown := set(chosen) - systems().keys():
        sys.exit(f"unknown systems: {', '.join(sorted(unknown))}; there are {', '.join(systems())}")
    report.use_cores()
    print(report.header(), flush=True)
    workload = Workload(settings.customers)
    print_systems(chosen)
    figures: dict[str, Any] = {"rate": settings.rate, "changes": settings.changes, "customers": settings.customers}
    if settings.only != "catch-up":
        figures["freshness"] = freshness(settings, workload, chosen)
    if settings.only != "freshness":
        figures["catch_up"] = catch_up(settings, workload, chosen)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
