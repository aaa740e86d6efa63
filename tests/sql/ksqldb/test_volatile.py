"""Functions whose value differs each time: a value per record, and refused where no record is behind a row."""

from __future__ import annotations

import json
import time
import uuid

import duckdb
import pytest

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.bind import bind_query
from tailgate.sql.ksqldb.functions.volatile import DAY_MS
from tailgate.sql.render.duckdb import render
from tailgate.sql.statements import QueryText
from tests.sql.ksqldb.test_push import CATALOG, push


@pytest.fixture(scope="module", autouse=True)
def records(engine: duckdb.DuckDBPyConnection) -> None:
    """Makes the table that a scan of the stream `s` reads."""
    columns = "NULL::int AS c0, 1 AS c1, NULL::text AS c2, now() AS c3, (n % 2)::int AS c4, n // 2 AS c5, '' AS c6, 1 AS __weight"
    engine.execute(f"CREATE TABLE r1000 AS SELECT {columns} FROM range(2000) AS t(n)")


def sql_of(text: str) -> str:
    return render(bind_query(QueryText(push(text).text), CATALOG, view=True).plan)


def test_each_record_has_a_value_that_is_the_same_again(engine: duckdb.DuckDBPyConnection) -> None:
    sql = sql_of("SELECT uuid() AS u, uuid() AS w, random() AS r FROM s EMIT CHANGES")
    rows = engine.execute(sql).fetchall()
    assert sorted(rows) == sorted(engine.execute(sql).fetchall())
    ids = [uuid.UUID(id) for row in rows for id in row[:2]]
    assert len(set(ids)) == 4000 and {id.version for id in ids} == {4} and {id.variant for id in ids} == {uuid.RFC_4122}
    values = [row[2] for row in rows]
    assert len(set(values)) == 2000 and all(0 <= value < 1 for value in values)
    assert 0.45 < sum(values) / 2000 < 0.55


def test_a_condition_may_contain_random(engine: duckdb.DuckDBPyConnection) -> None:
    rows = engine.execute(sql_of("SELECT v FROM s WHERE random() < 0.25 EMIT CHANGES")).fetchall()
    assert 400 < len(rows) < 600


@pytest.mark.parametrize(
    ("source", "column"), [("derived", "rowoffset"), ("kt", "k"), ("s JOIN derived d WITHIN 1 HOUR ON s.k = d.k", 'd."Mixed"')]
)
def test_rows_without_a_record_have_a_value_by_their_columns(source: str, column: str) -> None:
    text = push(f"SELECT uuid() AS u, random() AS r FROM {source} WHERE random() >= 0 EMIT CHANGES").text
    assert text.count(f"coalesce(CAST({column} AS text), '')") == 1 + 6 + 6


