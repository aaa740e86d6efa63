"""Statements of ksqlDB and the items that they create."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tailgate.engine.ddl import drop
from tailgate.engine.ddl.ksqldb import Endpoints, declared_source, derived_view, message_of
from tailgate.engine.plan.sources.envelopes import source_layout
from tailgate.engine.runtime.control.source_statements import Attending
from tailgate.lake.catalog import Catalog, Change, Connection, Source
from tailgate.lake.catalog.codec import decode_catalog, decode_item, encode_catalog, encode_item
from tailgate.lake.catalog.formats import Ksqldb, SinkFormat
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import DependentObjectsStillExist, TailgateError
from tailgate.sql.definitions import rename_references
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.queries.scopes import column_types
from tailgate.sql.ksqldb.statements import CreateAs
from tailgate.sql.name_resolution import resolve
from tailgate.sql.statements import Drop, InsertMessage, Print, parse
from tests.engine.ddl.ksqldb_items import (
    AVERAGES,
    ENDPOINTS,
    HIGH,
    NESTED,
    READINGS,
    RECORD,
    ROWTIME,
    Schemas,
    connected,
    creation,
    declared,
    derived,
    no_expression,
    no_registry,
)


def test_a_stream_is_an_append_only_source() -> None:
    catalog = declared(READINGS)
    source = catalog.relation("readings")
    assert isinstance(source, Source)
    assert [(c.name, str(c.type)) for c in source.columns][:3] == [("sensor", "text"), ("area", "text"), ("reading", "integer")]
    assert (source.append_only, source.stored, source.topic) == (True, False, "r")
    assert source.ksqldb is not None
    assert (source.ksqldb.type, source.ksqldb.message_key, source.ksqldb.statement) == ("stream", ("sensor",), READINGS)
    assert decode_item(encode_item(source)) == source


def test_maps_of_earlier_versions_may_lack_the_type_of_their_keys() -> None:
    stream = declared("CREATE STREAM s (m MAP<VARCHAR, VARCHAR>) WITH (kafka_topic = 's', value_format = 'json')").relation("s")
    assert isinstance(stream, Source) and stream.ksqldb is not None
    earlier = replace(stream, ksqldb=replace(stream.ksqldb, types={"m": "MAP<VARCHAR>"}))
    assert types.described(column_types(earlier)["m"]) == ["map", "varchar"]


def test_the_name_of_a_topic_may_have_a_quote() -> None:
    """The broker refuses it, with its message."""
    _, sink, _ = derived("CREATE STREAM o WITH (kafka_topic = 'a''b') AS SELECT * FROM readings", declared(READINGS))
    assert sink.topic == "a'b"


def test_a_table_is_a_keyed_source() -> None:
    catalog = declared("CREATE TABLE areas (name VARCHAR, area VARCHAR PRIMARY KEY) WITH (kafka_topic = 'a', value_format = 'delimited')")
    source = catalog.relation("areas")
    assert [c.name for c in source.columns] == ["name", "area", *(name for name, _ in RECORD)]
    assert (source.key, source.stored) == ((1,), True)


def test_keys_and_formats() -> None:
    catalog = declared(
        "CREATE TABLE t (b VARCHAR PRIMARY KEY, n DECIMAL(4, 2), a INT PRIMARY KEY, at TIMESTAMP)"
        " WITH (kafka_topic = 't', key_format = 'delimited', value_format = 'json', key_delimiter = ';')"
    )
    table = catalog.relation("t")
    assert isinstance(table, Source)
    assert ([c.name for c in table.columns], table.key) == (["b", "n", "a", "at", *(name for name, _ in RECORD)], (0, 2))
    assert "KEY FORMAT KSQLDB DELIMITED (b, a) DELIMITED BY ';' VALUE FORMAT KSQLDB JSON (n, at) INCLUDE PARTITION" in table.sql
    assert decode_item(encode_item(table)) == table
    assert "Filter(expression='`key` IS NOT NULL')" in str(source_layout(table).shape)
    assert [c.nullable for c in table.columns[:3]] == [True, True, True]
    strict = replace(table, columns=tuple(replace(c, nullable=c.name == "n") for c in table.columns))  # of an earlier version
    assert "`key` IS NOT NULL AND `key`.c0 IS NOT NULL AND `key`.c1 IS NOT NULL" in str(source_layout(strict).shape)
    catalog = declared("CREATE STREAM s (a INT KEY, b BIGINT KEY, c DATE) WITH (format = 'json', wrap_single_value = false)", catalog)
    stream = catalog.relation("s")
    assert isinstance(stream, Source)
    assert "KEY FORMAT KSQLDB JSON (a, b) VALUE FORMAT KSQLDB JSON (c) UNWRAPPED INCLUDE KEY, PARTITION" in stream.sql
    assert [(c.name, str(c.type)) for c in stream.columns][:3] == [("a", "integer"), ("b", "bigint"), ("c", "date")]
    query = "SELECT b, a, count(*) AS n FROM s GROUP BY a, b EMIT CHANGES"
    view, sink, catalog = derived(f"CREATE TABLE n AS {query}", catalog)
    assert (view.key, sink.message_key) == ((0, 1), (1, 0))
    assert (sink.key_format, sink.value_format) == (SinkFormat(type="ksqldb", name="JSON"), SinkFormat(type="ksqldb", name="JSON"))
    _, sink, catalog = derived(
        "CREATE TABLE o WITH (value_format = 'kafka') AS SELECT b, count(*) AS n FROM s GROUP BY b EMIT CHANGES", catalog
    )
    assert sink.key_format == SinkFormat(type="ksqldb", name="JSON", wrapped=False)
    _, sink, _ = derived("CREATE STREAM r AS SELECT * FROM s PARTITION BY c, a", catalog)
    assert sink.message_key == (0, 1)


def test_the_format_of_keys_after_none() -> None:
    """A result with a key has the session's default where its source has NONE. PARTITION BY NULL removes the key and its format."""
    catalog = declared("CREATE STREAM k (n INT, t VARCHAR) WITH (kafka_topic = 'k', key_format = 'none', value_format = 'json')")
    catalog = declared(READINGS, catalog)
    for query, default, expected in (
        ("CREATE TABLE o AS SELECT n, COUNT(*) AS c FROM k GROUP BY n", "KAFKA", "KAFKA"),
        ("CREATE STREAM o AS SELECT n, t FROM k PARTITION BY t", "JSON", "JSON"),
        ("CREATE STREAM o WITH (key_format = 'delimited') AS SELECT n, t FROM k PARTITION BY t", "JSON", "DELIMITED"),
        ("CREATE STREAM o AS SELECT n FROM k", "JSON", "NONE"),
        ("CREATE STREAM o AS SELECT * FROM readings PARTITION BY NULL", "JSON", "NONE"),
        ("CREATE STREAM o AS SELECT * FROM readings PARTITION BY area", "JSON", "KAFKA"),
    ):
        text = f"{query} EMIT CHANGES"
        statement = creation(text).statement
        assert isinstance(statement, CreateAs)
        statement = replace(statement, key_format=default)
        view = derived_view(statement, text, catalog, "latest", Schemas(), ENDPOINTS)  # type: ignore[arg-type]
        assert view.ksqldb is not None
        assert view.ksqldb.key_format == expected


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        ("SELECT sensor, area FROM readings", False),
        ("SELECT sensor, area, reading FROM readings", True),
    ],
)
def test_a_single_value_is_wrapped_by_default_as_the_session_says(text: str, wrapped: bool) -> None:
    catalog = declared(READINGS)
    for properties, expected in (("", wrapped), (" WITH (value_format = 'delimited')", True)):
        statement = creation(f"CREATE STREAM o{properties} AS {text} EMIT CHANGES").statement
        view = derived_view(replace(statement, wraps=False), text, catalog, "latest", Schemas(), ENDPOINTS)  # type: ignore[arg-type]
        assert view.ksqldb is not None
        assert view.ksqldb.wrapped is expected


