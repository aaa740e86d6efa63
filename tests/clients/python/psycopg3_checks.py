"""Checks psycopg 3: extended protocol in text and binary, pipelines, server-side cursors, COPY, asyncio."""

import asyncio
import contextlib
import datetime
import threading
import uuid
from decimal import Decimal

import psycopg
from psycopg import pq, sql
from psycopg.rows import class_row, dict_row, namedtuple_row, scalar_row
from psycopg.types import TypeInfo
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from tap import SLOW, TAILGATE, check, done, raises, recover, same_kinds

connection = psycopg.connect("")
recover(connection.rollback)


def one(query, values=None, **options):
    return connection.execute(query, values, **options).fetchone()


with check("connects, and says which server it is"):
    assert connection.info.server_version // 10000 == 15
    assert connection.info.parameter_status("integer_datetimes") == "on"
    assert connection.info.encoding == "utf-8"
for binary in (False, True):
    form = "binary" if binary else "text"
    with check(f"every type, {form}"), connection.cursor(binary=binary, row_factory=dict_row) as cursor:
        same_kinds(cursor.execute("SELECT * FROM kinds ORDER BY id").fetchall())
    with check(f"values in all types, {form}"):
        parameters = (
            1, 2**40, 2.5, Decimal("1.10"), "it's \\ ü", True, datetime.date(2026, 1, 2), datetime.time(1, 2), uuid.UUID(int=5),
            b"\x00\xff", datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.timezone.utc), datetime.timedelta(days=1, seconds=2), [1, 2],
        )  # fmt: skip
        holes = ", ".join(["%b" if binary else "%t"] * len(parameters))
        assert connection.cursor(binary=binary).execute(f"SELECT {holes}", parameters).fetchone() == parameters
        assert one("SELECT %s::jsonb, %s::text, %s::int", (Jsonb({"a": [1]}), None, None), binary=binary) == ({"a": [1]}, None, None)
    with check(f"a prepared statement, {form}"):
        for n in range(8):
            result = one("SELECT customer FROM orders WHERE id = %s", (n + 1,), prepare=True, binary=binary)
            assert result == (f"customer {(n + 1) % 10}",)
with check("description"):
    cursor = connection.execute("SELECT * FROM kinds LIMIT 0")
    assert [(c.name, c.type_code) for c in cursor.description][:3] == [("id", 23), ("a_boolean", 16), ("a_smallint", 21)]
    numeric = cursor.description[7]
    assert (numeric.precision, numeric.scale, cursor.description[9].display_size) == (12, 3, 20)
with check("rows as dictionaries, named tuples, classes, scalars"):
    assert connection.cursor(row_factory=dict_row).execute("SELECT 1 AS a").fetchone() == {"a": 1}
    assert connection.cursor(row_factory=namedtuple_row).execute("SELECT 1 AS a").fetchone().a == 1
    assert connection.cursor(row_factory=scalar_row).execute("SELECT id FROM orders ORDER BY id").fetchmany(2) == [1, 2]
    assert connection.cursor(row_factory=class_row(dict)).execute("SELECT 1 AS a").fetchone() == {"a": 1}
with check("several results of one execute"):
    cursor = connection.execute("SELECT 1; SELECT 2")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.fetchall() == [(2,)]
    assert not cursor.nextset()
with check("ANY of a list, LIMIT and OFFSET as values, LIKE"):
    assert one("SELECT count(*) FROM orders WHERE id = ANY(%s)", ([1, 2, 3],)) == (3,)
    assert one("SELECT id FROM orders ORDER BY id LIMIT %s OFFSET %s", (1, 5)) == (6,)
    assert one("SELECT count(*) FROM orders WHERE customer LIKE %s", ("%3",)) == (100,)
with check("composed SQL"):
    assert one(sql.SQL("SELECT {} FROM {} WHERE id = {}").format(sql.Identifier("id"), sql.Identifier("public", "orders"), 5)) == (5,)
with check("client-side cursor"):
    assert psycopg.ClientCursor(connection).execute("SELECT %s, %s", (1, "a'b")).fetchone() == (1, "a'b")
with check("classes of errors, diagnostics"):
    for query, kind in {
        "SELECT * FROM nobody": psycopg.errors.UndefinedTable,
        "SELECT nosuch FROM orders": psycopg.errors.UndefinedColumn,
        "SELECT 1/0": psycopg.errors.DivisionByZero,
        "SELEC 1": psycopg.errors.SyntaxError,
        "INSERT INTO orders VALUES (1, 'x', 1, now(), true)": psycopg.errors.UniqueViolation,
        "INSERT INTO orders (id) VALUES (-1)": psycopg.errors.NotNullViolation,
    }.items():
        connection.rollback()
        error = raises(kind, connection.execute, query)
        assert error.diag.severity_nonlocalized == "ERROR"
    assert error.diag.column_name == "customer"
    assert error.diag.table_name == "orders"
    raises(psycopg.errors.InFailedSqlTransaction, connection.execute, "SELECT 1")
    connection.rollback()
