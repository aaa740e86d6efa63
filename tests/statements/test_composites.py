"""Composite types in materialized views: the rows equal PostgreSQL's."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.maintained import check_views, rows

MAINTAINED = {
    "fields": "SELECT id, (q).c1.r AS r, (q).c2 AS c, (m).n * 2 AS n, (m).d AS d, (m).e AS e FROM quads",
    "whole": "SELECT id, q, m, (q).c1 IS NULL AS a, q IS NOT NULL AS b FROM quads",
    "made": "SELECT id, ROW(id, 2)::complex AS c, '(1.5,)'::complex AS l, ROW('(1,2)', (q).c1)::quad AS o FROM quads",
    "parsed": "SELECT id, text::complex AS c FROM quads",
    "printed": "SELECT id, q::text AS t, to_jsonb(q) AS j FROM quads",
    "grouped": "SELECT (q).c1, count(*) AS n FROM quads GROUP BY 1",
    "joined": "SELECT a.id, b.id AS other FROM quads a JOIN quads b ON (a.q).c1 = (b.q).c1",
    "top": "SELECT id, q FROM quads ORDER BY (q).c1 DESC NULLS LAST, id LIMIT 2",
    "filtered": "SELECT id FROM quads WHERE (q).c1 > ROW(1, 1)::complex AND (m).e > 'sad'",
    "collected": "SELECT array_agg((q).c1 ORDER BY id) AS a FROM quads",
    "arrays": "SELECT id, cs, cs[1].i AS i FROM quads",
}
SCHEMA = """
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TYPE complex AS (r float8, i float8);
    CREATE TYPE quad AS (c1 complex, c2 complex);
    CREATE TYPE misc AS (n numeric, e mood, d date, ts timestamptz);
    CREATE TABLE quads (id int PRIMARY KEY, q quad, m misc, cs complex[], text text);
    INSERT INTO quads VALUES
    (1, '("(1,2)","(3,4)")', '(1.50,ok,2020-01-31,"2020-01-01 00:00:00+00")', '{"(1,2)"}', '("1",2)'),
    (2, ROW('(5,6)', NULL), ROW(12345678901234567890.123456789, 'sad', NULL, NULL), '{}', '(,3)'), (3, NULL, NULL, NULL, NULL),
    (4, '(,)', '(,,,)', '{NULL}', '(1e3,-4.5)');
"""
CHANGES = (
    "INSERT INTO quads VALUES (5, '(\"(1,2)\",)', '(1.500,ok,,)', NULL, '(1,2)'), (6, ROW(ROW(0, 0), ROW(1, 1)), NULL, NULL, NULL)",
    "UPDATE quads SET q.c1.i = 9, m.n = 7.0, m.e = 'ok' WHERE id IN (1, 3)",
    "DELETE FROM quads WHERE id = 2",
    "UPDATE quads SET q = NULL, text = '(0,0)' WHERE id = 4",
)


def test_views(sql: psycopg.Connection, postgres: str) -> None:
    check_views(sql, postgres, SCHEMA, MAINTAINED, CHANGES)
    # a new label and a new name of the type of a field
    sql.execute("ALTER TYPE mood ADD VALUE 'glad'")
    sql.execute("ALTER TYPE misc RENAME TO mixed")
    sql.execute("UPDATE quads SET m.e = 'glad' WHERE id = 5")
    assert rows(sql, "SELECT e FROM fields WHERE id = 5") == [("glad",)]
    assert rows(sql, "SELECT (m).e, pg_typeof(m)::text FROM whole WHERE id = 5") == [("glad", "mixed")]
    sql.execute("ALTER TYPE mixed RENAME TO misc")
    # an invalid text is an error of the view
    sql.execute("UPDATE quads SET text = '(1)' WHERE id = 5")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation, match=r'malformed record literal: "\(1\)"'):
        sql.execute("SELECT * FROM parsed")
    sql.execute("UPDATE quads SET text = NULL WHERE id = 5")
    assert rows(sql, "SELECT c FROM parsed WHERE id = 5") == [(None,)]
