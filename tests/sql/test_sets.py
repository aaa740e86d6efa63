"""Tests set-returning functions in FROM against PostgreSQL: columns, rows, SQLSTATEs."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install

QUERIES = (
    "SELECT * FROM generate_series(1, 3)",
    "SELECT * FROM generate_series(5, 1, -2) g(x)",
    "SELECT * FROM generate_series(1, 3, 0)",
    "SELECT * FROM generate_series(3, 1)",
    "SELECT * FROM generate_series(1, NULL::int)",
    "SELECT * FROM generate_series(2147483646, 2147483647)",
    "SELECT * FROM generate_series(9223372036854775806, 9223372036854775807)",
    "SELECT g FROM generate_series('2026-01-31'::timestamp, '2026-05-01', '1 month') g",
    "SELECT * FROM generate_series('2026-03-01'::timestamptz, '2026-02-27', '-12:00') WITH ORDINALITY AS t(at, n)",
    "SELECT * FROM generate_series('2026-03-01'::timestamp, '2026-02-27', '0 days')",
    "SELECT n * 2 AS twice FROM generate_series(1, 3) n WHERE n > 1",
    "SELECT * FROM jsonb_each('{\"a\": 1, \"b\": [1, 2]}')",
    'SELECT e.value, key FROM jsonb_each_text(\'{"a": null, "b": "x\\u00e9"}\') e',
    "SELECT * FROM jsonb_each('[1]')",
    "SELECT * FROM jsonb_array_elements('[1, {\"a\": 2}, null]') WITH ORDINALITY t(v, i)",
    'SELECT * FROM jsonb_array_elements_text(\'["x", 1.50, null, {"k": []}]\')',
    "SELECT * FROM jsonb_array_elements('3') x",
    "SELECT * FROM jsonb_array_elements('{}')",
    "SELECT * FROM jsonb_array_elements(NULL)",
    "SELECT * FROM jsonb_object_keys('{\"b\": 1, \"aa\": 2}')",
    "SELECT * FROM jsonb_object_keys('[]')",
    "SELECT * FROM jsonb_object_keys('1')",
    "SELECT * FROM unnest(ARRAY[1, NULL, 3]) u",
    "SELECT u.u FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY u ORDER BY ordinality DESC",
    "SELECT * FROM unnest(ARRAY[]::text[])",
    "SELECT a, b FROM generate_series(1, 2) a, unnest(ARRAY[5, 6]) b ORDER BY a, b",
    "SELECT t.value FROM jsonb_array_elements('[7]') t",
    "SELECT e ->> 'a' AS a FROM jsonb_array_elements('[{\"a\": 1}]') e",
    "SELECT k, v FROM (VALUES (1, '[1, 2]'::jsonb), (2, '[]')) t(k, j), jsonb_array_elements(t.j) v ORDER BY 1, v::text",
    "SELECT v, n FROM (VALUES ('[7]'::jsonb), ('[]')) t(j) LEFT JOIN LATERAL jsonb_array_elements(j) WITH ORDINALITY e(v, n) ON true",
    "SELECT k, (SELECT count(*) FROM generate_series(1, k)) AS n FROM generate_series(1, 3) k ORDER BY 1",
    "SELECT a, b FROM generate_series(1, 3) a, generate_series(a, 3) b ORDER BY 1, 2",
    "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b', 'c']) u",
    "SELECT x, y, i FROM unnest(ARRAY[1, 2], NULL::text[]) WITH ORDINALITY u(x, y, i)",
    "SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) WITH ORDINALITY AS r(n, u)",
    "SELECT r.unnest, generate_series FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) AS r ORDER BY 2",
    "SELECT k, n, v FROM (VALUES (1), (2)) t(k), ROWS FROM (generate_series(1, k), jsonb_array_elements('[1]')) AS r(n, v) ORDER BY 1, 2",
    "SELECT * FROM regexp_split_to_table('a1b22c', '[0-9]+') AS part",
    "SELECT k, regexp_split_to_table(k, '[aA]') AS p FROM (VALUES ('bab'), ('a'), (NULL)) t(k) ORDER BY 1, 2",
    "SELECT * FROM regexp_split_to_table('xAy', 'a', 'i') WITH ORDINALITY",
    "SELECT * FROM regexp_matches('abcabd', 'a(b)(.)?', 'g')",
    "SELECT regexp_matches('abcabd', 'ab.') AS m, regexp_matches('x', 'y') AS n",
    "SELECT (regexp_matches('k=v', '(.)=(.)'))[2] AS v",
    "SELECT * FROM string_to_table('a,b,,c', ',') t",
    "SELECT * FROM string_to_table('a,b,,c', ',', '') t",
    "SELECT string_to_table('abc', NULL) AS c",
    "SELECT i, (ARRAY['x', 'y', 'z'])[i] AS e FROM generate_subscripts(ARRAY['x', 'y', 'z'], 1, true) i",
    "SELECT * FROM generate_subscripts('{}'::int[], 1)",
    "SELECT * FROM generate_subscripts(ARRAY[1, 2], 2)",
    "SELECT generate_series(1, 3)",
    "SELECT generate_series(1, 3), generate_series(5, 6), 'x' AS c",
    "SELECT k, unnest(a) AS e, generate_series(1, k) * 10 FROM (VALUES (1, ARRAY[7, 8]), (2, NULL), (3, '{}')) t(k, a) ORDER BY 1, 3, 2",
    "SELECT unnest(a), k FROM (VALUES (1, ARRAY[7, 8]), (2, NULL)) t(k, a)",
    "SELECT unnest(ARRAY[3, 1, 2]) AS u ORDER BY u DESC LIMIT 2",
    "SELECT DISTINCT unnest(ARRAY[1, 1, 2]) + 1 AS u ORDER BY 1",
    "SELECT unnest(a) AS u, count(*) AS n FROM (VALUES (ARRAY[1, 2]), (ARRAY[2])) t(a) GROUP BY u ORDER BY 1",
    "SELECT unnest(a) AS u, sum(k) AS n FROM (VALUES (1, ARRAY[1, 2]), (5, ARRAY[2])) t(k, a) GROUP BY unnest(a) HAVING count(*) > 1",
    "SELECT unnest(array_agg(k ORDER BY k)) AS u, count(*) AS n FROM generate_series(1, 3) k",
    "SELECT unnest(ARRAY[10, 20]) AS u, rank() OVER (ORDER BY k) AS r FROM generate_series(1, 2) k ORDER BY 2, 1",
    "SELECT jsonb_array_elements('[1, 2]') AS e, jsonb_object_keys('{\"a\": 1}') AS k",
    "SELECT sum(unnest(ARRAY[1]))",
    "SELECT CASE WHEN true THEN generate_series(1, 2) END",
    "SELECT coalesce(generate_series(1, 2), 0)",
    "SELECT 1 WHERE generate_series(1, 2) = 1",
    "SELECT count(*) FROM generate_series(1, 2) g HAVING generate_series(1, 2) = 1",
    "SELECT k FROM generate_series(1, 2) k ORDER BY generate_series(1, 2), k",
    "SELECT (SELECT sum(u) FROM (SELECT unnest(a) AS u) q) AS s FROM (VALUES (ARRAY[1, 2]), (NULL)) t(a) ORDER BY 1",
    "SELECT k, s.e FROM (VALUES (1, ARRAY[1, 2])) t(k, a), LATERAL (SELECT unnest(a) AS e) s ORDER BY 2",
    "SELECT nosuch FROM generate_series(1, 2) g",
    "SELECT * FROM generate_series('a', 2)",
)  # fmt: skip


@pytest.mark.parametrize("text", QUERIES)
def test_compared_with_postgresql(text: str, server: psycopg.Connection[Any]) -> None:
    assert ours(text) == theirs(text, server)


def theirs(text: str, server: psycopg.Connection[Any]) -> Any:
    try:
        cursor = server.execute(text)
        return [c.name for c in cursor.description or ()], [tuple(map(plain, row)) for row in cursor.fetchall()]
    except psycopg.Error as error:
        return error.sqlstate


def ours(text: str) -> Any:
    with duckdb.connect() as engine:
        install(engine)
        try:
            bound = bind_query(text, Catalog())
            rows = engine.execute(render(bound.plan)).fetchall()
        except TailgateError as error:
            return error.sqlstate
        except duckdb.Error as error:
            return error_of(error).sqlstate
    jsonb = [c.type.name == "jsonb" for c in bound.columns]
    read = [tuple(json.loads(v) if j and v is not None else plain(v) for j, v in zip(jsonb, row, strict=True)) for row in rows]
    return [c.name for c in bound.columns], read


def plain(value: Any) -> Any:
    """Converts timestamps with time zone to one zone."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) and value.tzinfo else value
