"""The views and functions above an item, also in a lake where an older version has left a cycle."""

from __future__ import annotations

from tailgate.engine.plan.views.replacements import readers, stored_inputs
from tailgate.lake.catalog import Catalog, Change, Function, MaterializedView, Table, View
from tailgate.lake.types import INT8

TABLE, FUNCTION, VIEW, ABOVE = 16384, 16385, 16386, 16387


def catalog(*, cycle: bool) -> Catalog:
    table = Table(TABLE, "t", (), stored=True)
    function = Function(FUNCTION, "f", (), depends=(TABLE, VIEW) if cycle else (TABLE,), returns=INT8)
    view = View(VIEW, "v", (), depends=(FUNCTION,))
    above = MaterializedView(ABOVE, "m", (), stored=True, depends=(TABLE, VIEW))
    return Catalog().apply(Change(put=(above, table, function, view)))


def test_readers_are_in_dependency_order() -> None:
    assert [i.id for i in readers([TABLE], catalog(cycle=False))] == [FUNCTION, VIEW, ABOVE]
    assert stored_inputs(catalog(cycle=False)[ABOVE], catalog(cycle=False)) == {TABLE}


def test_each_item_of_a_cycle_is_visited_once() -> None:
    assert sorted(i.id for i in readers([TABLE], catalog(cycle=True))) == [FUNCTION, VIEW, ABOVE]
    assert sorted(i.id for i in readers([FUNCTION], catalog(cycle=True))) == [VIEW, ABOVE]
    assert stored_inputs(catalog(cycle=True)[ABOVE], catalog(cycle=True)) == {TABLE}
