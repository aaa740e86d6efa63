"""Checks psycopg2: libpq, simple queries, values interpolated into the statement."""

import datetime
import decimal
import io
import select
import threading
import uuid

import psycopg2
import psycopg2.extensions
import psycopg2.extras
import psycopg2.sql
from tap import SLOW, TAILGATE, check, done, raises, recover, same_kinds

psycopg2.extras.register_uuid()
connection = psycopg2.connect("")
cursor = connection.cursor()
recover(connection.rollback)


def one(query, values=None):
    cursor.execute(query, values)
    return cursor.fetchone()


with check("connects, and says which server it is"):
    assert connection.server_version // 10000 == 15
    assert connection.get_parameter_status("server_encoding") == "UTF8"
    assert connection.encoding == "UTF8"
with check("every type"):
    rows = connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor)
    rows.execute("SELECT * FROM kinds ORDER BY id")
    same_kinds([dict(row) for row in rows.fetchall()])
with check("description"):
    cursor.execute("SELECT * FROM kinds LIMIT 0")
    assert [(c.name, c.type_code) for c in cursor.description][:3] == [("id", 23), ("a_boolean", 16), ("a_smallint", 21)]
    numeric = cursor.description[7]
    assert (numeric.precision, numeric.scale) == (12, 3)
with check("values in all types"):
    days = (datetime.date(2026, 1, 2), datetime.time(1, 2))
    parameters = (1, 2.5, decimal.Decimal("1.10"), "it's \\ ü", True, None, *days, [1, 2], ["a", None], b"\x00\xff")
    result = one("SELECT %s, %s::float8, %s, %s::text, %s, %s::int, %s, %s, %s, %s, %s", parameters)
    assert (*result[:-1], bytes(result[-1])) == parameters
    assert one("SELECT %s", (uuid.UUID(int=5),)) == (uuid.UUID(int=5),)
    assert one("SELECT %s", (datetime.timedelta(days=1, seconds=2),)) == (datetime.timedelta(days=1, seconds=2),)
    assert one("SELECT %s::jsonb", (psycopg2.extras.Json({"a": [1]}),)) == ({"a": [1]},)
with check("named values"):
    assert one("SELECT id FROM orders WHERE customer = %(c)s AND amount > %(a)s ORDER BY id", {"c": "customer 3", "a": 100}) == (83,)
with check("IN a tuple, ANY of a list"):
    assert one("SELECT count(*) FROM orders WHERE id IN %s", ((1, 2, 3),)) == (3,)
    assert one("SELECT count(*) FROM orders WHERE id = ANY(%s)", ([1, 2, 3],)) == (3,)
with check("composed SQL"):
    assert one(psycopg2.sql.SQL("SELECT count(*) FROM {}").format(psycopg2.sql.Identifier("public", "orders"))) == (1000,)
with check("fetchmany, iteration, rowcount, rownumber"):
    cursor.execute("SELECT id FROM orders ORDER BY id")
    assert cursor.rowcount == 1000
    assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
    assert cursor.rownumber == 3
    assert sum(1 for _ in cursor) == 997
with check("named tuples"):
    by_name = connection.cursor(cursor_factory=psycopg2.extras.NamedTupleCursor)
    by_name.execute("SELECT id, customer FROM large_orders ORDER BY id LIMIT 1")
    assert by_name.fetchone().customer == "customer 1"
with check("several statements at once: the last one's result"):
    assert one("SELECT 1; SELECT 2") == (2,)
with check("a statement that fails: class, position, diagnostics"):
    connection.commit()
    error = raises(psycopg2.errors.UndefinedColumn, cursor.execute, "SELECT nosuch FROM orders")
    assert (error.pgcode, error.diag.statement_position, error.diag.severity) == ("42703", "8", "ERROR")
    raises(psycopg2.errors.InFailedSqlTransaction, cursor.execute, "SELECT 1")
    connection.rollback()
    assert one("SELECT 1") == (1,)
