"""dbt with its adapter for PostgreSQL, unmodified: a project is built, changed, built again and rebuilt, with four threads.

The models are a view, tables with indexes and with a contract, incremental models of each strategy, a materialized view and an ephemeral
model; two snapshots, a source, tests, grants and comments belong to them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg2

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from tap import DATABASE, HOST, PORT, TAILGATE, USER, check, done

PROJECT = Path(os.environ["CHECKS_FOLDER"]) / "project"
DBT = str(Path(sys.executable).with_name("dbt"))

FIRST = {
    "raw_orders": "1,ann,10.50,2026-01-01 10:00:00\n2,bob,20.00,2026-01-02 10:00:00\n3,ann,5.25,2026-01-03 10:00:00\n",
    "raw_customers": "1,ann\n2,bob\n",
}
SECOND = {
    "raw_orders": "1,ann,11.50,2026-01-05 10:00:00\n3,ann,5.25,2026-01-03 10:00:00\n4,eve,7.00,2026-01-06 10:00:00\n",
    "raw_customers": "1,anna\n2,bob\n3,eve\n4,ann\n",
}
LANDING = """
CREATE SCHEMA landing;
CREATE TABLE landing.payments (id integer PRIMARY KEY, customer text, at timestamptz);
INSERT INTO landing.payments VALUES
    (1, 'ann', '2024-05-01 10:00:00+00'), (2, 'bob', '2025-12-31 23:59:59+00'), (3, 'ann', '2026-02-01 10:00:00+00');
"""
HEADERS = {"raw_orders": "id,customer,amount,updated_at\n", "raw_customers": "id,name\n"}


def seeds(rows: dict[str, str]) -> None:
    (PROJECT / "seeds").mkdir(exist_ok=True)
    for name, text in rows.items():
        (PROJECT / "seeds" / f"{name}.csv").write_text(HEADERS[name] + text)


def dbt(*arguments: str) -> None:
    environment = {**os.environ, "DBT_PROFILES_DIR": str(PROJECT), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    command = [DBT, "--no-use-colors", *arguments]
    run = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert run.returncode == 0, run.stdout[-1200:]


def rows(sql: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(host=HOST, port=PORT, user=USER, dbname=DATABASE)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
    finally:
        connection.close()


def same(sql: str, *expected: tuple[object, ...]) -> None:
    got = rows(sql)
    assert got == list(expected), got


def main() -> None:
    shutil.copytree(Path(__file__).parent / "project", PROJECT)
    connection = psycopg2.connect(host=HOST, port=PORT, user=USER, dbname=DATABASE)
    connection.autocommit = True
    if TAILGATE:  # the first role ends the trust in all clients of the machine
        connection.cursor().execute(f"CREATE ROLE {USER} LOGIN SUPERUSER")
    connection.cursor().execute("CREATE ROLE reader")
    connection.cursor().execute(LANDING)

    seeds(FIRST)
    with check("build: seeds, models, snapshots and tests"):
        dbt("build")
        same(
            "SELECT customer, amount::numeric(10, 2)::text, orders FROM analytics.spent ORDER BY 1",
            ("ann", "15.75", 2),
            ("bob", "20.00", 1),
        )
        same("SELECT customer, orders FROM analytics.live ORDER BY 1", ("ann", 2), ("bob", 1))
    with check("source freshness"):
        dbt("source", "freshness")
        (result,) = json.loads((PROJECT / "target" / "sources.json").read_text())["results"]
        assert (result["status"], result["max_loaded_at"]) == ("warn", "2026-02-01T10:00:00+00:00"), result
    with check("a microbatch model: new batches, and one that is filled again"):
        batches = "SELECT id, customer FROM analytics.by_year ORDER BY id"
        same(batches, (1, "ann"), (2, "bob"), (3, "ann"))
        connection.cursor().execute("UPDATE landing.payments SET customer = upper(customer)")
        dbt("run", "--select", "by_year", "--event-time-start", "2024-01-01", "--event-time-end", "2025-01-01")
        same(batches, (1, "ANN"), (2, "bob"), (3, "ann"))
        connection.cursor().execute("INSERT INTO landing.payments VALUES (4, 'eve', '2026-03-01 10:00:00+00')")
        dbt("run", "--select", "by_year")
        same(batches, (1, "ANN"), (2, "BOB"), (3, "ANN"), (4, "eve"))
    with check("--empty"):
        dbt("run", "--empty", "--full-refresh")
        for model in ("spent", "inc_merge", "inc_append", "contracted", "live", "by_year"):
            same(f"SELECT count(*) FROM analytics.{model}", (0,))
        dbt("run", "--full-refresh", "--event-time-start", "2024-01-01", "--event-time-end", "2027-01-01")
        same("SELECT count(*) FROM analytics.inc_append", (3,))
    connection.close()
    with check("grants, comments and the constraints of a contract"):
        same("SELECT has_table_privilege('reader', 'analytics.spent', 'SELECT')", (True,))
        same("SELECT obj_description('analytics.orders'::regclass)", ("Orders, as a view; it's plain.",))
        same("SELECT count(*) FROM pg_constraint WHERE conrelid = 'analytics.contracted'::regclass", (2,))

    seeds(SECOND)
    with check("build again: incremental models and snapshots"):
        dbt("build")
        changed, ids = [(1, "11.50"), (2, "20.00"), (3, "5.25"), (4, "7.00")], "SELECT id, amount::text FROM analytics."
        same(f"{ids}inc_merge ORDER BY id", *changed)
        same(f"{ids}inc_delete_insert ORDER BY id", *changed)
        same("SELECT count(*), count(DISTINCT id) FROM analytics.inc_append", (6, 4))
        same("SELECT id, name, dbt_valid_to IS NULL FROM analytics.customer_history ORDER BY id, 3", *CUSTOMERS)
        same("SELECT id, dbt_valid_to IS NULL FROM analytics.order_history ORDER BY 1, 2", *ORDERS)
        same("SELECT customer, orders FROM analytics.live ORDER BY 1", ("ann", 2), ("eve", 1))
    with check("on_schema_change: append_new_columns and sync_all_columns"):
        dbt("build", "--vars", "{wide: true}")
        same("SELECT id, shouted FROM analytics.inc_sync WHERE id = 4", (4, "EVE"))
        same("SELECT id, shouted FROM analytics.inc_merge WHERE id = 4", (4, "EVE"))
        dbt("build")
        columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'analytics' AND table_name = "
        same(f"{columns}'inc_sync' ORDER BY 1", ("amount",), ("customer",), ("id",))
    with check("--full-refresh"):
        dbt("run", "--full-refresh")
        same("SELECT count(*) FROM analytics.inc_append", (3,))
    with check("docs generate"):
        dbt("docs", "generate")
        assert (PROJECT / "target" / "catalog.json").exists()
    done()


CUSTOMERS = ((1, "ann", False), (1, "anna", True), (2, "bob", True), (3, "eve", True), (4, "ann", True))
ORDERS = ((1, False), (1, True), (2, False), (3, True), (4, True))

main()
