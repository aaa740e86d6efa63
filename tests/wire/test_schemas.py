"""Tests that the meaning of a name depends on the session.

The tests cover search_path, temporary views, privileges of schemas, and caches that sessions share.
"""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from tailgate.lake.catalog import Change
from tailgate.lake.catalog.schemas import Schema
from tests.wire.live import Live
from tests.wire.statements import Statements


@pytest.fixture
def two(live: Live, statements: Statements) -> Live:
    """Creates a second `v`, with two rows, in the schema s; that of public has four."""
    model = live.model
    schema = Schema(model.writer.catalog.next_id, "s")
    model.writer.append(kind="catalog", catalog=Change(put_schemas=(schema,)))
    other = model.create("v", schema=schema.id)
    time = model.tick({other.id: [((10, "ten", 1.0), 1), ((11, "eleven", 2.0), 1)]})
    live.call(live.serving.progress.wait(time - 1, 10))
    return live


def connect(live: Live, path: str = "") -> psycopg.Connection:
    connection = psycopg.connect(live.dsn, autocommit=True)
    if path:
        connection.execute(f"SET search_path = {path}")  # type: ignore[call-overload]
    return connection


def test_each_session_has_its_own_answer(two: Live) -> None:
    """Equal texts use polls, look-ups by key and prepared statements, which share caches."""
    with connect(two) as here, connect(two, "s, public") as second, connect(two, "nothing") as nowhere:
        for _ in range(30):
            assert here.execute("SELECT count(*) FROM v").fetchone() == (4,)
            assert second.execute("SELECT count(*) FROM v").fetchone() == (2,)
            assert here.execute("SELECT name FROM v WHERE id = 10").fetchall() == []
            assert second.execute("SELECT name FROM v WHERE id = 10").fetchall() == [("ten",)]
            assert here.execute("SELECT name FROM v WHERE id = %s", (1,), prepare=True).fetchall() == [("name 1",)]
            assert second.execute("SELECT name FROM v WHERE id = %s", (1,), prepare=True).fetchall() == []
            with pytest.raises(errors.UndefinedTable):
                nowhere.execute("SELECT count(*) FROM v")
            assert nowhere.execute("SELECT count(*) FROM s.v").fetchone() == (2,)
        two.tick([((20, "new", 0.0), 1)])
        assert here.execute("SELECT count(*) FROM v").fetchone() == (5,)
        assert second.execute("SELECT count(*) FROM v").fetchone() == (2,)


def test_a_prepared_statement_follows_the_search_path(two: Live) -> None:
    with connect(two) as connection:
        ask = "SELECT count(*) FROM v WHERE id > %s"
        assert connection.execute(ask, (0,), prepare=True).fetchone() == (3,)
        connection.execute("SET search_path = s")
        assert connection.execute(ask, (0,), prepare=True).fetchone() == (2,)
        with connection.transaction():
            connection.execute("SET LOCAL search_path = public")
            assert connection.execute(ask, (0,), prepare=True).fetchone() == (3,)
        assert connection.execute(ask, (0,), prepare=True).fetchone() == (2,)


def test_the_start_up_may_name_a_path(two: Live) -> None:
    with psycopg.connect(two.dsn, autocommit=True, options="-c search_path=s") as connection:
        assert connection.execute("SELECT count(*) FROM v").fetchone() == (2,)
        connection.execute("SET search_path = public")
        connection.execute("RESET search_path")
        assert connection.execute("SHOW search_path").fetchone() == ("s",)
    with pytest.raises(psycopg.OperationalError, match="invalid value for parameter"):
        psycopg.connect(two.dsn, options="-c search_path=s,,s")


