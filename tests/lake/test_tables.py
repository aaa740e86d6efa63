"""The Delta tables as other programs see them: all types in all readers, one version per time.

Their number of files stays small.
"""

from __future__ import annotations

import contextlib
import datetime
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from tailgate.lake import sortable
from tailgate.lake.catalog import Table
from tailgate.lake.folder import Lake
from tailgate.lake.log import ages
from tailgate.lake.readers import reading
from tailgate.lake.readers.sizes import about
from tailgate.lake.store import Store
from tailgate.lake.tables import checkpoints, delta, large, merging
from tailgate.lake.tables.stored_relations import relations, table_name
from tailgate.lake.types import DATE, DROPPED, INT8, TEXT, Field
from tailgate.lake.writer import maintenance, retention
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.delta_spark import delta_spark
from tests.lake.relations import (
    ALL_TYPES,
    BOTH_STORES,
    BOTH_STORES_LONG,
    History,
    add,
    changes,
    counted,
    item,
    snapshot,
    sweep,
    table_path,
    text,
    values,
)

EVERY = tuple(Field(f"c{i}", t) for i, t in enumerate(ALL_TYPES))
KEYED, BAG = item(16384, EVERY, (0, 2)), item(16385, EVERY, None)
UTC = datetime.timezone.utc
ROWS: list[list[Any]] = [
    [None] * len(EVERY),
    [
        *(True, b"\0x", "é'\"\\", '{"a": 1}', -1, 2, 3, 1.5, float("nan"), datetime.date(1500, 2, 28), 5),
        *(datetime.datetime(1, 1, 2, 0, 0, 0, 1), datetime.datetime(2026, 1, 1, 1, 1, 1, 999_999, UTC)),
        *({"months": 1, "days": -2, "micros": 3}, "00000000-0000-0000-0000-000000000001", 2**32 - 1, "name"),
        *(
            Decimal("1234567890123456789012.0000000000000001"),
            Decimal("99999999.99"),
            sortable.stored(Decimal("1.10")),
            "abc",
            "a  ",
            {"x": 1, "y": ["q", None]},
        ),
        *([1, None], [], [Decimal("0.1")], [datetime.datetime(2026, 1, 1, tzinfo=UTC)], [{"months": 0, "days": 0, "micros": 1}], [0.5]),
    ],
    [
        *(False, b"", "", "null", 0, 0, 0, 0.0, float("-inf"), datetime.date(9999, 12, 31), 0),
        *(datetime.datetime(9999, 12, 30), datetime.datetime(1900, 1, 1, tzinfo=UTC)),
        *({"months": None, "days": None, "micros": None}, "", 0, ""),
        *(Decimal("0E-16"), Decimal("-0.01"), sortable.stored(Decimal("-1" + "0" * 50)), "", "", {"x": None, "y": None}),
        *([], [""], [None], [], [None], [float("nan")]),
    ],
]


