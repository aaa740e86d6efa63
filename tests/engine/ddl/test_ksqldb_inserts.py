"""INSERT INTO … SELECT of ksqlDB, and the items that it creates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailgate.engine.ddl import drop
from tailgate.engine.ddl.ksqldb import check_inserts, check_no_queries, inserting_sink, inserting_view, query_view, stopped, upgraded_view
from tailgate.engine.ddl.view import errors_item
from tailgate.engine.plan.views.inserts import needed, separated, target_of, united
from tailgate.engine.plan.views.replacements import replacement
from tailgate.gateway.ksqldb import lists
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Sink
from tailgate.lake.catalog.codec import decode_item, encode_item
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import DependentObjectsStillExist, TailgateError, WrongObjectType
from tailgate.sql.definitions import bind_definition
from tailgate.sql.ksqldb.statements import CreateAs
from tailgate.sql.statements import CreateKsqldbItem, Drop, InsertStream, parse
from tests.engine.ddl.ksqldb_items import ENDPOINTS, READINGS, Schemas, connected, declared, derived

ALL_READINGS = "CREATE STREAM others (sensor VARCHAR KEY, reading INT) WITH (kafka_topic = 'o', value_format = 'json')"
INSERT = "INSERT INTO others SELECT sensor, reading FROM readings WHERE reading > 1 EMIT CHANGES"


def inserted(text: str, catalog: Catalog) -> tuple[MaterializedView, Sink, Catalog]:
    """Returns the view and the sink of INSERT INTO … SELECT, and the catalog with them."""
    statement = parse(text, "ksqldb")
    assert isinstance(statement, InsertStream)
    endpoints = ENDPOINTS.within(catalog)
    view = inserting_view(statement.statement, text, catalog, "latest", endpoints)
    catalog = catalog.apply(Change(put=(view, errors_item(view))))
    sink = inserting_sink(view, catalog, endpoints)
    return view, sink, catalog.apply(Change(put=(sink,)))


def streams() -> Catalog:
    return declared(ALL_READINGS, declared(READINGS))


def test_several_queries_write_to_one_stream() -> None:
    catalog = streams()
    view, sink, catalog = inserted(INSERT, catalog)
    assert view.ksqldb is not None
    assert (view.name, view.ksqldb.query, view.ksqldb.into) == ("insertquery_0", "INSERTQUERY_0", catalog.relation("others").id)
    assert view.query.startswith("SELECT sensor AS sensor, reading AS reading, rowtime AS rowtime")
    assert (sink.topic, sink.envelope, sink.message_key, sink.settings, sink.of_view) == ("o", "none", (0,), {}, True)
    assert decode_item(encode_item(view)) == view
    other, again, catalog = inserted(
        "INSERT INTO others WITH (query_id = 'mine') SELECT area AS sensor, reading FROM readings PARTITION BY area", catalog
    )
    assert (other.name, again.topic) == ("insertquery_1", "o")
    assert [row[:4] for row in lists.rows("queries", None, list(catalog.visible), catalog, lambda item: True)] == [
        ("INSERTQUERY_0", "PERSISTENT", "RUNNING", "others"),
        ("MINE", "PERSISTENT", "RUNNING", "others"),
    ]
    assert [row[0] for row in lists.rows("streams", None, list(catalog.visible), catalog, lambda item: True)] == ["readings", "others"]
    _, far, _ = inserted(INSERT, connected(streams()))  # the stream was declared before the connection to another Kafka
    assert (far.brokers, far.kafka) == (sink.brokers, {})
    derived_from, _, _ = derived("CREATE STREAM t AS SELECT * FROM others EMIT CHANGES", catalog)
    assert derived_from.depends == (catalog.relation("others").id,)


def test_keys_of_avro_have_the_name_of_the_stream() -> None:
    """Declaring it registers their schema, and a record with another name is not compatible."""
    properties = "(a INT KEY, b INT KEY, v INT) WITH (kafka_topic = '{0}', format = '{1}')"
    catalog = declared(f"CREATE STREAM one {properties.format('one', 'json')}")
    catalog = declared(f"CREATE STREAM page_views {properties.format('two', 'avro')}", catalog)
    _, sink, _ = inserted("INSERT INTO page_views SELECT * FROM one", catalog)
    assert isinstance(sink.key_format, SinkFormat)
    assert sink.key_format.schema_name == "io.confluent.ksql.avro_schemas.PageViewsKey"


def test_terminate_drops_the_query_and_drop_needs_it() -> None:
    view, sink, catalog = inserted(INSERT, streams())
    statement = parse("DROP STREAM others")
    assert isinstance(statement, Drop)
    with pytest.raises(DependentObjectsStillExist) as error:
        drop(statement, catalog)
    assert error.value.detail == "materialized view insertquery_0 depends on source others"
    for name, use in (("others", "write into"), ("readings", "read from")):
        dropped = parse(f"DROP STREAM {name}")
        assert isinstance(dropped, Drop)
        with pytest.raises(DependentObjectsStillExist, match=rf"The following queries {use} this source: \[INSERTQUERY_0\]\."):
            check_no_queries(dropped, catalog)
        with pytest.raises(WrongObjectType):
            check_no_queries(replace(dropped, kind="table"), catalog)
    change = stopped((query_view("INSERTQUERY_0", catalog),), catalog, ends=True)
    assert (set(change.drop), change.put) == ({view.id, view.errors, sink.id}, ())
    assert [i.id for i in stopped((view,), catalog, ends=False).put] == [view.id]
    assert drop(statement, catalog.apply(change))[0].drop


def test_a_derived_stream_reads_the_views_of_the_queries() -> None:
    stream, _, catalog = derived("CREATE STREAM high AS SELECT sensor, reading FROM readings EMIT CHANGES", streams())
    _, _, catalog = derived("CREATE TABLE n AS SELECT sensor, COUNT(*) AS n FROM high GROUP BY sensor EMIT CHANGES", catalog)
    for id in ("a", "b"):
        text = f"INSERT INTO high WITH (query_id = '{id}') SELECT sensor, reading + 1 AS reading FROM others"
        view, _, catalog = inserted(text, catalog)
        assert target_of(view, catalog) == catalog[stream.id]
        target = united(view, catalog)
        assert target is not None and target.depends[-1] == view.id
        assert [c.name for c in bind_definition(target, catalog).columns] == [c.name for c in stream.columns]
        catalog = catalog.apply(Change(put=(target,)))
        assert united(view, catalog) is None
    with pytest.raises(DependentObjectsStillExist, match=r"Cannot drop HIGH.\nThe following queries write into this source: \[A\]."):
        check_inserts(Change(drop=(stream.id,)), catalog)
    paused = stopped((query_view("A", catalog),), catalog, ends=False)
    assert [item.id for item in paused.put if isinstance(item, MaterializedView) and item.paused] == [query_view("A", catalog).id]
    create = parse("CREATE OR REPLACE STREAM high AS SELECT sensor, reading FROM readings WHERE reading > 1", "ksqldb")
    assert isinstance(create, CreateKsqldbItem) and isinstance(create.statement, CreateAs)
    with pytest.raises(TailgateError, match='into which "insertquery_2" inserts'):
        upgraded_view(create.statement, "", catalog[stream.id], catalog, Schemas(), ENDPOINTS)
    unready = replace(catalog.expect(MaterializedView, catalog.relation("n").id), ready=False)
    with pytest.raises(TailgateError, match="still being filled"):
        stopped((query_view("A", catalog),), catalog.apply(Change(put=(unready,))), ends=True)
    for id in ("A", "B"):
        change = stopped((query_view(id, catalog),), catalog, ends=True)
        assert [item.id for item in change.put] == [stream.id]
        catalog = catalog.apply(change)
    assert catalog[stream.id] == stream
    check_inserts(Change(drop=(stream.id,)), catalog)


def test_the_rows_wait_for_views_that_are_filled_again_after_resume() -> None:
    """A view above that stays paused does not get them."""
    stream, _, catalog = derived("CREATE STREAM high AS SELECT sensor, reading FROM readings EMIT CHANGES", streams())
    above, _, catalog = derived("CREATE TABLE n AS SELECT sensor, COUNT(*) AS n FROM high GROUP BY sensor EMIT CHANGES", catalog)
    view, _, catalog = inserted("INSERT INTO high SELECT sensor, reading FROM others", catalog)
    assert {stream.id, above.id} < needed(view, catalog)
    catalog = catalog.apply(Change(put=(replace(above, paused=True),)))
    assert above.id not in needed(view, catalog)
    resumed = replacement(above, catalog.next_id, catalog.next_id)
    assert above.id in needed(view, catalog.apply(Change(put=(resumed,))))


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("INSERT INTO others SELECT sensor, reading + 1 AS n FROM readings", "42804", "Incompatible schema between results and sink"),
        ("INSERT INTO others SELECT sensor, area AS reading FROM readings", "42804", "Incompatible schema"),
        ("INSERT INTO others SELECT sensor, reading FROM readings PARTITION BY NULL", "42804", "Incompatible schema"),
        ("INSERT INTO others SELECT sensor, count(*) AS reading FROM readings GROUP BY sensor", "42809", "the rows of a stream"),
        ("INSERT INTO high SELECT sensor, reading FROM readings", "42804", "Incompatible schema"),
        ("INSERT INTO high SELECT * FROM high", "42P17", "the query reads HIGH, into which it inserts"),
        ("INSERT INTO high SELECT * FROM above", "42P17", "the query reads HIGH, into which it inserts"),
        ("INSERT INTO fixed SELECT sensor, reading FROM readings", "42809", "Cannot insert into read-only stream: FIXED"),
        ("INSERT INTO w SELECT * FROM w", "42809", "Cannot insert values into windowed stream/table!"),
        ("INSERT INTO a SELECT sensor AS id, reading AS x FROM readings", "42809", "A is a table"),
        ("INSERT INTO others SELECT id AS sensor, x AS reading FROM a", "42809", "the rows of a stream"),
        ("INSERT INTO others SELECT sensor, reading FROM readings EMIT CHANGES LIMIT 1", "0A000", "LIMIT of a persistent query"),
        ("INSERT INTO others WITH (colour = 1) SELECT sensor, reading FROM readings", "22023", "Invalid config variable"),
        ("INSERT INTO none SELECT sensor, reading FROM readings", "42P01", "Sink 'NONE' does not exist for the INSERT"),
    ],
)
def test_wrong_inserts(text: str, sqlstate: str, message: str) -> None:
    catalog = declared("CREATE TABLE a (id VARCHAR PRIMARY KEY, x INT) WITH (kafka_topic = 'a', value_format = 'json')", streams())
    _, _, catalog = derived("CREATE STREAM high AS SELECT * FROM readings EMIT CHANGES", catalog)
    _, _, catalog = derived("CREATE STREAM above AS SELECT * FROM high EMIT CHANGES", catalog)
    catalog = declared(ALL_READINGS.replace("STREAM others", "SOURCE STREAM fixed"), catalog)
    window = "value_format = 'json', window_type = 'tumbling', window_size = '1 hour'"
    catalog = declared(f"CREATE STREAM w (sensor VARCHAR KEY, reading INT) WITH (kafka_topic = 'w', {window})", catalog)
    with pytest.raises(TailgateError, match=message) as error:
        inserted(text, catalog)
    assert error.value.sqlstate == sqlstate


def test_the_view_of_an_insert_may_be_in_another_schema() -> None:
    stream, _, catalog = derived("CREATE STREAM high AS SELECT sensor, reading FROM readings EMIT CHANGES", streams())
    catalog = catalog.apply(Change(put_schemas=(Schema(30000, "other"),))).along(("other", "public"))
    view, _, catalog = inserted("INSERT INTO high SELECT sensor, reading FROM others", catalog)
    target = united(view, catalog)
    assert target is not None and target.query.endswith(" FROM other.insertquery_1")
    assert separated(view, target, catalog) == stream


def test_rows_have_the_time_of_the_timestamp_of_the_stream() -> None:
    timed = "CREATE STREAM timed (sensor VARCHAR KEY, at {}) WITH (kafka_topic = 'i', value_format = 'json', timestamp = 'at'{})"
    catalog = declared(timed.format("VARCHAR", ", timestamp_format = 'yyyy'"), declared(READINGS))
    view, _, catalog = inserted("INSERT INTO timed SELECT sensor, area AS at FROM readings", catalog)
    assert "ksqldb_parse_timestamp(at, 'yyyy', 'UTC')" in view.query
    at = "CAST(reading AS BIGINT) AS at"
    _, _, catalog = derived(f"CREATE STREAM high WITH (timestamp = '`AT`') AS SELECT sensor, {at} FROM readings EMIT CHANGES", catalog)
    view, _, _ = inserted(f"INSERT INTO high SELECT sensor, {at} FROM readings", catalog)
    assert "rowtime >= timestamptz" in view.query


def test_numbers_have_the_wider_type_of_the_stream() -> None:
    prices = "CREATE STREAM prices (sensor VARCHAR KEY, price DECIMAL(5, 2)) WITH (kafka_topic = 'i', value_format = 'json')"
    catalog = declared(prices, declared(READINGS))
    for price in ("reading", "1.5", "CAST(reading AS DECIMAL(4, 1))"):
        view, _, _ = inserted(f"INSERT INTO prices SELECT sensor, {price} AS price FROM readings", catalog)
        assert str(next(c.type for c in view.columns if c.name == "price")) == "numeric(5,2)"
    for price in ("1.5e0", "CAST(reading AS DECIMAL(5, 1))", "CAST(reading AS DECIMAL(6, 3))"):
        with pytest.raises(TailgateError, match="Incompatible schema"):
            inserted(f"INSERT INTO prices SELECT sensor, {price} AS price FROM readings", catalog)
    wide = "CREATE STREAM wide (sensor VARCHAR KEY, b BIGINT, d DOUBLE, e DOUBLE) WITH (kafka_topic = 'w', value_format = 'json')"
    view, _, _ = inserted("INSERT INTO wide SELECT sensor, reading AS b, reading AS d, 1.5 AS e FROM readings", declared(wide, catalog))
    assert [str(c.type) for c in view.columns if c.name in "bde"] == ["bigint", "double precision", "double precision"]
    narrow = "INSERT INTO others SELECT sensor, CAST(reading AS BIGINT) AS reading FROM readings"
    with pytest.raises(TailgateError, match="Incompatible schema"):
        inserted(narrow, declared(ALL_READINGS, catalog))