def test_the_time_and_the_headers_of_a_message() -> None:
    catalog = declared(
        "CREATE SOURCE STREAM s (a BIGINT KEY, `Trace` BYTES HEADER('trace'), at TIMESTAMP, n INT)"
        " WITH (kafka_topic = 't', value_format = 'json', timestamp = 'at')"
    )
    source = catalog.relation("s")
    assert isinstance(source, Source)
    assert (
        "INCLUDE KEY, HEADER 'trace' AS \"Trace\" BYTES, PARTITION AS rowpartition, OFFSET AS rowoffset, TIMESTAMP FROM at AS rowtime"
        in source.sql
    )
    assert [c.name for c in source.columns][:4] == ["a", "Trace", "at", "n"]
    assert "CAST(`value`.c0 AS TIMESTAMP)" in str(source_layout(source).shape)
    by_key = declared("CREATE STREAM s (a BIGINT KEY, n INT) WITH (value_format = 'json', timestamp = 'a')")
    assert "timestamp_millis(`key`.c0)" in str(source_layout(by_key.relation("s")).shape)  # type: ignore[arg-type]
    statement = parse("INSERT INTO s (n) VALUES (1)", "ksqldb")
    assert isinstance(statement, InsertMessage)
    with pytest.raises(TailgateError, match="Cannot insert into read-only stream: S"):
        message_of(statement.statement, catalog, no_registry, no_expression)
    table = declared("CREATE SOURCE TABLE t (a INT PRIMARY KEY, h BYTES HEADER('h'), n INT) WITH (value_format = 'json')").relation("t")
    assert isinstance(table, Source)
    assert table.sql.endswith(
        "INCLUDE HEADER 'h' AS h BYTES, PARTITION AS rowpartition, OFFSET AS rowoffset, TIMESTAMP AS rowtime ENVELOPE UPSERT"
    )


