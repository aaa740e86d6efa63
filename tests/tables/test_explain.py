"""EXPLAIN of queries: ANALYZE executes them, FORMAT JSON is a document, and options have PostgreSQL's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest

from tests.tables.world import World

NAMESPACE = "http://www.postgresql.org/2009/explain"
SCHEMA = "CREATE TABLE goods (id int PRIMARY KEY, name text); INSERT INTO goods SELECT g, 'n' || g FROM generate_series(1, 9) AS g"
OPTIONS = (
    "(WAL) SELECT 1",
    "(TIMING) SELECT 1",
    "(nonsense) SELECT 1",
    "(FORMAT pretty) SELECT 1",
    "(ANALYZE perhaps) SELECT 1",
    "(COSTS 7) SELECT 1",
    "(ANALYZE) SELECT 1 / 0",
    "(FORMAT JSON) SELECT * FROM nosuch",
)


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    world = World(Path(tmp_path_factory.mktemp("explain")) / "lake")
    try:
        with psycopg.connect(world.dsn, autocommit=True) as connection:
            connection.execute(SCHEMA)
            yield connection
    finally:
        world.close()


def lines(sql: psycopg.Connection[Any], statement: str, *values: object) -> list[str]:
    return [line for (line,) in sql.execute(statement, values or None).fetchall()]


def test_analyze(sql: psycopg.Connection[Any]) -> None:
    shown = lines(sql, "EXPLAIN (ANALYZE, BUFFERS) SELECT name FROM goods WHERE id > 3")
    assert re.fullmatch(r"Project: \[name\] \(actual time=\d+\.\d{3}\.\.\d+\.\d{3} rows=6 loops=1\)", shown[0])
    assert shown[1:3] == ["└─ Filter: id > 3", "   └─ Scan: goods"]
    assert [re.sub(r"[\d.]+", "0", line) for line in shown[3:]] == ["Lane: query", "Planning Time: 0 ms", "Execution Time: 0 ms"]
    shown = lines(sql, "EXPLAIN (ANALYZE on, TIMING off, SUMMARY off, COSTS off) SELECT name FROM goods WHERE id > 3")
    assert shown == ["Project: [name] (actual rows=6 loops=1)", "└─ Filter: id > 3", "   └─ Scan: goods"]
    assert lines(sql, "EXPLAIN ANALYZE VERBOSE VALUES (1), (2)")[0].endswith("rows=2 loops=1)")
    assert lines(sql, "EXPLAIN (ANALYZE off) SELECT name FROM goods") == ["Project: [name]", "└─ Scan: goods"]
    shown = lines(sql, "EXPLAIN (SUMMARY) VALUES (1)")
    assert [re.sub(r"[\d.]+", "0", line) for line in shown[1:]] == ["Lane: query", "Planning Time: 0 ms"]
    assert lines(sql, "EXPLAIN (SUMMARY) SELECT name FROM goods WHERE id = 3")[3] == "Lane: memory"
    assert "Lane: write" in lines(sql, "EXPLAIN (SUMMARY) DELETE FROM goods WHERE id = 30")


def test_parameters(sql: psycopg.Connection[Any]) -> None:
    shown = lines(sql, "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) SELECT name FROM goods WHERE id > %s", 7)
    assert shown[0] == "Project: [name] (actual rows=2 loops=1)"
    assert lines(sql, "EXPLAIN SELECT name FROM goods WHERE id = %s", 7)[-1] == "   └─ Scan: goods"


def test_it_executes(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE SEQUENCE counter")
    lines(sql, "EXPLAIN SELECT nextval('counter')")
    lines(sql, "EXPLAIN ANALYZE SELECT nextval('counter')")
    assert sql.execute("SELECT nextval('counter')").fetchone() == (2,)


def test_json(sql: psycopg.Connection[Any]) -> None:
    cursor = sql.execute("EXPLAIN (FORMAT JSON) SELECT name FROM goods WHERE id > 3")
    assert cursor.description is not None
    assert [(column.name, column.type_code) for column in cursor.description] == [("QUERY PLAN", 114)]
    scan = {"Node Type": "Scan", "Relation Name": "goods"}
    filtered = {"Node Type": "Filter", "Detail": "id > 3", "Plans": [scan]}
    plan = {"Node Type": "Project", "Detail": "[name]", "Plans": [filtered]}
    assert cursor.fetchall() == [([{"Plan": plan}],)]
    ((document,),) = sql.execute("EXPLAIN (ANALYZE, FORMAT JSON) SELECT name FROM goods WHERE id > 3").fetchall()
    (explained,) = document
    assert set(explained) == {"Plan", "Lane", "Planning Time", "Execution Time"}
    actual = {key: explained["Plan"].pop(key) for key in list(explained["Plan"]) if key.startswith("Actual")}
    assert explained["Plan"] == plan
    assert set(actual) == {"Actual Startup Time", "Actual Total Time", "Actual Rows", "Actual Loops"}
    assert (actual["Actual Rows"], actual["Actual Loops"]) == (6, 1)
    assert 0 < actual["Actual Startup Time"] <= actual["Actual Total Time"] == explained["Execution Time"]


def test_documents(sql: psycopg.Connection[Any]) -> None:
    (line,) = lines(sql, "EXPLAIN (FORMAT XML) SELECT name FROM goods WHERE name < 'b'")
    plan, *_ = ElementTree.fromstring(line).iter(f"{{{NAMESPACE}}}Plan")
    shown = [(node.tag.removeprefix(f"{{{NAMESPACE}}}"), (node.text or "").strip()) for node in plan.iter()][1:]
    nested = [("Plans", ""), ("Plan", "")]
    filtered = [*nested, ("Node-Type", "Filter"), ("Detail", "name < 'b'"), *nested, ("Node-Type", "Scan"), ("Relation-Name", "goods")]
    assert shown == [("Node-Type", "Project"), ("Detail", "[name]"), *filtered]
    assert lines(sql, "EXPLAIN (FORMAT XML, ANALYZE, TIMING off) SELECT 1")[0].count("Actual-Rows>1</Actual-Rows") == 1
    (line,) = lines(sql, """EXPLAIN (FORMAT YAML, ANALYZE, TIMING off) SELECT name FROM goods WHERE name < 'a"b'""")
    assert re.sub(r"\d+\.\d+", "0", line).splitlines() == [
        "- Plan: ",
        '    Node Type: "Project"',
        '    Detail: "[name]"',
        "    Plans: ",
        '      - Node Type: "Filter"',
        """        Detail: "name < 'a\\"b'\"""",
        "        Plans: ",
        '          - Node Type: "Scan"',
        '            Relation Name: "goods"',
        "    Actual Rows: 0",
        "    Actual Loops: 1",
        '  Lane: "query"',
        "  Planning Time: 0",
        "  Execution Time: 0",
    ]


