"""Checks asyncpg, which prepares every statement, uses binary formats and reads types from the catalog."""

import asyncio
import io
from datetime import timedelta
from decimal import Decimal

import asyncpg
from tap import SLOW, TAILGATE, check, done, same_kinds


async def fails(kind, awaitable):
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


async def main():
    connection = await asyncpg.connect()
    with check("connects, and says which server it is"):
        assert connection.get_server_version()[0] == 15
        assert connection.get_settings().client_encoding.lower().replace("-", "") == "utf8"
    with check("every type"):
        rows = [dict(row) for row in await connection.fetch("SELECT * FROM kinds ORDER BY id")]
        same_kinds(rows, without=("a_jsonb", "an_interval"))
        assert [row["a_jsonb"] for row in rows[1:]] == ["[]", None, '"text"']
        assert rows[1]["an_interval"] == timedelta(days=-1)
    with check("a codec of its own: jsonb"):
        import json

        other = await asyncpg.connect()
        await other.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        assert (await other.fetchval("SELECT a_jsonb FROM kinds WHERE id = 1"))["b"] == "ü"
        assert await other.fetchval("SELECT $1::jsonb", {"a": [1, None]}) == {"a": [1, None]}
        await other.close()
    with check("values in all types"):
        row = await connection.fetchrow("SELECT * FROM kinds WHERE id = 1")
        casts = [
            "int", "boolean", "smallint", "int", "bigint", "real", "double precision", "numeric", "text", "varchar", "char(5)",
            "bytea", "date", "time", "timestamp", "timestamptz", "interval", "uuid", "jsonb", "int[]", "text[]",
        ]  # fmt: skip
        holes = ", ".join(f"${n}::{cast}" for n, cast in enumerate(casts, 1))
        assert tuple(await connection.fetchrow(f"SELECT {holes}", *row)) == tuple(row)
        assert tuple(await connection.fetchrow(f"SELECT {holes}", *[None] * 21)) == (None,) * 21
    with check("types of parameters that nothing says"):
        statement = await connection.prepare("SELECT id FROM orders WHERE amount > $1 AND customer = $2 ORDER BY placed LIMIT $3")
        assert [p.name for p in statement.get_parameters()] == ["numeric", "text", "int8"]
        assert [a.type.name for a in statement.get_attributes()] == ["int8"]
        assert [row["id"] for row in await statement.fetch(Decimal(100), "customer 3", 2)] == [83, 93]
    with check("fetchval, fetchrow, fetch of nothing"):
        assert await connection.fetchval("SELECT count(*) FROM orders WHERE id = ANY($1)", [1, 2, 3]) == 3
        assert await connection.fetchrow("SELECT 1 WHERE false") is None
        assert await connection.fetch("SELECT id FROM orders WHERE id < 0") == []
    with check("introspection of array types"):
        assert await connection.fetchval("SELECT ARRAY['a', 'b']::name[]") == ["a", "b"]
        assert await connection.fetchval("SELECT $1::numeric[]", [Decimal("1.5"), None]) == [Decimal("1.5"), None]
        assert await connection.fetchval("SELECT array_agg(placed ORDER BY id) FROM orders WHERE id < 3") is not None
    with check("status of commands, executemany"):
        assert (await connection.execute("DELETE FROM written WHERE client = 'asyncpg'")).startswith("DELETE")
        await connection.executemany(
            "INSERT INTO written VALUES ('asyncpg', $1, $2)", [(n, None if n == 2 else str(n)) for n in range(1, 6)]
        )
        assert await connection.execute("UPDATE written SET note = 'x' WHERE client = $1 AND n > $2", "asyncpg", 3) == "UPDATE 2"
        assert await connection.fetchval("INSERT INTO written VALUES ('asyncpg', 9, 'nine') RETURNING note") == "nine"
        written_rows = await connection.fetch("SELECT n, note FROM written WHERE client = 'asyncpg' ORDER BY n")
        assert [tuple(row) for row in written_rows] == [(1, "1"), (2, None), (3, "3"), (4, "x"), (5, "x"), (9, "nine")]
        assert await connection.execute("DELETE FROM written WHERE client = 'asyncpg'") == "DELETE 6"
    with check("many statements in one execute"):
        assert await connection.execute("SELECT 1; SELECT 2; SHOW TimeZone") == "SHOW"
    with check("transactions: rollback, savepoints, isolation, read only"):
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("INSERT INTO written VALUES ('asyncpg', 1, 'gone')")
        await transaction.rollback()
        assert await connection.fetchval("SELECT count(*) FROM written WHERE client = 'asyncpg'") == 0
        async with connection.transaction(isolation="serializable", readonly=True, deferrable=True):
            assert await connection.fetchval("SHOW transaction_isolation") == "serializable"
            await fails(asyncpg.ReadOnlySQLTransactionError, nested(connection, "DELETE FROM written"))
            assert await connection.fetchval("SELECT 5") == 5
    with check("errors: classes, fields, and the connection goes on"):
        for query, kind in {
            "SELECT * FROM nobody": asyncpg.UndefinedTableError,
            "SELECT nosuch FROM orders": asyncpg.UndefinedColumnError,
            "SELECT 1/0": asyncpg.DivisionByZeroError,
            "SELEC 1": asyncpg.PostgresSyntaxError,
            "INSERT INTO orders VALUES (1, 'x', 1, now(), true)": asyncpg.UniqueViolationError,
            "INSERT INTO orders (id) VALUES (-1)": asyncpg.NotNullViolationError,
        }.items():
            error = await fails(kind, connection.fetch(query))
        assert (error.column_name, error.table_name, error.schema_name) == ("customer", "orders", "public")
        error = await fails(asyncpg.UndefinedColumnError, connection.fetch("SELECT nosuch FROM orders"))
        assert error.position == "8"
        await fails(asyncpg.DataError, connection.fetch("SELECT $1::int", "text"))
        await fails(asyncpg.InterfaceError, connection.fetch("SELECT $1::int"))
    with check("cursors: iteration, fetch, forward"):
        async with connection.transaction():
            assert sum([row["id"] async for row in connection.cursor("SELECT id FROM orders ORDER BY id", prefetch=64)]) == 500500
            cursor = await connection.cursor("SELECT id FROM orders WHERE id > $1 ORDER BY id", 10)
            assert await cursor.forward(5) == 5
            assert (await cursor.fetchrow())["id"] == 16
            assert len(await cursor.fetch(2000)) == 984
    with check("COPY out: of a query, of a table"):
        out = io.BytesIO()
        assert (
            await connection.copy_from_query("SELECT id, customer FROM orders WHERE id <= $1 ORDER BY id", 2, output=out, format="csv")
            == "COPY 2"
        )
        assert out.getvalue() == b"1,customer 1\n2,customer 2\n"
        out = io.BytesIO()
        assert await connection.copy_from_table("orders", columns=["id"], output=out, format="binary") == "COPY 1000"
        assert out.getvalue().startswith(b"PGCOPY\n")
    with check("COPY in: records in binary, csv"):
        records = [("asyncpg", n, None if n == 2 else f"note {n}") for n in range(1, 101)]
        assert await connection.copy_records_to_table("written", records=records) == "COPY 100"
        source = io.BytesIO(b'asyncpg,101,"a, ""b"""\n')
        assert await connection.copy_to_table("written", source=source, columns=["client", "n", "note"], format="csv") == "COPY 1"
        assert await connection.fetchval("SELECT note FROM written WHERE client = 'asyncpg' AND n = 101") == 'a, "b"'
        assert await connection.execute("DELETE FROM written WHERE client = 'asyncpg'") == "DELETE 101"
    with check("a timeout cancels"):
        await fails(asyncio.TimeoutError, connection.fetch(SLOW, timeout=0.3))
        assert await connection.fetchval("SELECT 1") == 1
    with check("statement_timeout"):
        other = await asyncpg.connect(server_settings={"statement_timeout": "200", "application_name": "checks"})
        assert await other.fetchval("SHOW application_name") == "checks"
        await fails(asyncpg.QueryCanceledError, other.fetch(SLOW))
        await other.close()
    with check("log messages"):
        messages = []
        connection.add_log_listener(lambda _, message: messages.append(message.message))
        await connection.execute("DROP TABLE IF EXISTS nobody")
        await asyncio.sleep(0)
        assert messages == ['table "nobody" does not exist, skipping']
    with check("a cached statement sees a recreated table"):
        await connection.execute("CREATE TABLE asyncpg_anew (a int)")
        assert await connection.fetch("SELECT * FROM asyncpg_anew") == []
        await connection.execute("DROP TABLE asyncpg_anew")
        await connection.execute("CREATE TABLE asyncpg_anew (a text, b int)")
        await connection.reload_schema_state()
        assert await connection.fetch("SELECT * FROM asyncpg_anew") == []
        await connection.execute("DROP TABLE asyncpg_anew")
    with check("a pool: reset between users"):
        async with asyncpg.create_pool(min_size=2, max_size=5) as pool:

            async def ask(n):
                async with pool.acquire() as pooled:
                    await pooled.execute("SET TIME ZONE 'Asia/Tokyo'")
                    return await pooled.fetchval("SELECT $1::int", n)

            assert await asyncio.gather(*(ask(n) for n in range(40))) == list(range(40))
            assert await pool.fetchval("SHOW TimeZone") == "UTC"
    if TAILGATE:
        with check("TAIL by a cursor"):
            async with connection.transaction():
                cursor = await connection.cursor("TAIL per_customer")
                assert len(await cursor.fetch(10)) == 10
        with check("TAIL as COPY"):
            pieces = asyncio.Queue()

            async def put(data):
                await pieces.put(bytes(data))

            follower = await asyncpg.connect()
            task = asyncio.ensure_future(follower.copy_from_query("TAIL per_customer WITH (SNAPSHOT = false)", output=put))
            await asyncio.sleep(0.3)
            await connection.execute("INSERT INTO orders VALUES (5005, 'copied', 7, now(), true)")
            assert b"\t1\tcopied\t1\t" in await asyncio.wait_for(pieces.get(), 10)
            await connection.execute("DELETE FROM orders WHERE id = 5005")
            task.cancel()
            follower.terminate()
    await connection.close()
    done()


async def nested(connection, query):
    async with connection.transaction():
        await connection.execute(query)


asyncio.run(main())
