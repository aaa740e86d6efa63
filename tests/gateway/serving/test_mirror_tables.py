"""Tests that the table of a mirror has the rows of its changes, and that its statements use an index where they can."""

import contextlib
import gc
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailgate.gateway.mirrors import incoming, mirror, tables
from tailgate.gateway.mirrors.incoming import Incoming
from tailgate.lake.types import DATE, FLOAT4, FLOAT8, INT8, TEXT, TIMESTAMP, TIMESTAMPTZ, Field, Type, arrow_schema
from tests.gateway.serving.model_lake import bag
from tests.lake.relations import ALL_TYPES, values


class Explained:
    """A connection that runs each DELETE with EXPLAIN ANALYZE, if it does not prepare it, and keeps the plans."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection, self.plans = connection, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, parameters: object = None) -> duckdb.DuckDBPyConnection:
        if sql.startswith("PREPARE") and " AS DELETE" in sql:
            self.plans.append(str(self._connection.execute(f"EXPLAIN {sql[sql.index('DELETE') :]}").fetchall()))
        if not sql.startswith("DELETE"):
            return self._connection.execute(sql, parameters)
        result = self._connection.execute(f"EXPLAIN ANALYZE {sql}", parameters)
        self.plans.append(str(result.fetchall()))
        return result


def test_a_large_table_has_an_index_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys may have several columns and any type. A table that grows gets the index; rows are found without a scan."""
    monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 10_000)
    columns = (Field("a", TEXT), Field("b", Type("numeric", (10, 2))), Field("c", TEXT.array()), Field("n", INT8))
    shape, schema = mirror.Shape(1, columns, (0, 1, 2)), arrow_schema(columns, weight=True)

    def rows(numbers: range, n: int, weight: int) -> pa.Table:
        data = ((f"a{i % 7}", Decimal(i) if i % 3 else None, [str(i)], n, weight) for i in numbers)
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in data], schema=schema)

    def indexes() -> int:
        return len(connection.execute("FROM duckdb_indexes()").fetchall())

    with duckdb.connect() as connection:
        explained = Explained(connection)
        changing = tables.Tables(connection)
        table = changing.fill(connection, shape, rows(range(9_000), 0, 1))
        assert not indexes()
        changing.apply(connection, table, [rows(range(9_000, 20_000), 0, 1)])
        table = changing.compact(connection, table)
        assert indexes() == 1
        changes = pa.concat_tables([rows(range(50, 60), 0, -1), rows(range(55, 65), 1, 1), rows(range(60, 65), 0, -1)])
        changing.apply(explained, table, [changes])  # type: ignore[arg-type]  # it has the methods of a connection
        assert bag(mirror.rows(connection, shape)) == bag(
            pa.concat_tables([rows(range(50), 0, 1), rows(range(55, 65), 1, 1), rows(range(65, 20_000), 0, 1)])
        )
        changing.apply(connection, table, [pa.concat_tables([rows(range(55, 65), 1, -1), rows(range(50, 65), 0, 1)])])
        assert len(explained.plans) == 1
        assert all("Index Scan" in plan and "Sequential Scan" not in plan for plan in explained.plans)
        for rows_per_key, plans in ((1, 3), (10_000, 1)):  # many keys at once
            explained.plans.clear()
            monkeypatch.setattr(mirror, "KEYS_BY_INDEX_MAX", 4)
            monkeypatch.setattr(mirror, "ROWS_PER_KEY", rows_per_key)
            changing.apply(explained, table, [rows(range(100, 110), 0, -1)])  # type: ignore[arg-type]
            assert len(explained.plans) == plans
            assert all(("Sequential Scan" in plan) == (plans == 1) for plan in explained.plans)
            changing.apply(connection, table, [rows(range(100, 110), 0, 1)])