# a statement, the line of the write, and the number of rows that it writes
WRITES = (
    ("INSERT INTO stock SELECT id, 1 FROM goods WHERE id > 4", "Insert: stock", 5),
    ("INSERT INTO stock VALUES (9, 1) ON CONFLICT DO NOTHING", "Insert: stock on conflict do nothing", 0),
    ("WITH w AS (SELECT 5 AS id) UPDATE stock SET n = n + 1 FROM w WHERE stock.id = w.id RETURNING n", "Update: stock", 1),
    ("MERGE INTO stock s USING goods g ON s.id = g.id WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT VALUES (g.id, 0)",
     "Merge: stock", 4),
    ("DELETE FROM stock WHERE n = 0", "Delete: stock", 4),
)  # fmt: skip


def test_writes(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE TABLE stock (id int PRIMARY KEY, n int)")
    for statement, first, count in WRITES:
        before = sql.execute("TABLE stock").fetchall()
        shown = lines(sql, f"EXPLAIN {statement}")
        assert shown[0] == first and shown[1].startswith("└─ ") and len(shown) > 1
        assert sql.execute("TABLE stock").fetchall() == before
        assert lines(sql, f"EXPLAIN (ANALYZE, TIMING off, SUMMARY off) {statement}")[0] == f"{first} (actual rows={count} loops=1)"
    assert sql.execute("SELECT * FROM stock ORDER BY id").fetchall() == [(5, 2), (6, 1), (7, 1), (8, 1), (9, 1)]
    ((document,),) = sql.execute("EXPLAIN (FORMAT JSON) INSERT INTO stock VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = 3").fetchall()
    plan = document[0]["Plan"]
    assert [plan.pop("Node Type"), plan.pop("Operation"), plan.pop("Relation Name")] == ["ModifyTable", "Insert", "stock"]
    assert plan.pop("Conflict Resolution") == "UPDATE" and list(plan) == ["Plans"]
    many = ", ".join(f"({n}, {n})" for n in range(1000, 4000))  # parsed and planned in a worker
    assert lines(sql, f"EXPLAIN INSERT INTO stock VALUES {many}")[0] == "Insert: stock"
    assert lines(sql, f"EXPLAIN ANALYZE INSERT INTO stock VALUES {many}")[0].endswith("rows=3000 loops=1)")
    assert sql.execute("SELECT count(*) FROM stock").fetchone() == (3005,)


def test_labels(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s ok')")
    sql.execute("CREATE TABLE guests (m mood, ms mood[])")
    shown = lines(sql, "EXPLAIN INSERT INTO guests VALUES ('it''s ok', '{sad}')")
    assert shown == ["Insert: guests", "└─ Values: ('it''s ok'::mood, array['sad'::mood])"]
    assert lines(sql, "EXPLAIN SELECT FROM guests WHERE m = 'sad'")[1] == "└─ Filter: m = 'sad'::mood"


def test_writes_in_blocks(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE TABLE notes (id int PRIMARY KEY)")
    with sql.transaction(force_rollback=True):
        sql.execute("EXPLAIN ANALYZE INSERT INTO notes VALUES (1)")
        assert sql.execute("TABLE notes").fetchall() == [(1,)]
    assert sql.execute("TABLE notes").fetchall() == []
    with pytest.raises(psycopg.errors.UniqueViolation):
        sql.execute("EXPLAIN ANALYZE INSERT INTO notes VALUES (1), (1)")
    sql.execute("SET default_transaction_read_only = on")
    try:
        sql.execute("EXPLAIN INSERT INTO notes VALUES (1)")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="cannot execute INSERT in a read-only transaction"):
            sql.execute("EXPLAIN ANALYZE INSERT INTO notes VALUES (1)")
    finally:
        sql.execute("RESET default_transaction_read_only")
    ((time,),) = sql.execute("SELECT mz_now()").fetchall()
    sql.execute(f"SET tailgate.as_of = {time}")
    try:
        for statement in ("INSERT INTO notes VALUES (1)", "EXECUTE note(2)"):
            sql.execute("DEALLOCATE ALL")
            sql.execute("PREPARE note(int) AS INSERT INTO notes VALUES ($1)")
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="rows cannot be written"):
                sql.execute(f"EXPLAIN ANALYZE {statement}")
    finally:
        sql.execute("RESET tailgate.as_of")


def test_execute(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE TABLE pages (id int PRIMARY KEY, title text)")
    sql.execute("PREPARE page(int, text) AS INSERT INTO pages VALUES ($1, $2)")
    assert lines(sql, "EXPLAIN EXECUTE page(1, 'a')") == ["Insert: pages", "└─ Values: ($1, $2)"]
    assert sql.execute("TABLE pages").fetchall() == []
    assert lines(sql, "EXPLAIN ANALYZE EXECUTE page(1, 'a')")[0].endswith("rows=1 loops=1)")
    assert sql.execute("TABLE pages").fetchall() == [(1, "a")]
    sql.execute("PREPARE titles(int) AS SELECT title FROM pages WHERE id = $1")
    assert lines(sql, "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) EXECUTE titles(1)")[0] == "Project: [title] (actual rows=1 loops=1)"
    with pytest.raises(psycopg.errors.InvalidSqlStatementName, match='prepared statement "nosuch" does not exist'):
        sql.execute("EXPLAIN EXECUTE nosuch")
    with pytest.raises(psycopg.errors.SyntaxError, match='wrong number of parameters for prepared statement "titles"'):
        sql.execute("EXPLAIN EXECUTE titles(1, 2)")
    sql.execute("PREPARE shown AS TAIL pages")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="EXPLAIN EXECUTE is supported for SELECT"):
        sql.execute("EXPLAIN EXECUTE shown")


@pytest.mark.parametrize("statement", OPTIONS)
def test_errors(sql: psycopg.Connection[Any], postgres: str, statement: str) -> None:
    errors = []
    with psycopg.connect(postgres, autocommit=True) as theirs:
        for connection in (theirs, sql):
            with pytest.raises(psycopg.Error) as error:
                connection.execute(f"EXPLAIN {statement}".encode())
            errors.append((error.value.sqlstate, error.value.diag.message_primary, error.value.diag.statement_position))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("EXPLAIN (FORMAT JSON) MATERIALIZED VIEW goods", r"EXPLAIN \(FORMAT JSON\) of a view is not supported"),
        ("EXPLAIN (FORMAT XML) TAIL goods", r"EXPLAIN \(FORMAT XML\) of TAIL is not supported"),
        ("EXPLAIN ANALYZE TRUNCATE goods", r"EXPLAIN \(ANALYZE\) of TRUNCATE is not supported"),
        ("EXPLAIN ANALYZE SELECT * FROM pg_class", "EXPLAIN of a query of the system catalog is not supported"),
    ],
)
def test_refused(sql: psycopg.Connection[Any], statement: str, message: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=message):
        sql.execute(statement.encode())


