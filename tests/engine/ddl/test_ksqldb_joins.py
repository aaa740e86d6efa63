"""Joins of ksqlDB's streams and tables, and the items that they create."""

from __future__ import annotations

import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query
from tests.engine.ddl.ksqldb_items import READINGS, declared, derived

TABLES = (
    "CREATE TABLE a (id VARCHAR PRIMARY KEY, x INT, f VARCHAR) WITH (kafka_topic = 'a', value_format = 'json')",
    "CREATE TABLE b (id VARCHAR PRIMARY KEY, y INT) WITH (kafka_topic = 'b', value_format = 'json')",
    "CREATE TABLE c (cid VARCHAR PRIMARY KEY, x INT) WITH (kafka_topic = 'c', value_format = 'json')",
)


def tables() -> Catalog:
    catalog = declared(READINGS)
    for text in TABLES:
        catalog = declared(text, catalog)
    return catalog


@pytest.mark.parametrize(
    ("query", "columns", "key", "text"),
    [
        ("SELECT * FROM a JOIN b ON a.id = b.id", "a_id a_x a_f b_id b_y", "a_id", "a AS a INNER JOIN b AS b ON a.id = b.id"),
        ("SELECT b.id, x, y FROM a JOIN b ON b.id = a.id", "b_id x y", "b_id", "a AS a INNER JOIN b AS b ON a.id = b.id"),
        ("SELECT l.id AS k, l.x, c.x FROM a l LEFT JOIN c ON l.id = cid", "k l_x c_x", "k", "a AS l LEFT JOIN c AS c ON l.id = c.cid"),
        ("SELECT cid, y FROM b RIGHT JOIN c ON id = cid", "cid y", "cid", "b AS b RIGHT JOIN c AS c ON b.id = c.cid"),
        ("SELECT rowkey, x, y FROM a FULL JOIN b ON a.id = b.id", "rowkey x y", "rowkey", "a AS a FULL JOIN b AS b ON a.id = b.id"),
        ("SELECT rowkey AS k, y FROM a FULL JOIN b ON a.id = b.id", "k y", "k", "a AS a FULL JOIN b AS b ON a.id = b.id"),
        ("SELECT * FROM b FULL JOIN c ON id = cid", "rowkey b_id b_y c_cid c_x", "rowkey", "b AS b FULL JOIN c AS c ON b.id = c.cid"),
        ("SELECT a.id, y FROM a JOIN b ON a.f = b.id", "a_id y", "a_id", "a AS a INNER JOIN b AS b ON a.f = b.id WHERE a.f IS NOT NULL"),
        (
            "SELECT b.id AS k, c.x FROM a JOIN b ON a.id = b.id LEFT JOIN c ON b.id = cid WHERE y > 1",
            "k c_x",
            "k",
            "a AS a INNER JOIN b AS b ON a.id = b.id LEFT JOIN c AS c ON a.id = c.cid WHERE (b.y > 1)",
        ),
    ],
)
def test_joins_of_tables(query: str, columns: str, key: str, text: str) -> None:
    view, sink, catalog = derived(f"CREATE TABLE t AS {query} EMIT CHANGES", tables())
    assert view.query.split(" FROM ")[1] == text
    assert [c.name for c in view.columns] == [*columns.split(), "rowtime"]
    assert view.ksqldb is not None
    assert view.ksqldb.message_key == (key,)
    assert (sink.envelope, sink.settings["topic.cleanup.policy"]) == ("upsert", "compact")
    above, _, _ = derived(f"CREATE TABLE u AS SELECT {key}, count(*) AS n FROM t GROUP BY {key} EMIT CHANGES", catalog)
    assert [c.name for c in above.columns] == [key, "n", "rowtime"]


