"""Tests properties derived from a plan (keys, append-only, stored relations), and traversals of scalars."""

from __future__ import annotations

import pytest

from tailgate.lake.catalog import Catalog, Change
from tailgate.sql import plan
from tailgate.sql.bind import bind_query, bind_view
from tailgate.sql.plan.properties import append_only, equalities, key, relations
from tailgate.sql.plan.rewriting import columns_of, conjuncts, shifted, substituted, walk
from tailgate.sql.statements import CreateView, parse
from tests.sql.catalogs import make_catalog

CATALOG = make_catalog()


def named_key(text: str) -> list[str] | None:
    query = bind_query(text, CATALOG)
    indexes = key(query.plan)
    return None if indexes is None else [query.columns[i].name for i in indexes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id, email FROM users", ["id"]),
        ("SELECT email FROM users", None),
        ("SELECT email, id AS other FROM users WHERE is_vip", ["other"]),
        ("SELECT * FROM events", None),
        ("SELECT n, count(*) FROM events GROUP BY n", ["n"]),
        ("SELECT count(*) FROM events", []),
        ("SELECT n, name, count(*) FROM events GROUP BY 1, 2 HAVING count(*) > 1", ["n", "name"]),
        ("SELECT n FROM events GROUP BY n, name", None),
        ("SELECT DISTINCT n, name FROM events", ["n", "name"]),
        ("SELECT email FROM users WHERE id = 7", []),
        ("SELECT o.id, u.id AS u FROM users u, orders o", ["u", "id"]),
        ("SELECT o.id, u.id AS u FROM users u JOIN orders o ON u.id = o.user_id", ["id"]),
        ("SELECT o.id, u.email FROM orders o LEFT JOIN users u ON u.id = o.user_id", ["id"]),
        ("SELECT u.id, o.amount FROM users u LEFT JOIN orders o ON u.id = o.user_id", None),
        ("SELECT u.id, o.amount FROM users u JOIN orders o ON u.id = o.id", ["id"]),
        ("SELECT u.id, e.n FROM users u JOIN events e ON u.id = e.n", None),
        ("SELECT id FROM users UNION SELECT id FROM orders", ["id"]),
        ("SELECT id FROM users UNION ALL SELECT id FROM orders", None),
        ("SELECT id FROM users ORDER BY email LIMIT 3", ["id"]),
    ],
)
def test_key(text: str, expected: list[str] | None) -> None:
    assert named_key(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT name FROM events WHERE n > 1", True),
        ("SELECT id FROM users", False),
        ("SELECT DISTINCT name FROM events", True),
        ("SELECT count(*) FROM events", False),
        ("SELECT a.n FROM events a JOIN events b USING (n)", True),
        ("SELECT a.n FROM events a LEFT JOIN events b USING (n)", False),
        ("SELECT n FROM events UNION ALL SELECT id FROM users", False),
        ("SELECT n FROM events LIMIT 1", False),
    ],
)
def test_append_only(text: str, expected: bool) -> None:
    assert append_only(bind_query(text, CATALOG).plan, CATALOG) is expected


def view(catalog: Catalog, text: str) -> Catalog:
    from tailgate.lake.catalog import MaterializedView, View

    statement = parse(text)
    assert isinstance(statement, CreateView)
    bound = bind_view(statement, catalog)
    kind = MaterializedView if statement.materialized else View
    item = kind(catalog.next_id, statement.name.name, bound.columns, None, statement.materialized, query=statement.query.text)
    return catalog.apply(Change((item,)))


def test_dependencies_are_the_objects_in_the_text() -> None:
    catalog = view(CATALOG, "CREATE VIEW plain AS SELECT n FROM events")
    query = bind_query("SELECT * FROM plain, users, plain p", catalog)
    ids = {i.name: i.id for i in catalog.items.values()}
    assert query.depends == (ids["plain"], ids["users"])
    assert relations(query.plan) == (ids["events"], ids["users"])


def test_equalities() -> None:
    query = bind_query("SELECT 1 FROM users u JOIN orders o ON o.user_id = u.id AND u.email = 'a' AND u.id < o.id", CATALOG)
    assert isinstance(query.plan, plan.Project)
    join = query.plan.input
    assert isinstance(join, plan.Join)
    assert equalities(join) == ((0, 1),)
    assert len(conjuncts(join.condition)) == 3


def test_rewriting() -> None:
    text = "SELECT CASE WHEN id IN (1, 2) THEN coalesce(email, 'x') ELSE lower(email) END AS x FROM users WHERE NOT is_vip"
    query = bind_query(text, CATALOG)
    assert isinstance(query.plan, plan.Project)
    (scalar,) = query.plan.expressions
    assert columns_of(scalar) == {0, 1}
    assert columns_of(shifted(scalar, 5)) == {5, 6}
    assert shifted(scalar, 0) is scalar
    columns = tuple(plan.Column(i, f.type) for i, f in enumerate(query.plan.input.columns))
    assert substituted(scalar, columns) == scalar
    assert sum(isinstance(s, plan.Literal) for s in walk(scalar)) == 3


def test_plans_are_values() -> None:
    a, b = (bind_query(t, CATALOG).plan for t in ("SELECT  id+1 FROM users", "select (users.id + 1) from public.users"))
    assert a == b
    assert hash(a) == hash(b)
