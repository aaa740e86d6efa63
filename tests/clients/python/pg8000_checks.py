"""Checks pg8000, a driver in pure Python: DB-API and its native interface."""

import datetime
import io
from decimal import Decimal
from uuid import UUID

import pg8000.dbapi
import pg8000.native
from tap import DATABASE, HOST, PORT, SLOW, TAILGATE, USER, check, done, raises, recover, same_kinds

WHERE = {"user": USER, "host": HOST, "port": int(PORT), "database": DATABASE}
connection = pg8000.dbapi.connect(**WHERE)
native = pg8000.native.Connection(**WHERE)
cursor = connection.cursor()
recover(connection.rollback)


def one(query, values=()):
    cursor.execute(query, values)
    return cursor.fetchone()


with check("connects"):
    assert dict(native.parameter_statuses)["server_version"].startswith("15.")
with check("every type"):
    cursor.execute("SELECT * FROM kinds ORDER BY id")
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    same_kinds(rows, without=("an_interval",))
    assert rows[1]["an_interval"] == datetime.timedelta(days=-1)
with check("values in all types"):
    parameters = (
        1, 2**40, 2.5, Decimal("1.10"), "it's \\ ü", True, datetime.date(2026, 1, 2), datetime.time(1, 2), UUID(int=5), b"\x00\xff",
        datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.timezone.utc), datetime.timedelta(days=1, seconds=2), [1, 2], {"a": [1]},
    )  # fmt: skip
    casts = [
        "int",
        "int8",
        "float8",
        "numeric",
        "text",
        "bool",
        "date",
        "time",
        "uuid",
        "bytea",
        "timestamptz",
        "interval",
        "int[]",
        "jsonb",
    ]
    holes = ", ".join(f"CAST(%s AS {cast})" for cast in casts)
    assert tuple(one(f"SELECT {holes}", parameters)) == parameters
with check("styles of parameters"):
    for style, query, values in (
        ("qmark", "SELECT id FROM orders WHERE id = ?", (5,)), ("numeric", "SELECT id FROM orders WHERE id = :1", (5,)),
        ("named", "SELECT id FROM orders WHERE id = :n", {"n": 5}), ("pyformat", "SELECT id FROM orders WHERE id = %(n)s", {"n": 5}),
    ):  # fmt: skip
        pg8000.dbapi.paramstyle = style
        cursor.execute(query, values)
        assert cursor.fetchone() == [5]
    pg8000.dbapi.paramstyle = "format"
with check("description, rowcount, fetchmany, iteration"):
    cursor.execute("SELECT id, customer FROM orders ORDER BY id")
    assert [(c[0], c[1]) for c in cursor.description] == [("id", 20), ("customer", 25)]
    assert cursor.fetchmany(2) == ([1, "customer 1"], [2, "customer 2"])
    assert sum(1 for _ in cursor) == 998
with check("errors, and the block behind them"):
    connection.rollback()
    error = raises(pg8000.dbapi.DatabaseError, cursor.execute, "SELECT nosuch FROM orders")
    assert (error.args[0]["C"], error.args[0]["P"]) == ("42703", "8")
    error = raises(pg8000.dbapi.DatabaseError, cursor.execute, "SELECT 1")
    assert error.args[0]["C"] == "25P02"
    connection.rollback()
    assert one("SELECT 1") == [1]
with check("writes, commit and rollback"):
    cursor.execute("DELETE FROM written WHERE client = 'pg8000'")
    cursor.execute("INSERT INTO written VALUES ('pg8000', 1, 'gone')")
    connection.rollback()
    cursor.executemany("INSERT INTO written VALUES ('pg8000', %s, %s)", [(n, str(n)) for n in range(1, 4)])
    assert cursor.rowcount == 3
    connection.commit()
    assert one("UPDATE written SET note = %s WHERE client = 'pg8000' AND n = 1 RETURNING note", ("x",)) == ["x"]
    cursor.execute("DELETE FROM written WHERE client = 'pg8000'")
    assert cursor.rowcount == 3
    connection.commit()
with check("savepoints"):
    cursor.execute("SAVEPOINT a")
    raises(pg8000.dbapi.DatabaseError, cursor.execute, "SELECT 1/0")
    cursor.execute("ROLLBACK TO SAVEPOINT a")
    assert one("SELECT 5") == [5]
    connection.rollback()
with check("COPY out and in"):
    out = io.BytesIO()
    cursor.execute("COPY (SELECT id, customer FROM orders WHERE id < 3 ORDER BY id) TO STDOUT WITH (FORMAT csv)", stream=out)
    assert out.getvalue() == b"1,customer 1\n2,customer 2\n"
    cursor.execute("COPY written FROM STDIN WITH (FORMAT csv)", stream=io.BytesIO(b"pg8000,1,one\npg8000,2,\n"))
    connection.commit()
    cursor.execute("SELECT n, note FROM written WHERE client = 'pg8000' ORDER BY n")
    assert cursor.fetchall() == ([1, "one"], [2, None])
    cursor.execute("DELETE FROM written WHERE client = 'pg8000'")
    connection.commit()
with check("native: named parameters, columns, many rows"):
    assert native.run("SELECT id, amount FROM orders WHERE id = :n", n=5) == [[5, Decimal("6.25")]]
    assert [c["name"] for c in native.columns] == ["id", "amount"]
    assert len(native.run("SELECT * FROM orders")) == 1000
with check("native: a prepared statement"):
    prepared = native.prepare("SELECT customer FROM orders WHERE id = :n")
    assert [prepared.run(n=n)[0][0] for n in (1, 2)] == ["customer 1", "customer 2"]
    prepared.close()
with check("native: several statements, settings"):
    native.run("SET TIME ZONE 'Asia/Tokyo'; SELECT 1")
    assert native.run("SHOW TimeZone") == [["Asia/Tokyo"]]
    native.run("RESET ALL")
with check("native: notices"):
    native.run("DROP TABLE IF EXISTS nobody")
    assert any(b"does not exist, skipping" in notice[b"M"] for notice in native.notices)
with check("a timeout of the server's"):
    native.run("SET statement_timeout = 200")
    error = raises(pg8000.native.DatabaseError, native.run, SLOW)
    assert error.args[0]["C"] == "57014"
    native.run("RESET statement_timeout")
with check("autocommit"):
    connection.autocommit = True
    assert one("SELECT 1") == [1]
    connection.autocommit = False
if TAILGATE:
    with check("TAIL by a cursor"):
        cursor.execute("DECLARE t CURSOR FOR TAIL per_customer")
        cursor.execute("FETCH 10 t")
        assert len(cursor.fetchall()) == 10
        connection.rollback()
native.close()
connection.close()
done()