def test_a_derived_table_is_a_view_with_a_sink() -> None:
    view, sink, catalog = derived(AVERAGES, declared(READINGS))
    assert [(c.name, str(c.type)) for c in view.columns] == [("sensor", "text"), ("avg", "double precision"), ROWTIME]
    assert view.ksqldb is not None
    assert (view.ksqldb.query, view.ksqldb.topic, view.ksqldb.reset) == ("CTAS_AVG_READINGS_0", "AVG_READINGS", "latest")
    assert (sink.topic, sink.envelope, sink.message_key, sink.of_view) == ("AVG_READINGS", "upsert", (0,), True)
    assert (sink.value_format, sink.key_format) == (
        SinkFormat(type="ksqldb", name="JSON"),
        SinkFormat(type="ksqldb", name="KAFKA", wrapped=False),
    )
    assert sink.settings == {"partition_count": 3, "topic.cleanup.policy": "compact"}
    assert all(decode_item(encode_item(item)) == item for item in (view, sink))
    (other, _, _) = derived("CREATE TABLE b WITH (kafka_topic='x') AS SELECT area, count(*) FROM readings GROUP BY area", catalog)
    assert other.ksqldb is not None
    assert (other.ksqldb.query, other.ksqldb.topic, other.columns[1].name) == ("CTAS_B_1", "x", "ksql_col_0")


def test_a_derived_stream_is_a_view_with_a_sink() -> None:
    view, sink, catalog = derived(HIGH, declared(READINGS))
    assert [c.name for c in view.columns] == ["sensor", "area", "reading", "twice", "rowtime", "rowpartition", "rowoffset", "_arrival"]
    assert view.ksqldb is not None
    assert (view.ksqldb.type, view.ksqldb.query, view.ksqldb.topic) == ("stream", "CSAS_HIGH_0", "HIGH")
    assert (sink.envelope, sink.message_key, sink.settings) == ("none", (0,), {"partition_count": 1})
    rekeyed, other, catalog = derived("CREATE STREAM areas AS SELECT area AS a, twice FROM high h PARTITION BY h.area", catalog)
    assert [c.name for c in rekeyed.columns][:2] == ["a", "twice"]
    assert (other.message_key, other.topic) == ((0,), "AREAS")
    _, unkeyed, catalog = derived("CREATE STREAM plain AS SELECT twice FROM high PARTITION BY NULL", catalog)
    assert (unkeyed.message_key, unkeyed.envelope) == (None, "none")
    counted, _, _ = derived("CREATE TABLE n AS SELECT area, latest_by_offset(twice) AS t FROM high GROUP BY area EMIT CHANGES", catalog)
    assert [str(c.type) for c in counted.columns] == ["text", "integer", ROWTIME[1]]
    drop_stream = parse("DROP STREAM high")
    assert isinstance(drop_stream, Drop)
    with pytest.raises(DependentObjectsStillExist):
        drop(drop_stream, catalog)