def test_the_key_of_a_join_is_never_null() -> None:
    """A column of the side that may be missing is the key's value if the projection has no other."""
    view, _, _ = derived("CREATE TABLE t AS SELECT b.id AS k, y FROM a LEFT JOIN b ON a.id = b.id EMIT CHANGES", tables())
    assert view.query.startswith("SELECT a.id AS k, b.y AS y, greatest(a.rowtime, b.rowtime) AS rowtime ")
    view, _, _ = derived("CREATE TABLE t AS SELECT a.id AS k, b.id AS other FROM a LEFT JOIN b ON a.id = b.id EMIT CHANGES", tables())
    assert view.query.startswith("SELECT a.id AS k, b.id AS other, ")
    view, _, _ = derived("CREATE TABLE t AS SELECT a.id AS k, y FROM a RIGHT JOIN b ON a.id = b.id EMIT CHANGES", tables())
    assert view.query.startswith("SELECT b.id AS k, b.y AS y, ")


def test_a_projection_of_a_table_is_a_table() -> None:
    view, sink, _ = derived("CREATE TABLE t AS SELECT id, ucase(f) AS f FROM a WHERE x > 1 EMIT CHANGES", tables())
    assert view.query == "SELECT id AS id, upper(f) AS f, rowtime AS rowtime FROM a WHERE (x > 1)"
    assert (view.key, sink.message_key, sink.envelope) == ((0,), (0,), "upsert")


def test_rowtime_of_a_table_is_only_read_by_its_name() -> None:
    """PostgreSQL's `*`, NATURAL JOIN and values of whole rows leave it out. Two tables have no column in common by it."""

    def columns(query: str) -> list[str]:
        return [column.name for column in bind_query(query, tables()).columns]

    assert columns("SELECT *, a.rowtime FROM a") == ["id", "x", "f", "rowtime"]
    assert columns("SELECT * FROM a NATURAL JOIN b") == ["id", "x", "f", "y"]
    assert columns("SELECT * FROM a JOIN b USING (rowtime)") == ["rowtime", "id", "x", "f", "id", "y"]
    assert [field.name for field in bind_query("SELECT a FROM a", tables()).columns[0].type.fields] == ["id", "x", "f"]


