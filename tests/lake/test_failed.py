"""Relations with inconsistent changes, such as negative weights, and failed views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tailgate.lake.catalog import ERRORS, Change, Item, ViewErrors
from tailgate.lake.catalog.formats import Failure
from tailgate.lake.errors import Gone
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.readers.failed import error_change, failed, readable_at
from tailgate.lake.tables import checkpoints, merging
from tailgate.lake.types import INT4, Field
from tailgate.lake.writer import retention
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import add, changes, item, snapshot, sweep, text

COLUMNS = (Field("a", INT4), Field("b", INT4))
KEYED, BAG = item(16384, COLUMNS, (0,), errors=16385), item(16386, COLUMNS, None, errors=16387)
OTHER = item(16388, COLUMNS, None, errors=16389)


Rows = list[tuple[Sequence[Any], int]]


def append(writer: Writer, *relation_rows: tuple[Item, Rows]) -> None:
    writer.append([(relation.id, changes(relation, rows)) for relation, rows in relation_rows])


@pytest.mark.parametrize("large", [False, True], ids=["small tables", "large tables"])
@pytest.mark.parametrize(
    ("relation", "rows"),
    [
        (BAG, [([1, 1], -3)]),
        (BAG, [([9, 9], -1)]),
        (KEYED, [([2, 1], 2)]),
    ],
)
def test_an_inconsistent_table_stays_and_the_others_advance(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, large: bool, relation: Item, rows: Rows
) -> None:
    if large:
        monkeypatch.setattr(merging, "FEW_ROWS", 0)
        monkeypatch.setattr(merging, "FEW_BYTES", 0)
    writer = open_epoch(lake)
    add(writer, KEYED, BAG, OTHER)
    follower = Follower(lake, writer.epoch)
    append(writer, (KEYED, [([1, 1], 1)]), (BAG, [([1, 1], 2)]), (OTHER, [([1, 1], 1)]))
    follower.round()
    before = writer.newest.n
    append(writer, (relation, rows), (OTHER, [([2, 2], 1)]))
    assert follower.round() == writer.newest.n
    assert list(follower.inconsistent) == [relation.id]
    assert follower.inconsistent[relation.id][0] == before
    append(writer, (OTHER, [([3, 3], 1)]))
    follower.round()
    checkpoint = checkpoints.newest(lake)
    assert checkpoint is not None
    assert checkpoint.positions[OTHER.id] == writer.newest.n
    assert checkpoint.positions[relation.id] == before
    assert sum(snapshot(lake, OTHER).values()) == 3
    # The same holds for another follower, which reads the tables alone. It recovers when the
    # inconsistent change is reversed.
    again = Follower(lake, writer.epoch)
    again.round()
    append(writer, (OTHER, [([4, 4], 1)]))
    again.round()
    assert list(again.inconsistent) == [relation.id]
    append(writer, (relation, [(row, -weight) for row, weight in rows]))
    again.round()
    assert again.inconsistent == {}
    checkpoint = checkpoints.newest(lake)
    assert checkpoint is not None
    assert checkpoint.positions[relation.id] == writer.newest.n
    assert sum(snapshot(lake, BAG).values()) == 2


def test_a_failed_view_is_readable_for_as_long_as_it_exists(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "RECENT_MS", 0)
    monkeypatch.setattr(checkpoints, "SPACING_MS", 0)
    writer = open_epoch(lake)
    add(writer, BAG, OTHER)
    follower = Follower(lake, writer.epoch)
    append(writer, (BAG, [([1, 1], 2)]), (OTHER, [([1, 1], 1)]))
    last = writer.newest.time
    why = Failure(last, 'materialized view "r16386" has failed: a defect')
    marked = failed(BAG, why)
    writer.append([(BAG.errors, error_change(why.message, 1))], kind="catalog", catalog=Change(put=(marked,)))
    follower.round()
    assert readable_at([marked, OTHER]) == last
    error = reading.error(lake, marked)
    assert error is not None
    assert (error.sqlstate, error.message) == ("55000", why.message)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 0)
    monkeypatch.setattr(retention, "AGE_MIN_MS", -1_000)
    for i in range(5):
        append(writer, (OTHER, [([i, i], 1)]))
        follower.round()
        sweep(writer)
    assert reading.since(lake) > last
    assert snapshot(lake, BAG, last) == Counter({text([1, 1]): 2})
    errors = ViewErrors(BAG.errors, "e", ERRORS, None)
    assert snapshot(lake, errors, last) == Counter()
    assert sum(snapshot(lake, errors).values()) == 1
    with pytest.raises(Gone):
        snapshot(lake, OTHER, last)
