"""DO: notices, the context of errors, both protocols, and the parts of PL/pgSQL that are refused by name. `do.sql` compares the effects."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tailgate.gateway.execute.plpgsql import assignments, evaluation
from tests.tables.world import World

Notices = list[tuple[str | None, ...]]

BLOCKS = (
    "DO $$\nBEGIN\n  PERFORM 1;\n  RAISE NOTICE 'a % b', 1;\n  RAISE INFO 'c';\n  RAISE WARNING 'd';\nEND $$",
    "DO $$\nBEGIN\n  RAISE LOG 'e';\n  RAISE DEBUG 'f';\nEND $$",
    "DO $$\nBEGIN\n\n  CREATE TABLE pg_temp.t (a int);\n  INSERT INTO none VALUES (1);\nEND $$",
    "DO $$\nBEGIN\n  PERFORM 1\n / 0;\nEND $$",
    "DO $$\nBEGIN\n  IF true THEN\n    RAISE 'stop';\n  END IF;\nEND $$",
    "DO $$\nBEGIN\n  EXECUTE 'SELECT ' || 1;\nEND $$",
    "DO $$ BEGIN\n  IF 1 / 0 > 1 THEN NULL; END IF; END $$",
    "DO $$ DECLARE\n n int := 0; m int :=\n 1 / 0; BEGIN NULL; END $$",
    "DO $$ DECLARE n int := 0; BEGIN\n n := 1 / n; END $$",
    "DO $$ DECLARE n int := 0; BEGIN\n n := 1 / 0; END $$",
    "DO $$ DECLARE n int := 0; BEGIN\n n := n FROM none; END $$",
    "DO $$ DECLARE n int := 0; BEGIN\n n := 'x'; END $$",
    "DO $$ DECLARE n int NOT NULL := 0; BEGIN\n n := NULL; END $$",
    "DO $$ DECLARE n int := 0; BEGIN\n n := 1, 2; END $$",
    "DO $$ DECLARE n int := 0; BEGIN\n n := x FROM generate_series(1, 2) x; END $$",
    "DO $$ DECLARE n int; BEGIN\n SELECT 1 / x INTO n FROM generate_series(0, 1) x; END $$",
    "DO $$ DECLARE n int; BEGIN\n SELECT 'x' INTO n; END $$",
    "DO $$ DECLARE n int; BEGIN\n SELECT 1 INTO STRICT n WHERE false; END $$",
    "DO $$ DECLARE r record; BEGIN\n FOR r IN SELECT 1 AS a LOOP RAISE NOTICE '% %', r.a, n; END LOOP; END $$",
    "DO $$ DECLARE r record; BEGIN\n FOR r IN SELECT 1 / 0 LOOP NULL; END LOOP; END $$",
    "DO $$ DECLARE r record; BEGIN\n FOR r IN EXECUTE 'SELECT 1 / ' || 0 LOOP NULL; END LOOP; END $$",
    "DO $$ BEGIN\n FOR i IN 1..(1 / 0) LOOP NULL; END LOOP; END $$",
    "DO $$ BEGIN\n FOR i IN 1..2 LOOP RAISE NOTICE 'round %', i; END LOOP;\n WHILE 1 / 0 > 1 LOOP NULL; END LOOP; END $$",
    "DO $$ DECLARE x text; BEGIN FOREACH x IN ARRAY '{a}'::text[] LOOP\n RAISE INFO '%', x; END LOOP; END $$",
    "DO $$ DECLARE x text; BEGIN\n FOREACH x IN ARRAY 5 LOOP NULL; END LOOP; END $$",
    "DO $$ DECLARE r record; BEGIN\n RAISE NOTICE '%', r.x; END $$",
    "DO $$ DECLARE r record; BEGIN SELECT 1 AS a INTO r;\n RAISE NOTICE '%', r.x; END $$",
    "DO $$ DECLARE relname text := 'x'; BEGIN\n PERFORM 1 FROM pg_class WHERE relname = relname; END $$",
    "DO $$ BEGIN\n EXECUTE 'SELECT 1 / $1' USING 0; END $$",
    "DO $$ BEGIN\n CASE 1 WHEN 2 THEN NULL; END CASE; END $$",
    "DO $$ BEGIN\n ASSERT 1 = 2, 'no'; END $$",
    "DO $$ BEGIN\n RAISE NOTICE 'a' USING HINT = 'b', ERRCODE = '01000'; RAISE unique_violation USING CONSTRAINT = 'd'; END $$",
    "DO $$ DECLARE f float8 := 1e-5; d date := '2024-02-03'; i interval := '1 mon'; BEGIN RAISE NOTICE '% % %', f, d, i; END $$",
)


@pytest.mark.parametrize("prepare", [False, True], ids=["simple", "extended"])
def test_notices_and_contexts_are_those_of_postgresql(world: World, postgres: str, prepare: bool) -> None:
    answers: list[list[tuple[str, str | None, Notices]]] = []
    for dsn in (postgres, world.dsn):
        with psycopg.connect(dsn, autocommit=True) as connection:
            notices: Notices = []
            connection.add_notice_handler(lambda d: notices.append((d.severity, d.sqlstate, d.message_primary, d.context)))  # noqa: B023
            of_server = []
            for block in BLOCKS:
                notices.clear()
                try:
                    result = connection.execute(block.encode(), prepare=prepare).statusmessage
                except psycopg.Error as error:
                    result = f"{error.sqlstate} {error.diag.message_primary} {error.diag.context} {error.diag.statement_position}"
                of_server.append((block, result, list(notices)))
        answers.append(of_server)
    differences = [f"{theirs}\n{ours}" for theirs, ours in zip(*answers, strict=True) if theirs != ours]
    assert not differences, "\n".join(differences)


def test_a_block_outside_a_transaction_is_one_transaction(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as first, psycopg.connect(world.dsn, autocommit=True) as second:
        first.execute("DO $$ BEGIN CREATE TABLE t (a int); INSERT INTO t VALUES (1); END $$", prepare=True)
        assert second.execute("SELECT a FROM t").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.DivisionByZero):
            first.execute("DO $$ BEGIN INSERT INTO t VALUES (2); CREATE TABLE u (a int); PERFORM 1 / 0; END $$", prepare=True)
        assert second.execute("SELECT a FROM t").fetchall() == [(1,)]
        assert second.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'u'").fetchone() == (0,)
        first.execute("INSERT INTO t VALUES (3)")
        assert second.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("DECLARE c CURSOR FOR SELECT 1; BEGIN NULL; END", "CURSOR"),
        ("DECLARE c refcursor; BEGIN NULL; END", "refcursor"),
        ("DECLARE a ALIAS FOR b; BEGIN NULL; END", "ALIAS FOR"),
        ('DECLARE a text COLLATE "C"; BEGIN NULL; END', "COLLATE of a variable"),
        ("DECLARE a int[]; BEGIN a[1] := 1; END", "assignment to an element of an array"),
        ("DECLARE a int[]; BEGIN FOREACH a SLICE 1 IN ARRAY a LOOP NULL; END LOOP; END", "SLICE"),
        ("BEGIN CALL x(); END", "CALL"),
        ("BEGIN DO 'BEGIN END'; END", "DO"),
        ("BEGIN EXECUTE 'DO ''BEGIN END'''; END", "DO"),
        ("BEGIN EXECUTE 'TAIL pg_class'; END", "TAIL"),
    ],
)
def test_other_parts_are_refused_by_name(world: World, code: str, what: str) -> None:
    refused = pytest.raises(psycopg.errors.FeatureNotSupported, match=rf"^{what} in DO is not supported")
    with psycopg.connect(world.dsn, autocommit=True) as connection, refused:
        connection.execute(f"DO $$ {code} $$".encode())


def test_a_pipeline_with_a_block_is_one_transaction(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            _pipeline(connection, "DO $$ BEGIN INSERT INTO t VALUES (1); END $$", "INSERT INTO t VALUES (2), (2)")
        assert connection.execute("SELECT a FROM t").fetchall() == []
        handled = "DO $$ BEGIN INSERT INTO t VALUES (1); EXCEPTION WHEN unique_violation THEN INSERT INTO t VALUES (2); END $$"
        _pipeline(connection, "INSERT INTO t VALUES (1)", handled, "INSERT INTO t VALUES (3)")
        assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,), (3,)]


def _pipeline(connection: psycopg.Connection[Any], *statements: str) -> None:
    with connection.pipeline():
        for statement in statements:
            connection.execute(statement.encode())


# with limits of 1,000 characters and bytes
TOO_LARGE = (
    "DECLARE a text := repeat('x', 600); b text := a; BEGIN NULL; END",
    "DECLARE a text; r record; BEGIN SELECT repeat('x', 600) AS a, 1 AS b INTO r; a := r.a; END",
    (
        "DECLARE j int; BEGIN FOR j IN SELECT generate_series(1, 150) LOOP FOREACH j IN ARRAY array_fill(1, ARRAY[150])"
        " LOOP END LOOP; END LOOP; END"
    ),
)
SMALL_AGAIN = (
    "BEGIN FOR i IN 1..3 LOOP DECLARE a text := repeat('x', 400); r record; BEGIN SELECT a INTO r; SELECT a INTO r; END; END LOOP; END",
    "DECLARE j int; BEGIN FOR i IN 1..3 LOOP FOR j IN SELECT generate_series(1, 150) LOOP EXIT; END LOOP; END LOOP; END",
)


def test_limits_of_a_block(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a text)")
        connection.execute("DO $$ BEGIN EXECUTE 'INSERT INTO t VALUES (''' || repeat('x', 20000) || ''')'; END $$")
        assert connection.execute("SELECT length(a) FROM t").fetchone() == (20_000,)
        for depth, sqlstate in ((99, "P0001"), (100, "54001")):
            code = "BEGIN " + "IF true THEN " * depth + "RAISE 'deepest'; " + "END IF; " * depth + "END"
            with pytest.raises(psycopg.Error) as raised:
                connection.execute(f"DO $$ {code} $$".encode())
            assert raised.value.sqlstate == sqlstate
        code = "BEGIN " + "BEGIN " * 99 + "PERFORM 1 / 0; " + "EXCEPTION WHEN unique_violation THEN NULL; END; " * 99 + "END"
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(f"DO $$ {code} $$".encode())
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="EXECUTE of several statements is not supported"):
            connection.execute("DO $$ BEGIN EXECUTE 'DELETE FROM t; DROP TABLE t'; END $$")
        connection.execute("BEGIN")
        connection.execute("SET LOCAL statement_timeout = 50")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("DO $$ BEGIN LOOP NULL; END LOOP; EXCEPTION WHEN others THEN NULL; END $$")
        with pytest.raises(psycopg.errors.InvalidSavepointSpecification):  # the block leaves none
            connection.execute('ROLLBACK TO SAVEPOINT "PL/pgSQL function inline_code_block 1"')
        connection.execute("ROLLBACK")
        monkeypatch.setattr(assignments, "CHARACTERS_MAX", 1_000)
        monkeypatch.setattr(evaluation, "KEPT_BYTES_MAX", 1_000)
        for code in TOO_LARGE:
            with pytest.raises(psycopg.errors.ProgramLimitExceeded):
                connection.execute(f"DO $$ {code} $$".encode())
        for code in SMALL_AGAIN:
            connection.execute(f"DO $$ {code} $$".encode())


def test_the_context_of_an_error_masks_secrets(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero) as raised:
            connection.execute("DO $$ BEGIN PERFORM 1 / 0, 'hidden' AS password; END $$")
        assert "'********' AS password" in str(raised.value.diag.context)
        assert "hidden" not in str(raised.value)


def test_a_query_of_a_temporary_function_needs_it(world: World) -> None:
    query = "SELECT n FROM pg_temp.n()"
    with psycopg.connect(world.dsn, autocommit=True) as first, psycopg.connect(world.dsn, autocommit=True) as second:
        first.execute("BEGIN")
        first.execute("CREATE FUNCTION pg_temp.n(OUT n int) LANGUAGE plpgsql AS 'BEGIN n := 1; END'")
        first.execute(f"PREPARE q AS {query}")
        for _ in range(2):
            assert first.execute(query, prepare=True).fetchall() == [(1,)]
        assert first.execute("EXECUTE q").fetchall() == [(1,)]
        first.execute("COMMIT")
        for connection, sql in ((first, query), (first, "EXECUTE q"), (second, query)):
            with pytest.raises(psycopg.Error, match="does not exist"):
                connection.execute(sql.encode(), prepare=True)
        second.execute("BEGIN")
        second.execute("CREATE FUNCTION pg_temp.n(OUT n int) LANGUAGE plpgsql AS 'BEGIN SELECT f.n INTO n FROM pg_temp.n() AS f; END'")
        with pytest.raises(psycopg.errors.StatementTooComplex, match="stack depth limit exceeded"):
            second.execute(query)