def test_changes_of_the_meaning_of_the_search_path(two: Live) -> None:
    with connect(two, "s") as connection, connection.cursor() as cursor:
        rows = cursor.stream("TAIL v WITH (SNAPSHOT)")
        assert sorted(next(rows)[2] for _ in range(2)) == [10, 11]
        rows.close()
    with connect(two, "s") as connection, connection.cursor() as cursor:
        rows = cursor.stream("SUBSCRIBE (SELECT id FROM v)")
        assert sorted(next(rows)[2] for _ in range(2)) == [10, 11]
        rows.close()


def test_user_schema(two: Live) -> None:
    """$user is the schema with the name of the session's role."""
    with connect(two) as connection:
        connection.execute("CREATE SCHEMA ann")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 AS one")
        assert connection.execute("SELECT current_schemas(true)").fetchone() == (["pg_catalog", "ann", "public"],)
        assert connection.execute("SELECT schemaname FROM pg_matviews WHERE matviewname = 'v' ORDER BY 1").fetchall() == [
            ("ann",), ("public",), ("s",)
        ]  # fmt: skip
        assert connection.execute("SHOW OBJECTS").fetchall() == [("v", "materialized view"), ("v_errors", "view errors")]
        assert connection.execute("SHOW OBJECTS FROM s").fetchall() == [("v", "materialized view")]
        with pytest.raises(errors.InvalidSchemaName):
            connection.execute("SHOW OBJECTS FROM nothing")


def test_every_way_of_reading_takes_the_path(two: Live) -> None:
    with connect(two, "s") as connection, connection.cursor() as cursor:
        with cursor.copy("COPY v (id) TO STDOUT") as copy:
            assert sorted(b"".join(copy).split()) == [b"10", b"11"]
        with cursor.copy("COPY (SELECT count(*) FROM v) TO STDOUT") as copy:
            assert b"".join(copy) == b"2\n"
        with connection.transaction():
            cursor.execute("DECLARE c CURSOR FOR SELECT id FROM v ORDER BY id")
            assert cursor.execute("FETCH ALL c").fetchall() == [(10,), (11,)]
            cursor.execute("DECLARE d CURSOR FOR TAIL v WITH (SNAPSHOT)")
            assert len(cursor.execute("FETCH 2 d").fetchall()) == 2
        assert cursor.execute("EXPLAIN SELECT id FROM v").fetchall()[-1] == ("└─ Scan: v",)
        assert cursor.execute("SHOW COLUMNS FROM v").fetchall()[0][0] == "id"
        assert cursor.execute("TABLE v").fetchall() == cursor.execute("TABLE s.v").fetchall()
        assert cursor.execute("WITH w AS (SELECT id FROM v) SELECT max(id) FROM w").fetchone() == (11,)
        assert cursor.execute("SELECT (SELECT max(id) FROM v), EXISTS (SELECT FROM public.v WHERE id = 1)").fetchone() == (11, True)
        assert cursor.execute("SELECT 'v'::regclass::oid = 's.v'::regclass::oid").fetchone() == (True,)
        time = two.serving.progress.time
        assert cursor.execute(f"SELECT count(*) FROM v AS OF {time}").fetchone() == (2,)  # type: ignore[call-overload]
        with pytest.raises(errors.UndefinedTable, match=r"nowhere\.v"):
            cursor.execute("COPY nowhere.v TO STDOUT")


# --- temporary views