@pytest.mark.parametrize(
    ("query", "sqlstate", "message"),
    [
        (
            "SELECT area FROM readings",
            "42P10",
            "Key missing from projection.\nThe query used to build `T` must include the key column SENSOR",
        ),
        ("SELECT sensor FROM readings PARTITION BY area", "42P10", "the partitioning expression AREA"),
        ("SELECT * FROM readings PARTITION BY area, sensor", "42P16", "The 'KAFKA' format only supports a single field. Got: "),
        ("SELECT sensor, sum(reading) AS n FROM readings", "42803", "aggregate function SUM requires a GROUP BY"),
        ("SELECT sensor, count(*) AS n FROM readings GROUP BY sensor", "42809", "produces a TABLE"),
        ("SELECT sensor, area AS rowtime FROM readings", "42939", "Reserved column name in select: `ROWTIME`"),
        ("SELECT sensor, sensor FROM readings", "42P10", "contains a key column"),
        ("SELECT other.* FROM readings", "42703", "SELECT column 'OTHER.\\*' cannot be resolved"),
        ("SELECT * FROM readings HAVING reading > 1", "42803", "HAVING requires a GROUP BY"),
        ("SELECT * FROM readings EMIT CHANGES LIMIT 3", "0A000", "LIMIT of a persistent query"),
        ("SELECT * FROM avg_readings", "42809", "produces a TABLE"),
    ],
)
def test_wrong_queries_of_streams(query: str, sqlstate: str, message: str) -> None:
    _, _, catalog = derived(AVERAGES, declared(READINGS))
    with pytest.raises(TailgateError, match=message) as error:
        derived(f"CREATE STREAM t AS {query}", catalog)
    assert error.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("reading", "reading"),
        ("reading + 1", "ksqldb_wrapped(CAST(reading AS bigint) + 1)"),
        ("reading / 2", "(reading / 2)"),
        ("reading / reading", "try((reading / reading))"),
        ("CAST(reading AS BIGINT)", "CAST(reading AS bigint)"),
        ("CAST(area AS INT)", "try(CAST(area AS integer))"),
        ("UCASE(area)", "upper(area)"),
        ("LEN(SUBSTRING(area, 1, reading))", "length(ksqldb_substring(area, 1, reading))"),
        ("LEN(CHR(reading))", "try(length(chr(reading)))"),
        ("area LIKE 'a%'", "coalesce((area LIKE 'a%'), false)"),
        ("area LIKE sensor", "coalesce((area LIKE sensor ESCAPE ''), false)"),
        ("area LIKE sensor ESCAPE '!'", "try(coalesce((area LIKE sensor ESCAPE '!'), false))"),
        ("CASE WHEN reading > 1 THEN 10 / reading ELSE 0 END", "try(CASE WHEN (reading > 1) THEN (10 / reading) ELSE 0 END)"),
        ("COALESCE(CAST(area AS INT), 1)", "try(coalesce(CAST(area AS integer), 1))"),
        ("10 / reading IN (1, 2)", "try(coalesce(((10 / reading) IN (1, 2)), false))"),
    ],
)
def test_an_item_that_may_fail_is_null_then(expression: str, text: str) -> None:
    view, _, _ = derived(f"CREATE STREAM t AS SELECT sensor, {expression} AS x FROM readings EMIT CHANGES", declared(READINGS))
    assert f"SELECT sensor AS sensor, {text} AS x, " in view.query


def test_arguments_of_aggregates_and_their_results_are_null_where_they_fail() -> None:
    query = "SELECT 9 / reading AS k, sum(9 / reading) AS n, count(area) AS c FROM readings WHERE 9 / reading > 1 GROUP BY 9 / reading"
    view, sink, _ = derived(f"CREATE TABLE t AS {query} HAVING sum(reading) > 1 EMIT CHANGES", declared(READINGS))
    assert view.query == (
        "SELECT try((9 / reading)) AS k, coalesce(ksqldb_wrapped(sum(try((9 / reading)))), 0) AS n, count(area) AS c,"
        " max(rowtime) AS rowtime FROM readings"
        " WHERE try((9 / reading)) IS NOT NULL AND try(((9 / reading) > 1))"
        " GROUP BY try((9 / reading)) HAVING (coalesce(ksqldb_wrapped(sum(reading)), 0) > 1)"
    )
    assert sink.message_key == (0,)