@pytest.mark.parametrize("grown", [False, True])
def test_queries_of_rows_by_key_use_the_index(monkeypatch: pytest.MonkeyPatch, grown: bool) -> None:
    """DuckDB scans a view for a condition on a column that is not the first one of the table."""
    monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 10_000)
    columns = (Field("a", TEXT), Field("n", INT8), Field("k", TEXT))
    shape, schema = mirror.Shape(1, columns, (2,)), arrow_schema(columns, weight=True)

    def rows(numbers: range) -> pa.Table:
        data = ((f"a{i}", i, f"k{i}", 1) for i in numbers)
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in data], schema=schema)

    with duckdb.connect() as connection:
        changing = tables.Tables(connection)
        if grown:
            table = changing.fill(connection, shape, rows(range(9_000)))
            changing.apply(connection, table, [rows(range(9_000, 20_000))])
            table = changing.compact(connection, table)
        else:
            table = changing.fill(connection, shape, rows(range(20_000)))
        assert table.finds_keys
        for query, row in (("SELECT * FROM r1", ("a7", 7, "k7")), ("SELECT c0, c1 FROM r1", ("a7", 7)), ("SELECT c1 FROM r1", (7,))):
            assert connection.execute(f"{query} WHERE c2 = $1", ["k7"]).fetchall() == [row]
            assert "Index Scan" in str(connection.execute(f"EXPLAIN ANALYZE {query} WHERE c2 = $1", ["k7"]).fetchall())
        assert bag(mirror.rows(connection, shape)) == bag(rows(range(20_000)))


@pytest.mark.parametrize(("rows", "join"), [(100, "CROSS_PRODUCT"), (60_000, "HASH_JOIN")])
def test_statements_for_small_tables_are_not_optimized(rows: int, join: str) -> None:
    shape = mirror.Shape(1, (Field("k", INT8),), (0,))
    schema = arrow_schema(shape.columns, weight=True)
    with duckdb.connect() as connection:
        explained: Any = Explained(connection)
        changing = tables.Tables(explained)
        table = changing.fill(explained, shape, pa.table([range(rows), [1] * rows], schema=schema))
        changing.apply(explained, table, [pa.table([[7, 8], [-1, -1]], schema=schema)])
        assert bag(mirror.rows(connection, shape)) == {(k,): 1 for k in range(rows) if k not in (7, 8)}
        (plan,) = explained.plans
        assert join in plan


def test_the_lines_of_a_mirror_without_a_key_are_counted() -> None:
    """Copies of a row are one line, which stays if some of them are removed: the optimizer is on for many lines."""
    shape = mirror.Shape(1, (Field("k", INT8),), None)
    schema = arrow_schema(shape.columns, weight=True)
    with duckdb.connect() as connection:
        changing = tables.Tables(connection)
        table = changing.fill(connection, shape, pa.table([[1, 2, 3], [3, 2, 1]], schema=schema))
        for keys, weights in (([1, 2, 3], [-1, -1, -1]), ([4, 5], [1, 2]), ([1, 4, 6], [-1, 1, 5]), ([1, 6], [-1, -2])):
            changing.apply(connection, table, [pa.table([keys, weights], schema=schema)])
            assert connection.execute("SELECT count(*) FROM r1").fetchone() == (table.rows,)
        assert bag(mirror.rows(connection, shape)) == {(2,): 1, (4,): 2, (5,): 2, (6,): 3}


@pytest.mark.parametrize("temporary", [False, True])
@pytest.mark.parametrize("text", ["short", "a text that is longer than twelve characters"])
def test_old_rows_of_a_mirror_leave_memory(text: str, temporary: bool) -> None:
    """A table whose rows change for ever keeps its size: without copies it grows by about 20 MB here."""
    connection, shape = duckdb.connect(), mirror.Shape(1, (Field("k", INT8), Field("v", TEXT)), (0,))
    changing = tables.Tables(connection)
    schema = arrow_schema(shape.columns, weight=True)

    def changes(i: int) -> pa.Table:
        keys = list(range(1000))
        old, new = [f"{text} {i - 1}"] * 1000, [f"{text} {i}"] * 1000
        return pa.table([pa.array(keys * 2), pa.array(old + new), pa.array([-1] * 1000 + [1] * 1000)], schema=schema)

    table = changing.fill(connection, shape, changes(0).slice(1000), temporary=temporary)
    for i in range(1, 500):
        changing.apply(connection, table, [changes(i)])
        table = changing.compact(connection, table)
    row = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()
    assert row is not None and row[0] < 10_000_000
    assert bag(mirror.rows(connection, shape)) == {(k, f"{text} 499"): 1 for k in range(1000)}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("type", ALL_TYPES, ids=str)
