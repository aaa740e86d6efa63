"""Tests complete queries: DuckDB's rows for the rendered plan are PostgreSQL's rows for the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import WEIGHT
from tailgate.sql.bind import bind_query
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install
from tests.sql.catalogs import DDL, KEYS, make_catalog
from tests.sql.oracle import normal, stored, unstored

ROWS: dict[str, list[tuple[str | None, ...]]] = {
    "users": [
        ("1", "ann@x", "true", "2021-04-26 10:00Z"),
        ("2", "bob@x", "false", "2021-04-26 11:30Z"),
        ("3", None, None, None),
        ("4", "ANN@x", "true", "2021-05-01Z"),
    ],
    "orders": [
        ("1", "1", "10.50", "2021-04-26 12:00", "2021-04-26"),
        ("2", "1", "0.00", "2021-04-27", "2021-04-27"),
        ("3", "2", "-3.25", "2021-04-26 12:30", None),
        ("4", None, "99999999.99", None, "2021-05-01"),
        ("9", "7", None, "2020-02-29", "2020-02-29"),
    ],
    # One row twice and one three times: the relation has no key.
    "events": [
        ("[1]", "2", "NaN", "", None),
        ('{"a": [1, 2], "k": "v"}', "1", "0.5", "x", "abc"),
        ('{"a": [1, 2], "k": "v"}', "1", "0.5", "x", "abc"),
        ("[1]", "2", "NaN", "", None),
        (None, None, "-1", "yy", "\\x00"),
        ('{"a": [1, 2], "k": "v"}', "1", "0.5", "x", "abc"),
    ],
}

QUERIES = """
SELECT * FROM users
SELECT * FROM events
SELECT count(*) FROM events
SELECT n, count(*), sum(x), min(name), max(name) FROM events WHERE x <> 'NaN' GROUP BY n
SELECT id, email FROM users ORDER BY email DESC, id LIMIT 2
SELECT id, email FROM users ORDER BY email NULLS FIRST LIMIT 2 OFFSET 1
SELECT DISTINCT n, name FROM events
SELECT count(DISTINCT name), count(name), count(DISTINCT name) FILTER (WHERE n = 1), sum(n) FILTER (WHERE n > 5) FROM events
SELECT is_vip, count(*), avg(id), sum(id) FROM users GROUP BY is_vip
SELECT date_trunc('month', created_at), count(*) FROM users GROUP BY 1 HAVING count(*) > 1
SELECT u.id, o.id, o.amount FROM users u JOIN orders o ON o.user_id = u.id
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id AND o.amount > 0
SELECT u.id, o.id FROM users u RIGHT JOIN orders o ON o.user_id = u.id
SELECT u.id, o.id FROM users u FULL JOIN orders o ON o.user_id = u.id
SELECT id, email, amount FROM users FULL JOIN orders USING (id)
SELECT count(*) FROM users, orders
SELECT u.email, sum(o.amount), avg(o.amount), count(*) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.email
SELECT e.n, u.id FROM events e JOIN users u ON u.id = e.n
SELECT id FROM users UNION ALL SELECT user_id FROM orders
SELECT id FROM users UNION SELECT user_id FROM orders ORDER BY 1 DESC LIMIT 3
SELECT 1 UNION ALL SELECT 2.5 UNION ALL SELECT NULL
VALUES (1, 'a'), (NULL, 'b')
SELECT x, x / 3, x * 1.5 FROM (VALUES (1), (2), (-7)) v(x)
WITH a AS (SELECT user_id, sum(amount) AS total FROM orders GROUP BY 1) SELECT * FROM a WHERE total > 0
SELECT data->'a'->1, data->>'k', data @> '{"k": "v"}', jsonb_typeof(data) FROM events
SELECT sum(amount), max(placed), min(day), count(*) FROM orders WHERE false
SELECT 1 FROM users WHERE false GROUP BY id
SELECT id, ARRAY(SELECT o.id FROM orders o WHERE o.user_id = u.id ORDER BY o.amount DESC) FROM users u ORDER BY id
SELECT ARRAY(SELECT id + 1 FROM users ORDER BY email DESC NULLS LAST, id LIMIT 3), ARRAY(SELECT name FROM events ORDER BY name, n)
SELECT id, (SELECT amount FROM orders o WHERE o.user_id = u.id) FROM users u
SELECT id, CASE WHEN id > 1 THEN (SELECT amount FROM orders o WHERE o.user_id = u.id) END FROM users u
SELECT id, (SELECT 1 / (u.id - 1) FROM orders o WHERE o.id = 9) FROM users u WHERE id > 1
SELECT u.id, t.amount FROM users u LEFT JOIN LATERAL (SELECT * FROM orders WHERE user_id = u.id ORDER BY id LIMIT 1) t ON true ORDER BY 1
SELECT u.id, s.i, t.n FROM users u, generate_series(1, u.id) s(i), LATERAL (SELECT count(*) AS n FROM orders o WHERE o.user_id = s.i) t
SELECT id FROM users u WHERE (id, email) IN (SELECT e.n, e.name FROM events e) OR email NOT IN (SELECT name FROM events)
SELECT o.id FROM orders o WHERE (o.user_id, o.amount) = (SELECT user_id, max(amount) FROM orders p WHERE p.user_id = o.user_id GROUP BY 1)
SELECT is_vip, (SELECT count(*) FROM orders WHERE user_id = min(u.id)), (SELECT sum(u.id) FROM orders LIMIT 1) FROM users u GROUP BY 1
SELECT n, ARRAY(SELECT DISTINCT x.n FROM events x WHERE x.n <= e.n ORDER BY 1) FROM events e ORDER BY 1
WITH a AS (SELECT user_id, count(*) n FROM orders GROUP BY 1) SELECT (SELECT n FROM a WHERE user_id = id) FROM users WHERE EXISTS (TABLE a)
SELECT v.x, (SELECT string_agg(email, ',' ORDER BY email) FROM users WHERE id <= v.x) FROM (VALUES (1), (3), (NULL)) v(x) ORDER BY 1
SELECT 1 FROM users HAVING count(*) > 100
SELECT u.id, u.email || '!', sum(o.amount) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id HAVING u.is_vip IS NOT NULL
SELECT u.*, count(*), rank() OVER (ORDER BY u.email) FROM users u, orders o GROUP BY u.id
SELECT (users).email, (u.id) FROM users JOIN users AS u USING (id)
SELECT (ROW(id, email)).f2, ROW(id, email) < ROW(2, 'z'), (id, email) IS NULL FROM users
SELECT u::text, row_to_json(u), (u).email, to_jsonb(o), o IS NULL, o::text FROM users u LEFT JOIN orders o ON o.user_id = u.id
SELECT jsonb_build_object('u', u, 'o', (SELECT jsonb_agg(o) FROM (SELECT id FROM orders WHERE user_id = u.id) o)) FROM users u
SELECT row_to_json((SELECT e FROM (SELECT u.id AS id, u.email AS "e mail") AS e), true) FROM users u
SELECT (SELECT q FROM (SELECT u.*) q WHERE false) IS NULL, (SELECT q FROM (SELECT u.*) q WHERE false) IS NOT NULL FROM users u
SELECT count(DISTINCT (is_vip, id > 1)), count(DISTINCT u), count(u.*) FROM users u
SELECT (o).*, ROW(o.*, 'x')::text FROM orders o
SELECT e::text, count(*) FROM (SELECT n, x, data FROM events) e GROUP BY e ORDER BY e DESC
SELECT (q.r).f1, (q.r).f2 FROM (SELECT DISTINCT ROW(n, name) AS r FROM events) q
SELECT a < v, a = v, nullif(a, v)::text, greatest(a, v)::text FROM (VALUES (1, NULL), (2, 'x')) v(x, y), (SELECT ROW(2, 'x'::text) AS a) u
SELECT users.id, (SELECT users)::text, ARRAY(SELECT o.id FROM orders o WHERE (o.id, users.id) = (1, 1)) FROM users
SELECT id FROM users u WHERE u IN (SELECT v FROM users v WHERE id > 1) AND ROW(id, email) IS DISTINCT FROM ROW(3, NULL)
SELECT concat(u, '!'), CASE WHEN id > 1 THEN u END::text, coalesce(u, u)::text, first_value(u) OVER (ORDER BY id)::text FROM users u
SELECT u.id FROM users u, (SELECT 1 AS "A", 2 AS a, 'x' AS a) t WHERE row_to_json(t)::text LIKE '%"A":1,"a":2,"a":"x"%'
SELECT generate_series(1, generate_series(1, 3)), generate_series(1, 2) AS x
SELECT id, unnest(regexp_matches(email, '([a-z]+)@(.)', 'gi')), unnest(string_to_array(unnest(ARRAY['a,b', 'c']), ',')) AS s FROM users
SELECT id, generate_series(1, id) + unnest(ARRAY[10, 20, 30]) FROM users ORDER BY generate_series(1, id), 1, 2
SELECT n, count(*), generate_series(1, generate_series(1, max(n))) AS g FROM events GROUP BY n
SELECT id, (jsonb_each_text(to_jsonb(u))).* FROM users u
SELECT id, u IS NULL, u IS NOT NULL, NOT u IS NULL, ROW(u) IS NULL, q IS NULL FROM users u, LATERAL (SELECT email, is_vip) q
SELECT n, percentile_disc(ARRAY[0.25, 1]) WITHIN GROUP (ORDER BY name DESC) FROM events GROUP BY n ORDER BY n
SELECT percentile_cont('{0.2,NULL,1}'::float8[]) WITHIN GROUP (ORDER BY id), percentile_disc(ARRAY[1]) WITHIN GROUP (ORDER BY 1) FROM users
SELECT percentile_cont(ARRAY[0, 0.5]) WITHIN GROUP (ORDER BY id) FILTER (WHERE id > 100), count(*) FROM users
SELECT id, jsonb_each(to_jsonb(u))::text, (SELECT count(*) FROM users) FROM users u ORDER BY (jsonb_each(to_jsonb(u))).key DESC, id
SELECT (jsonb_each(to_jsonb(u))).key, count(*) FROM users u GROUP BY 1
SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE GROUP) FROM events
SELECT n, count(*) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) FROM events
SELECT id, (SELECT sum((SELECT count(*) FROM orders o WHERE o.user_id = u.id + e.n)) FROM events e) FROM users u
SELECT string_agg(DISTINCT e, ',' ORDER BY e DESC) FROM (SELECT email::varchar(3) FROM users) v(e)
SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN -1 PRECEDING AND 2 FOLLOWING) FROM users
SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM users
SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN NULL PRECEDING AND 2 FOLLOWING) FROM users
SELECT id, count(*) OVER (ORDER BY day RANGE BETWEEN '1 day' PRECEDING AND '-1 day' FOLLOWING) FROM orders
SELECT id, count(*) OVER (ORDER BY day RANGE BETWEEN '1 day' PRECEDING AND '1 day' FOLLOWING) FROM orders
SELECT n, count(*) OVER (ORDER BY x RANGE BETWEEN 1.1 PRECEDING AND 'NaN' FOLLOWING) FROM events
SELECT n, count(*) OVER (ORDER BY n DESC RANGE BETWEEN 0 PRECEDING AND (-1)::bigint FOLLOWING) FROM events
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 20) SELECT sum(n), count(*) FROM t
WITH RECURSIVE t AS (SELECT id, 1 AS d FROM users UNION SELECT user_id, d + 1 FROM t JOIN orders o ON o.id = t.id WHERE d < 4) TABLE t
WITH RECURSIVE t(n, s) AS (SELECT 1, 'a' UNION ALL (SELECT n + 1, s || 'b' FROM t WHERE n < 3)), u AS (TABLE t) SELECT * FROM t, u
SELECT id, (WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n * 2 FROM t WHERE n < 9) SELECT max(n) FROM t) FROM users
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT l.m FROM t, LATERAL (SELECT (n * 3) % 7 AS m) l) TABLE t
SELECT sum(id) + 1 FROM users HAVING count(*) = 4
SELECT coalesce(email, 'none'), nullif(id, 2), greatest(id, 2), least(email, 'b') FROM users
SELECT CASE WHEN amount > 0 THEN 'plus' WHEN amount < 0 THEN 'minus' ELSE '?' END, CASE user_id WHEN 1 THEN 'one' END FROM orders
SELECT id FROM users WHERE email LIKE 'a%' OR email ILIKE 'b%'
SELECT id FROM orders WHERE amount BETWEEN -5 AND 11 AND user_id IN (1, 2)
SELECT id FROM orders WHERE amount NOT BETWEEN SYMMETRIC 5 AND -5
SELECT id FROM orders WHERE user_id NOT IN (1, NULL)
SELECT email IS DISTINCT FROM NULL, is_vip IS NOT TRUE, is_vip IS UNKNOWN FROM users
SELECT length(email), upper(name), n + 1 FROM users, events WHERE n = 2
SELECT placed + interval '1 mon 1 day', day + 1, day - date '2021-01-01', placed - timestamp '2021-01-01' FROM orders
SELECT extract(epoch FROM created_at), extract(second FROM created_at), date_part('hour', created_at) FROM users
SELECT amount::int, amount::text, amount::numeric(10, 1), id::text, is_vip::text FROM orders JOIN users USING (id)
SELECT name::varchar(1), name::char(3), 'abcdef'::varchar(3) FROM events
SELECT a, count(*) FROM (SELECT 'ab'::char(5) UNION ALL SELECT 'ab'::char(3) UNION ALL SELECT 'ab ') v(a) GROUP BY a
SELECT name::char(3) ~ 'x $', name::char(2) ~* 'X $', name::char(3) !~ 'x', name::char(3) ~~* 'X  ', name::char(3) NOT ILIKE 'x' FROM events
SELECT nullif(n, 1.0), nullif(n, 2)::text, nullif(1.50, n)::text, nullif(n, 2.5::float8), nullif(name::char(4), 'x') IS NULL FROM events
SELECT count(DISTINCT random()), bool_and(random() BETWEEN 0 AND 1), count(DISTINCT gen_random_uuid()) FROM users
WITH v AS (SELECT random() AS r) SELECT count(DISTINCT r) FROM (SELECT r FROM v UNION ALL SELECT r FROM v) w
WITH v AS (SELECT id, random() AS r FROM users) SELECT count(*), bool_and(a.r = b.r), count(DISTINCT a.r) FROM v a JOIN v b USING (id)
WITH v AS (SELECT id FROM users WHERE random() < 0.5) SELECT count(*) - (SELECT count(*) FROM v) FROM v
WITH v AS (SELECT gen_random_uuid() AS u) SELECT count(DISTINCT w.u) FROM users, LATERAL (SELECT u FROM v) w
WITH v AS (SELECT random() AS r) SELECT count(DISTINCT w.r) FROM (SELECT (SELECT r FROM v) AS r FROM users) w
SELECT count(DISTINCT r) FROM (SELECT (SELECT random()) AS r FROM users) w
SELECT count(DISTINCT r) FROM (SELECT (SELECT random() + users.id * 0) AS r FROM users) w
SELECT count(DISTINCT r) FROM (SELECT (SELECT random() + count(*) FROM orders) AS r FROM users) w
SELECT count(DISTINCT r), bool_or(r IS NULL) FROM (SELECT (SELECT random() FROM orders WHERE id = 1) AS r FROM users) w
SELECT (SELECT random()) = (SELECT random()), (SELECT random()) = random(), (SELECT 1 + (SELECT random())) > 1
SELECT count(*) IN (0, 4) FROM users WHERE (SELECT random()) < 0.5
SELECT (SELECT random() FROM users) IS NULL FROM orders
SELECT count(*) FROM generate_series(1, 999) AS g WHERE CASE floor(random() * 3) WHEN 0 THEN 1 WHEN 1 THEN 2 WHEN 2 THEN 3 END IS NULL
SELECT count(c), count(DISTINCT c) FROM (SELECT CASE round(random()) WHEN 0 THEN 'a' WHEN 1 THEN 'b' END FROM generate_series(1, 999)) v (c)
SELECT count(*) FROM (SELECT nullif(random() < 0.5, true) AS n FROM generate_series(1, 999) AS g) v WHERE n
SELECT count(*) FROM generate_series(1, 999) AS g WHERE random() = random()
SELECT CASE gen_random_uuid() WHEN NULL THEN 1 WHEN gen_random_uuid() THEN 2 ELSE 3 END
SELECT x, count(*) FROM events GROUP BY x
SELECT 1 WHERE 1 = 2
SELECT count(*) FROM (VALUES (0::float8), ('-0'::float8), ('NaN'::float8), ('NaN'::float8), (NULL)) v(x) GROUP BY x
SELECT DISTINCT x IS NULL FROM (VALUES (0::float8), (NULL)) v(x)
SELECT amount / 0 FROM orders
SELECT 1 / (id - id) FROM users
SELECT (data->>'k')::int FROM events
SELECT 2147483647 + id FROM users
SELECT 100::numeric(2, 1)
SELECT 99999999999::int
SELECT 9999999999999999999::bigint
SELECT id FROM users LIMIT -1
SELECT id FROM users OFFSET -1
SELECT 'a' || id || true, 1.50 * 2, 7 % -3, -7 / 2, 2 ^ 0.5 IS NULL FROM users WHERE id = 99
SELECT B'101' FROM users
SELECT '1'::xml FROM users
""".strip().splitlines()
TYPES = """
SELECT name::char(3) FROM events UNION SELECT name::char(5) FROM events
SELECT name::char(3) FROM events UNION SELECT name::varchar(3) FROM events
SELECT name::varchar(3) FROM events UNION ALL SELECT name::varchar(3) FROM events
SELECT name::char(3) FROM events UNION SELECT 'b'
SELECT NULL UNION SELECT name::varchar(3) FROM events
SELECT * FROM (VALUES ('a'::char(3)), ('b'::char(5))) v
SELECT CASE WHEN n > 1 THEN name::char(3) ELSE name::char(5) END, CASE WHEN n > 1 THEN name::char(3) END FROM events
SELECT coalesce(name::varchar(4), name::varchar(4)), coalesce(name::varchar(4), 'x'), greatest(name::char(4), name::char(4)) FROM events
SELECT array_agg(name::varchar(3)), array_agg(placed::timestamp(3)), max(placed::timestamp(3)), min(name::char(3)) FROM events, orders
SELECT lag(name::char(3)) OVER w, first_value(name::varchar(3)) OVER w FROM events WINDOW w AS (ORDER BY n)
SELECT unnest(ARRAY[name::varchar(3)]), nullif(day, placed), nullif(placed, day), nullif(1::smallint, 2) FROM events, orders
SELECT nullif(1, 1.5), nullif(1, 1::numeric), nullif(2, 1::bigint), nullif(1::numeric, 1)
SELECT nullif(1, 2.0::float8), nullif(1, NULL), nullif(NULL, 1)
SELECT nullif(name::varchar(3), name), nullif(name::char(3), 'b'), nullif('a', 'b'), nullif(NULL, NULL) FROM events
SELECT nullif(ARRAY[interval '1 day'], '{24 hours}'), nullif('{1}', ARRAY[1.5]), nullif('1 day', interval '24 hours')
SELECT B'101', B'101'::bit(2), '1'::bit varying(3), 5::bit(4), 5::"bit", coalesce(B'1'::bit(3), B'1'::bit(3)), B'1' || B'1', ~ B'1'::bit(2)
SELECT B'1'::bit(3) UNION SELECT B'1'::bit(3)
SELECT nullif(amount, 1), nullif(amount::int, amount), nullif(amount, 1.5) FROM orders
""".strip().splitlines()
REFUSED = {"SELECT '1'::xml FROM users": "0A000"}


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in DDL:
            connection.execute(statement)  # type: ignore[arg-type]
        for name, rows in ROWS.items():
            types = [c.type for c in make_catalog().relation(name).columns]
            marks = ", ".join(f"%s::{t}" for t in types)
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)  # type: ignore[arg-type]
        yield connection


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    install(connection)
    for item in make_catalog().items.values():
        columns = [f"c{i} {c.type.duckdb}" for i, c in enumerate(item.columns)]
        rows = Counter(ROWS[item.name])
        keyed = item.name in KEYS
        connection.execute(f"CREATE TABLE r{item.id} ({', '.join(columns + ([] if keyed else [f'{WEIGHT} BIGINT']))})")
        for row, weight in rows.items():
            values = [stored(v, c.type) for v, c in zip(row, item.columns, strict=True)]
            marks = [f"CAST(? AS {c.type.duckdb})" for c in item.columns] + ([] if keyed else ["?"])
            connection.execute(f"INSERT INTO r{item.id} VALUES ({', '.join(marks)})", values + ([] if keyed else [weight]))
    yield connection
    connection.close()


def rounded(value: Any) -> Any:
    return normal(round(value, 6)) if isinstance(value, Decimal) else normal(value)


@pytest.mark.parametrize("text", QUERIES)
def test_query(text: str, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection) -> None:
    assert ours(text, engine) == theirs(text, server)


@pytest.mark.parametrize("text", TYPES)
def test_types(text: str, server: psycopg.Connection[Any]) -> None:
    result = server.execute(text).pgresult  # type: ignore[arg-type]
    assert result is not None
    expected = [(result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
    assert [(c.type.oid, c.type.typmod) for c in bind_query(text, make_catalog()).columns] == expected


def theirs(text: str, server: psycopg.Connection[Any]) -> Any:
    from tests.sql.oracle import _postgres_value

    if text in REFUSED:
        return REFUSED[text]
    types = [f.type for f in bind_query(text, make_catalog()).columns]
    try:
        names = [f"x{i}" for i in range(len(types))]
        shown = ", ".join(f"{n}::text" for n in names)
        ordered = "ORDER BY" in text
        rows = server.execute(f"SELECT {shown} FROM ({text}) AS q({', '.join(names)})").fetchall()  # type: ignore[arg-type]
        values = [tuple(rounded(_postgres_value(v, t)[1]) for v, t in zip(row, types, strict=True)) for row in rows]
        return values if ordered else Counter(values)
    except psycopg.Error as error:
        return error.sqlstate


def ours(text: str, engine: duckdb.DuckDBPyConnection) -> Any:
    try:
        query = bind_query(text, make_catalog())
        rows = engine.execute(render(query.plan)).fetchall()
    except duckdb.Error as error:
        return error_of(error).sqlstate
    except TailgateError as error:
        return error.sqlstate
    values = [tuple(rounded(unstored(v, f.type)) for v, f in zip(row, query.columns, strict=True)) for row in rows]
    return values if "ORDER BY" in text else Counter(values)


def test_parameters(engine: duckdb.DuckDBPyConnection) -> None:
    query = bind_query("SELECT id, $1::numeric + 1 FROM users WHERE email LIKE $2 ORDER BY id LIMIT $3", make_catalog())
    assert [str(t) for t in query.parameters] == ["numeric", "text", "bigint"]
    assert engine.execute(render(query.plan), [Decimal("1.5"), "%@x", 1]).fetchall() == [(1, Decimal("2.5000000000000000"))]


def test_install_twice(engine: duckdb.DuckDBPyConnection) -> None:
    install(engine)
    assert engine.execute("SELECT tg_jsonb_parse('[1,2]')").fetchone() == ("[1, 2]",)