def duck() -> duckdb.DuckDBPyConnection:
    extension = next(Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension"))
    connection = duckdb.connect(":memory:", config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def filled(lake: Lake) -> History:
    """Appends all rows to both relations, in two rounds."""
    writer = open_epoch(lake)
    history = History()
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    for part in (ROWS[:2], ROWS[2:]):
        table = {KEYED.id: changes(KEYED, [(r, 1) for r in part]), BAG.id: changes(BAG, [(r, 2) for r in [*part, ROWS[0]]])}
        history.append(writer, table)
        follower.round()
    writer.close()
    return history


@BOTH_STORES
def test_every_type_is_stored_and_read_back(lake: Lake) -> None:
    history = filled(lake)
    history.check(lake, KEYED, BAG)
    for relation in (KEYED, BAG):
        table = delta.table(lake.store, table_name(relation.id))
        assert table.protocol().writer_features in (None, ["timestampNtz"])  # no deletion vectors, no column mapping
        assert table.to_pyarrow_table().schema.equals(relations(lake.catalog())[relation.id].table)


def test_days_outside_pythons_range(lake: Lake) -> None:
    """Dates before the year 1 and after 9999, as in PostgreSQL: reads and rounds work with them."""
    days = item(16384, (Field("id", INT8, False), Field("day", DATE)), (0,))
    writer = open_epoch(lake)
    add(writer, days)
    follower = Follower(lake, writer.epoch)
    far = pa.array([6_660_000, -800_000, None], pa.int32()).cast(pa.date32())
    for first in (0, 3):
        rows = pa.table({"id": pa.array([first, first + 1, first + 2]), "day": far, "__weight": pa.array([1, 1, 1])})
        writer.append([(days.id, rows)])
        follower.round()
    writer.close()
    held = reading.snapshot(lake, days.id).column("day").cast(pa.int32()).to_pylist()
    assert Counter(held) == Counter([6_660_000, -800_000, None] * 2)


def test_duckdb_reads_every_type(lake: Lake) -> None:
    filled(lake)
    connection = duck()
    for relation in (KEYED, BAG):
        path = table_path(lake, relation.id)
        actual = connection.execute(f"SELECT * FROM delta_scan('{path}')").to_arrow_table()
        expected = DeltaTable(str(path)).to_pyarrow_table()
        assert rows(actual.cast(expected.schema)) == rows(expected)
        first = checkpoints.newest(lake, reading.since(lake))
        assert connection.execute(f"SELECT count(*) FROM delta_scan('{path}', version => 0)").fetchone() == (0,), first


@BOTH_STORES_LONG
def test_rows_are_counted_by_the_table_and_by_later_changes(lake: Lake) -> None:
    assert about(lake, KEYED.id) == 0
    filled(lake)
    assert about(lake, KEYED.id) == len(ROWS)
    assert about(lake, BAG.id) == len(ROWS), "equal rows are one with a count"
    writer = open_epoch(lake)
    writer.append([(KEYED.id, changes(KEYED, [(ROWS[0], -1)]))])
    assert about(lake, KEYED.id) == len(ROWS) + 1, "a change is taken for a row until the table has followed"
    Follower(lake, writer.epoch).round()
    assert about(lake, KEYED.id) == len(ROWS) - 1
    writer.close()


def test_some_rows_of_a_relation(lake: Lake) -> None:
    """So many as were asked for, or all; changes that the table does not have yet have removed some, and added others."""
    filled(lake)
    writer = open_epoch(lake)
    new = [*ROWS[1][:2], "new", *ROWS[1][3:]]
    writer.append([(r.id, changes(r, [(ROWS[1], -1), (ROWS[2], -1), (new, 1)])) for r in (KEYED, BAG)])
    for relation in (KEYED, BAG):
        all_rows = snapshot(lake, relation)
        for count in range(len(all_rows) + 2):
            some = counted(reading.snapshot(lake, relation.id, first=count))
            assert some <= all_rows and len(some) >= min(count, len(all_rows))
    writer.close()


def rows(table: pa.Table) -> Counter[str]:
    return Counter(text(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True))


@pytest.mark.spark
@pytest.mark.long
def test_spark_reads_every_type_and_writes_between(lake: Lake, repository: Path) -> None:
    """Spark and rounds write to the same table: Spark compacts it, and rounds continue."""
    filled(lake)
    with delta_spark(repository) as spark:
        spark.sparkContext.setLogLevel("ERROR")
        for relation in (KEYED, BAG):
            path = table_path(lake, relation.id)
            expected = DeltaTable(str(path)).to_pyarrow_table()
            frame = spark.read.format("delta").load(str(path))
            types = ("string" if c.type.general else c.type.spark for c in relation.columns)
            declared = ", ".join(f"CAST(NULL AS {type})" for type in types)
            assert [f.dataType for f in frame.schema][: len(EVERY)] == [f.dataType for f in spark.sql(f"SELECT {declared}").schema]
            assert rows(frame.toArrow().cast(expected.schema)) == rows(expected)
            spark.sql(f"OPTIMIZE delta.`{path}`")
        writer = open_epoch(lake)
        before = {r.id: snapshot(lake, r) for r in (KEYED, BAG)}
        writer.append([(r.id, changes(r, [(ROWS[1], -1)])) for r in (KEYED, BAG)])
        Follower(lake, writer.epoch).round()
        for r in (KEYED, BAG):
            assert snapshot(lake, r) == before[r.id] - counted(changes(r, [(ROWS[1], 1)]))
            assert spark.read.format("delta").load(str(table_path(lake, r.id))).count() == {KEYED.id: 2, BAG.id: 3}[r.id]
        listed = spark.read.format("delta").load(str(table_path(lake, "checkpoints")))
        assert listed.columns == ["n", "time", "relation", "name", "version", "position", "age"]
        writer.close()


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(ALL_TYPES), st.sampled_from([0, 1, merging.FEW_ROWS]), st.sampled_from([0, large.ROWS_MIN]))
def test_any_value_of_a_type_can_be_a_key(data: st.DataObject, type: Any, few: int, many: int) -> None:
    """A merge, and the index of a large table, find keys of any value: NULL, NaN, nested, large, with microseconds."""
    import tempfile

    keys = data.draw(st.lists(values(type), min_size=1, max_size=4, unique_by=repr))
    relation = item(16384, (Field("k", type), Field("v", INT8)), (0,))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "FEW_ROWS", few)
        patch.setattr(large, "ROWS_MIN", many)
        lake = Lake.create(folder + "/lake")
        writer = open_epoch(lake)
        add(writer, relation)
        follower = Follower(lake, writer.epoch)
        writer.append([(relation.id, changes(relation, [([k, 0], 1) for k in keys]))])
        follower.round()
        writer.append([(relation.id, changes(relation, [c for k in keys for c in (([k, 0], -1), ([k, 1], 1))]))])
        follower.round()
        assert snapshot(lake, relation) == counted(changes(relation, [([k, 1], 1) for k in keys]))
        writer.append([(relation.id, changes(relation, [([k, 1], -1) for k in keys]))])
        follower.round()
        assert not snapshot(lake, relation)
        writer.close()