with check("classes of errors"):
    for query, kind in {
        "SELECT * FROM nobody": psycopg2.errors.UndefinedTable,
        "SELECT 1/0": psycopg2.errors.DivisionByZero,
        "SELEC 1": psycopg2.errors.SyntaxError,
        "SELECT 'x'::int": psycopg2.errors.InvalidTextRepresentation,
        "SELECT nobody(1)": psycopg2.errors.UndefinedFunction,
        "INSERT INTO orders VALUES (1, 'x', 1, now(), true)": psycopg2.errors.UniqueViolation,
        "INSERT INTO orders (id) VALUES (-1)": psycopg2.errors.NotNullViolation,
    }.items():
        connection.rollback()
        raises(kind, cursor.execute, query)
    connection.rollback()
with check("savepoints"):
    cursor.execute("SAVEPOINT a")
    raises(psycopg2.Error, cursor.execute, "SELECT 1/0")
    cursor.execute("ROLLBACK TO SAVEPOINT a")
    assert one("SELECT 5") == (5,)
    connection.rollback()
with check("a named cursor: DECLARE, FETCH, itersize, CLOSE"):
    with connection.cursor("numbers") as server:
        server.itersize = 100
        server.execute("SELECT id FROM orders ORDER BY id")
        assert server.fetchmany(2) == [(1,), (2,)]
        assert sum(row[0] for row in server) == 500500 - 3
    connection.commit()
with check("a named cursor that scrolls"):
    with connection.cursor("scrolled", scrollable=True) as server:
        server.execute("SELECT id FROM orders ORDER BY id")
        server.scroll(10)
        assert server.fetchone() == (11,)
        server.scroll(-5)
        assert server.fetchone() == (7,)
        server.scroll(500, mode="absolute")
        assert server.fetchone() == (501,)
    connection.commit()
with check("a named cursor WITH HOLD outlives its block"):
    held = connection.cursor("held", withhold=True)
    held.execute("SELECT id FROM orders ORDER BY id")
    connection.commit()
    assert held.fetchmany(2) == [(1,), (2,)]
    held.close()
    connection.commit()
with check("isolation levels, read only, autocommit"):
    connection.rollback()
    for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
        connection.set_session(isolation_level=level)
        assert one("SHOW transaction_isolation") == (level.lower(),)
        connection.rollback()
    connection.set_session(isolation_level="DEFAULT", readonly=True)
    raises(psycopg2.errors.ReadOnlySqlTransaction, cursor.execute, "INSERT INTO written VALUES ('psycopg2', 0, 'x')")
    connection.rollback()
    connection.set_session(readonly=False, autocommit=True)
    assert one("SELECT 1") == (1,)
    assert connection.get_transaction_status() == psycopg2.extensions.TRANSACTION_STATUS_IDLE
    connection.autocommit = False
with check("writes: RETURNING, rowcount, rollback, executemany, execute_values, execute_batch"):
    cursor.execute("DELETE FROM written WHERE client = 'psycopg2'")
    assert one("INSERT INTO written VALUES ('psycopg2', 1, 'one') RETURNING n, note") == (1, "one")
    connection.rollback()
    cursor.executemany("INSERT INTO written VALUES ('psycopg2', %s, %s)", [(1, "a"), (2, None)])
    psycopg2.extras.execute_values(cursor, "INSERT INTO written VALUES %s", [("psycopg2", n, str(n)) for n in range(3, 6)])
    psycopg2.extras.execute_batch(cursor, "UPDATE written SET note = %s WHERE client = 'psycopg2' AND n = %s", [("x", 1), ("y", 2)])
    connection.commit()
    cursor.execute("SELECT n, note FROM written WHERE client = 'psycopg2' ORDER BY n")
    assert cursor.fetchall() == [(1, "x"), (2, "y"), (3, "3"), (4, "4"), (5, "5")]
    cursor.execute("DELETE FROM written WHERE client = 'psycopg2'")
    assert cursor.rowcount == 5
    connection.commit()