@pytest.mark.parametrize(
    ("query", "sqlstate", "message"),
    [
        ("SELECT * FROM a JOIN readings r ON a.id = r.sensor", "42809", "Invalid join order: table-stream joins"),
        (
            "SELECT * FROM readings r RIGHT JOIN a ON r.sensor = a.id",
            "0A000",
            "Right outer joins between streams and tables are not supported",
        ),
        ("SELECT * FROM readings r JOIN a ON r.sensor = a.id", "42809", "produces a STREAM"),
        ("SELECT * FROM a JOIN a ON a.id = a.id", "42712", "Each side of the join must have a unique alias"),
        ("SELECT * FROM a JOIN b ON a.id = b.y", "42P10", "require to join on the primary key of the right input table. Got A.ID = B.Y"),
        ("SELECT * FROM a JOIN b ON a.x = b.id", "42804", "types don't match. Got A.X{INTEGER} = B.ID{STRING}"),
        ("SELECT * FROM a JOIN b ON a.id = b.id AND a.x = b.y", "0A000", "JOINs on multiple conditions are not yet supported"),
        ("SELECT * FROM a JOIN b ON b.id = b.id", "42P10", "Left side references `B` and right references `B`"),
        ("SELECT * FROM a JOIN b ON concat(b.id, a.f) = b.id", "42P10", "references from exactly one source"),
        ("SELECT * FROM a JOIN b ON id = b.id", "42702", "Column 'ID' is ambiguous. Could be A.ID or B.ID."),
        ("SELECT * FROM a FULL JOIN b ON a.f = b.id", "0A000", "full-outer join not supported for foreign-key"),
        ("SELECT * FROM a JOIN b WITHIN 1 HOUR ON a.id = b.id", "42809", "A window definition was provided"),
        ("SELECT x FROM a JOIN b ON a.id = b.id", "42P10", "the join expressions A.ID or B.ID in"),
        ("SELECT a.id FROM a FULL JOIN b ON a.id = b.id", "42P10", "the join expression ROWKEY"),
        ("SELECT y FROM a JOIN b ON a.f = b.id", "42P10", r"primary key columns from the left input table \(A\.ID\)"),
        ("SELECT * FROM a JOIN c ON a.id = c.cid JOIN none ON a.id = none.id", "42P01", "NONE does not exist"),
        ("SELECT z.* FROM a JOIN b ON a.id = b.id", "42703", "SELECT column 'Z.\\*'"),
        ("SELECT id FROM a PARTITION BY x", "42809", "PARTITION BY is only supported for streams"),
        ("SELECT x FROM a", "42P10", "the key column ID"),
    ],
)
def test_wrong_joins(query: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        derived(f"CREATE TABLE t AS {query} EMIT CHANGES", tables())
    assert error.value.sqlstate == sqlstate


ARRIVAL = "FOR SYSTEM_TIME AS OF PROCTIME()"
CHAIN = f"readings AS r LEFT JOIN a {ARRIVAL} AS a ON r.sensor = a.id INNER JOIN b {ARRIVAL} AS b ON a.f = b.id"
POSITION = "r.rowtime AS rowtime, r.rowpartition AS rowpartition, r.rowoffset AS rowoffset, r._arrival AS _arrival"


@pytest.mark.parametrize(
    ("query", "columns", "key", "text"),
    [
        (
            "SELECT * FROM readings r JOIN a ON r.sensor = a.id",
            "r_sensor r_area r_reading a_id a_x a_f",
            "r_sensor",
            f"readings AS r INNER JOIN a {ARRIVAL} AS a ON r.sensor = a.id WHERE r.sensor IS NOT NULL",
        ),
        (
            "SELECT r.reading, a.id, x, r.rowtime AS t FROM readings r LEFT JOIN a ON r.area = a.id WHERE x > 1",
            "reading id x t",
            "id",
            f"readings AS r LEFT JOIN a {ARRIVAL} AS a ON r.area = a.id WHERE r.area IS NOT NULL AND (a.x > 1)",
        ),
        (
            "SELECT a.id, b.id, y FROM readings r LEFT JOIN a ON r.sensor = a.id JOIN b ON a.f = b.id",
            "a_id b_id y",
            "b_id",
            f"{CHAIN} WHERE r.sensor IS NOT NULL AND a.f IS NOT NULL",
        ),
        (
            "SELECT y, r.reading, b.id AS k FROM readings r JOIN b ON CAST(r.reading AS VARCHAR) = b.id",
            "y reading k",
            "k",
            f"readings AS r INNER JOIN b {ARRIVAL} AS b ON CAST(r.reading AS text) = b.id WHERE CAST(r.reading AS text) IS NOT NULL",
        ),
    ],
)
def test_joins_of_a_stream_with_tables(query: str, columns: str, key: str, text: str) -> None:
    view, sink, catalog = derived(f"CREATE STREAM t AS {query} EMIT CHANGES", tables())
    assert view.query.endswith(f", {POSITION} FROM {text}")
    assert [c.name for c in view.columns] == [*columns.split(), "rowtime", "rowpartition", "rowoffset", "_arrival"]
    assert view.ksqldb is not None
    assert view.ksqldb.message_key == (key,)
    assert (sink.envelope, sink.message_key) == ("none", (columns.split().index(key),))
    above, _, _ = derived(f"CREATE TABLE u AS SELECT {key}, count(*) AS n FROM t GROUP BY {key} EMIT CHANGES", catalog)
    assert [c.name for c in above.columns] == [key, "n", "rowtime"]


def test_an_aggregate_of_a_join() -> None:
    query = "SELECT a.f AS f, count(*) AS n FROM readings r LEFT JOIN a ON r.sensor = a.id GROUP BY a.f"
    view, sink, _ = derived(f"CREATE TABLE t AS {query} EMIT CHANGES", tables())
    assert f"FROM readings AS r LEFT JOIN a {ARRIVAL} AS a ON" in view.query
    assert (sink.envelope, sink.message_key) == ("upsert", (0,))
