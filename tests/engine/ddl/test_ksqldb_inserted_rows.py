"""INSERT INTO … VALUES into a derived stream: its row, and the table with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tailgate.engine.ddl.ksqldb import inserted_row, with_table
from tailgate.lake.catalog import Catalog, Change, MaterializedView
from tailgate.lake.catalog.formats import Failure
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import TailgateError
from tailgate.lake.readers.failed import failed
from tailgate.sql.binder.writes.merges import Merges
from tailgate.sql.binder.writes.writes import Writes
from tailgate.sql.statements import AlterTable, CreateIndex, InsertMessage, Merge, Truncate, parse
from tailgate.sql.tables.altered_table import table_to_alter
from tailgate.sql.tables.indexes import create_index
from tests.engine.ddl.ksqldb_items import READINGS, declared, derived, no_expression

STREAM = "CREATE STREAM s AS SELECT sensor, reading FROM readings EMIT CHANGES"
WINDOWED = (
    "CREATE STREAM w (k INT KEY, a INT) WITH (kafka_topic = 'w', value_format = 'json', window_type = 'tumbling', window_size = '1 hour')"
)


def inserted(text: str, declaration: str = READINGS, query: str = STREAM) -> dict[str, Any]:
    """Returns the row of a statement."""
    statement = parse(text, "ksqldb")
    assert isinstance(statement, InsertMessage)
    view, _, _ = derived(query, declared(declaration))
    table = inserted_row(statement.statement, view, 5_000_000, no_expression)
    return {name: table.column(name).to_pylist()[0] for name in table.column_names if name != "rowtime"} | {
        "rowtime": table.column("rowtime").cast("int64").to_pylist()[0]
    }


def with_rows() -> Catalog:
    """Returns a catalog with a derived stream into which a row was inserted."""
    view, _, catalog = derived(STREAM, declared(READINGS))
    catalog = catalog.apply(Change(put=(replace(view, ready=True),)))
    return catalog.apply(with_table(replace(view, ready=True), catalog, 0))


@pytest.mark.parametrize(
    ("rowtime", "micros"), [("0", 0), ("1500", 1_500_000), ("400000000000000", 400_000_000_000_000_000), ("NULL", 5_000)]
)
def test_rowtime(rowtime: str, micros: int) -> None:
    assert inserted(f"INSERT INTO s (rowtime, sensor) VALUES ({rowtime}, 'a')")["rowtime"] == micros


@pytest.mark.parametrize("rowtime", ["-1", "9223372036854775807", "9223372036854776"])
def test_rowtime_out_of_range(rowtime: str) -> None:
    with pytest.raises(TailgateError, match="ROWTIME out of range") as error:
        inserted(f"INSERT INTO s (rowtime, sensor) VALUES ({rowtime}, 'a')")
    assert (error.value.sqlstate, error.value.position) == ("22008", 0)


def test_a_stream_with_windows_in_its_key_gets_no_rows() -> None:
    with pytest.raises(TailgateError, match="Cannot insert values into windowed stream/table!") as error:
        inserted("INSERT INTO d VALUES (1, 0, 2)", WINDOWED, "CREATE STREAM d AS SELECT * FROM w EMIT CHANGES")
    assert error.value.sqlstate == "42809"


@pytest.mark.parametrize("has_table", [False, True])
def test_a_failed_stream_gets_no_rows(has_table: bool) -> None:
    catalog = with_rows() if has_table else derived(STREAM, declared(READINGS))[2]
    stream = catalog.expect(MaterializedView, catalog.relation(Name("s")).id)
    stream = failed(replace(stream, ready=True), Failure(1, "a defect"))
    with pytest.raises(TailgateError, match="a defect") as error:
        with_table(stream, catalog.apply(Change(put=(stream,))), 0)
    assert error.value.sqlstate == "55000"


def change(text: str, catalog: Catalog) -> None:
    """Binds a statement that changes a table."""
    match parse(text, "postgresql"):
        case Truncate() as truncate:
            Writes(catalog, (), {}).truncate(truncate)
        case Merge() as merge:
            Merges(catalog, (), {}).merge(merge)
        case AlterTable() as alter:
            table_to_alter(alter, catalog)
        case CreateIndex() as index:
            create_index(index, catalog)


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE s_inserted",
        "MERGE INTO s_inserted s USING (SELECT 'a' AS k) x ON s.sensor = x.k WHEN MATCHED THEN DELETE",
        "ALTER TABLE s_inserted ADD COLUMN x int",
        "ALTER TABLE s_inserted ADD CHECK (reading > 0)",
        "CREATE UNIQUE INDEX ON s_inserted (sensor)",
    ],
)
def test_the_table_cannot_be_changed(text: str) -> None:
    with pytest.raises(TailgateError, match='cannot change table "s_inserted"') as error:
        change(text, with_rows())
    assert error.value.sqlstate == "42809"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("INSERT INTO s (rowkey, id, n) VALUES ('x', 1, 2)", b"x"),
        ("INSERT INTO s (n, rowkey) VALUES (2, NULL)", None),
        ("INSERT INTO s VALUES (1, 2)", None),
    ],
)
def test_an_unnamed_key_is_rowkey(text: str, key: bytes | None) -> None:
    declaration = "CREATE STREAM u (id INT, n INT) WITH (kafka_topic = 'u', value_format = 'json', KEY = 'ID')"
    row = inserted(text, declaration, "CREATE STREAM s AS SELECT * FROM u EMIT CHANGES")
    assert (row["rowkey"], row["n"]) == (key, 2)


def test_values_of_all_types() -> None:
    declaration = (
        "CREATE STREAM v (k VARCHAR KEY, b BOOLEAN, i INT, l BIGINT, x DOUBLE, d DECIMAL(6, 2), t TIME, da DATE, ts TIMESTAMP, y BYTES,"
        " a ARRAY<INT>, m MAP<VARCHAR, BIGINT>, s STRUCT<f INT, g ARRAY<VARCHAR>>) WITH (kafka_topic = 'v', value_format = 'json')"
    )
    row = inserted(
        "INSERT INTO c VALUES ('k', true, 1, 2, 1.5, 2.25, '10:00:00', '2020-02-03', '2020-02-03T04:05:06', 'YWI=', ARRAY[1, NULL],"
        " MAP('a' := 1), STRUCT(f := 1, g := ARRAY['x']))",
        declaration,
        "CREATE STREAM c AS SELECT * FROM v EMIT CHANGES",
    )
    assert (row["b"], row["y"], row["a"], row["s"]) == (True, b"ab", "[1, null]", '{"F": 1, "G": ["x"]}')