def test_the_time_is_that_of_the_evaluation(engine: duckdb.DuckDBPyConnection) -> None:
    before = time.time_ns() // 1_000_000
    rows = engine.execute(
        sql_of("SELECT UNIX_TIMESTAMP() AS t, UNIX_DATE() AS d FROM s WHERE UNIX_TIMESTAMP() > 0 EMIT CHANGES")
    ).fetchall()
    after = time.time_ns() // 1_000_000
    assert len(rows) == 2000
    assert all(before <= row[0] <= after and before // DAY_MS <= row[1] <= after // DAY_MS for row in rows)


def test_a_group_has_a_value_for_each_change(engine: duckdb.DuckDBPyConnection) -> None:
    before = time.time_ns() // 1_000_000
    sql = sql_of(
        "SELECT ROWPARTITION, uuid() AS u, random() AS r, count_distinct(uuid()) AS n, UNIX_TIMESTAMP() AS t, MIN(UNIX_DATE()) AS d FROM s"
        " GROUP BY ROWPARTITION HAVING random() >= 0 EMIT CHANGES"
    )
    rows = sorted(engine.execute(sql).fetchall())
    assert len({uuid.UUID(row[1]) for row in rows}) == len({row[2] for row in rows}) == 2
    assert [row[3] for row in rows] == [1000, 1000]
    assert all(before <= row[4] <= time.time_ns() // 1_000_000 and row[5] >= before // DAY_MS for row in rows)
    assert sorted(row[:4] for row in engine.execute(sql).fetchall()) == [row[:4] for row in rows]


def test_groups_may_be_those_of_a_value_per_record(engine: duckdb.DuckDBPyConnection) -> None:
    rows = engine.execute(sql_of("SELECT RANDOM() < 0.5 AS b, count(*) AS n FROM s GROUP BY RANDOM() < 0.5 EMIT CHANGES")).fetchall()
    assert {row[0] for row in rows} == {False, True} and sum(row[1] for row in rows) == 2000
    before = time.time_ns() // 1_000_000
    counts = engine.execute(sql_of("SELECT UNIX_DATE() AS d, count(*) AS n FROM s GROUP BY UNIX_DATE() EMIT CHANGES")).fetchall()
    assert min(counts)[0] >= before // DAY_MS and sum(row[1] for row in counts) == 2000
    times = engine.execute(sql_of("SELECT TRANSFORM(ARRAY[1], x => UNIX_TIMESTAMP() + x) AS t FROM s EMIT CHANGES")).fetchall()
    assert all(json.loads(row[0])[0] > before for row in times)


def test_a_stream_may_be_partitioned_by_a_value_per_record() -> None:
    push("SELECT v FROM s PARTITION BY random() EMIT CHANGES")
    push("SELECT v FROM s PARTITION BY UNIX_TIMESTAMP() EMIT CHANGES")


@pytest.mark.parametrize("window", ["TUMBLING (SIZE 1 HOUR)", "SESSION (1 HOUR)"])
def test_the_value_of_a_group_depends_on_its_window(window: str) -> None:
    text = push(f"SELECT v, uuid() AS u, count(*) AS n FROM s WINDOW {window} GROUP BY v EMIT CHANGES").text
    bounds = [text.split(" AS _windowstart")[0].split(", ")[-1], text.split(" AS _windowend")[0].split("_windowstart, ")[-1]]
    assert all(f"CAST({part} AS text)" in text for part in ("v", *bounds, "count(*)", "max(rowtime)"))


def test_rows_of_sessions_have_the_time_in_a_column() -> None:
    text = push(
        "SELECT v, UNIX_DATE() AS d, MIN(UNIX_TIMESTAMP()) AS t, UUID() AS u, count(*) AS n FROM s WINDOW SESSION (1 HOUR)"
        " GROUP BY v, RANDOM() EMIT CHANGES"
    ).text
    assert text.count("ksqldb_clock(") == 1 and text.count('"unix_timestamp()"') == 3
    assert "ksqldb_clock(" not in push("SELECT v, count(*) AS n FROM s WINDOW SESSION (1 HOUR) GROUP BY v EMIT CHANGES").text
    joined = "s JOIN derived d WITHIN 1 HOUR ON s.k = d.k"
    push(f"SELECT UNIX_DATE() AS d, count(*) AS n FROM {joined} WINDOW SESSION (1 HOUR) GROUP BY UNIX_DATE() EMIT CHANGES")


def test_rows_of_tables_keep_the_time() -> None:
    query = push("SELECT k, v, UNIX_TIMESTAMP() AS t FROM kt WHERE UNIX_DATE() > 0 EMIT CHANGES")
    assert query.needs_view and query.key == (0,)
    assert query.text.count("ksqldb_first_time(ksqldb_clock(") == 1 and query.text.count('"unix_timestamp()"') == 3
    text = push("SELECT v, MAX(UNIX_TIMESTAMP()) AS t, UNIX_DATE() AS d FROM kt GROUP BY v EMIT CHANGES").text
    assert 'max("unix_timestamp()")' in text and "ksqldb_high_watermark(to_timestamp(ksqldb_clock(" in text
    joined = push("SELECT kt.k AS k, UNIX_TIMESTAMP() AS t FROM kt LEFT JOIN foreign_windows w ON kt.k = w.k EMIT CHANGES")
    assert joined.key == (0,)


@pytest.mark.parametrize("source", ["derived", "s JOIN derived d WITHIN 1 HOUR ON s.k = d.k"])
def test_rows_without_a_record_of_a_topic_have_the_time(source: str) -> None:
    push(f"SELECT UNIX_TIMESTAMP() AS t FROM {source} EMIT CHANGES")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TRANSFORM(ARRAY[v], x => random()) AS r FROM s EMIT CHANGES",
        "SELECT v, TRANSFORM(COLLECT_LIST(k), x => x + UNIX_DATE()) AS l FROM s GROUP BY v EMIT CHANGES",
    ],
)
def test_where_they_are_refused(text: str) -> None:
    with pytest.raises(FeatureNotSupported, match=r"is not supported here, because its value differs each time"):
        push(text)
