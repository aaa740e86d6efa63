"""Joins of ksqlDB's streams, and the items that they create."""

from __future__ import annotations

import pytest

from tailgate.engine.ddl.ksqldb import check_partitions
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb.statements import CreateAs
from tailgate.sql.statements import CreateKsqldbItem, parse
from tests.engine.ddl.ksqldb_items import declared, derived

STREAMS = (
    "CREATE STREAM a (id VARCHAR KEY, x INT, f VARCHAR) WITH (kafka_topic = 'a', value_format = 'json')",
    "CREATE STREAM b (id VARCHAR KEY, y INT) WITH (kafka_topic = 'b', value_format = 'json')",
    "CREATE STREAM c (cid VARCHAR KEY, z INT) WITH (kafka_topic = 'c', value_format = 'json')",
    "CREATE TABLE t (id VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = 't', value_format = 'json')",
)
SECOND, NONE, GRACE = (f"interval '{n} milliseconds'" for n in (1000, 0, 120_000))
AB = f"ON a.id = b.id WITHIN (a.rowtime, b.rowtime, {SECOND}, {SECOND})"

CHAIN = "SELECT a.id, y, z FROM a JOIN b WITHIN 1 SECOND ON a.id = b.id LEFT JOIN c WITHIN 1 SECOND ON b.id = cid JOIN t ON cid = t.id"
CHAIN_TEXT = (
    f'a AS a INNER JOIN b AS b {AB} AS "join 1" LEFT JOIN c AS c ON a.id = c.cid WITHIN (greatest(a.rowtime, b.rowtime), c.rowtime,'
    f' {SECOND}, {SECOND}) AS "join 2" INNER JOIN t FOR SYSTEM_TIME AS OF PROCTIME() AS t ON a.id = t.id WHERE a.id IS NOT NULL'
)


@pytest.fixture
def streams() -> Catalog:
    catalog = Catalog()
    for text in STREAMS:
        catalog = declared(text, catalog)
    return catalog


@pytest.mark.parametrize(
    ("query", "columns", "key", "text"),
    [
        (
            "SELECT * FROM a JOIN b WITHIN 1 SECOND ON a.id = b.id",
            "a_id a_x a_f b_id b_y",
            "a_id",
            f'a AS a INNER JOIN b AS b {AB} AS "join 1"',
        ),
        (
            "SELECT b.id, x, y FROM a LEFT JOIN b WITHIN (0 SECONDS, 1 SECOND) GRACE PERIOD 2 MINUTES ON b.id = a.id",
            "b_id x y",
            "b_id",
            f'a AS a LEFT JOIN b AS b ON a.id = b.id WITHIN (a.rowtime, b.rowtime, {NONE}, {SECOND}, {GRACE}) AS "join 1"',
        ),
        (
            "SELECT cid, z, y FROM b RIGHT JOIN c WITHIN 1 SECOND ON y = z WHERE y > 1",
            "cid z y",
            "z",
            f'b AS b RIGHT JOIN c AS c ON b.y = c.z WITHIN (b.rowtime, c.rowtime, {SECOND}, {SECOND}) AS "join 1" WHERE (b.y > 1)',
        ),
        (
            "SELECT rowkey AS k, x, z FROM a FULL OUTER JOIN c WITHIN 1 SECOND ON id = cid",
            "k x z",
            "k",
            f'a AS a FULL JOIN c AS c ON a.id = c.cid WITHIN (a.rowtime, c.rowtime, {SECOND}, {SECOND}) AS "join 1"',
        ),
        (
            "SELECT rowkey AS k, x FROM a JOIN b WITHIN 1 SECOND ON ucase(a.id) = ucase(b.id)",
            "k x",
            "k",
            f'a AS a INNER JOIN b AS b ON upper(a.id) = upper(b.id) WITHIN (a.rowtime, b.rowtime, {SECOND}, {SECOND}) AS "join 1"',
        ),
        (CHAIN, "a_id y z", "a_id", CHAIN_TEXT),
    ],
)
def test_joins_of_streams(query: str, columns: str, key: str, text: str, streams: Catalog) -> None:
    view, sink, catalog = derived(f"CREATE STREAM s AS {query} EMIT CHANGES", streams)
    assert view.query.split(" FROM ", 1)[1] == text
    assert [c.name for c in view.columns] == [*columns.split(), "rowtime", "rowpartition", "rowoffset", "_arrival"]
    assert view.ksqldb is not None
    assert view.ksqldb.message_key == (key,)
    assert sink.envelope == "none"
    above, _, _ = derived(f"CREATE TABLE u AS SELECT {key}, count(*) AS n FROM s GROUP BY {key} EMIT CHANGES", catalog)
    assert [c.name for c in above.columns] == [key, "n", "rowtime"]