with check("copy_to, copy_from, copy_expert"):
    out = io.StringIO()
    cursor.copy_expert("COPY (SELECT id, customer FROM orders WHERE id < 3 ORDER BY id) TO STDOUT WITH CSV HEADER", out)
    assert out.getvalue() == "id,customer\n1,customer 1\n2,customer 2\n"
    cursor.copy_from(io.StringIO("psycopg2\t1\tone\npsycopg2\t2\t\\N\n"), "written", columns=("client", "n", "note"))
    cursor.copy_expert("COPY written FROM STDIN WITH (FORMAT csv)", io.StringIO('psycopg2,3,"a, ""b"""\n'))
    connection.commit()
    cursor.execute("SELECT n, note FROM written WHERE client = 'psycopg2' ORDER BY n")
    assert cursor.fetchall() == [(1, "one"), (2, None), (3, 'a, "b"')]
    out = io.StringIO()
    cursor.copy_to(out, "written", sep=";", null="none", columns=("n", "note"))
    assert "2;none\n" in out.getvalue()
    cursor.execute("DELETE FROM written WHERE client = 'psycopg2'")
    connection.commit()
with check("notices"):
    connection.rollback()
    connection.autocommit = True
    cursor.execute("DROP TABLE IF EXISTS nobody")
    connection.autocommit = False
    assert any("does not exist, skipping" in notice for notice in connection.notices), connection.notices
with check("cancel from another thread"):
    timer = threading.Timer(0.3, connection.cancel)
    timer.start()
    raises(psycopg2.errors.QueryCanceled, cursor.execute, SLOW)
    timer.join()
    connection.rollback()
with check("statement_timeout through options"):
    with psycopg2.connect("options='-c statement_timeout=200 -c search_path=annex,public'") as other:
        assert other.cursor().execute("SHOW search_path") is None
        raises(psycopg2.errors.QueryCanceled, other.cursor().execute, SLOW)
    other.close()
with check("asynchronous connection"):
    waiting = psycopg2.connect("", async_=1)

    def wait():
        while (state := waiting.poll()) != psycopg2.extensions.POLL_OK:
            read, write = ([waiting], []) if state == psycopg2.extensions.POLL_READ else ([], [waiting])
            assert select.select(read, write, [], 10) != ([], [], []), "no answer"

    wait()
    second_cursor = waiting.cursor()
    second_cursor.execute("SELECT count(*) FROM orders")
    wait()
    assert second_cursor.fetchone() == (1000,)
    waiting.close()
with check("application_name and pg_stat_activity"):
    with psycopg2.connect("application_name=checks") as other:
        second_cursor = other.cursor()
        second_cursor.execute("SELECT application_name, state FROM pg_stat_activity WHERE pid = %s", (other.get_backend_pid(),))
        assert second_cursor.fetchone() == ("checks", "active")
    other.close()
with check("reset"):
    cursor.execute("SET TIME ZONE 'Asia/Tokyo'")
    connection.commit()
    connection.reset()
    assert one("SHOW TimeZone") == ("UTC",)
    connection.rollback()
if TAILGATE:
    with check("a materialized view has what was written"):
        cursor.execute("INSERT INTO orders VALUES (5001, 'psycopg2', 7, now(), true)")
        connection.commit()
        assert one("SELECT orders, amount FROM per_customer WHERE customer = 'psycopg2'")[0] == 1
        connection.rollback()
        cursor.execute("DELETE FROM orders WHERE id = 5001")
        connection.commit()
    with check("TAIL by a cursor"):
        cursor.execute("DECLARE t CURSOR FOR TAIL per_customer")
        cursor.execute("FETCH 10 t WITH (timeout = '2s')")
        assert len(cursor.fetchall()) == 10
        connection.rollback()
connection.close()
done()
