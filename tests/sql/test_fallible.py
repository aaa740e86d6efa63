"""Tests which conditions may be evaluated for rows for which the query would not evaluate them."""

from __future__ import annotations

import pytest

from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import WITH_GENERAL
from tailgate.sql.plan import Filter
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.traversal import walk
from tests.sql.catalogs import make_catalog

SAFE = """
day < date '1994-01-01' + interval '1 year'
placed > timestamp '1998-12-01' - interval '90' day
amount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01
extract(month FROM day) = 3
date_part('year', day) = 1995
name LIKE '%a' AND name NOT LIKE 'b_'
substring(name, 1, 2) = 'ab'
id % 2 = 0
id / 7 = 1
amount::numeric(12, 3) > 1
try(id / n) = 1
""".strip().splitlines()

FAILS = """
day > date '9999-01-01' + interval '1 year'
extract(year FROM day) = 1995
day::timestamp > timestamp '2000-01-01'
placed + interval '1 year' > timestamp '2000-01-01'
amount * amount > 1
name LIKE 'a\\'
name LIKE name
substring(name, 1, n) = 'ab'
id % 0 = 0
id / n = 1
id / -1 = 1
id + 1 = 2
amount::numeric(9, 2) > 1
amount::numeric(10, 3) > 1
amount::numeric(9, 1) > 1
name::int = 1
try(id / n) = name::int
""".strip().splitlines()


def condition_fails(text: str) -> bool:
    plan = bind_query(f"SELECT 1 FROM orders, events WHERE {text}", make_catalog()).plan
    (node,) = [n for n in walk(plan) if isinstance(n, Filter)]
    return fallible(node.condition)


@pytest.mark.parametrize("text", SAFE)
def test_infallible_conditions(text: str) -> None:
    assert not condition_fails(text)


@pytest.mark.parametrize("text", FAILS)
def test_fallible_conditions(text: str) -> None:
    assert condition_fails(text)


def test_literals_that_are_not_finite() -> None:
    text = "SELECT 1 FROM orders WHERE amount < 'NaN'::numeric * 0.001"
    plan = bind_query(text, make_catalog(), numeric_rules=WITH_GENERAL).plan
    (node,) = [n for n in walk(plan) if isinstance(n, Filter)]
    assert fallible(node.condition)
