"""Tests which queries of the system catalog may read other relations, and what of them."""

from __future__ import annotations

import pytest

from tailgate.gateway.catalog.catalog_query import catalog_query, parsed
from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import INT8, JSONB, TEXT, Field, Type

SORTS = Table(
    16384, "sorts", (Field("id", INT8), Field("data", JSONB), Field("kind", TEXT), Field("code", Type("bpchar", (5,)))), None, stored=True
)
CASES = Table(16385, "cases", (Field("a", INT8), Field("A", INT8)), None, stored=True)
EMPTY = Table(16386, "empty", (), None, stored=True)
CATALOG = Catalog().apply(Change(put=(SORTS, CASES, EMPTY)))


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT k.* FROM sorts k, pg_class", 'column "data"'),
        ("SELECT code FROM sorts, pg_class", 'column "code"'),
        ("SELECT k.z FROM sorts AS k (x, y, z), pg_class", 'column "data"'),  # z would be another column without `data`
        ("SELECT 1 FROM sorts k NATURAL JOIN sorts l, pg_class", 'column "data"'),
        ("SELECT 1 FROM sorts k JOIN sorts l USING (data), pg_class", 'column "data"'),
        ("SELECT sorts FROM sorts, pg_class", "whole rows"),
        ("SELECT count(k) FROM sorts k, pg_class", "whole rows"),
        ("SELECT k.xmin FROM sorts k, pg_class", 'column "xmin"'),
        ("SELECT 1 FROM cases, pg_class", 'relation "cases"'),
        ("SELECT 1 FROM empty, pg_class", 'relation "empty"'),
        ("SELECT k.id / 2 FROM sorts k, pg_class", "/"),
        ("SELECT k.id % 0 FROM sorts k, pg_class", "%"),
        ("SELECT k.id FROM sorts k, pg_class FOR UPDATE", "FOR UPDATE"),
    ],
)
def test_refused(query: str, what: str) -> None:
    with pytest.raises(FeatureNotSupported) as error:
        catalog_query(parsed(query), (), CATALOG)
    assert what in str(error.value)


def test_names_of_common_table_expressions_are_not_those_of_copied_relations() -> None:
    query = catalog_query(
        parsed("WITH other_x AS (SELECT 1), other_16384 AS (SELECT 2 AS id) SELECT * FROM other_x, other_16384, pg_am"), (), CATALOG
    )
    assert query.others == frozenset()
    query = catalog_query(parsed("WITH other_16384 AS (SELECT 2 AS id) SELECT o.id, k.id FROM other_16384 o, sorts k, pg_am"), (), CATALOG)
    assert query.others == {SORTS.id}
    assert "FROM other_16384 AS o, temp.other_16384 AS k" in query.sql
