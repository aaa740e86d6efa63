"""Runs workload W1 (bench/w1) at 20,000 orders and 200 customer changes per second for five minutes.

Broker, load, engine, gateway and reader are processes on two cores. The reader follows the view with
`COPY (TAIL …)`. Ages are printed for the whole interval and for each minute: if the system falls behind,
they rise from minute to minute. Memory is that of engine and gateway together. The last line is JSON.

    .venv/bin/python bench/load.py [--rate 20000] [--changes 200] [--customers 10000]
        [--for 300] [--warm-up 15]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from functools import partial

from bench.w1 import report, turns
from bench.w1.orders import Workload
from bench.w1.systems import Tailgate

MARKS = {"p50": 300, "p95": 600}  # ages in ms over the whole interval
PEAK_MIB = 2048
PART_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    turns.add_options(parser, rate=20_000, changes=200, seconds=300)
    chosen = parser.parse_args()
    report.use_cores()
    print(report.header(), flush=True)
    parts = max(round(chosen.seconds / PART_S), 1)
    turn = turns.freshness(
        partial(Tailgate, reader="tail"),
        Workload(chosen.customers),
        chosen.rate,
        chosen.changes,
        chosen.warm_up,
        chosen.seconds,
        parts,
    )
    print(report.head(("", "p50 ms", "p95 ms", "p99 ms", "max ms")))
    print(report.line((f"all {turn.orders} orders", *turn.ages_ms.values())))
    print(report.line(("marks", *(report.mark(age, MARKS.get(name)) for name, age in turn.ages_ms.items()))))
    for number, part in enumerate(turn.parts, 1):
        print(report.line((f"part {number} of {parts}", *part.values())))
    print(f"\nPeak memory of engine and gateway: {turn.peak_mib} MiB ({report.mark(turn.peak_mib, PEAK_MIB)}).")
    print(f"Cores: {', '.join(f'{name} {used}' for name, used in turn.cores.items())}; load late by {turn.late_ms['p99']} ms (p99).")
    print("The reader's copy of the view equals the recompute.\n")
    print(json.dumps({"rate": chosen.rate, "changes": chosen.changes, "customers": chosen.customers, **asdict(turn)}))


if __name__ == "__main__":
    main()
