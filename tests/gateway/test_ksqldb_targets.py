"""INSERT and CREATE TABLE … AS belong to ksqlDB if they name its streams or tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailgate.gateway.ksqldb.targets import followed, in_dialect
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Source, Table
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import INT4, TEXT, TIMESTAMPTZ, Field
from tailgate.sql.ksqldb.dialect import Dialect
from tailgate.sql.statements import FollowKsqldb, QueryText, Tail, parse

STREAM = KsqldbItem(type="stream", statement="", topic="t", key_format="KAFKA", value_format="JSON")
DERIVED = MaterializedView(
    1003,
    "derived",
    (Field("a", INT4), Field("Mixed", TEXT), Field("rowtime", TIMESTAMPTZ)),
    stored=True,
    ksqldb=replace(STREAM, query="CSAS_DERIVED_0"),
)
CATALOG = Catalog().apply(
    Change(
        put=(
            Source(1000, "s", (Field("a", INT4),), ksqldb=STREAM),
            Source(1001, "plain", (Field("a", INT4),)),
            Table(1002, "t", (Field("a", INT4),), stored=True),
            DERIVED,
        )
    )
)


@pytest.mark.parametrize(
    ("text", "dialect", "kind"),
    [
        ("INSERT INTO s (a) VALUES (1)", "auto", "InsertMessage"),
        ("INSERT INTO S VALUES (1)", "auto", "InsertMessage"),
        ("INSERT INTO s VALUES (1)", "postgresql", "Insert"),
        ("INSERT INTO t VALUES (1)", "auto", "Insert"),
        ("INSERT INTO nothing VALUES (1)", "auto", "Insert"),
        ("CREATE TABLE x AS SELECT a, count(*) AS n FROM s GROUP BY a", "auto", "CreateKsqldbItem"),
        ("INSERT INTO s SELECT * FROM s", "auto", "InsertStream"),
        ("INSERT INTO s WITH (query_id = 'q') SELECT * FROM s", "auto", "InsertStream"),
        ("CREATE TABLE x AS SELECT a, count(*) AS n FROM s GROUP BY a", "postgresql", "CreateTableAs"),
        ("CREATE TABLE x AS SELECT a, count(*) AS n FROM plain GROUP BY a", "auto", "CreateTableAs"),
        ("ALTER TABLE s ADD COLUMN b INT", "auto", "AlterKsqldbItem"),
        ("ALTER TABLE t ADD COLUMN b INT", "auto", "AlterTable"),
        ("ALTER TABLE s OWNER TO r", "auto", "AlterTable"),
        ("SELECT * FROM s", "auto", "Select"),
    ],
)
def test_the_dialect_follows_from_the_relations(text: str, dialect: Dialect, kind: str) -> None:
    assert type(in_dialect(parse(text, dialect), text, CATALOG, dialect)).__name__ == kind


def push(text: str, reset: str = "latest") -> Tail:
    statement = parse(text)
    assert isinstance(statement, FollowKsqldb)
    return followed(statement.statement.query, CATALOG, snapshot=reset == "earliest").tail


def text_of(tail: Tail) -> str:
    assert isinstance(tail.target, QueryText)
    return tail.target.text


def test_emit_changes_is_a_tail() -> None:
    tail = push("SELECT * FROM derived EMIT CHANGES LIMIT 3")
    assert (text_of(tail), tail.snapshot, tail.limit) == ('SELECT a AS a, "Mixed" AS "Mixed" FROM derived', False, 3)
    tail = push("SELECT d.a / 2, UCASE(`Mixed`) AS M FROM derived d WHERE a > 1 EMIT CHANGES", "earliest")
    assert text_of(tail) == 'SELECT (a / nullif(2, 0)) AS ksql_col_0, upper("Mixed") AS m FROM derived WHERE (a > 1)'
    assert (tail.snapshot, tail.limit) == (True, None)
    assert text_of(push("SELECT a FROM derived WHERE abs(a) > 1 EMIT CHANGES")).endswith("WHERE try((abs(a) > 1))")
    assert text_of(push("SELECT abs(a) AS b, count(*) AS n FROM derived GROUP BY abs(a) EMIT CHANGES")).endswith("GROUP BY try(abs(a))")
    assert text_of(push("SELECT a, count(*) AS n FROM derived GROUP BY a EMIT CHANGES")).endswith("WHERE a IS NOT NULL GROUP BY a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM s EMIT CHANGES", 'EMIT CHANGES of "s" is not supported, because its rows are not stored'),
        ("SELECT * FROM t EMIT CHANGES", "a table without a key"),
        ("SELECT a FROM derived PARTITION BY a EMIT CHANGES", "PARTITION BY with EMIT CHANGES"),
        ("SELECT none FROM derived EMIT CHANGES", "Column 'NONE' cannot be resolved"),
        ("SELECT count(*) AS n FROM derived EMIT CHANGES", "requires a GROUP BY"),
    ],
)
def test_push_queries_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message):
        push(text)