SMALL = (Field("a", INT8), Field("b", TEXT))


def test_a_large_relation_is_one_commit(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the process returns the memory of its rows."""
    released: list[bool] = []
    monkeypatch.setattr(pa, "default_memory_pool", lambda: SimpleNamespace(release_unused=lambda: released.append(True)))
    relation = item(16384, SMALL, (0,))
    writer = open_epoch(lake)
    add(writer, relation)
    count = 200_000
    for begin in (0, count // 2):
        keys = range(begin, begin + count // 2)
        writer.append([(relation.id, pa.table({"a": list(keys), "b": [str(k % 7) for k in keys], "__weight": [1] * len(keys)}))])
    follower = Follower(lake, writer.epoch)
    follower.round()
    delta = DeltaTable(str(table_path(lake, relation.id)))
    assert delta.version() == 1
    assert set(delta.to_pyarrow_table()["a"].to_pylist()) == set(range(count))
    writer.append([(relation.id, changes(relation, [([5, "5"], -1)]))])
    follower.round()
    assert reading.snapshot(lake, relation.id).num_rows == count - 1
    assert released == [True]


def test_tables_without_changes_keep_their_version(lake: Lake) -> None:
    still, moving = item(16384, SMALL, (0,), errors=16400), item(16385, SMALL, None)
    writer = open_epoch(lake)
    add(writer, still, moving)
    follower = Follower(lake, writer.epoch)
    for i in range(3):
        writer.append([(moving.id, changes(moving, [([i, "x"], 1)]))])
        follower.round()
    newest = checkpoints.newest(lake)
    assert newest is not None
    assert newest.versions == {still.id: 0, still.errors: 0, moving.id: 3}
    assert newest.n == writer.newest.n


def test_a_table_with_a_commit_a_second_stays_small(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of rounds leave few data files, few log files and few checkpoints."""
    monkeypatch.setattr(maintenance, "GRACE_S", 0.0)
    monkeypatch.setattr(checkpoints, "RECENT_MS", 100)
    monkeypatch.setattr(checkpoints, "SPACING_MS", 1_000)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 2_000)
    relation = item(16384, SMALL, (0,))
    writer = open_epoch(lake)
    history = History()
    add(writer, relation)
    follower = Follower(lake, writer.epoch)
    before: list[Any] = [0, "0"]
    for i in range(150):
        now: list[Any] = [i % 40, str(i)]
        history.append(
            writer, {relation.id: changes(relation, [(now, 1)] + ([(before, -1)] if i % 40 == 0 and i else []))} if i < 40 else {}
        )
        follower.round()
        if i % 10 == 9:
            sweep(writer)
        before = now
    sweep(writer)
    for name in (str(relation.id), checkpoints.NAME):
        path = table_path(lake, name)
        assert len(list(path.glob("*.parquet"))) < 60, name
        assert len(list((path / "_delta_log").iterdir())) < 120, name
    history.check(Lake(lake.location), relation)