@settings(max_examples=6, deadline=None)
@given(data=st.data(), keyed=st.booleans())
def test_prepared_statements_give_the_same_rows_as_others(
    connection: duckdb.DuckDBPyConnection, type: Type, data: st.DataObject, keyed: bool
) -> None:
    """Each change is the next execution of the statements that the first one has prepared."""
    columns = (Field("key", INT8), Field("value", type))
    schema = arrow_schema(columns, weight=True)
    rows = st.tuples(
        st.integers(0, 3) | st.none(),
        st.none() | values(type, nullable=False).map(lambda value: pa.array([value], schema.types[1])[0].as_py()),
    )
    shapes = [mirror.Shape(n, columns, (0,) if keyed else None) for n in (1, 2)]
    indexed = mirror.Shape(3, columns, (1, 0))  # of any type
    now = dict[str, tuple[tuple[Any, ...], int]]()  # rows with their number, by text
    with Incoming(connection, "prepared", prepares=True) as prepared, Incoming(connection, "other") as other:
        sources = (prepared, other)
        for shape in shapes:
            mirror.drop(connection, shape)
            mirror.create(connection, shape)
        mirror.drop(connection, indexed)
        mirror.create(connection, indexed, indexed=True)
        mirror.create_index(connection, indexed)
        for _ in range(4):
            net = dict[str, tuple[tuple[Any, ...], int]]()
            keys = set[Any]()
            for row in data.draw(st.lists(rows, max_size=4, unique_by=repr)):
                if keyed and row[0] in keys:
                    continue
                keys.add(row[0])
                for text, (old, _) in list(now.items()):
                    if keyed and old[0] == row[0]:
                        net[text] = (old, -1)
                number = now.get(repr(row), (row, 0))[1]
                weight = data.draw(st.sampled_from([1, 2, -number] if number else [1, 2])) if not keyed else 1
                net[repr(row)] = (row, net.get(repr(row), (row, 0))[1] + weight)
            net = {text: change for text, change in net.items() if change[1]}
            for text, (row, weight) in net.items():
                now[text] = (row, now.get(text, (row, 0))[1] + weight)
            now = {text: line for text, line in now.items() if line[1]}
            table = pa.Table.from_pylist(
                [dict(zip(schema.names, (*row, weight), strict=True)) for row, weight in net.values()], schema=schema
            )
            removals = sum(weight < 0 for _, weight in net.values())
            in_place = data.draw(st.booleans())
            for shape, source in zip(shapes, sources, strict=True):
                if keyed and removals and in_place:
                    mirror.update(source, shape, table, removals)
                else:
                    mirror.apply(source, shape, table)
            if keyed:
                with Incoming(connection) as source:
                    mirror.apply_by_index(source, indexed, table, len(now))
            one, second, *more = (
                sorted(map(repr, mirror.rows(connection, shape).to_pylist())) for shape in (*shapes, *([indexed] if keyed else []))
            )
            assert one == second
            assert more in ([], [one])
            assert len(one) == len(now)


