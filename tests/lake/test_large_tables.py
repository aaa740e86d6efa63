"""Large tables with a key: rounds mark replaced rows as deleted, and all readers see the remaining ones."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tailgate.lake.errors import Replaced
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading, verification
from tailgate.lake.readers.sizes import about
from tailgate.lake.tables import checkpoints, delta, large, merging
from tailgate.lake.tables.large import LargeTable
from tailgate.lake.tables.stored_relations import relations, table_name
from tailgate.lake.types import FLOAT8, INT8, TEXT, TIMESTAMP, Field
from tailgate.lake.writer import maintenance, open_tables
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.delta_spark import delta_spark
from tests.lake.relations import BOTH_STORES, BOTH_STORES_LONG, add, changes, counted, item, snapshot, sweep, table_path
from tests.lake.test_tables import duck

COLUMNS = (Field("id", INT8), Field("name", TEXT), Field("at", TIMESTAMP))
KEYED = item(16384, COLUMNS, (0,))
ROWS = 70_000  # more than one container of a bitmap


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (merging, "FEW_ROWS", 0),
        (large, "ROWS_MIN", 1),
        (large, "SMALL_FILES", 4),
        (maintenance, "COMMITS_MAX", 5),
        (maintenance, "GRACE_S", -1.0),
        (checkpoints, "RECENT_MS", 0),
        (reading, "RETAIN_HISTORY_MS", 0),
    ):
        monkeypatch.setattr(module, name, value)


class Changing:
    """A relation whose rows change, and its rows by key."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self._chance = writer, random.Random(7)
        self.rows: dict[int, str] = {}

    def change(self, of: Iterable[int], name: str | None) -> None:
        """Gives the rows of keys a name, or removes them."""
        keys = list(of)
        removed = [key for key in keys if key in self.rows]
        parts = [self._table(removed, [self.rows.pop(key) for key in removed], -1)]
        if name is not None:
            self.rows.update(dict.fromkeys(keys, name))
            parts.append(self._table(keys, [name] * len(keys), 1))
        self._writer.append([(KEYED.id, pa.concat_tables(parts))])

    def change_some(self, count: int, name: str) -> None:
        self.change(self._chance.sample(sorted(self.rows), count), name)

    def _table(self, keys: list[int], names: list[str], weight: int) -> pa.Table:
        schema = relations(self._writer.lake.catalog())[KEYED.id].changes
        columns = [keys, names, [None] * len(keys), *([[None] * len(keys)] * (len(schema) - 4)), [weight] * len(keys)]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def begun(lake: Lake) -> tuple[Writer, Changing, Follower]:
    """Adds the relation, without rows, to a new lake. Returns the writer, the relation and the follower."""
    writer = open_epoch(lake)
    add(writer, KEYED)
    return writer, Changing(writer), Follower(lake, writer.epoch)


def pairs(table: pa.Table) -> dict[int, str]:
    assert table.num_rows == len(set(table["id"].to_pylist()))
    return dict(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))


def test_all_readers_see_the_remaining_rows(lake: Lake) -> None:
    """Among them a file of which more rows than a list may have are deleted, files without rows, folded ones, and a new column."""
    writer, relation, follower = begun(lake)
    relation.change(range(ROWS), "first")
    follower.round()
    path = table_path(lake, KEYED.id)
    assert not delta.has_vectors(DeltaTable(str(path)))
    deletes = (range(0, 10_000, 2), range(60_000, 66_000))
    for round in range(12):
        if round < len(deletes):
            relation.change(deletes[round], None)
        relation.change_some(100, f"round {round}")
        if round == 5:
            add(writer, item(KEYED.id, (*COLUMNS, Field("later", FLOAT8)), (0,)))
        follower.round()
        if round == 0:  # an earlier version of this software finds none of the files in the table's folder, where it looks for them
            assert {file.name for file in (path / delta.ROWS).iterdir()}.isdisjoint(file.name for file in path.iterdir())
        maintenance.tend(lake, writer.epoch)
        if round not in (1, 6, 11):
            continue
        table = DeltaTable(str(path))
        assert pairs(pa.table(QueryBuilder().register("t", table).execute("SELECT id, name FROM t").read_all())) == relation.rows
        assert pairs(duck().execute(f"SELECT id, name FROM delta_scan('{path}')").to_arrow_table()) == relation.rows
        assert pairs(reading.snapshot(Lake(lake.location), KEYED.id)) == relation.rows
    assert set(table.protocol().reader_features or ()) == {"deletionVectors", "timestampNtz"}
    assert len(table.file_uris()) <= 1 + large.SMALL_FILES + 1
    assert max(delta.delta_checkpoints(delta.log_files(lake.store, table_name(KEYED.id)))) > 5
    assert about(lake, KEYED.id) == len(relation.rows)
    assert [finding.problem for finding in verification.findings(lake)] == [None, None]
    relation.change_some(50, "later")
    some = pairs(reading.snapshot(lake, KEYED.id, first=1_000))
    assert some.items() <= relation.rows.items() and 1_000 <= len(some) < 1_200


