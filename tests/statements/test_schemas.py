"""Schemas, search_path and temporary views: answers equal those of PostgreSQL 15."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from tailgate.lake.catalog.names import Name
from tests.statements.conftest import World

pytestmark = pytest.mark.spark

STATEMENTS = (Path(__file__).parent / "schemas.sql").read_text().rstrip().rstrip(";").split(";\n")


def outcome(connection: psycopg.Connection, statement: str) -> list[object]:
    notices: list[object] = []

    def on_notice(notice: psycopg.errors.Diagnostic) -> None:
        notices.append((notice.severity, notice.sqlstate, notice.message_primary, notice.message_detail))

    connection.add_notice_handler(on_notice)
    try:
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        return [cursor.statusmessage, cursor.fetchall() if cursor.description else None, *notices]
    except psycopg.Error as e:
        return [e.sqlstate, e.diag.message_primary, e.diag.message_detail, e.diag.message_hint, *notices]
    finally:
        connection.remove_notice_handler(on_notice)


def test_as_postgresql(sql: psycopg.Connection, postgres: str) -> None:
    different: list[str] = []
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS schemas")
        server.execute("CREATE DATABASE schemas")
    with psycopg.connect(postgres, dbname="schemas", autocommit=True) as database:
        for statement in STATEMENTS:
            ours, theirs = outcome(sql, statement), outcome(database, statement)
            if ours != theirs:
                different.append(f"{statement.strip()}\n  ours   {ours}\n  theirs {theirs}")
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP DATABASE schemas")
    assert not different, "\n".join(different)


def psql(world: World, commands: str) -> str:
    words = ["psql", "--no-psqlrc", "-A", "-F", "|", f"host=127.0.0.1 port={world.served.port} user=ann dbname=shop"]
    result = subprocess.run(words, input=commands, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=True)
    return result.stdout


def test_psql_shows_schemas(sql: psycopg.Connection, world: World) -> None:
    for statement in (
        "CREATE SCHEMA stock",
        "COMMENT ON SCHEMA stock IS 'what there is'",
        "CREATE TABLE stock.items (id int PRIMARY KEY, name text)",
        "CREATE VIEW stock.v AS SELECT name FROM stock.items",
        "CREATE MATERIALIZED VIEW stock.m AS SELECT count(*) AS n FROM stock.items",
    ):
        sql.execute(statement)  # type: ignore[call-overload]
    assert re.search(r"^stock\|(ann|tailgate)$", psql(world, "\\dn\n"), re.MULTILINE)
    assert "what there is" in psql(world, "\\dn+ stock\n")
    assert "stock|v|view|" in psql(world, "\\dv stock.*\n")
    assert "stock|items|table|" in psql(world, "\\dt stock.*\n")
    assert "Did not find any relation" in psql(world, "\\dt items\n")
    assert "stock|items|table|" in psql(world, "SET search_path = stock;\n\\dt items\n")
    assert 'View "stock.v"' in psql(world, "\\d stock.v\n")
    assert '"items_pkey" PRIMARY KEY, btree (id)' in psql(world, "\\d stock.items\n")
    assert "FROM stock.items" in psql(world, "\\d+ stock.v\n")
    printed = psql(world, "CREATE TEMP VIEW mine AS SELECT 1 AS one;\n\\dv mine\n\\d mine\nSELECT * FROM mine;\n")
    assert re.search(r"pg_temp_\d+\|mine\|view\|", printed)
    assert re.search(r'View "pg_temp_\d+.mine"', printed)
    assert printed.endswith("one\n1\n(1 row)\n")


def test_views_of_equal_names_are_kept_apart(sql: psycopg.Connection, world: World) -> None:
    """Relations with one name in two schemas have separate rows, errors and files.

    This also holds after they are moved.
    """
    for schema in ("one", "two"):
        sql.execute(f"CREATE SCHEMA {schema}")  # type: ignore[call-overload]
        sql.execute(f"SET search_path = {schema}")  # type: ignore[call-overload]
        sql.execute("CREATE TABLE base (x int)")
        sql.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(10 / x) AS total FROM base")
    sql.execute("RESET search_path")
    sql.execute("INSERT INTO one.base VALUES (1), (2)")
    sql.execute("INSERT INTO two.base VALUES (5)")
    assert sql.execute("SELECT one.sums.total, two.sums.total FROM one.sums, two.sums").fetchone() == (15, 2)
    sql.execute("INSERT INTO two.base VALUES (0)")
    assert sql.execute("SELECT total FROM one.sums").fetchone() == (15,)
    with pytest.raises(psycopg.errors.DivisionByZero):
        sql.execute("SELECT total FROM two.sums")
    assert sql.execute("SELECT sqlstate FROM two.sums_errors").fetchall() == [("22012",)]
    assert sql.execute("SELECT * FROM one.sums_errors").fetchall() == []
    sql.execute("SET search_path = two")
    assert [row[:2] for row in sql.execute("SHOW MATERIALIZED VIEWS").fetchall()] == [("sums", "failing")]
    sql.execute("RESET search_path")
    sql.execute("DELETE FROM two.base WHERE x = 0")
    sql.execute("ALTER TABLE two.base SET SCHEMA public")
    sql.execute("ALTER MATERIALIZED VIEW two.sums RENAME TO others")
    sql.execute("ALTER SCHEMA two RENAME TO three")
    sql.execute("INSERT INTO base VALUES (10)")
    assert sql.execute("SELECT total FROM three.others").fetchone() == (3,)
    sql.execute("CREATE OR REPLACE MATERIALIZED VIEW three.others AS SELECT sum(x) AS total FROM base")
    assert sql.execute("SELECT total FROM three.others").fetchone() == (15,)
    catalog = world.lake.catalog()
    ids = [i.id for i in catalog.visible if i.name in ("sums", "others", "base")]
    assert len({*ids}) == 4
    sql.execute("DROP SCHEMA one CASCADE")
    assert sql.execute("SELECT total FROM three.others").fetchone() == (15,)
    assert world.lake.catalog().find(Name("sums_errors", "one")) is None
