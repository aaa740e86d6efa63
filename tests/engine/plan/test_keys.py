"""Derived keys identify rows."""

from __future__ import annotations

import random

from tailgate.engine.plan.analysis.keys import key, keys
from tailgate.engine.plan.rewrites.passes import rewrite
from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.types import GENERAL, INT4, Field
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import MAINTAINED
from testing.reference.evaluation import evaluate
from tests.engine.plan.catalogs import EVENTS, USERS, counted, joined
from tests.engine.plan.random_plans import Plans
from tests.engine.plan.test_rewrites import rows, tables


def test_every_key_identifies_a_row(seed: int) -> None:
    checked = 0
    for number in range(3000):
        source = random.Random(f"{seed} {number}")
        scans = tables(source)
        stored, keyed = {}, []
        for id, columns, _ in scans:
            held = rows(source, columns)
            first = {row[0]: row for row in held if row[0] is not None}
            stored[id] = dict.fromkeys(first.values(), 1)
            keyed.append((id, columns, (0,)))
        relation = Plans(source, tuple(keyed)).relation()
        for some in (relation, rewrite(relation)):
            result = evaluate(some, stored).rows
            for k in keys(some):
                checked += len(result) > 1
                distinct = {tuple(row[i] for i in k) for row in result}
                assert len(distinct) == sum(result.values()), (number, k)
    assert checked > 300


def test_keys_of_common_queries() -> None:
    events, users = plan.Scan(1, EVENTS), plan.Scan(2, USERS, (0,))
    assert key(events) is None
    assert key(users) == (0,)
    assert key(counted(events, 0, 1)) == (0, 1)
    assert key(counted(events)) is None  # a relation with one row needs no key
    assert key(joined(events, users)) is None
    assert key(joined(users, users)) == (0,)


def test_groups_of_general_numerics_are_a_key() -> None:
    """Their sort keys tell groups apart, and a view shows one of the values of each group."""
    columns = (Field("x", GENERAL), Field("k", INT4))
    catalog = Catalog().apply(Change((Table(Catalog().next_id, "n", columns, stored=True),)))
    for text, expected in (
        ("SELECT count(*), x FROM n GROUP BY x", (1,)),
        ("SELECT k, x, sum(x) FROM n GROUP BY x, k", (0, 1)),
        ("SELECT k, count(*) FROM n GROUP BY x, k", None),
        ("SELECT DISTINCT x FROM n", (0,)),
    ):
        assert key(bind_query(text, catalog, view=True, numeric_rules=MAINTAINED).plan) == expected, text
