"""Domains in materialized views: the rows equal PostgreSQL's, and views that cast to a domain follow its constraints."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.maintained import check_views, rows

MAINTAINED = {
    "columns": "SELECT id, p, p + 1 AS next FROM sample WHERE p > 1",
    "casts": "SELECT id, n::positive AS c, coalesce(n::small, 3) AS s FROM sample WHERE n IS NOT NULL",
    "texts": "SELECT id, name::word AS w, upper(name::word) AS u FROM sample",
    "grouped": "SELECT p, count(*) AS n, max(p) AS m FROM sample GROUP BY p",
    "lists": "SELECT id, ARRAY[n, 1]::pair AS a FROM sample",
}
SCHEMA = """
    CREATE DOMAIN positive AS int CHECK (VALUE > 0);
    CREATE DOMAIN small AS positive CHECK (VALUE < 100);
    CREATE DOMAIN word AS text NOT NULL CHECK (VALUE !~ '[{}'']');
    CREATE DOMAIN pair AS int[] CHECK (cardinality(VALUE) = 2);
    CREATE TABLE sample (id int PRIMARY KEY, name text, p positive, n int);
    INSERT INTO sample VALUES (1, 'a', 1, 5), (2, 'b', 2, NULL), (3, 'c', NULL, 7);
"""
CHANGES = ("INSERT INTO sample VALUES (4, 'd', 9, 8)", "UPDATE sample SET p = p + 1, n = 3 WHERE id < 3", "DELETE FROM sample WHERE id = 3")


def test_views(sql: psycopg.Connection, postgres: str) -> None:
    check_views(sql, postgres, SCHEMA, MAINTAINED, CHANGES)


def test_violations(sql: psycopg.Connection) -> None:
    sql.execute(SCHEMA)
    sql.execute("CREATE MATERIALIZED VIEW checked AS SELECT id, n::small AS c, name::word AS w FROM sample")
    assert rows(sql, "SELECT c FROM checked") == [(5,), (7,), (None,)]
    for change, repair, error in (
        ("UPDATE sample SET n = -1 WHERE id = 1", "UPDATE sample SET n = 5 WHERE id = 1", 'domain small violates .* "positive_check"'),
        ("UPDATE sample SET n = 100 WHERE id = 1", "UPDATE sample SET n = 5 WHERE id = 1", 'domain small violates .* "small_check"'),
        ("UPDATE sample SET name = NULL WHERE id = 1", "UPDATE sample SET name = 'a' WHERE id = 1", "domain word does not allow null"),
        ("UPDATE sample SET name = '{' WHERE id = 1", "UPDATE sample SET name = 'a' WHERE id = 1", 'domain word violates .* "word_check"'),
    ):
        sql.execute(change)
        with pytest.raises(psycopg.IntegrityError, match=error):
            sql.execute("SELECT * FROM checked")
        sql.execute(repair)
    assert rows(sql, "SELECT c FROM checked") == [(5,), (7,), (None,)]


def test_new_constraints(sql: psycopg.Connection) -> None:
    sql.execute(SCHEMA)
    sql.execute("CREATE MATERIALIZED VIEW checked AS SELECT id, n::positive AS c FROM sample")
    sql.execute("CREATE MATERIALIZED VIEW above AS SELECT max(c) AS m FROM checked")
    assert rows(sql, "SELECT m FROM above") == [(7,)]
    sql.execute("ALTER DOMAIN positive ADD CONSTRAINT not_seven CHECK (VALUE <> 7)")
    with pytest.raises(psycopg.errors.CheckViolation, match='violates check constraint "not_seven"'):
        rows(sql, "SELECT m FROM above")
    sql.execute("ALTER DOMAIN positive DROP CONSTRAINT not_seven")
    assert rows(sql, "SELECT m FROM above") == [(7,)]
