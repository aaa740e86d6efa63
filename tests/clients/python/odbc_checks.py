"""Checks psqlodbc with pyodbc: catalog functions, parameters, cursors with DECLARE and FETCH; and isql."""

import datetime
import glob
import os
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path

import pyodbc
from tap import DATABASE, HOST, PORT, TAILGATE, USER, check, done, raises

(DRIVER,) = glob.glob("/usr/lib/*/odbc/psqlodbcw.so")
WHERE = f"DRIVER={DRIVER};SERVER={HOST};PORT={PORT};UID={USER};DATABASE={DATABASE};"
# Its modes: prepared by the server or not, all rows at once or with a cursor.
WAYS = {"by itself": "", "UseDeclareFetch": "UseDeclareFetch=1;Fetch=50;", "without server-side prepare": "UseServerSidePrepare=0;"}


for way, options in WAYS.items():
    connection = pyodbc.connect(WHERE + options, autocommit=True)
    cursor = connection.cursor()
    with check(f"connects, {way}"):
        assert connection.getinfo(pyodbc.SQL_DBMS_NAME) == "PostgreSQL"
        assert connection.getinfo(pyodbc.SQL_DBMS_VER).startswith("15.")
    with check(f"every type, {way}"):
        rows = cursor.execute("SELECT * FROM kinds ORDER BY id").fetchall()
        assert len(rows) == 4
        one = rows[0]
        assert one.a_bigint == 9223372036854775807
        assert one.a_numeric == Decimal("123456789.125")
        assert (one.a_varchar, one.a_char, one.a_bytea) == ("häßlich", "ab   ", b"\x00\xffa")
        assert (one.a_date, one.a_timestamp) == (datetime.date(2026, 2, 28), datetime.datetime(2026, 1, 2, 3, 4, 5, 678901))
        assert rows[3].a_text == 'two\nlines\t"quoted" \\ € 😀'
        assert rows[2].a_text is None
    with check(f"many rows, {way}"):
        assert sum(row.id for row in cursor.execute("SELECT id FROM orders")) == 500500
    with check(f"parameters, {way}"):
        listed = cursor.execute(
            "SELECT id FROM orders WHERE customer = ? AND id > ? AND amount < ? ORDER BY id", "customer 3", 100, Decimal(200)
        )
        assert [row.id for row in listed] == [103, 113, 123, 133, 143, 153]
        assert cursor.execute("SELECT CAST(? AS date), CAST(? AS text)", datetime.date(2026, 1, 2), None).fetchone()[0] == datetime.date(
            2026, 1, 2
        )
    with check(f"writes, {way}"):
        cursor.execute("DELETE FROM written WHERE client = 'odbc'")
        cursor.executemany("INSERT INTO written VALUES ('odbc', ?, ?)", [(n, f"note {n}") for n in range(1, 6)])
        assert cursor.execute("UPDATE written SET note = ? WHERE client = 'odbc' AND n > ?", "x", 3).rowcount == 2
        assert cursor.execute("DELETE FROM written WHERE client = 'odbc'").rowcount == 5
    with check(f"blocks, {way}"):
        connection.autocommit = False
        cursor.execute("INSERT INTO written VALUES ('odbc', 1, 'gone')")
        connection.rollback()
        assert cursor.execute("SELECT count(*) FROM written WHERE client = 'odbc'").fetchone()[0] == 0
        assert cursor.execute("SELECT id FROM orders ORDER BY id").fetchmany(3)[2].id == 3
        connection.commit()
        connection.autocommit = True
    with check(f"errors, {way}"):
        assert raises(pyodbc.Error, cursor.execute, "SELECT nosuch FROM orders").args[0] == "42703"
        assert raises(pyodbc.Error, cursor.execute, "SELECT 1/0").args[0] == "22012"
        assert cursor.execute("SELECT 1").fetchone()[0] == 1
    connection.close()
connection = pyodbc.connect(WHERE, autocommit=True)
cursor = connection.cursor()
with check("SQLTables"):
    listed = {(row.table_name, row.table_type) for row in cursor.tables(schema="public")}
    assert {("orders", "TABLE"), ("kinds", "TABLE"), ("large_orders", "VIEW")} <= listed, listed
    assert "per_customer" in {name for name, _ in listed}
with check("SQLColumns"):
    listed = [(row.column_name, row.type_name, row.column_size) for row in cursor.columns(table="orders", schema="public")]
    assert [name for name, *_ in listed] == ["id", "customer", "amount", "placed", "paid"]
    assert listed[2][1:] == ("numeric", 10)
with check("SQLPrimaryKeys, SQLForeignKeys, SQLStatistics, SQLSpecialColumns"):
    assert [row.column_name for row in cursor.primaryKeys("written", schema="public")] == ["client", "n"]
    assert cursor.foreignKeys("written", schema="public").fetchall() == []
    assert {row.index_name for row in cursor.statistics("orders", schema="public") if row.index_name} == {"orders_pkey", "orders_customer"}
    cursor.rowIdColumns("orders", schema="public").fetchall()
with check("SQLGetTypeInfo, SQLProcedures"):
    assert {"int4", "text", "numeric"} <= {row.type_name for row in cursor.getTypeInfo()}
    assert "doubled" in {row.procedure_name for row in cursor.procedures(schema="public")}
with check("description of a result"):
    cursor.execute("SELECT id, amount, placed FROM orders")
    assert [c[0] for c in cursor.description] == ["id", "amount", "placed"]
with check("isql"), tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "odbc.ini").write_text(
        f"[checks]\nDriver = {DRIVER}\nServername = {HOST}\nPort = {PORT}\nUsername = {USER}\nDatabase = {DATABASE}\n"
    )
    run = subprocess.run(
        ["isql", "-b", "-d,", "checks"], input="SELECT id, customer FROM orders WHERE id = 5\nhelp orders\n", capture_output=True, text=True,
        check=False, timeout=30, env={**os.environ, "ODBCINI": f"{folder}/odbc.ini"},
    )  # fmt: skip
    assert "5,customer 5" in run.stdout, run
    assert "placed" in run.stdout, run
if TAILGATE:
    with check("TAIL by a cursor"):
        connection.autocommit = False
        cursor.execute("DECLARE t CURSOR FOR TAIL per_customer")
        assert len(cursor.execute("FETCH 10 t").fetchall()) == 10
        connection.rollback()
done()