def test_a_temporary_view_is_its_sessions(two: Live) -> None:
    with connect(two) as one, connect(two) as another:
        one.execute("CREATE TEMPORARY VIEW v AS SELECT id FROM v WHERE id < 2")
        one.execute("CREATE VIEW w AS SELECT max(id) AS id FROM v")
        for _ in range(3):
            assert one.execute("SELECT count(*) FROM v").fetchone() == (2,)
            assert another.execute("SELECT count(*) FROM v").fetchone() == (4,)
            assert one.execute("SELECT * FROM w").fetchall() == [(1,)]
            with pytest.raises(errors.UndefinedTable):
                another.execute("SELECT * FROM w")
        assert one.execute("SELECT count(*) FROM public.v").fetchone() == (4,)
        ((own,),) = one.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()").fetchall()
        one.execute(f"CREATE VIEW {own}.x AS SELECT 1 AS x")  # type: ignore[call-overload]
        assert one.execute("SELECT * FROM pg_temp.x").fetchone() == (1,)
        assert one.execute("SHOW SCHEMAS").fetchall() == another.execute("SHOW SCHEMAS").fetchall()
        two.tick([((-1, None, None), 1)])
        assert one.execute("SELECT count(*) FROM v").fetchone() == (3,)
        assert one.execute("SELECT relpersistence FROM pg_class WHERE relname = 'w'").fetchone() == ("t",)
        assert another.execute("SELECT count(*) FROM pg_class WHERE relname = 'w'").fetchone() == (0,)
        with one.cursor() as cursor:
            rows = cursor.stream("TAIL w WITH (SNAPSHOT)")
            assert next(rows)[2] == 1
            rows.close()
    with connect(two) as again, pytest.raises(errors.UndefinedTable):
        again.execute("SELECT * FROM w")


def test_an_engine_hears_nothing_of_temporary_relations(two: Live, statements: Statements) -> None:
    with connect(two) as connection:
        before = len(statements.seen)
        connection.execute("CREATE TEMP VIEW a AS SELECT 1 AS x")
        connection.execute("CREATE OR REPLACE TEMP VIEW a AS SELECT 2 AS x, 3 AS y")
        connection.execute("CREATE TEMP VIEW b AS TABLE a")
        connection.execute("ALTER VIEW a RENAME TO c")
        assert connection.execute("SELECT * FROM b").fetchall() == [(2, 3)] or connection.execute("SELECT x FROM b").fetchall() == [(2,)]
        connection.execute("DROP VIEW c CASCADE")
        connection.execute("CREATE TEMP VIEW a AS SELECT 1 AS x")
        connection.execute("DISCARD ALL")
        connection.execute("CREATE TEMP VIEW a AS SELECT 1 AS x")
        assert len(statements.seen) == before
        connection.execute("CREATE VIEW durable AS SELECT id FROM v")
        assert [resolution.path for _, resolution in statements.seen[before:]] == [("public",)]


def test_a_temporary_view_follows_the_relations_that_it_reads(two: Live) -> None:
    with connect(two) as connection, connect(two) as another:
        connection.execute("CREATE TEMP VIEW few AS SELECT v.id FROM v WHERE public.v.id < 2")
        connection.execute("CREATE TEMP VIEW fewer AS SELECT * FROM few LIMIT 1")
        another.execute("CREATE MATERIALIZED VIEW base AS SELECT 7 AS x")
        connection.execute("CREATE TEMP VIEW of_base AS TABLE base")
        assert connection.execute("SELECT count(*) FROM of_base").fetchone() == (0,)
        another.execute("ALTER MATERIALIZED VIEW base SET SCHEMA s")
        another.execute("ALTER MATERIALIZED VIEW s.base RENAME TO ground")
        assert connection.execute("SELECT count(x) FROM of_base").fetchone() == (0,)
        assert connection.execute("SELECT pg_get_viewdef('of_base'::regclass)").fetchone() == (" TABLE s.ground;",)
        another.execute("DROP MATERIALIZED VIEW s.ground")
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT * FROM of_base")
        assert connection.execute("SELECT count(*) FROM fewer").fetchone() == (1,)
        with pytest.raises(errors.DependentObjectsStillExist) as error:
            connection.execute("DROP MATERIALIZED VIEW v")
        assert error.value.diag.message_detail == "view few depends on materialized view v\nview fewer depends on view few"