def test_lists_of_tables_have_the_order_of_rowtime() -> None:
    _, _, catalog = derived("CREATE TABLE t AS SELECT area, count(*) AS n FROM readings GROUP BY area EMIT CHANGES", declared(READINGS))
    view, _, _ = derived("CREATE TABLE c AS SELECT n, collect_list(area) AS areas FROM t GROUP BY n EMIT CHANGES", catalog)
    assert "jsonb_agg(to_jsonb(CAST(area AS text)) ORDER BY rowtime, area)" in view.query
    with pytest.raises(TailgateError, match="cannot be applied to a table source"):
        derived("CREATE TABLE c AS SELECT n, latest_by_offset(area) AS a FROM t GROUP BY n EMIT CHANGES", catalog)


def test_a_window_is_in_the_key() -> None:
    query = "SELECT sensor, windowend / 1000 AS until, count(*) AS n FROM readings WINDOW {} GROUP BY sensor"
    tumbling, sink, catalog = derived(f"CREATE TABLE w AS {query.format('TUMBLING (SIZE 30 SECONDS)')} EMIT CHANGES", declared(READINGS))
    assert [(c.name, str(c.type)) for c in tumbling.columns] == [
        ("sensor", "text"),
        ("until", "bigint"),
        ("n", "bigint"),
        ("windowstart", "bigint"),
        ("windowend", "bigint"),
        ROWTIME,
    ]
    assert "FROM tumble((SELECT *, _arrival FROM readings WHERE sensor IS NOT NULL), rowtime, interval '30000 mill" in tumbling.query
    assert (sink.message_key, sink.envelope) == ((0, 3), "upsert")
    hopping, _, catalog = derived(f"CREATE TABLE h AS {query.format('HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE)')} EMIT CHANGES", catalog)
    assert "rowtime, interval '60000 milliseconds', interval '3600000 milliseconds', interval '86400000 mill" in hopping.query
    with pytest.raises(TailgateError, match="WINDOW clause is only supported for streams"):
        derived("CREATE TABLE x AS SELECT sensor, sum(n) AS n FROM w WINDOW TUMBLING (SIZE 1 DAY) GROUP BY sensor EMIT CHANGES", catalog)
    with pytest.raises(TailgateError, match="requires a GROUP BY"):
        derived("CREATE STREAM x AS SELECT * FROM readings WINDOW TUMBLING (SIZE 1 DAY) EMIT CHANGES", catalog)


def test_a_session_has_both_bounds_in_its_key() -> None:
    query = "SELECT sensor, count(*) AS n FROM readings WINDOW SESSION (5 MINUTES) WHERE reading > 1 GROUP BY sensor"
    view, sink, _ = derived(f"CREATE TABLE w AS {query} EMIT CHANGES", declared(READINGS))
    assert [c.name for c in view.columns] == ["sensor", "n", "windowstart", "windowend", "rowtime"]
    assert (
        "FROM session((SELECT *, _arrival FROM readings WHERE sensor IS NOT NULL AND (reading > 1)), rowtime, interval '300000 mill"
        in view.query
    )
    assert (view.key, sink.message_key, sink.envelope) == ((0, 2, 3), (0, 2, 3), "upsert")


def test_view_and_sink_are_dropped_together() -> None:
    view, sink, catalog = derived(AVERAGES, declared(READINGS))
    drop_table, drop_stream = parse("DROP TABLE avg_readings"), parse("DROP STREAM readings")
    assert isinstance(drop_table, Drop)
    assert isinstance(drop_stream, Drop)
    assert drop(drop_table, catalog)[0].drop == (view.id, view.errors, sink.id)
    with pytest.raises(DependentObjectsStillExist) as error:
        drop(drop_stream, catalog)
    assert error.value.detail == "materialized view avg_readings depends on source readings"
    dropped = catalog.apply(Change(drop=(view.id, view.errors, sink.id)))
    assert decode_catalog(encode_catalog(dropped)).next_query == 1
    again, _, _ = derived(AVERAGES, dropped)
    assert again.ksqldb is not None
    assert again.ksqldb.query == "CTAS_AVG_READINGS_1"  # the number 0 does not return
    alone = parse(f"DROP SINK {sink.name}")
    assert isinstance(alone, Drop)
    with pytest.raises(DependentObjectsStillExist, match="because materialized view avg_readings requires it"):
        drop(alone, catalog)


