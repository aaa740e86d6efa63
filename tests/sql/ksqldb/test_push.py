"""Push queries in PostgreSQL's dialect: their texts, hidden columns and keys, and which of them need a view."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailgate.lake.catalog import Catalog, Change, MaterializedView, Source, Table
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import INT4, INT8, TEXT, TIMESTAMPTZ, Field
from tailgate.sql.ksqldb.queries import PushQuery, push_query
from tailgate.sql.statements import CopyTo, DeclareCursor, FollowKsqldb, parse

STREAM = KsqldbItem(type="stream", statement="", topic="t", key_format="KAFKA", value_format="JSON", message_key=("k",))
POSITION = (Field("rowtime", TIMESTAMPTZ), Field("rowpartition", INT4), Field("rowoffset", INT8), Field("_arrival", TEXT))
COLUMNS = (Field("k", INT4), Field("v", INT4), Field("Mixed", TEXT))
CATALOG = Catalog().apply(
    Change(
        put=(
            Source(1000, "s", (*COLUMNS, *POSITION), ksqldb=STREAM),
            MaterializedView(1001, "derived", (*COLUMNS, *POSITION), stored=True, ksqldb=replace(STREAM, query="CSAS_DERIVED_0")),
            MaterializedView(1003, "kt", COLUMNS[:2], stored=True, ksqldb=replace(STREAM, type="table", query="CTAS_KT_1")),
            Table(1005, "t", (Field("a", INT4),), stored=True),
            MaterializedView(1007, "foreign_windows", (Field("k", INT4), Field("windowend", TIMESTAMPTZ)), key=(0,), stored=True),
        )
    )
)
HIDDEN = ", _arrival AS __arrival, rowpartition AS _rowpartition, rowoffset AS _rowoffset"


def push(text: str) -> PushQuery:
    statement = parse(text)
    assert isinstance(statement, FollowKsqldb)
    return push_query(statement.statement.query, CATALOG)


def test_the_position_of_a_streams_rows_is_hidden() -> None:
    query = push("SELECT * FROM derived EMIT CHANGES LIMIT 3")
    assert query.text == f'SELECT k AS k, v AS v, "Mixed" AS "Mixed"{HIDDEN} FROM derived'
    assert ([name for name, _ in query.columns], query.key, query.type) == (["k", "v", "Mixed"], (), "stream")
    assert query.hidden == ("__arrival", "_rowpartition", "_rowoffset")
    query = push("SELECT d.v / 2, UCASE(`Mixed`) AS M, ROWTIME, k AS _rowoffset FROM derived d WHERE v > 1 EMIT CHANGES")
    rowtime = "CAST(extract(epoch FROM rowtime) * 1000 AS bigint)"
    items = f'(v / 2) AS ksql_col_0, upper("Mixed") AS m, {rowtime} AS rowtime, k AS _rowoffset'
    assert query.text == f"SELECT {items}{HIDDEN.replace('AS _', 'AS __')} FROM derived WHERE (v > 1)"
    assert push("SELECT v FROM derived WHERE 9 / v > 1 EMIT CHANGES").text.endswith("WHERE try(((9 / v) > 1))")
    assert push("SELECT v FROM derived WHERE v IS NOT NULL EMIT CHANGES").text.endswith("WHERE (NOT coalesce((v IS NULL), false))")
    assert "GROUP BY try((9 / v))" in push("SELECT 9 / v AS a, count(*) AS n FROM derived GROUP BY 9 / v EMIT CHANGES").text


def test_the_key_of_a_tables_rows() -> None:
    assert push("SELECT v, k AS id, AS_VALUE(k) AS copy FROM kt EMIT CHANGES").key == (1,)
    assert push("SELECT v FROM kt EMIT CHANGES").key == ()
    query = push("SELECT count(*) AS n, v FROM derived GROUP BY v EMIT CHANGES")
    assert (query.key, query.type, query.hidden) == ((1,), "table", ())
    assert push("SELECT count(*) AS n FROM derived GROUP BY v EMIT CHANGES").key == ()
    foreign = push("SELECT * FROM foreign_windows EMIT CHANGES")  # a time of PostgreSQL's dialect is no WINDOWEND
    assert (foreign.key, foreign.hidden, foreign.windows) == ((0,), (), None)
    windowed = push("SELECT v, count(*) AS n, WINDOWEND FROM s WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY v EMIT FINAL")
    assert (windowed.hidden, windowed.key) == (("_windowstart", "_windowend"), (0, 3))
    assert [name for name, _ in windowed.columns] == ["v", "n", "windowend"]


@pytest.mark.parametrize(
    ("text", "needs_view", "is_of_tables"),
    [
        ("SELECT * FROM s EMIT CHANGES", True, False),
        ("SELECT * FROM derived EMIT CHANGES", False, False),
        ("SELECT k, count(*) AS n FROM derived GROUP BY k EMIT CHANGES", True, False),
        ("SELECT k, count(*) AS n FROM derived WINDOW SESSION (1 HOUR) GROUP BY k EMIT CHANGES", True, False),
        ("SELECT s.k, kt.v FROM s JOIN kt ON s.k = kt.k EMIT CHANGES", True, False),
        ("SELECT s.k FROM s JOIN derived d WITHIN 1 HOUR ON s.k = d.k PARTITION BY s.v EMIT CHANGES", True, False),
        ("SELECT * FROM kt EMIT CHANGES", False, True),
    ],
)
def test_declared_streams_joins_and_groups_of_streams_need_a_view(text: str, needs_view: bool, is_of_tables: bool) -> None:
    query = push(text)
    assert (query.needs_view, query.is_of_tables) == (needs_view, is_of_tables)


def test_aggregates_without_group_by_are_of_all_rows() -> None:
    query = push("SELECT count(*) AS n, MAX(v) AS m FROM s HAVING count(*) > 1 EMIT CHANGES")
    assert query.text.endswith("FROM s WHERE CAST(true AS boolean) IS NOT NULL GROUP BY CAST(true AS boolean) HAVING (count(*) > 1)")
    assert (query.key, query.type, query.needs_view) == ((), "table", True)
    windowed = push("SELECT count(*) AS n FROM s WINDOW TUMBLING (SIZE 1 HOUR) EMIT FINAL")
    assert windowed.hidden == ("_windowstart", "_windowend")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM t EMIT CHANGES", "a table without a key"),
        ("SELECT none FROM derived EMIT CHANGES", "SELECT column 'NONE' cannot be resolved"),
        ("SELECT * FROM derived PARTITION BY none EMIT CHANGES", "PARTITION BY column 'NONE' cannot be resolved"),
        ("SELECT * FROM kt PARTITION BY v EMIT CHANGES", "PARTITION BY is only supported for streams"),
        ("SELECT v, count(*) AS n FROM derived EMIT CHANGES", "Non-aggregate SELECT expression.* not part of GROUP BY: V"),
        ("SELECT * FROM derived WINDOW TUMBLING (SIZE 1 HOUR) EMIT CHANGES", "WINDOW clause requires a GROUP BY"),
        ("SELECT * FROM derived EMIT FINAL", "EMIT FINAL is only supported for windowed aggregations"),
    ],
)
def test_push_queries_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message):
        push(text)


def test_cursors_and_copy_contain_push_queries() -> None:
    text = "SELECT `Mixed`, ucase(')') FROM s WHERE (v = 1) EMIT CHANGES LIMIT 1"
    copy = parse(f"COPY ({text}) TO STDOUT (FORMAT csv)")
    assert isinstance(copy, CopyTo) and isinstance(copy.statement, FollowKsqldb)
    assert (copy.statement.text, copy.format, copy.statement.statement.query.source.position) == (text, "csv", 38)
    declare = parse(f"DECLARE c CURSOR FOR {text};")
    assert isinstance(declare, DeclareCursor) and isinstance(declare.statement, FollowKsqldb)
    assert declare.statement.text == text
    with pytest.raises(TailgateError) as error:
        parse("COPY (SELECT a FROM WHERE EMIT CHANGES) TO STDOUT")
    assert error.value.position == 20
    with pytest.raises(TailgateError, match="takes a query with EMIT CHANGES") as error:  # a stream of this name and its alias
        parse("COPY (SELECT a FROM EMIT CHANGES) TO STDOUT")
    assert (error.value.sqlstate, error.value.position) == ("42601", 6)