with check("nested transactions"):
    with connection.transaction():
        try:
            with connection.transaction("inner"):
                connection.execute("SELECT 1/0")
        except psycopg.errors.DivisionByZero:
            pass
        assert one("SELECT 5") == (5,)
    connection.rollback()
with check("pipeline: many statements, one round trip"):
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", (n,)) for n in range(50)]
    assert [c.fetchone() for c in cursors] == [(n,) for n in range(50)]
    connection.rollback()
with check("pipeline: an error ends it, what is behind is aborted"), psycopg.connect("", autocommit=True) as other:
    # leaving the pipeline raises it again if the third statement was sent before the second had
    # failed
    with contextlib.suppress(psycopg.errors.PipelineAborted), other.pipeline() as pipeline:
        cursors = [other.cursor() for _ in range(3)]
        try:
            for cursor, query in zip(cursors, ("SELECT 1", "SELECT 1/0", "SELECT 2"), strict=True):
                cursor.execute(query)
            pipeline.sync()
            raise AssertionError("no error")
        except psycopg.errors.DivisionByZero:
            pass
    assert cursors[0].fetchone() == (1,)
    assert other.execute("SELECT 3").fetchone() == (3,)
with check("a server-side cursor"):
    with connection.cursor(name="numbers") as server:
        server.itersize = 100
        server.execute("SELECT id FROM orders WHERE id > %s ORDER BY id", (0,))
        assert [c.name for c in server.description] == ["id"]
        assert server.fetchmany(2) == [(1,), (2,)]
        assert sum(row[0] for row in server) == 500500 - 3
    connection.commit()
with check("a server-side cursor in binary"):
    with connection.cursor(name="b", binary=True) as server:
        server.execute("SELECT amount, placed FROM orders ORDER BY id")
        assert server.fetchone() == (Decimal("1.25"), datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.timezone.utc))
    connection.commit()
with check("a server-side cursor that scrolls"):
    with connection.cursor(name="s", scrollable=True) as server:
        server.execute("SELECT id FROM orders ORDER BY id")
        server.scroll(10)
        assert server.fetchone() == (11,)
        server.scroll(-5)
        assert server.fetchone() == (7,)
        server.scroll(500, mode="absolute")
        assert server.fetchone() == (501,)
    connection.commit()
with check("a server-side cursor WITH HOLD"):
    held = connection.cursor(name="h", withhold=True)
    held.execute("SELECT id FROM orders ORDER BY id")
    connection.commit()
    assert held.fetchmany(2) == [(1,), (2,)]
    held.close()
    connection.commit()
with check("a server-side cursor over one that was declared by hand"):
    connection.execute("DECLARE mine CURSOR FOR SELECT id FROM orders ORDER BY id")
    stolen = connection.cursor("mine")
    assert stolen.fetchone() == (1,)
    connection.rollback()
with check("stream: row by row, and in pieces"):
    with connection.cursor() as cursor:
        assert sum(row[0] for row in cursor.stream("SELECT id FROM orders WHERE id <= %s", (100,))) == 5050
        assert sum(row[0] for row in cursor.stream("SELECT id FROM orders", size=100, binary=True)) == 500500
    connection.rollback()
with check("writes: RETURNING, executemany with returning, rowcount"):
    connection.execute("DELETE FROM written WHERE client = 'psycopg3'")
    assert one("INSERT INTO written VALUES ('psycopg3', 1, 'one') RETURNING n, note") == (1, "one")
    connection.rollback()
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO written VALUES ('psycopg3', %s, %s) RETURNING n", [(n, str(n)) for n in range(1, 6)], returning=True)
    returned = [cursor.fetchone()]
    while cursor.nextset():
        returned.append(cursor.fetchone())
    assert returned == [(n,) for n in range(1, 6)]
    connection.commit()
    cursor.execute("UPDATE written SET note = %s WHERE client = 'psycopg3' AND n > %s", ("x", 3))
    assert cursor.rowcount == 2
    connection.commit()
    cursor.execute("DELETE FROM written WHERE client = 'psycopg3'")
    assert cursor.rowcount == 5
    connection.commit()
with check("COPY out: text, csv, binary, rows"):
    cursor = connection.cursor()
    with cursor.copy("COPY (SELECT id, customer FROM orders WHERE id <= %s ORDER BY id) TO STDOUT", (2,)) as copy:
        assert b"".join(copy) == b"1\tcustomer 1\n2\tcustomer 2\n"
    with cursor.copy("COPY (SELECT id, amount, placed FROM orders ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int8", "numeric", "timestamptz"])
        rows = list(copy.rows())
    assert len(rows) == 1000
    assert rows[0] == (1, Decimal("1.25"), datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.timezone.utc))
