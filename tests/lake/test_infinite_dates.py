"""Delta tables keep dates that Python and Rust's calendar lack, such as infinity, also inside lists and structs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tailgate.lake.tables.delta import writer_properties
from tailgate.lake.tables.moments import numbers

INFINITE = 2**31 - 1
FIRST, LAST = -2_440_588, 2_145_042_905
DATES = pa.array([INFINITE, -INFINITE, FIRST, LAST, 0, None], pa.date32())
TIMES = pa.array([2**63 - 1, -(2**63) + 1, FIRST * 86_400_000_000, 2**63 - 2, 0, None], pa.timestamp("us"))
LISTS = pa.array([[INFINITE, None], [], [-INFINITE], [LAST], [0], None], pa.list_(pa.date32()))
ROWS = {
    "flat": pa.table({"k": pa.array(range(6)), "d": DATES, "t": TIMES, "z": TIMES.cast(pa.timestamp("us", tz="UTC"))}),
    "nested": pa.table({"k": pa.array(range(6)), "l": LISTS, "s": pa.StructArray.from_arrays([DATES], ["f1"])}),
}


@pytest.mark.parametrize("name", ROWS)
def test_writes_merges_and_compaction(tmp_path: Path, name: str) -> None:
    rows = ROWS[name]
    properties = writer_properties(rows.schema)
    write_deltalake(tmp_path, rows, writer_properties=properties)
    changed = rows.set_column(0, "k", pa.array(range(3, 9)))
    merge = DeltaTable(tmp_path).merge(changed, "t.k = s.k", source_alias="s", target_alias="t", writer_properties=properties)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table = DeltaTable(tmp_path)
    table.optimize.compact(writer_properties=properties)
    stored = DeltaTable(tmp_path).to_pyarrow_table().sort_by("k").cast(rows.schema)
    expected = pa.concat_tables([rows.slice(0, 3), changed])
    for column in rows.column_names:
        assert numbers(stored[column]).to_pylist() == numbers(expected[column]).to_pylist()


def test_other_columns_have_statistics(tmp_path: Path) -> None:
    rows = ROWS["flat"]
    write_deltalake(tmp_path, rows, writer_properties=writer_properties(rows.schema))
    actions = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True))
    assert (actions["min.k"].to_pylist(), actions["max.k"].to_pylist(), actions["num_records"].to_pylist()) == ([0], [5], [6])