def test_cursors_and_new_tables(sql: psycopg.Connection[Any]) -> None:
    plan = ["Project: [name]", "└─ Filter: id > 3", "   └─ Scan: goods"]
    query = "SELECT name FROM goods WHERE id > 3"
    for statement in (
        f"DECLARE c CURSOR FOR {query}",
        f"CREATE TABLE copied AS {query}",
        f"CREATE TEMPORARY TABLE copied (name) AS {query} WITH NO DATA",
        f"CREATE TABLE IF NOT EXISTS goods AS {query}",
        "SELECT name INTO copied FROM goods WHERE id > 3",
    ):
        assert lines(sql, f"EXPLAIN {statement}") == plan, statement
        assert sql.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode()).fetchone() is not None
    shown = lines(sql, f"EXPLAIN (ANALYZE, TIMING off, SUMMARY off) DECLARE c SCROLL CURSOR FOR {query}")
    assert shown[0] == "Project: [name] (actual rows=6 loops=1)"
    assert sql.execute("SELECT to_regclass('copied')").fetchone() == (None,)
    for error, statement in (
        (psycopg.errors.DuplicateTable, f"EXPLAIN CREATE TABLE goods AS {query}"),
        (psycopg.errors.FeatureNotSupported, f"EXPLAIN ANALYZE CREATE TABLE copied AS {query}"),
        (psycopg.errors.FeatureNotSupported, "EXPLAIN ANALYZE SELECT name INTO copied FROM goods"),
        (psycopg.errors.FeatureNotSupported, "EXPLAIN ANALYZE DECLARE c CURSOR FOR TAIL goods"),
        (psycopg.errors.SyntaxError, "EXPLAIN CREATE TABLE copied (a int)"),
        (psycopg.errors.UndefinedTable, "EXPLAIN CREATE TABLE copied AS SELECT * FROM nosuch"),
    ):
        with pytest.raises(error):
            sql.execute(statement.encode())
