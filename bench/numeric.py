"""Measures expressions of declared numerics in ad-hoc queries: CPU time per row, one thread.

python bench/numeric.py [--rows 1000000]

Prints each expression with the types of this version, and with those of views of earlier versions, in
which each result has 38 digits.
"""

from __future__ import annotations

import argparse
import time

import duckdb

from tailgate.lake.catalog import Catalog, Change, Source
from tailgate.lake.types import Field, Type
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import EXACT, UNIFORM
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import install

PRICE = Type("numeric", (15, 2))
ITEM = Source(16384, "items", (Field("a", PRICE), Field("b", PRICE)), (0,), stored=True, envelope="upsert")
QUERIES = {
    "a + b": "SELECT max(a + b) FROM items",
    "a * b": "SELECT max(a * b) FROM items",
    "a % b": "SELECT max(a % b) FROM items",
    "round(a, 1)": "SELECT max(round(a, 1)) FROM items",
    "trunc(a, 1)": "SELECT max(trunc(a, 1)) FROM items",
    "a > 5": "SELECT count(*) FROM items WHERE a > 5",
    "sum(a)": "SELECT sum(a) FROM items",
    "sums of TPC-H q1": "SELECT sum(a), sum(a * (1 - b)), sum(a * (1 - b) * (1 + b)), avg(a), avg(b) FROM items",
}
REPEATS = 3


def measure(connection: duckdb.DuckDBPyConnection, text: str, rows: int, rules: int) -> float:
    """Returns the CPU time per row in ns, the best of several runs."""
    sql = render(bind_query(text, Catalog().apply(Change((ITEM,))), numeric_rules=rules).plan)
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        connection.execute(sql).fetchall()
        times.append(time.process_time() - began)
    return min(times) / rows * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    connection = duckdb.connect()
    install(connection)
    connection.execute("SET threads = 1")
    values = "CAST(1 + random() * 100000 AS DECIMAL(15,2)) AS c0, CAST(0.01 + random() * 0.1 AS DECIMAL(15,2)) AS c1"
    connection.execute(f"CREATE TABLE r{ITEM.id} AS SELECT {values} FROM range({rows})")
    print(f"{'expression':20}{'ns per row':>12}{'38 digits':>12}")
    for name, text in QUERIES.items():
        of_new, of_old = (measure(connection, text, rows, rules) for rules in (EXACT, UNIFORM))
        print(f"{name:20}{of_new:12.1f}{of_old:12.1f}")


if __name__ == "__main__":
    main()