def test_prepared_statements_follow_the_table_and_the_form_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that a copy replaces, rows with another form in memory, and a transaction that is rolled back."""
    monkeypatch.setattr(incoming, "PREPARED_RUNS_MAX", 3)
    shape = mirror.Shape(1, (Field("k", INT8), Field("v", TEXT)), (0,))
    schema = arrow_schema(shape.columns, weight=True)
    with duckdb.connect() as connection:
        changing = tables.Tables(connection)

        def filled() -> tables.Table:
            return changing.fill(connection, shape, pa.table([[1, 2, 3], ["a", "0", "c"], [1, 1, 1]], schema=schema))

        def change(numbers: range, form: pa.DataType) -> None:
            for i in numbers:
                changes = pa.table([[2, 2], pa.array([str(i), str(i + 1)], form), [-1, 1]], names=schema.names)
                changing.apply(connection, table, [changes])

        def prepared() -> list[Any]:
            return connection.execute("SELECT statement FROM duckdb_prepared_statements()").fetchall()

        table = filled()
        change(range(6), pa.string())
        assert len(prepared()) == 1
        change(range(6, 9), pa.large_string())
        table = changing.exchange(connection, table, changing.copy(connection, table))
        change(range(9, 11), pa.string())
        assert bag(mirror.rows(connection, shape)) == {(1, "a"): 1, (2, "11"): 1, (3, "c"): 1}
        for _ in range(2):  # the second time, no name and no statement has been there before the transaction
            connection.begin()
            change(range(11, 13), pa.string())
            connection.rollback()
            changing.drop(connection, table)
            table = filled()
        change(range(3), pa.string())
        assert bag(mirror.rows(connection, shape)) == {(1, "a"): 1, (2, "3"): 1, (3, "c"): 1}
        assert len(prepared()) == 1
        changing.drop(connection, table)
        changing.drop(connection, filled())
        assert list(changing._dropped) == [table]  # nothing has changed the other one, so it has no stream


@pytest.mark.parametrize("end", ["next rows", "close", "collection"])
def test_rows_that_no_statement_has_read_are_freed(end: str) -> None:
    """A statement may fail before it reads its rows. A snapshot that ends, or begins again, does not close its streams."""
    gc.collect()
    before = pa.total_allocated_bytes()
    with duckdb.connect() as connection:
        source = Incoming(connection)
        with contextlib.suppress(duckdb.CatalogException):
            source.run(f"INSERT INTO missing SELECT * FROM {source.name}", pa.table({"c": range(100_000)}))
        assert pa.total_allocated_bytes() - before >= 800_000
        if end == "next rows":
            assert source.run(f"SELECT * FROM {source.name}", pa.table({"c": [1]})).fetchall() == [(1,)]
        elif end == "close":
            source.close()
        else:
            del source
        assert pa.total_allocated_bytes() - before < 100_000


def test_the_streams_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "KEPT_MAX", 2)
    with duckdb.connect() as connection:
        sources = incoming.Incomings(connection)
        for key in (1, 2, 1, 3):
            source = sources.of(key)
            assert source.run(f"SELECT * FROM {source.name}", pa.table({"c": [key]})).fetchall() == [(key,)]
        assert list(sources._kept) == [1, 3]
        with pytest.raises(duckdb.CatalogException):
            connection.execute("SELECT * FROM __incoming_2")


@pytest.mark.parametrize("type", [FLOAT4, FLOAT8], ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_nan_is_kept(connection: duckdb.DuckDBPyConnection, type: Type, count: int) -> None:
    columns = (Field("value", type),)
    schema = arrow_schema(columns, weight=True)
    shape = mirror.Shape(1, columns, None)
    mirror.drop(connection, shape)
    mirror.create(connection, shape)
    with Incoming(connection) as source:
        mirror.apply(source, shape, pa.table([[math.nan, None][:count], [1] * count], schema=schema))
    rows = mirror.rows(connection, shape)
    assert sorted(map(repr, rows["value"].to_pylist())) == ["None", "nan"][-count:]


def test_infinite_times_are_kept() -> None:
    columns = tuple(Field(type.name, type) for type in (TIMESTAMP, TIMESTAMPTZ, DATE))
    schema = arrow_schema(columns, weight=True)
    numbers = (pa.array([2**63 - 1]), pa.array([1 - 2**63]), pa.array([2**31 - 1], pa.int32()))
    data = [number.cast(type) for number, type in zip(numbers, schema.types, strict=False)]
    shape = mirror.Shape(1, columns, None)
    with duckdb.connect() as connection:
        mirror.create(connection, shape)
        with Incoming(connection) as source:
            mirror.apply(source, shape, pa.Table.from_arrays([*data, pa.array([1])], schema=schema))
        texts = connection.execute("SELECT CAST(c0 AS VARCHAR), CAST(c1 AS VARCHAR), CAST(c2 AS VARCHAR) FROM r1").fetchone()
        assert texts == ("infinity", "-infinity", "infinity")