def test_fields_of_avro_records_have_the_types_of_the_schema() -> None:
    catalog = declared("CREATE STREAM calls WITH (kafka_topic = 'calls', value_format = 'avro')")
    query = "SELECT after->name AS name, (sum(after->seconds) / 60) AS minutes FROM calls GROUP BY after->name"
    view, _, _ = derived(f"CREATE TABLE lifetime WITH (value_format = 'json') AS {query} EMIT CHANGES", catalog)
    assert [(c.name, str(c.type)) for c in view.columns] == [("name", "text"), ("minutes", "integer"), ROWTIME]
    with pytest.raises(TailgateError, match="Could not find field 'NONE'"):
        derived("CREATE TABLE x WITH (value_format = 'json') AS SELECT after->none a FROM calls GROUP BY after->none EMIT CHANGES", catalog)


def test_nested_types_are_jsonb_and_the_item_has_the_types() -> None:
    catalog = declared(NESTED)
    source = catalog.relation("n")
    assert isinstance(source, Source)
    assert source.ksqldb is not None
    types = [str(c.type) for c in source.columns][:6]
    assert types == ["text", "jsonb", "jsonb", "date", "timestamp without time zone", "jsonb"]
    assert dict(source.ksqldb.types) == {
        "tags": "ARRAY<VARCHAR>",
        "sizes": "MAP<VARCHAR, DECIMAL(4, 1)>",
        "owner": "STRUCT<ID INT, `names` ARRAY<STRUCT<`first` VARCHAR>>>",
    }
    assert decode_item(encode_item(source)) == source
    view, _, catalog = derived(
        "CREATE STREAM d AS SELECT k, owner->id + 1 AS next, owner->*, sizes['x'] AS x, tags[-1] AS last, owner->`names`[1]->`first` AS f,"
        " ARRAY[owner->id] AS ids FROM n",
        catalog,
    )
    assert view.ksqldb is not None
    assert [(c.name, str(c.type)) for c in view.columns][:7] == [
        ("k", "text"),
        ("next", "integer"),
        ("id", "integer"),
        ("NAMES", "jsonb"),
        ("x", "numeric(4,1)"),
        ("last", "text"),
        ("f", "text"),
    ]
    assert dict(view.ksqldb.types) == {"NAMES": "ARRAY<STRUCT<`first` VARCHAR>>", "ids": "ARRAY<INT>"}


