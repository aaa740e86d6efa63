"""Tests joins and set operations: DuckDB's rows for the rendered plan are PostgreSQL's rows for the text."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query
from tests.sql.catalogs import make_catalog
from tests.sql.test_results import engine, ours, server, theirs

__all__ = ["engine", "server"]  # fixtures

JOINS = """
SELECT * FROM users NATURAL JOIN orders
SELECT * FROM users NATURAL LEFT JOIN orders
SELECT * FROM users NATURAL RIGHT JOIN orders
SELECT * FROM users NATURAL FULL JOIN orders
SELECT * FROM users LEFT JOIN orders USING (id)
SELECT * FROM users RIGHT JOIN orders USING (id)
SELECT id, users.id, orders.id FROM users FULL JOIN orders USING (id) ORDER BY 1
SELECT * FROM (SELECT id, email AS name FROM users) u FULL JOIN (SELECT n AS id, name FROM events) e USING (id, name)
SELECT id, count(*) FROM users FULL JOIN orders USING (id) GROUP BY id ORDER BY id
SELECT j.id FROM users JOIN orders USING (id) AS j
SELECT j.* FROM users FULL JOIN orders USING (id) AS j
SELECT j.email FROM users JOIN orders USING (id) AS j
SELECT 1 FROM users JOIN orders USING (id) AS users
SELECT * FROM users NATURAL JOIN (SELECT 1 AS other) o
SELECT count(*) FROM users NATURAL LEFT JOIN (SELECT 1 AS other WHERE false) o
SELECT * FROM users JOIN orders USING (nothing)
SELECT * FROM (users JOIN orders USING (id)) JOIN events ON id = n
SELECT a.id, b.id FROM users a JOIN users b ON a.id < b.id
SELECT a.id, b.id FROM users a LEFT JOIN users b ON a.id < b.id AND a.email < b.email
SELECT a.id, b.id FROM users a LEFT JOIN users b ON a.email > b.email WHERE b.id IS NULL
SELECT a.id, b.id FROM users a RIGHT JOIN users b ON a.id + 1 = b.id
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON u.id = o.user_id AND u.is_vip
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON u.id = o.user_id AND o.amount > 1 AND u.id = 1
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON true
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON false
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON NULL
SELECT u.id, o.id FROM users u FULL JOIN orders o ON u.id = o.user_id AND o.amount > 0
SELECT u.id, o.user_id FROM users u LEFT JOIN orders o ON u.id IS NOT DISTINCT FROM o.user_id
SELECT a.user_id, b.user_id FROM orders a JOIN orders b ON a.user_id IS NOT DISTINCT FROM b.user_id
SELECT * FROM users u LEFT JOIN (orders o JOIN events e ON e.n = o.user_id) ON u.id = o.user_id
SELECT u.id, o.id, e.n FROM users u LEFT JOIN orders o ON u.id = o.user_id LEFT JOIN events e ON e.n = o.id
SELECT u.id, o.id, e.n FROM users u LEFT JOIN orders o ON u.id = o.user_id JOIN events e ON e.n = o.id
SELECT u.id, o.id, e.n FROM users u CROSS JOIN orders o CROSS JOIN events e WHERE u.id = o.user_id AND e.n = u.id
SELECT u.id FROM users u, orders o, events e WHERE u.id = o.user_id AND e.n = o.id
SELECT u.id FROM users u JOIN users u ON true
SELECT u.id FROM users u LEFT JOIN orders o ON u.id
SELECT x FROM (VALUES (1), (2)) a(x) JOIN (VALUES (2), (3)) b(y) ON x = y
SELECT * FROM (VALUES (1, 'a'), (NULL, 'b')) a(x, s) FULL JOIN (VALUES (1.0), (NULL), (3)) b(x) USING (x)
""".strip().splitlines()

SETS = """
SELECT id FROM users INTERSECT SELECT user_id FROM orders
SELECT n FROM events INTERSECT ALL SELECT n FROM events WHERE x <> 0.5
SELECT n, name FROM events INTERSECT ALL SELECT n, name FROM events
SELECT n FROM events EXCEPT SELECT user_id FROM orders
SELECT n FROM events EXCEPT ALL SELECT user_id FROM orders
SELECT n FROM events EXCEPT ALL SELECT id FROM users
SELECT user_id FROM orders INTERSECT SELECT NULL
SELECT user_id FROM orders EXCEPT SELECT NULL
SELECT NULL INTERSECT SELECT NULL
SELECT id FROM users UNION SELECT user_id FROM orders INTERSECT SELECT n FROM events
(SELECT id FROM users UNION SELECT user_id FROM orders) INTERSECT SELECT n FROM events
SELECT id FROM users EXCEPT SELECT user_id FROM orders UNION ALL SELECT n FROM events
SELECT id FROM users EXCEPT (SELECT user_id FROM orders UNION ALL SELECT n FROM events)
(SELECT id FROM users ORDER BY id DESC LIMIT 2) UNION ALL (SELECT id FROM orders ORDER BY id LIMIT 1) ORDER BY 1
(SELECT id FROM users) INTERSECT (SELECT user_id FROM orders) ORDER BY id DESC LIMIT 1 OFFSET 1
SELECT id AS a FROM users UNION ALL SELECT id AS b FROM orders ORDER BY a LIMIT 3
SELECT id AS a FROM users UNION ALL SELECT id AS b FROM orders ORDER BY b
SELECT id FROM users UNION ALL SELECT id FROM orders ORDER BY id + 1
SELECT * FROM (SELECT id FROM users EXCEPT SELECT user_id FROM orders) q WHERE id > 3
SELECT count(*) FROM (SELECT n, x FROM events INTERSECT SELECT n, x FROM events) q
SELECT 1 INTERSECT SELECT 1.0
SELECT 1.50 UNION SELECT 1.5
SELECT amount FROM orders INTERSECT SELECT 10.5
SELECT 'a' UNION SELECT 1
SELECT '1' UNION SELECT 1
SELECT id FROM users INTERSECT SELECT email FROM users
SELECT id FROM users EXCEPT SELECT id, email FROM users
VALUES (1, 'a'), (2, 'b') EXCEPT VALUES (2, 'b')
VALUES (1), (1), (2) INTERSECT ALL VALUES (1), (1), (1)
TABLE users EXCEPT TABLE users
VALUES (3), (1), (2) ORDER BY 1 LIMIT 2
WITH a AS (SELECT id FROM users), b AS (SELECT user_id FROM orders) SELECT * FROM a EXCEPT SELECT * FROM b
SELECT x FROM events INTERSECT SELECT 'NaN'::float8
SELECT -0.0::float8 INTERSECT SELECT 0.0::float8
SELECT 1
SELECT 1 AS a, NULL AS b, 'x' WHERE true
""".strip().splitlines()

# Equal values have several forms, of which PostgreSQL may return any: the results are counted.
FORMS = [
    f"SELECT x = '{one}', count(*) FROM ({left} {word} ALL {right}) AS s (x) GROUP BY 1"
    for word in ("EXCEPT", "INTERSECT")
    for one, left, right in (
        (1, "VALUES ('1'::jsonb), ('1.0'), ('1.00'), ('[1]'), ('[1]'), (NULL), (NULL)", "VALUES ('1.000'::jsonb), ('[1.0]'), (NULL)"),
        ("1 day", "VALUES ('1 day'::interval), ('24 hours'), (NULL), ('1 mon')", "VALUES ('24:00'::interval), (NULL), ('30 days')"),
    )
]
FORMS.append("SELECT i, j = '1' FROM (VALUES (1, '1'::jsonb), (1, '1.0'), (2, '1'), (2, '2')) a (i, j) EXCEPT ALL VALUES (1, '1'::jsonb)")


@pytest.mark.parametrize("text", JOINS + SETS + FORMS)
def test_query(text: str, server: Any, engine: Any) -> None:
    refused = _refused(text)
    if refused is None:
        assert ours(text, engine) == theirs(text, server)
        return
    with pytest.raises(psycopg.Error) as raised:
        server.execute(text)
    assert raised.value.sqlstate == refused


CONDITIONS = (
    "u.id < o.user_id",
    "u.id = o.user_id OR o.user_id IS NULL",
    "u.email > 'b' AND o.amount > 0",
    "u.id = o.user_id AND u.is_vip",
    "true",
    "false",
)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_full_join_on_any_condition(condition: str, server: Any, engine: Any) -> None:
    """PostgreSQL supports FULL JOIN only with merge or hash conditions, so the parts are compared instead."""
    columns = "u.id AS u, u.email, o.id AS o, o.amount"
    parts = f"""SELECT {columns} FROM users u LEFT JOIN orders o ON {condition}
        UNION ALL SELECT NULL, NULL, o.id, o.amount FROM orders o WHERE NOT EXISTS (SELECT FROM users u WHERE {condition})"""
    assert ours(f"SELECT {columns} FROM users u FULL JOIN orders o ON {condition}", engine) == theirs(parts, server)


def _refused(text: str) -> str | None:
    try:
        bind_query(text, make_catalog())
    except TailgateError as error:
        return error.sqlstate
    return None
