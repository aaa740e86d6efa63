"""Materialized views of arrays of several dimensions and from any lower bound have PostgreSQL's rows."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.maintained import check_views

pytestmark = pytest.mark.spark

SCHEMA = """
    CREATE TABLE grids (id int PRIMARY KEY, a int[][], t text[][], d timestamp[][], n interval[][]);
    INSERT INTO grids VALUES (1, '{{1,2},{3,4}}', '{{a,"b c"}}', '{{2024-01-01}}', '{{"1 day","24:00"}}'), (2, '{1,2}', '{}', NULL, NULL),
        (3, NULL, NULL, NULL, NULL), (4, '[0:1]={1,2}', '{{NULL,x}}', '{2024-01-02}', '{{"24:00","1 day"}}');
    CREATE TABLE texts (id int PRIMARY KEY, x text);
    INSERT INTO texts VALUES (1, '{\\NULL,null, a b ,"c\\"d"}'), (2, '[1:2]={a,b}'), (3, ' { } ')
"""
QUERIES = {
    "copies": "SELECT * FROM grids",
    "parts": "SELECT id, a[1][2] AS x, a[1] AS y, a[:][2:] AS part, t[1:1][2] AS u, (a)[0:1] AS low FROM grids",
    "shapes": "SELECT id, array_dims(a) AS d, array_ndims(a) AS n, array_length(a, 2) AS l, array_lower(a, 1) AS low,"
    " array_upper(a, 1) AS high, cardinality(a) AS c FROM grids",
    "joined": "SELECT g.id, h.id AS other FROM grids g JOIN grids h ON g.a = h.a",
    "counted": "SELECT a, count(*) AS n FROM grids GROUP BY a",
    "grouped": "SELECT n, count(*) AS c FROM grids GROUP BY n",
    "first": "SELECT id, a FROM grids ORDER BY a DESC NULLS LAST LIMIT 2",
    "compared": "SELECT g.id, h.id AS other, g.a < h.a AS less, g.a = h.a AS equal FROM grids g, grids h",
    "elements": "SELECT id, unnest(a) AS x FROM grids",
    "subscripts": "SELECT id, generate_subscripts(a, 1) AS i FROM grids",
    "built": "SELECT id, ARRAY[a, a] AS twice, a || a AS appended, array_replace(a, 1, 9) AS b FROM grids WHERE id <> 3",
    "fixed": "SELECT id, '{{1,2},{3,4}}'::int[] AS l, ARRAY[[id, 1], [2, id]] AS m FROM grids",
    "printed": "SELECT id, a::text AS x, t::text AS y, array_to_string(a, '-') AS z, to_jsonb(t) AS j, d::text AS d FROM grids",
    "parsed": "SELECT id, (a::text)::int[][] AS again FROM grids",
    "lists": "SELECT id, x::text[] AS l FROM texts",
    "found": "SELECT id, 1 = ANY (a) AS has, a @> '{2}' AS contains FROM grids",
}
CHANGES = (
    "UPDATE grids SET a[1][2] = 20 WHERE id = 1",
    "INSERT INTO grids VALUES (5, '{{1,20},{3,4}}', '[2:2][0:0]={{z}}', '{}', '{}')",
    "UPDATE grids SET a = '[-1:0]={7,8}' WHERE id = 3",
    "DELETE FROM grids WHERE id IN (1, 4)",
)


def test_views(sql: psycopg.Connection, postgres: str) -> None:
    check_views(sql, postgres, SCHEMA, QUERIES, CHANGES)


def test_what_views_and_sinks_refuse(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE refused (id int PRIMARY KEY, a int[][])")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="array_agg of arrays"):
        sql.execute("CREATE MATERIALIZED VIEW collected AS SELECT array_agg(a) AS a FROM refused")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="a sink of multidimensional arrays"):
        sql.execute("CREATE SINK s FROM refused INTO KAFKA BROKER 'localhost:1' TOPIC 't' FORMAT JSON ENVELOPE DEBEZIUM")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="a column of multidimensional arrays"):
        sql.execute("CREATE SOURCE s (a int[][]) FROM KAFKA BROKER 'localhost:1' TOPIC 't' FORMAT JSON")