def test_explode_is_a_row_for_each_element() -> None:
    catalog = declared(NESTED)
    view, _, _ = derived("CREATE STREAM e AS SELECT k, EXPLODE(tags) AS tag, EXPLODE(ARRAY[1, 2]) AS n FROM n EMIT CHANGES", catalog)
    assert [(c.name, str(c.type)) for c in view.columns][:3] == [("k", "text"), ("tag", "text"), ("n", "integer")]
    assert "SELECT k AS k, (ksqldb_array_elements(tags) #>> '{}') AS tag" in view.query
    with pytest.raises(TailgateError, match="Table functions cannot be used with aggregations"):
        derived("CREATE TABLE e AS SELECT k, EXPLODE(tags) AS t, count(*) AS n FROM n GROUP BY k EMIT CHANGES", catalog)
    with pytest.raises(TailgateError, match="'EXPLODE' does not accept parameters"):
        derived("CREATE STREAM e AS SELECT k, EXPLODE(sizes) AS t FROM n EMIT CHANGES", catalog)


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE STREAM s (a INT) WITH (kafka_topic = 't')", "22023", "is missing the 'VALUE_FORMAT' property"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'xml')", "22023", "Unknown format: XML"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', colour = 1)", "22023", "Invalid config variable"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', timestamp = 'a')", "22023", "Timestamp column, `A`, should be LONG"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', timestamp = 'b')", "22023", "does not exist in the schema: 'b'"),
        (
            "CREATE TABLE s (a INT PRIMARY KEY, b INT) WITH (value_format = 'json', timestamp = 'b')",
            "22023",
            "Timestamp column, `B`, should be",
        ),
        ("CREATE STREAM s (a INT HEADER('x')) WITH (value_format = 'json')", "42P16", "expected BYTES, got INTEGER"),
        (
            "CREATE STREAM s (a ARRAY<BYTES> HEADERS) WITH (value_format = 'json')",
            "42P16",
            "expected ARRAY<STRUCT<`KEY` STRING, `VALUE` BYTES>>",
        ),
        ("CREATE STREAM s (a INT PRIMARY KEY) WITH (value_format = 'json')", "42P16", "please use 'KEY' for streams"),
        ("CREATE TABLE s (a INT) WITH (value_format = 'json', kafka_topic = 't')", "42P16", "Tables require a PRIMARY KEY"),
        (
            "CREATE STREAM s (a BOOLEAN KEY, b INT) WITH (value_format = 'json')",
            "42P16",
            "'KAFKA' format does not support type 'BOOLEAN', column: `A`",
        ),
        ("CREATE STREAM s (a INT KEY, b INT KEY, c INT) WITH (value_format = 'json')", "42P16", "Got: .`A` INTEGER, `B` INTEGER."),
        ("CREATE STREAM s (a INT KEY, b INT) WITH (value_format = 'json', key_format = 'none')", "42P16", "The 'NONE' format"),
        ("CREATE STREAM s (a INT, b INT) WITH (value_format = 'kafka')", "42P16", "'KAFKA' format only supports a single field"),
        ("CREATE STREAM s (a ARRAY<INT>) WITH (value_format = 'delimited')", "42P16", "'DELIMITED' format does not support type 'ARRAY'"),
        ("CREATE STREAM s (a INT, b INT) WITH (value_format = 'json', wrap_single_value = false)", "22023", "only valid for single-field"),
        (
            "CREATE STREAM s (a INT) WITH (value_format = 'delimited', wrap_single_value = true)",
            "22023",
            "'WRAP_SINGLE_VALUE' set to 'true'",
        ),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', value_delimiter = ';')", "22023", "JSON does not support .*delimiter"),
        ("CREATE STREAM s (rowtime BIGINT) WITH (value_format = 'json')", "42P16", "'ROWTIME' is a reserved column name"),
        (
            "CREATE STREAM s (a ARRAY<MAP<VARCHAR, INT>> KEY, b INT) WITH (format = 'json')",
            "42P16",
            "Map keys, including types that contain maps",
        ),
        ("CREATE STREAM s (a MAP<INT, INT>) WITH (value_format = 'json')", "0A000", "MAP<INTEGER, INTEGER> is not supported"),
        ("CREATE STREAM s (a ARRAY<COLOUR>) WITH (value_format = 'json')", "42704", "COLOUR"),
        ("CREATE STREAM s WITH (value_format = 'json')", "42P16", "does not define any columns"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', partitions = 0)", "22023", "Invalid value 0"),
    ],
)
def test_wrong_declarations(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        declared(text)
    assert error.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("query", "sqlstate", "message"),
    [
        ("SELECT none, count(*) FROM readings GROUP BY none", "42703", "GROUP BY column 'NONE' cannot be resolved"),
        ("SELECT count(*) AS n FROM readings GROUP BY sensor", "42P10", "Key missing from projection"),
        ("SELECT sensor, area FROM readings GROUP BY sensor", "42803", "Non-aggregate SELECT expression"),
        ("SELECT sensor, sum(max(reading)) AS n FROM readings GROUP BY sensor", "42803", "can not be nested"),
        ("SELECT sensor, ucase(reading) AS n FROM readings GROUP BY sensor", "42883", "'UCASE' does not accept parameters \\(INTEGER\\)"),
        ("SELECT sensor, nothing(reading) AS n FROM readings GROUP BY sensor", "42883", "name 'NOTHING'"),
        ("SELECT sensor, sum(area + 1) AS n FROM readings GROUP BY sensor", "42804", "Unsupported arithmetic types"),
        ("SELECT * FROM readings", "42809", "produces a STREAM"),
        ("SELECT sensor, area, count(*) AS n FROM readings GROUP BY sensor, area", "42P16", "only supports a single field"),
        ("SELECT sensor, count(*) AS n FROM readings WINDOW SESSION (0 DAYS) GROUP BY sensor", "22023", "cannot be zero or negative"),
        (
            "SELECT sensor, count(*) AS n FROM readings WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 1 DAY) GROUP BY sensor",
            "22023",
            "less than window duration",
        ),
        ("SELECT sensor, windowstart FROM readings WINDOW TUMBLING (SIZE 1 DAY) GROUP BY sensor", "42939", "`WINDOWSTART`"),
        ("SELECT sensor, windowstart AS s, count(*) AS n FROM readings GROUP BY sensor", "42703", "WINDOWSTART"),
        ("SELECT sensor, count(*) AS n FROM none GROUP BY sensor", "42P01", "NONE does not exist"),
    ],
)
def test_wrong_queries(query: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        derived(f"CREATE TABLE t AS {query} EMIT CHANGES", declared(READINGS))
    assert error.value.sqlstate == sqlstate


def test_without_a_kafka() -> None:
    with pytest.raises(TailgateError, match="there is no Kafka for statements of ksqlDB") as error:
        declared_source(creation(READINGS).statement, READINGS, Catalog(), Schemas(), Endpoints())  # type: ignore[arg-type]
    assert error.value.sqlstate == "55000"
    assert replace(ENDPOINTS, kafka="").registry


def test_connections_take_the_place_of_the_options() -> None:
    """They may use TLS and SASL. Items have their addresses and settings, as those of PostgreSQL's dialect that name a connection."""
    catalog = connected()
    kafka, registry = (catalog.find(name) for name in ("ksqldb_kafka", "ksqldb_registry"))
    assert isinstance(kafka, Connection) and isinstance(registry, Connection)
    text = "CREATE STREAM s (k VARCHAR KEY, n INT) WITH (kafka_topic = 's', value_format = 'avro')"
    named = catalog.with_resolution(resolve(text, catalog, catalog))  # the statement names no connection
    source, letters = declared_source(creation(text).statement, text, named, Schemas(), ENDPOINTS.within(named))  # type: ignore[arg-type]
    catalog = catalog.apply(Change(put=(source, letters)))
    view, sink, catalog = derived("CREATE STREAM d AS SELECT * FROM s EMIT CHANGES", catalog)
    assert isinstance(source.value_format, Ksqldb)
    for item, format in ((source, source.value_format), (sink, sink.value_format)):
        assert (item.brokers, item.kafka, format.registry, format.access) == (
            "far:9093",
            kafka.settings,
            "https://schemas",
            registry.settings,
        )
        assert {kafka.id, registry.id} <= set(item.depends)
        assert decode_item(encode_item(item)) == item
        assert rename_references(item, catalog, catalog) == item
    assert sink.depends[0] == view.id
    statement = parse("DROP CONNECTION ksqldb_registry")
    assert isinstance(statement, Drop)
    with pytest.raises(DependentObjectsStillExist):
        drop(statement, catalog)


def test_print_reads_from_the_brokers_of_the_connection() -> None:
    """Otherwise it would not be clear which of several brokers has the topic."""
    engine = SimpleNamespace(catalog=connected(), opened=lambda settings: {"username": str(settings["username"])})
    attending = Attending(SimpleNamespace(engine=engine), ENDPOINTS)  # type: ignore[arg-type]
    statement = parse("PRINT 'readings'")
    assert isinstance(statement, Print)
    names = resolve("PRINT 'readings'", engine.catalog, engine.catalog)
    assert attending._place(statement, names) == ("far:9093", {"username": "a"})


def test_only_superusers_change_where_the_statements_of_all_roles_go() -> None:
    catalog = connected()
    ann = Role(catalog.next_id, "ann")
    catalog = catalog.apply(Change(put_roles=(ann,), put=tuple(replace(c, owner=ann.id) for c in catalog.each(Connection))))
    assert ENDPOINTS.within(catalog) == ENDPOINTS
    catalog = catalog.apply(Change(put_roles=(replace(ann, superuser=True),)))
    assert ENDPOINTS.within(catalog).brokers() == "far:9093"


def test_a_connection_to_another_service_is_an_error() -> None:
    catalog = connected()
    kafka = catalog.find("ksqldb_kafka")
    with pytest.raises(TailgateError, match='connection "ksqldb_registry" is not to a schema registry') as error:
        ENDPOINTS.within(Catalog().apply(Change(put=(replace(kafka, name="ksqldb_registry", depends=()),))))
    assert error.value.sqlstate == "42809"
