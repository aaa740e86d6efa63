"""DO: notices, the context of errors, both protocols, and the parts of PL/pgSQL that are refused by name. `do.sql` compares the effects."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.tables.world import World

BLOCKS = (
    "DO $$\nBEGIN\n  PERFORM 1;\n  RAISE NOTICE 'a % b', 1;\n  RAISE INFO 'c';\n  RAISE WARNING 'd';\nEND $$",
    "DO $$\nBEGIN\n  RAISE LOG 'e';\n  RAISE DEBUG 'f';\nEND $$",
    "DO $$\nBEGIN\n\n  CREATE TABLE pg_temp.t (a int);\n  INSERT INTO none VALUES (1);\nEND $$",
    "DO $$\nBEGIN\n  PERFORM 1\n / 0;\nEND $$",
    "DO $$\nBEGIN\n  IF true THEN\n    RAISE 'stop';\n  END IF;\nEND $$",
    "DO $$\nBEGIN\n  EXECUTE 'SELECT ' || 1;\nEND $$",
    "DO $$ BEGIN\n  IF 1 / 0 > 1 THEN NULL; END IF; END $$",
)


@pytest.mark.parametrize("prepare", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("block", BLOCKS)
def test_notices_and_contexts_are_those_of_postgresql(world: World, postgres: str, block: str, prepare: bool) -> None:
    answers = []
    for dsn in (postgres, world.dsn):
        notices: list[tuple[str | None, ...]] = []
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.add_notice_handler(lambda d, notices=notices: notices.append((d.severity, d.sqlstate, d.message_primary, d.context)))
            try:
                result = connection.execute(block.encode(), prepare=prepare).statusmessage
            except psycopg.Error as error:
                result = f"{error.sqlstate} {error.diag.message_primary} {error.diag.context} {error.diag.statement_position}"
        answers.append((result, notices))
    assert answers[1] == answers[0]


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
        ("DECLARE n int; BEGIN NULL; END", "DECLARE"),
        ("BEGIN n := 1; END", "a variable"),
        ("BEGIN FOR r IN SELECT 1 LOOP NULL; END LOOP; END", "FOR"),
        ("BEGIN SELECT 1 INTO n; END", "INTO"),
        ("BEGIN EXECUTE 'SELECT 1' INTO n; END", "INTO"),
        ("BEGIN EXECUTE 'SELECT $1' USING 1; END", "USING"),
        ("BEGIN RAISE EXCEPTION 'x' USING HINT = 'y'; END", "USING"),
        ("BEGIN RAISE unique_violation; END", "RAISE without a format"),
        ("BEGIN DO 'BEGIN END'; END", "DO"),
        ("BEGIN EXECUTE 'DO ''BEGIN END'''; END", "DO"),
        ("BEGIN RETURN; END", "RETURN"),
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


def test_limits_of_a_block(world: World) -> None:
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


def test_the_context_of_an_error_masks_secrets(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero) as raised:
            connection.execute("DO $$ BEGIN PERFORM 1 / 0, 'hidden' AS password; END $$")
        assert "'********' AS password" in str(raised.value.diag.context)
        assert "hidden" not in str(raised.value)