def test_engines_that_do_not_live_long_remove_old_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine runs for as long as a file waits, or as long as between two sweeps. Each ends after one round."""
    monkeypatch.setattr(checkpoints, "RECENT_MS", 0)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 60_000)
    clock = [0]
    monkeypatch.setattr(ages, "now", lambda: clock[0])
    relation = item(16384, SMALL, (0,))
    add(open_epoch(lake), relation)
    sweeps, history = 0, History()
    for i in range(30):
        lake = Lake(lake.location)
        writer = open_epoch(lake, take_over=True)
        follower = Follower(lake, writer.epoch)
        clock[0] += 40_000
        history.append(writer, {relation.id: changes(relation, [([0, str(i)], 1), *([([0, str(i - 1)], -1)] if i else [])])})
        follower.round()
        maintenance.tend(lake, writer.epoch)
        if retention.due(lake):
            retention.sweep(writer)
            sweeps += 1
    assert 10 <= sweeps < 30
    path = table_path(lake, relation.id)
    assert len(list(path.glob("*.parquet"))) < 20
    history.check(Lake(lake.location), relation)


def test_a_busy_table_does_not_wait_for_the_turn_of_idle_tables(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unneeded files of a table that changes in every round are removed, however many tables there are."""
    monkeypatch.setattr(maintenance, "GRACE_S", -1.0)
    monkeypatch.setattr(maintenance, "COMMITS_DUE", 4)
    monkeypatch.setattr(checkpoints, "RECENT_MS", 0)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 0)
    *idle, busy = (item(id, SMALL, (0,)) for id in range(16384, 16464, 2))
    writer = open_epoch(lake)
    history = History()
    add(writer, *idle, busy)
    follower = Follower(lake, writer.epoch)
    rounds = 20
    for i in range(rounds):
        history.append(writer, {busy.id: changes(busy, [([0, str(i)], 1)] + ([([0, str(i - 1)], -1)] if i else []))})
        follower.round()
        maintenance.tend(lake, writer.epoch)
    assert len(list(table_path(lake, busy.id).glob("*.parquet"))) <= 4 + 2 < rounds
    history.check(Lake(lake.location), busy)


