"""A view whose plan would be too large as a tree is refused by counting its nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Table
from tailgate.lake.errors import StatementTooComplex
from tailgate.lake.types import INT8, Field
from tailgate.sql.definitions import bind_definition

TABLE = Table(16384, "t", (Field("x", INT8, False),), (0,), stored=True)


def view(levels: int) -> tuple[Item, Catalog]:
    parts = ", ".join(f"c{i} AS (SELECT a.x FROM c{i - 1} a JOIN c{i - 1} b USING (x))" for i in range(1, levels + 1))
    text = f"WITH c0 AS (SELECT x FROM t), {parts} SELECT x FROM c{levels}"
    catalog = Catalog().apply(Change(put=(TABLE,)))
    item = MaterializedView(catalog.next_id, "v", (Field("x", INT8),), sql=text, query=text, ready=False)
    item = replace(item, columns=bind_definition(item, catalog).columns, depends=(TABLE.id,), ready=True)
    return item, catalog.apply(Change(put=(item,)))


@pytest.mark.timeout(60)  # an algorithm that takes exponential time does not end
def test_a_view_that_references_each_query_twice() -> None:
    item, catalog = view(4)
    assert Streams(catalog)(item) is not None
    item, catalog = view(30)
    with pytest.raises(StatementTooComplex, match='materialized view "v" is too complex'):
        Streams(catalog)(item)
