"""Measures numerics in ad-hoc queries, COPY, results and edges of the circuit: CPU time per row, one thread.

python -m bench.numeric [--rows 1000000]

Prints each expression of declared numerics with the types of SELECT, and with those of views of earlier versions, in
which each result has 38 digits; then of numerics without a declared precision, with the largest time that ADR 0020 allows;
then expressions of views, which generated code computes from row to row.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from bench.operators import cpu_us
from tailgate.engine.runtime.spark import session as spark
from tailgate.lake.catalog import Catalog, Change, Source, Table
from tailgate.lake.types import GENERAL, Field, Type
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import MAINTAINED, UNIFORM, WITH_GENERAL
from tailgate.sql.plan import Project
from tailgate.sql.render.dialects import SPARK
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import install
from tailgate.sql.render.scalars import render_scalar
from tailgate.values.registry import read_column, text_column

PRICE = Type("numeric", (15, 2))
ITEM = Source(16384, "items", (Field("a", PRICE), Field("b", PRICE)), (0,), stored=True, envelope="upsert")
UNDECLARED = Table(16385, "values", (Field("a", GENERAL), Field("b", GENERAL), Field("c", GENERAL)), None, stored=True)
# without a declared precision: the query, and the largest time per row in ns; c has another display scale in each row
LIMITS = {
    "a + b, one scale": ("SELECT max(a + b) FROM values", 80),
    "a + c, two scales": ("SELECT max(a + c) FROM values", 80),
    "a * b": ("SELECT max(a * b) FROM values", 30),
    "a > 5": ("SELECT count(*) FROM values WHERE a > 5", 30),
    "sum(a)": ("SELECT sum(a) FROM values", 30),
    "sums of TPC-H q1": ("SELECT sum(a), sum(a * (1 - b)), sum(a * (1 - b) * (1 + b)), avg(a), avg(b) FROM values", 280),
}
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
# expressions of views, with the largest times per row in ns of declared numerics and of others
EDGES = {"a + b": (75, 75), "a * b": (75, 75), "a * (1 - b) * (1 + b)": (100, 120)}
REPEATS = 3
FORMS = ((8, "2"), (2, "2"), (8, "1 + i % 5"))  # digits and display scale of the columns without a declared precision


def measure(connection: duckdb.DuckDBPyConnection, text: str, rows: int, rules: int) -> float:
    """Returns the CPU time of a query per row in ns."""
    sql = render(bind_query(text, Catalog().apply(Change((ITEM, UNDECLARED))), numeric_rules=rules).plan)
    return best(lambda: connection.execute(sql).fetchall(), rows)


def best(action: Callable[[], object], rows: int) -> float:
    """Returns the CPU time of an action per row in ns, the best of several runs."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        action()
        times.append(time.process_time() - began)
    return min(times) / rows * 1e9


def edges(rows: int) -> None:
    """Prints the CPU time of expressions in generated code, without that of reading the rows."""
    with TemporaryDirectory() as scratch:
        session = spark.start(Path(scratch), 1)
        try:
            amounts = ("CAST(1 + rand() * 100000 AS DECIMAL(15,2))", "CAST(0.01 + rand() * 0.1 AS DECIMAL(15,2))")
            frames = {}
            for item, form in ((ITEM, "{}"), (UNDECLARED, "tg_fixed_to_general({})")):
                frame = session.range(rows).selectExpr(*(f"{form.format(amount)} AS c{i}" for i, amount in enumerate(amounts)))
                frames[item.name] = frame.cache()
                frame.count()
            print(f"\n{'in the circuit':24}{'declared':>10}{'at most':>10}{'other':>10}{'at most':>10}")
            for name, limits in EDGES.items():
                costs = (edge(session, frame, f"SELECT {name} FROM {table}", rows) for table, frame in frames.items())
                print(f"{name:24}" + "".join(f"{value:10.1f}{limit:10}" for value, limit in zip(costs, limits, strict=True)))
        finally:
            session.stop()


def edge(session: Any, frame: Any, text: str, rows: int) -> float:
    """Returns the CPU time per row of the expression of a query in ns."""
    plan = bind_query(text, Catalog().apply(Change((ITEM, UNDECLARED))), view=True, numeric_rules=MAINTAINED).plan
    while isinstance(plan, Project) and isinstance(plan.input, Project):
        plan = plan.input
    assert isinstance(plan, Project)
    sql = render_scalar(plan.expressions[0], SPARK)

    def took(column: str) -> float:
        times = []
        for _ in range(REPEATS):
            began = cpu_us(session)
            frame.selectExpr(f"{column} AS x").write.format("noop").mode("overwrite").save()
            times.append(cpu_us(session) - began)
        return min(times) * 1000 / rows

    return took(sql) - took("c0")


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
        of_new, of_old = (measure(connection, text, rows, rules) for rules in (WITH_GENERAL, UNIFORM))
        print(f"{name:20}{of_new:12.1f}{of_old:12.1f}")
    unscaled = (f"CAST(round(random() * {10**digits}) AS DECIMAL(38,0))" for digits, _ in FORMS)
    numbers = ", ".join(f"tg_general({u}, {scale}) AS c{i}" for i, (u, (_, scale)) in enumerate(zip(unscaled, FORMS, strict=True)))
    connection.execute(f"CREATE TABLE r{UNDECLARED.id} AS SELECT {numbers}, 1 AS __weight FROM range({rows}) AS r(i)")
    print(f"\n{'without precision':20}{'ns per row':>12}{'at most':>12}")
    for name, (text, limit) in LIMITS.items():
        print(f"{name:20}{measure(connection, text, rows, WITH_GENERAL):12.1f}{limit:12}")
    column = connection.execute(f"SELECT c0 FROM r{UNDECLARED.id}").to_arrow_table().column(0)
    texts = pa.chunked_array([text_column(column.combine_chunks(), GENERAL).cast(pa.string())])
    print(f"{'text of results':20}{best(lambda: text_column(column.combine_chunks(), GENERAL), rows):12.1f}{120:12}")
    print(f"{'COPY from text':20}{best(lambda: read_column(texts, GENERAL), rows):12.1f}")
    edges(rows)


if __name__ == "__main__":
    main()
