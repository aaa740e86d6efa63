"""A sink knows the columns that its relation had when it was created: it ignores the values of later columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tailgate.lake.catalog import Change, Sink, Table
from tailgate.lake.folder import Lake
from tailgate.lake.types import INT4, Field, arrow_schema
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.sinks.reading import Reader


def test_values_of_an_added_column_are_ignored(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    try:
        narrow = (Field("a", INT4),)
        wide = (*narrow, Field("b", INT4))
        table = Table(id=1000, name="t", columns=narrow, stored=True)
        first = writer.append([(1000, _rows(narrow, [[1, 1]]))], kind="catalog", catalog=Change(put=(table,)))
        added = Table(id=1000, name="t", columns=wide, stored=True)
        writer.append([(1000, _rows(wide, [[1, None, -1], [1, 5, 1]]))], kind="catalog", catalog=Change(put=(added,)))
        last = writer.append([(1000, _rows(wide, [[2, 6, 1]]))])
        reader = Reader(lake, 0, 1000, 0, first.n, first.time, narrow)
        changes = {step.n: step.changes for step in reader.steps() if step.changes is not None}
        assert {n: rows.to_pylist() for n, rows in changes.items()} == {last.n: [{"a": 2, "__weight": 1}]}
    finally:
        writer.close()


def test_steps_end_before_the_sink_gets_columns(tmp_path: Path) -> None:
    """The values of the columns would be lost if a worker without them read the later changes."""
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    try:
        narrow = (Field("a", INT4),)
        wide = (*narrow, Field("b", INT4))
        table, sink = Table(id=1000, name="t", columns=narrow, stored=True), Sink(id=1001, name="s", depends=(1000,))
        first = writer.append(kind="catalog", catalog=Change(put=(table, sink)))
        before = writer.append([(1000, _rows(narrow, [[1, 1]]))])
        replaced = Change(put=(replace(table, columns=wide), replace(sink, known_columns={1000: 2})))
        writer.append(kind="catalog", catalog=replaced)
        last = writer.append([(1000, _rows(wide, [[2, 6, 1]]))])
        old, new = (Reader(lake, 1001, 1000, 0, first.n, first.time, columns) for columns in (narrow, wide))
        assert [step.n for step in old.steps()] == [before.n]
        assert list(old.steps()) == []
        changes = {step.n: step.changes.to_pylist() for step in new.steps() if step.changes is not None}
        assert changes == {before.n: [{"a": 1, "b": None, "__weight": 1}], last.n: [{"a": 2, "b": 6, "__weight": 1}]}
    finally:
        writer.close()


def _rows(columns: tuple[Field, ...], rows: list[list[int | None]]) -> pa.Table:
    schema = arrow_schema(columns, weight=True)
    return pa.table([pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema)
