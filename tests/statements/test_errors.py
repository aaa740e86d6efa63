"""Rows that fail are errors of their view, or are left out with on_error = 'skip'.

Errors are reported, can be queried, and disappear with their rows.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.engine.runtime.mutating import mutated
from tests.statements.conftest import World

SERIES = "  public static ArrayData integerSeries(long first, long last, long step) {"
DEFECT = """    if (first > 1L << 62) org.apache.spark.unsafe.Platform.throwException(new Exception("Unreachable code reached"));"""

pytestmark = pytest.mark.spark


@pytest.fixture
def shares(sql: psycopg.Connection) -> psycopg.Connection:
    sql.execute("CREATE TABLE parts (id int PRIMARY KEY, n int)")
    sql.execute("INSERT INTO parts VALUES (1, 5), (2, 10)")
    sql.execute("CREATE MATERIALIZED VIEW shares AS SELECT id, 100 / n AS share FROM parts")
    return sql


def test_errors_are_reported_and_disappear_with_their_rows(shares: psycopg.Connection) -> None:
    assert shares.execute("SHOW ERRORS").fetchall() == []
    shares.execute("INSERT INTO parts VALUES (3, 0), (4, 0)")
    with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero") as error:
        shares.execute("SELECT * FROM shares")
    assert error.value.diag.message_hint == (
        'It comes from rows of materialized view "shares" and goes when those rows do: SHOW ERRORS FROM shares. '
        "A view created WITH (on_error = 'skip') leaves such rows out."
    )
    expected = [("shares", "22012", "division by zero", 2)]
    assert shares.execute("SHOW ERRORS").fetchall() == expected
    assert shares.execute("SHOW ERRORS FROM shares").fetchall() == expected
    assert shares.execute("SELECT * FROM shares_errors").fetchall() == [("22012", "division by zero")] * 2
    assert shares.execute("SHOW MATERIALIZED VIEWS").fetchall() == [("shares", "failing", "division by zero (22012)", None, None)]
    shares.execute("DELETE FROM parts WHERE n = 0")
    assert shares.execute("SELECT * FROM shares ORDER BY id").fetchall() == [(1, 20), (2, 10)]
    assert shares.execute("SELECT count(*) FROM shares_errors").fetchone() == (0,)


def test_errors_before_and_after_the_mirror(shares: psycopg.Connection) -> None:
    """The view and its errors are read in any order, and both in one transaction."""
    shares.execute("INSERT INTO parts VALUES (3, 0)")
    with shares.transaction():
        assert shares.execute("SELECT count(*) FROM shares_errors").fetchone() == (1,)
    with pytest.raises(psycopg.errors.DivisionByZero):
        shares.execute("SELECT * FROM shares")
    shares.execute("UPDATE parts SET n = 4 WHERE id = 3")
    with shares.transaction():
        assert shares.execute("SELECT count(*) FROM shares_errors").fetchone() == (0,)
        assert shares.execute("SELECT share FROM shares WHERE id = 3").fetchone() == (25,)


def test_on_error_skip_leaves_rows_out(shares: psycopg.Connection) -> None:
    shares.execute("CREATE MATERIALIZED VIEW fair WITH (on_error = 'skip') AS SELECT id, 100 / n AS share FROM parts")
    shares.execute("INSERT INTO parts VALUES (3, 0), (4, 4)")
    assert shares.execute("SELECT * FROM fair ORDER BY id").fetchall() == [(1, 20), (2, 10), (4, 25)]
    assert shares.execute("SHOW ERRORS FROM fair").fetchall() == []
    with pytest.raises(psycopg.errors.FeatureNotSupported, match='over "fair", which skips'):
        shares.execute("CREATE MATERIALIZED VIEW above AS SELECT share FROM fair")
    shares.execute("CREATE MATERIALIZED VIEW above WITH (on_error = 'skip') AS SELECT 1000 / (share - 20) AS x FROM fair")
    assert sorted(shares.execute("SELECT x FROM above").fetchall()) == [(-100,), (200,)]
    shares.execute("UPDATE parts SET n = 1 WHERE id = 3")
    assert shares.execute("SELECT share FROM fair WHERE id = 3").fetchone() == (100,)


def test_what_is_refused(shares: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match='invalid value for option "on_error": "maybe"'):
        shares.execute("CREATE MATERIALIZED VIEW v WITH (on_error = 'maybe') AS SELECT id FROM parts")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop shares_errors because materialized view shares"):
        shares.execute("DROP TABLE shares_errors")
    with pytest.raises(psycopg.errors.WrongObjectType, match='"parts" is not a materialized view'):
        shares.execute("SHOW ERRORS FROM parts")


def test_a_defect_of_a_function_is_an_error_of_the_view(world: World, sql: psycopg.Connection, tmp_path: Path) -> None:
    """An expression may throw a checked exception that is not Tailgate's, as Spark's functions do."""
    sql.execute("CREATE TABLE far (id int PRIMARY KEY, a bigint)")
    sql.execute("INSERT INTO far VALUES (1, 9223372036854775807), (2, 3)")
    with mutated(world.engine, tmp_path, "NumericFunctions", SERIES, f"{SERIES}\n{DEFECT}"):
        sql.execute("CREATE MATERIALIZED VIEW steps AS SELECT id, generate_series(a, -a, -a) AS n FROM far")
        with pytest.raises(psycopg.errors.InternalError_, match="Unreachable code reached"):
            sql.execute("SELECT * FROM steps")
        sql.execute("DELETE FROM far WHERE id = 1")
    assert sql.execute("SELECT n FROM steps ORDER BY n").fetchall() == [(-3,), (0,), (3,)]