@BOTH_STORES
def test_files_that_no_version_needs_are_removed(lake: Lake) -> None:
    writer, relation, follower = begun(lake)
    relation.change(range(100), "first")
    name = table_name(KEYED.id)
    for round in range(12):
        follower.round()
        sweep(writer)
        relation.change_some(20, f"round {round}")
    follower.round()
    sweep(writer)
    files = [*lake.store.names(name), *lake.store.names(f"{name}/{delta.ROWS}")]
    assert sum(file.endswith(".bin") for file in files) <= 4
    assert sum(file.endswith(".parquet") for file in files) <= 8
    assert pairs(reading.snapshot(Lake(lake.location), KEYED.id)) == relation.rows


@BOTH_STORES_LONG
def test_a_new_engine_continues(lake: Lake) -> None:
    """The index is built from the files, with and without Delta's checkpoint."""
    add(open_epoch(lake), KEYED)
    for engine in range(4):
        writer = open_epoch(Lake(lake.location), take_over=True)
        relation = relation_of(writer, lake)
        follower = Follower(writer.lake, writer.epoch)
        for round in range(3):
            relation.change(range(engine * 10, 200 + round), f"{engine} {round}")
            follower.round()
            maintenance.tend(writer.lake, writer.epoch)
        assert follower.inconsistent == {}
        assert pairs(reading.snapshot(Lake(lake.location), KEYED.id)) == relation.rows
    relation.change(range(300), None)
    follower.round()
    assert DeltaTable(follower.lake.store.location(table_name(KEYED.id)), storage_options=dict(lake.store.options)).file_uris() == []


def relation_of(writer: Writer, lake: Lake) -> Changing:
    relation = Changing(writer)
    relation.rows = pairs(reading.snapshot(Lake(lake.location), KEYED.id))
    return relation


def test_keys_with_equal_hashes_are_told_apart(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LargeTable, "_hashes", lambda self, keys: np.zeros(keys.num_rows, np.uint64))
    _, relation, follower = begun(lake)
    relation.change(range(20), "first")
    for round in range(4):
        follower.round()
        relation.change_some(5, f"round {round}")
    follower.round()
    assert follower.inconsistent == {}
    assert pairs(delta.rows(lake.store, table_name(KEYED.id), delta.table(lake.store, table_name(KEYED.id)))) == relation.rows