with check("COPY in: text and binary"):
    cursor = connection.cursor()
    with cursor.copy("COPY written FROM STDIN") as copy:
        for n in range(1, 4):
            copy.write_row(("psycopg3", n, None if n == 2 else f"a\tb\\{n}"))
    with cursor.copy("COPY written FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["text", "int4", "text"])
        copy.write_row(("psycopg3", 4, "binary"))
    connection.commit()
    result = connection.execute("SELECT n, note FROM written WHERE client = 'psycopg3' ORDER BY n").fetchall()
    assert result == [(1, "a\tb\\1"), (2, None), (3, "a\tb\\3"), (4, "binary")]
    connection.execute("DELETE FROM written WHERE client = 'psycopg3'")
    connection.commit()
with check("COPY in that is given up"):

    def give_up():
        with connection.cursor().copy("COPY written FROM STDIN") as copy:
            copy.write_row(("psycopg3", 1, "x"))
            raise ZeroDivisionError

    raises(ZeroDivisionError, give_up)
    connection.rollback()
    assert one("SELECT count(*) FROM written WHERE client = 'psycopg3'") == (0,)
with check("TypeInfo"):
    info = TypeInfo.fetch(connection, "jsonb")
    assert (info.oid, info.array_oid) == (3802, 3807)
    assert TypeInfo.fetch(connection, "nosuch") is None
    connection.rollback()
with check("isolation level, read only, autocommit"):
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    assert one("SHOW transaction_isolation") == ("repeatable read",)
    connection.rollback()
    connection.isolation_level, connection.read_only = None, True
    raises(psycopg.errors.ReadOnlySqlTransaction, connection.execute, "DELETE FROM written")
    connection.rollback()
    connection.read_only = None
    connection.autocommit = True
    assert connection.info.transaction_status == pq.TransactionStatus.IDLE
    connection.autocommit = False
with check("cancel"):
    threading.Timer(0.3, connection.cancel_safe).start()
    raises(psycopg.errors.QueryCanceled, connection.execute, SLOW)
    connection.rollback()
with check("notices"):
    notices = []
    connection.add_notice_handler(lambda diag: notices.append((diag.severity, diag.message_primary)))
    connection.autocommit = True
    connection.execute("DROP TABLE IF EXISTS nobody")
    connection.autocommit = False
    assert notices == [("NOTICE", 'table "nobody" does not exist, skipping')]
    connection.rollback()
with check("a pool"), ConnectionPool("", min_size=2, max_size=4, open=True) as pool:
    pool.wait()
    with pool.connection() as pooled:
        assert pooled.execute("SELECT count(*) FROM orders").fetchone() == (1000,)
    pool.check()


async def asynchronous():
    with check("asyncio: queries, pipeline, server-side cursor, COPY, cancel"):
        async with await psycopg.AsyncConnection.connect("") as other:
            assert await (await other.execute("SELECT count(*) FROM orders WHERE id > %s", (10,))).fetchone() == (990,)
            async with other.pipeline():
                cursors = [await other.execute("SELECT %s::int", (n,)) for n in range(5)]
            assert [await c.fetchone() for c in cursors] == [(n,) for n in range(5)]
            async with other.cursor("server") as server:
                await server.execute("SELECT id FROM orders ORDER BY id")
                assert [row async for row in server][:2] == [(1,), (2,)]
            async with other.cursor().copy("COPY (SELECT 1) TO STDOUT") as copy:
                assert [bytes(data) async for data in copy] == [b"1\n"]
            asyncio.get_running_loop().call_later(0.3, lambda: asyncio.ensure_future(other.cancel_safe()))
            try:
                await other.execute(SLOW)
                raise AssertionError("not cancelled")
            except psycopg.errors.QueryCanceled:
                await other.rollback()
    with check("asyncio: a pool, many at once"):
        async with AsyncConnectionPool("", min_size=4, max_size=8, open=False) as pool:

            async def ask(n):
                async with pool.connection() as pooled:
                    return (await (await pooled.execute("SELECT %s::int", (n,))).fetchone())[0]

            assert await asyncio.gather(*(ask(n) for n in range(40))) == list(range(40))


asyncio.run(asynchronous())
if TAILGATE:
    with check("a block reads at one time"):
        before = one("SELECT count(*) FROM orders")
        with psycopg.connect("", autocommit=True) as other:
            other.execute("INSERT INTO orders VALUES (5003, 'psycopg3', 7, now(), true)")
            assert one("SELECT count(*) FROM orders") == before
            connection.rollback()
            assert one("SELECT orders FROM per_customer WHERE customer = 'psycopg3'") == (1,)
            connection.rollback()
            other.execute("DELETE FROM orders WHERE id = 5003")
    with check("TAIL by stream"), psycopg.connect("", autocommit=True) as other:
        rows = other.cursor().stream("TAIL per_customer")
        assert sum(next(rows)[1] for _ in range(10)) == 10
        with psycopg.connect("", autocommit=True) as writer:
            writer.execute("INSERT INTO orders VALUES (5004, 'streamed', 7, now(), true)")
            assert next(rows)[1:3] == (1, "streamed")
            writer.execute("DELETE FROM orders WHERE id = 5004")
            assert next(rows)[1:3] == (-1, "streamed")
        other.cancel_safe()
        raises(psycopg.errors.QueryCanceled, list, rows)
connection.close()
done()