def test_in_a_block(two: Live) -> None:
    """A ROLLBACK undoes a block's changes of temporary views, and keeps other sessions' changes."""
    with connect(two) as connection, connect(two) as another:
        connection.execute("CREATE TEMP VIEW old AS SELECT 1 AS x")
        another.execute("CREATE MATERIALIZED VIEW base AS SELECT 7 AS x")
        connection.execute("CREATE TEMP VIEW of_base AS TABLE base")
        with connection.transaction(force_rollback=True):
            connection.execute("CREATE TEMP VIEW young AS SELECT 2 AS x")
            connection.execute("CREATE OR REPLACE TEMP VIEW old AS SELECT 3 AS x")
            connection.execute("DROP VIEW of_base")
            assert connection.execute("SELECT old.x, young.x FROM old, young").fetchone() == (3, 2)
            another.execute("ALTER MATERIALIZED VIEW base RENAME TO ground")
        assert connection.execute("SELECT x FROM old").fetchone() == (1,)
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT * FROM young")
        assert connection.execute("SELECT count(*) FROM of_base").fetchone() == (0,)
        connection.execute("BEGIN")
        connection.execute("CREATE TEMP VIEW young AS SELECT 2 AS x")
        with pytest.raises(errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        connection.execute("COMMIT")
        with connection.transaction():
            connection.execute("CREATE TEMP VIEW young AS SELECT 4 AS x")
        assert connection.execute("SELECT x FROM young").fetchone() == (4,)
        with connection.transaction(force_rollback=True):
            connection.execute("CREATE VIEW durable AS SELECT 1 AS x")
            assert connection.execute("SELECT durable.x, young.x FROM durable, young").fetchone() == (1, 4)
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT * FROM durable")
        with connection.transaction():
            with connection.transaction(force_rollback=True):
                connection.execute("DROP VIEW young")
                connection.execute("CREATE TEMP VIEW younger AS SELECT 5 AS x")
            assert connection.execute("SELECT x FROM young").fetchone() == (4,)
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT * FROM younger")


# --- privileges


def test_privileges_of_schemas(two: Live) -> None:
    with connect(two) as operator:
        operator.execute("CREATE ROLE ann LOGIN SUPERUSER")
        operator.execute("CREATE ROLE bob LOGIN")
        operator.execute("GRANT SELECT ON s.v, public.v TO bob")
        operator.execute("SET search_path = s, public")
        operator.execute("SET ROLE bob")
        assert operator.execute("SELECT count(*) FROM v").fetchone() == (4,)  # without USAGE on s, the path omits it
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema s"):
            operator.execute("SELECT * FROM s.v")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for database"):
            operator.execute("CREATE SCHEMA mine")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema s"):
            operator.execute("CREATE VIEW s.mine AS SELECT 1 AS x")
        operator.execute("RESET ROLE")
        operator.execute("GRANT USAGE, CREATE ON SCHEMA s TO bob")
        operator.execute("CREATE SCHEMA bobs AUTHORIZATION bob")
        operator.execute("SET ROLE bob")
        assert operator.execute("SELECT count(*) FROM v").fetchone() == (2,)
        operator.execute("CREATE VIEW mine AS SELECT id FROM v")
        operator.execute("CREATE VIEW bobs.mine AS SELECT id FROM v")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema public"):
            operator.execute("ALTER VIEW mine SET SCHEMA public")
        assert operator.execute("SELECT has_schema_privilege('s', 'USAGE'), has_schema_privilege('public', 'CREATE')").fetchone() == (
            True,
            False,
        )
        assert operator.execute("SELECT nspacl, nspacl::text FROM pg_namespace WHERE nspname = 's'").fetchone() == (
            ["tailgate=UC/tailgate", "bob=UC/tailgate"],
            "{tailgate=UC/tailgate,bob=UC/tailgate}",
        )
        with pytest.raises(errors.InsufficientPrivilege, match="must be owner of schema s"):
            operator.execute("ALTER SCHEMA s RENAME TO other")
        operator.execute("RESET ROLE")
        with pytest.raises(errors.DependentObjectsStillExist) as error:
            operator.execute("DROP ROLE bob")
        assert "owner of schema bobs" in str(error.value.diag.message_detail)