def test_an_engine_that_was_replaced_while_a_table_became_large(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next engine removes the files with the old names before the first one continues."""
    monkeypatch.setattr(large, "SMALL_FILES", 100)
    _, relation, follower = begun(lake)
    relation.change(range(100), "first")
    follower.round()
    relation.change_some(20, "second")
    next_lake, copy = Lake(lake.location), lake.store.copy

    def paused(name: str, target: str) -> None:
        new = open_epoch(next_lake, take_over=True)
        next_relation, next_follower = relation_of(new, lake), Follower(next_lake, new.epoch)
        for round in range(6):
            next_relation.change_some(10, f"round {round}")
            next_follower.round()
            sweep(new)
        assert not lake.store.exists(name)
        relation.rows = next_relation.rows
        copy(name, target)

    monkeypatch.setattr(lake.store, "copy", paused)
    with pytest.raises(Replaced):
        follower.round()
    assert pairs(reading.snapshot(Lake(lake.location), KEYED.id)) == relation.rows


def test_many_new_rows_are_in_several_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "NEW_BYTES", 100_000)
    _, relation, follower = begun(lake)
    for begin, end in ((0, 10), (10, 20_000), (0, 20_000)):
        relation.change(range(begin, end), f"from {begin}")
        follower.round()
    assert len(delta.file_names(delta.table(lake.store, table_name(KEYED.id)))) > 4
    assert pairs(reading.snapshot(Lake(lake.location), KEYED.id)) == relation.rows


def test_the_indexes_have_a_limit(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of the other files are read. The new file with few rows is in the index, which becomes empty with its table."""
    monkeypatch.setattr(large, "INDEX_BYTES", limit := 12 * 100)
    writer, relation, follower = begun(lake)
    relation.change(range(1000), "first")
    for round in range(8):
        follower.round()
        maintenance.tend(lake, writer.epoch)
        relation.change_some(30, f"round {round}")
    follower.round()
    assert pairs(reading.snapshot(Lake(lake.location), KEYED.id)) == relation.rows
    opened = open_tables.of(lake, writer.epoch).open_large(table_name(KEYED.id))
    assert opened is not None
    assert 0 < opened.index_bytes <= limit
    with monkeypatch.context() as only_new_rows:
        only_new_rows.setattr(LargeTable, "_keys", lambda self, path: pytest.fail("the keys of a file are read"))
        relation.change(range(1000, 1010), "new")
        follower.round()
    relation.change(range(1010), None)
    follower.round()
    assert opened.index_bytes == 0


def test_a_table_is_cleared_without_its_keys(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine has just started, so it has no index, and fills the view again."""
    writer = open_epoch(lake)
    add(writer, KEYED)
    relation = Changing(writer)
    relation.change(range(100), "first")
    for name in ("second", "third"):
        Follower(lake, writer.epoch).round()
        relation.change_some(10, name)
    Follower(lake, writer.epoch).round()
    add(writer, replace(KEYED, ready=False))
    writer = open_epoch(Lake(lake.location), take_over=True)
    monkeypatch.setattr(LargeTable, "_keys", lambda self, path: pytest.fail("the keys of a file are read"))
    Follower(writer.lake, writer.epoch).round()
    assert delta.file_names(delta.table(lake.store, table_name(KEYED.id))) == []


@pytest.mark.parametrize("removed", [9, 1], ids=["without a row", "removed twice"])
def test_a_key_without_a_row_is_inconsistent(removed: int, lake: Lake) -> None:
    writer, _, follower = begun(lake)
    for key in range(3):
        writer.append([(KEYED.id, changes(KEYED, [([key, "x", None], 1)]))])
        follower.round()
    before = counted(changes(KEYED, [([key, "x", None], 1) for key in range(3)]))
    assert snapshot(lake, KEYED) == before
    writer.append([(KEYED.id, changes(KEYED, [([removed, "y", None], -1), ([1, "x", None], -1)]))])
    follower.round()
    assert list(follower.inconsistent) == [KEYED.id]
    newest = checkpoints.newest(lake)
    assert newest is not None
    assert counted(reading.read_table(lake, relations(lake.catalog())[KEYED.id], newest.versions[KEYED.id])) == before


@pytest.mark.spark
@pytest.mark.long
def test_spark_reads_the_remaining_rows_and_deletes_between(lake: Lake, repository: Path) -> None:
    _, relation, follower = begun(lake)
    relation.change(range(ROWS), "first")
    follower.round()
    relation.change(range(0, 10_000, 2), None)
    follower.round()
    with delta_spark(repository) as spark:
        path = table_path(lake, KEYED.id)

        def read() -> dict[int, str]:
            return pairs(spark.read.format("delta").load(str(path)).toArrow())

        assert read() == relation.rows
        relation.change_some(50, "second")
        follower.round()
        spark.sql(f"OPTIMIZE delta.`{path}`")  # another process changes the places of rows
        relation.change_some(50, "third")
        follower.round()
        assert read() == relation.rows
        assert pairs(reading.snapshot(Lake(lake.location), KEYED.id)) == relation.rows