def test_the_position_of_a_joined_row(streams: Catalog) -> None:
    """Its number is that of the row, and its time the later one of both records."""
    view, _, catalog = derived("CREATE STREAM s AS SELECT a.id, y FROM a JOIN b WITHIN 1 SECOND ON a.id = b.id EMIT CHANGES", streams)
    time = "greatest(a.rowtime, b.rowtime)"
    assert f'{time} AS rowtime, 0 AS rowpartition, "join 1".number AS rowoffset' in view.query
    query = "SELECT a.id, b.rowtime AS u FROM a JOIN b WITHIN 1 SECOND ON a.id = b.id"
    view, _, _ = derived(f"CREATE STREAM s AS {query} EMIT CHANGES", streams)
    assert "extract(epoch FROM b.rowtime) * 1000" in view.query
    above = "SELECT s.a_id, s.y, z FROM s JOIN c WITHIN 1 SECOND ON s.a_id = c.cid"
    view, _, _ = derived(f"CREATE STREAM r AS {above} EMIT CHANGES", catalog)
    assert "WITHIN (s.rowtime, c.rowtime" in view.query


def test_the_inputs_of_a_join_have_equally_many_partitions(streams: Catalog) -> None:
    """A join by a foreign key is an exception, and relations without a topic."""
    catalog = declared("CREATE TABLE u (id VARCHAR PRIMARY KEY, f VARCHAR) WITH (kafka_topic = 'u', value_format = 'json')", streams)
    counts = {"a": 6, "b": 6, "c": 6, "t": 1, "u": 6}

    def check(joined: str) -> None:
        statement = parse(f"CREATE STREAM s AS SELECT * FROM {joined} EMIT CHANGES", "auto")
        assert isinstance(statement, CreateKsqldbItem)
        assert isinstance(statement.statement, CreateAs)
        check_partitions(statement.statement.query, catalog, lambda item: counts.get(item.name))

    check("a JOIN b WITHIN 1 SECOND ON a.id = b.id JOIN c WITHIN 1 SECOND ON a.id = cid")
    check("u JOIN t ON u.f = t.id")
    message = (
        "Can't join `A` with `T` since the number of partitions don't match. `A` partitions = 6; `T` partitions = 1. Please repartition"
    )
    with pytest.raises(TailgateError, match=message) as error:
        check("a JOIN b WITHIN 1 SECOND ON a.id = b.id JOIN t ON a.id = t.id")
    assert error.value.sqlstate == "55000"
    with pytest.raises(TailgateError, match="Can't join `U` with `T`"):
        check("u JOIN t ON u.id = t.id")
    del counts["t"]
    check("u JOIN t ON u.id = t.id")


@pytest.mark.parametrize(
    ("query", "sqlstate", "message"),
    [
        ("SELECT * FROM a JOIN b ON a.id = b.id", "42809", "Stream-Stream joins must have a WITHIN clause specified. None was provided."),
        ("SELECT * FROM a JOIN t WITHIN 1 SECOND ON a.id = t.id", "42809", "A window definition was provided"),
        ("SELECT * FROM t JOIN a WITHIN 1 SECOND ON a.id = t.id", "42809", "A window definition was provided"),
        ("SELECT * FROM a JOIN b WITHIN 1 SECOND ON a.x = b.id", "42804", "types don't match. Got A.X{INTEGER} = B.ID{STRING}"),
        ("SELECT * FROM a JOIN b WITHIN 1 SECOND ON a.id = a.f", "42P10", "Left side references `A` and right references `A`"),
        ("SELECT * FROM a JOIN b WITHIN 1 SECOND ON concat(a.f, b.id) = b.id", "42P10", "must contain references from exactly one source"),
        ("SELECT * FROM a JOIN b WITHIN 1 SECOND ON a.id > b.id", "42P10", "Only equality join criteria"),
        ("SELECT * FROM a JOIN b WITHIN 1 SECOND ON id = b.id", "42702", "Column 'ID' is ambiguous"),
        ("SELECT * FROM a JOIN b WITHIN 1 SECOND ON a.none = b.id", "42703", "NONE"),
        ("SELECT x, y FROM a JOIN b WITHIN 1 SECOND ON a.id = b.id", "42P10", "the join expressions A.ID or B.ID in"),
        (
            "SELECT * FROM a a1 JOIN a a2 WITHIN 1 SECOND ON a1.id = a2.id",
            "0A000",
            "Cannot join 'A' to 'A': self joins",
        ),
    ],
)
def test_wrong_joins(query: str, sqlstate: str, message: str, streams: Catalog) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        derived(f"CREATE STREAM s AS {query} EMIT CHANGES", streams)
    assert error.value.sqlstate == sqlstate