def test_a_table_whose_maintenance_fails_does_not_delay_the_others(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that table is opened again."""
    defective, other = item(16384, SMALL, (0,)), item(16385, SMALL, (0,))
    writer = open_epoch(lake)
    add(writer, defective, other)
    Follower(lake, writer.epoch).round()
    ids: list[int] = []

    def compact(table: DeltaTable, epoch: int) -> None:
        ids.append(int(Path(table.table_uri).name))
        if ids[-1] == defective.id:
            raise OSError("a file cannot be read")

    opened: list[str] = []
    open_table = delta.table

    def noted(store: Store, name: str, version: int | None = None) -> DeltaTable:
        opened.append(name)
        return open_table(store, name, version)

    monkeypatch.setattr(maintenance, "compact", compact)
    monkeypatch.setattr(delta, "table", noted)
    for _ in range(4):
        with contextlib.suppress(OSError):
            maintenance.tend(lake, writer.epoch)
    assert ids == [defective.id, other.id, defective.id]
    assert opened == [table_name(defective.id)]
    writer.close()


@BOTH_STORES_LONG
def test_a_dropped_relation_leaves_when_since_passes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from tailgate.lake.catalog import Change
    from tailgate.lake.writer import retention

    remaining, dropped = item(16384, SMALL, (0,)), item(16385, SMALL, None)
    writer = open_epoch(lake)
    add(writer, remaining, dropped)
    follower = Follower(lake, writer.epoch)
    header = writer.append([(dropped.id, changes(dropped, [([1, "x"], 1)]))])
    follower.round()
    writer.append(kind="catalog", catalog=Change(drop=(dropped.id,)))
    follower.round()
    monkeypatch.setattr(retention, "AGE_MIN_MS", -1_000)
    monkeypatch.setattr(maintenance, "GRACE_S", 0.0)
    sweep(writer)
    assert sum(snapshot(lake, dropped, header.time).values()) == 1
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 0)
    for _ in range(3):
        writer.append([(remaining.id, changes(remaining, [([writer.newest.n, "x"], 1)]))])
        follower.round()
        sweep(writer)
    assert lake.store.names(f"tables/{dropped.id}") == []
    assert lake.store.names(f"tables/{remaining.id}") != []


@BOTH_STORES_LONG
def test_renamed_and_dropped_columns_keep_their_place_in_the_table(lake: Lake) -> None:
    """A Delta table cannot rename a column, so it keeps the first names, also for a new column with the name of an old one."""
    writer = open_epoch(lake)
    follower = Follower(lake, writer.epoch)
    for key in ((0,), None):
        table = Table(writer.catalog.next_id, f"t{key}", SMALL, key, stored=True)
        add(writer, table)
        writer.append([(table.id, changes(table, [([1, "x"], 1), ([2, "y"], 1)]))])
        follower.round()
        renamed = replace(table, columns=(Field("id", INT8), SMALL[1]), stored_names={0: "a"})
        add(writer, renamed)
        writer.append([(table.id, changes(renamed, [([1, "x"], -1), ([3, "z"], 1)]))])
        follower.round()
        assert snapshot(lake, renamed) == counted(changes(renamed, [([2, "y"], 1), ([3, "z"], 1)]))
        dropped = Field(f"{DROPPED}2........", TEXT)
        again = replace(renamed, columns=(renamed.columns[0], dropped, Field("b", TEXT)), stored_names={0: "a", 1: "b", 2: "b_2"})
        add(writer, again)
        writer.append([(table.id, changes(again, [([2, "y", None], -1), ([2, None, "new"], 1)]))])
        follower.round()
        assert snapshot(lake, again) == counted(changes(again, [([3, "z", None], 1), ([2, None, "new"], 1)]))
    writer.close()


def test_columns_whose_names_differ_in_case_only(lake: Lake) -> None:
    """Regression: Delta refused the table, so no table was brought up to date any more."""
    columns = (Field("k", INT8), Field("K", TEXT), Field("k_2", INT8))
    writer = open_epoch(lake)
    follower = Follower(lake, writer.epoch)
    for relation in (item(16384, columns, (0,)), item(16385, columns, None)):
        add(writer, relation)
        writer.append([(relation.id, changes(relation, [([1, "x", 2], 1), ([2, "y", 3], 1)]))])
        follower.round()
        writer.append([(relation.id, changes(relation, [([1, "x", 2], -1), ([1, "z", 5], 1)]))])
        follower.round()
        assert snapshot(lake, relation) == counted(changes(relation, [([1, "z", 5], 1), ([2, "y", 3], 1)]))
        names = [field.name for field in DeltaTable(table_path(lake, relation.id)).schema().fields]
        assert names[: len(columns)] == ["k", "K_2", "k_2_2"]
    writer.close()


def test_a_column_with_the_name_of_the_count(lake: Lake) -> None:
    """Regression: Delta refused the table, so no table was brought up to date any more."""
    writer = open_epoch(lake)
    bag, keyed = (item(id, (Field("a", INT8), Field("__COUNT", INT8)), key) for id, key in ((16384, None), (16385, (0,))))
    add(writer, bag, keyed)
    writer.append([(relation.id, changes(relation, [([1, 2], 1), ([2, 3], 1)])) for relation in (bag, keyed)])
    Follower(lake, writer.epoch).round()
    for relation, name in ((bag, "__COUNT_2"), (keyed, "__COUNT")):
        assert snapshot(lake, relation) == counted(changes(relation, [([1, 2], 1), ([2, 3], 1)]))
        assert DeltaTable(table_path(lake, relation.id)).schema().fields[1].name == name
    writer.close()


def test_tables_ahead_of_the_newest_entry_that_a_reader_has_received(lake: Lake) -> None:
    """Its rows are those of that entry."""
    pair = item(16384, (Field("a", INT8), Field("b", TEXT)), None)
    writer = open_epoch(lake)
    follower = Follower(lake, writer.epoch)
    add(writer, pair)
    first = changes(pair, [([1, "first"], 1)])
    writer.append([(pair.id, first)])
    follower.round()
    reader = Lake(lake.location)
    reader.log.look()
    reader.log.looks = False
    writer.append([(pair.id, changes(pair, [([2, "second"], 1)]))])
    follower.round()
    assert snapshot(reader, pair) == counted(first)
    assert sum(snapshot(lake, pair).values()) == 2
