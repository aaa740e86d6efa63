"""Measures statements that change the inputs of a running engine: CREATE SOURCE and DROP SOURCE during workload W1 (bench/w1).

Broker, load, engine and gateway are processes on two cores. After a warm-up, sources over the topic of orders are created and
dropped one after the other, while the view is maintained. The times are those of a client. The last line is JSON.

    .venv/bin/python bench/ddl.py [--rate 1000] [--changes 50] [--customers 10000] [--statements 30] [--warm-up 15]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import psycopg

from bench.w1 import report, turns
from bench.w1.ages import quantiles
from bench.w1.orders import ORDERS, Workload
from bench.w1.systems import SOURCES, Tailgate

MARK_MS = 150  # of CREATE SOURCE
PAUSE_S = 0.2  # between two statements


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    turns.add_load(parser, rate=1_000, changes=50)
    parser.add_argument("--statements", type=int, default=30, help="of each kind (%(default)s)")
    return parser.parse_args()


def ms(work: Callable[[], object]) -> float:
    """Returns the milliseconds that `work` takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    chosen = options()
    report.use_cores()
    print(report.header(), flush=True)
    create, drop = list[float](), list[float]()
    with turns.prepared(Tailgate, Workload(chosen.customers), turns.FIRST, False) as (kafka, load, _, system, _):
        system.start()
        load.start(chosen.rate, chosen.changes, chosen.warm_up + 4 * PAUSE_S * chosen.statements + 30)
        time.sleep(chosen.warm_up)
        source = SOURCES[0].replace(f"CREATE SOURCE {ORDERS}", "CREATE SOURCE {name}")
        with psycopg.connect(system.output.address, autocommit=True) as db:
            for n in range(chosen.statements):
                text = source.format(kafka=kafka.address, name=f"s{n}")
                create.append(ms(lambda text=text: db.execute(text)))
                time.sleep(PAUSE_S)
                drop.append(ms(lambda n=n: db.execute(f"DROP SOURCE s{n}")))
                time.sleep(PAUSE_S)
    result = {"CREATE SOURCE": quantiles(np.array(create)), "DROP SOURCE": quantiles(np.array(drop))}
    print(report.head(("statement", "p50 ms", "p95 ms", "p99 ms", "max ms")))
    for statement, figures in result.items():
        print(report.line((statement, *figures.values())))
    print(report.line(("mark", MARK_MS, "", "", "")))
    print(json.dumps({"rate": chosen.rate, "statements": chosen.statements, "mark_ms": MARK_MS, **result}))


if __name__ == "__main__":
    main()
