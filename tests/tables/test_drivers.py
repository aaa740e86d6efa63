"""Tables through asyncpg, SQLAlchemy's object mapper, including its CREATE TABLE, and server-side cursors of psycopg."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import psycopg
import pytest
from psycopg import errors

from tests.tables.world import World


def test_asyncpg(world: World) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def work() -> None:
        c = await asyncpg.connect(host="127.0.0.1", port=world.gateways[0].port, user="a", database="b")
        await c.execute("CREATE TABLE t (id int PRIMARY KEY, name text, n numeric(8,2), tags text[])")
        assert await c.execute("INSERT INTO t VALUES ($1, $2, $3, $4)", 1, "a", Decimal("1.5"), ["x", None]) == "INSERT 0 1"
        await c.executemany("INSERT INTO t (id, name) VALUES ($1, $2)", [(i, f"n{i}") for i in range(10, 60)])
        assert await c.fetchval("INSERT INTO t (id) VALUES (100) RETURNING id") == 100
        async with c.transaction():
            await c.execute("UPDATE t SET name = 'tx' WHERE id = $1", 1)
            assert tuple(await c.fetchrow("SELECT * FROM t WHERE id = 1")) == (1, "tx", Decimal("1.50"), ["x", None])
        copied = await c.copy_records_to_table("t", records=[(200, "c", Decimal("2.25"), ["z"]), (201, None, None, None)])
        assert copied == "COPY 2"
        with pytest.raises(asyncpg.UniqueViolationError) as raised:
            await c.execute("INSERT INTO t (id) VALUES (1)")
        assert raised.value.constraint_name == "t_pkey"
        assert await c.fetchval("SELECT count(*) FROM t") == 54
        await c.close()

    asyncio.run(work())


def test_sqlalchemy(world: World) -> None:
    sa = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    metadata = sa.MetaData()
    users = sa.Table(
        "users",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(20), nullable=False, server_default="anon"),
        sa.Column("score", sa.Float),
    )

    class User:
        def __init__(self, **values: object) -> None:
            for name, value in values.items():
                setattr(self, name, value)

    orm.registry(metadata=metadata).map_imperatively(User, users)
    url = f"postgresql+psycopg://a@127.0.0.1:{world.gateways[0].port}/b"
    engine = sa.create_engine(url)
    metadata.create_all(sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool))
    with orm.Session(engine) as session:
        session.add_all([*(User(id=i, name=f"u{i}") for i in range(5)), User(id=10)])
        session.commit()
        session.get(User, 3).score = 2.5
        session.flush()
        assert session.execute(sa.select(sa.func.count()).select_from(users)).scalar() == 6
        assert session.get(User, 10).name == "anon"
        session.delete(session.get(User, 0))
        session.commit()
        assert [(u.id, u.score) for u in session.query(User).order_by(users.c.id)] == [
            (1, None),
            (2, None),
            (3, 2.5),
            (4, None),
            (10, None),
        ]
    assert sa.inspect(engine).get_pk_constraint("users")["constrained_columns"] == ["id"]
    engine.dispose()


def test_rows_of_server_side_cursors_are_changed(world: World) -> None:
    with psycopg.connect(world.dsn) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
        connection.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 250) AS g (i)")
        connection.commit()
        with connection.cursor("each row") as cursor:
            cursor.itersize = 1
            for (id,) in cursor.execute("SELECT id FROM t ORDER BY id FOR UPDATE"):
                if id % 10:
                    continue
                connection.execute(
                    'DELETE FROM t WHERE CURRENT OF "each row"' if id % 20 else 'UPDATE t SET n = -n WHERE CURRENT OF "each row"'
                )
        connection.commit()
        assert connection.execute("SELECT count(*), count(*) FILTER (WHERE n < 0) FROM t").fetchone() == (237, 12)
        with psycopg.connect(world.dsn, autocommit=True) as other:
            connection.execute("DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 1; FETCH 1 FROM c")
            other.execute("UPDATE t SET n = 100 WHERE id = 1")
            connection.execute("UPDATE t SET n = n + 1 WHERE CURRENT OF c")
            with pytest.raises(errors.SerializationFailure):
                connection.commit()


def test_where_current_of_needs_the_primary_key(world: World) -> None:
    with psycopg.connect(world.dsn) as connection:
        connection.execute(
            "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE bag (n int); CREATE TABLE late (id int PRIMARY KEY DEFERRABLE)"
        )
        connection.execute("INSERT INTO t VALUES (1, 1)")
        connection.commit()
        for statement, message in (
            ("UPDATE t SET n = 0 WHERE CURRENT OF c", "whose query does not return the primary key"),
            ("WITH d AS (DELETE FROM t WHERE CURRENT OF c RETURNING *) SELECT * FROM d", "in a WITH whose parts write"),
            ("DELETE FROM bag WHERE CURRENT OF c", "without a primary key"),
            ("DELETE FROM late WHERE CURRENT OF c", "with a deferrable primary key"),
        ):
            connection.execute("DECLARE c CURSOR FOR SELECT n FROM t; FETCH 1 FROM c")
            with pytest.raises(errors.FeatureNotSupported, match=message):
                connection.execute(statement)
            connection.rollback()


def test_columns_of_one_random_row_are_not_assigned_apart(world: World) -> None:
    """Each column is a separate subquery, so each would have another random row."""
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a float8, b float8)")
        connection.execute("INSERT INTO t VALUES (0, 0), (1, 1), (2, 2)")
        for query in ("SELECT r, r FROM (SELECT random() AS r) x", "SELECT a, b FROM t ORDER BY random() LIMIT 1"):
            with pytest.raises(errors.FeatureNotSupported, match="whose rows depend on volatile functions"):
                connection.execute(f"UPDATE t SET (a, b) = ({query})")
        connection.execute("UPDATE t SET (a, b) = (SELECT random(), random())")
        assert connection.execute("SELECT bool_and(a <> b) FROM t").fetchone() == (True,)
