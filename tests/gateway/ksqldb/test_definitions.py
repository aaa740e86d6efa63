"""Custom types, CREATE OR REPLACE and ALTER … ADD COLUMN over both protocols."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tailgate.gateway.control import Control
from tailgate.gateway.session.statements.parsing import LONG_CHARACTERS
from tests.gateway.ksqldb.world import Api, KsqldbWorld


@pytest.fixture
def connection(world: KsqldbWorld) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        yield connection


def rows(connection: psycopg.Connection[Any], text: str) -> list[tuple[Any, ...]]:
    return connection.execute(text.encode()).fetchall()


def test_types_are_replaced_by_their_definitions(connection: psycopg.Connection[Any], api: Api) -> None:
    connection.execute("CREATE TYPE street AS STRUCT<name VARCHAR, number INT>")
    connection.execute("CREATE TYPE `Address` AS STRUCT<street STREET, codes ARRAY<DECIMAL(4, 2)>>")
    shown = "STRUCT<STREET STRUCT<NAME VARCHAR, NUMBER INT>, CODES ARRAY<DECIMAL(4, 2)>>"
    assert rows(connection, "SHOW TYPES") == [("Address", shown), ("street", "STRUCT<NAME VARCHAR, NUMBER INT>")]
    (listed,) = api.ksql("LIST TYPES;")
    assert listed["@type"] == "type_list"
    number = {"name": "NUMBER", "schema": {"type": "INTEGER", "fields": None, "memberSchema": None}}
    assert listed["types"]["STREET"]["fields"][1] == number
    connection.execute("CREATE STREAM people (id VARCHAR KEY, home `Address`) WITH (kafka_topic = 'p', value_format = 'json')")
    described = rows(connection, "DESCRIBE people")
    assert described[1] == ("home", shown.replace("VARCHAR", "VARCHAR(STRING)").replace("NUMBER INT", "NUMBER INTEGER"))
    connection.execute("CREATE STREAM streets AS SELECT id, CAST(home->street AS street) AS s FROM people EMIT CHANGES")
    connection.execute("INSERT INTO people VALUES ('a', STRUCT(street := STRUCT(name := 'x', number := 1), codes := ARRAY[1.5]))")
    lines = [{"target": "people"}, {"id": "b", "home": {}}, {"id": "c", "home": {"street": {}}}]  # ksqlDB has no STRUCT()
    status, _, body = api.request("POST", "/inserts-stream", b"\n".join(json.dumps(line).encode() for line in lines))
    assert (status, [json.loads(line)["status"] for line in body.splitlines()]) == (200, ["ok", "ok"])
    assert rows(connection, "SELECT relname FROM pg_class WHERE relname IN ('street', 'people') ORDER BY 1") == [("people",)]
    connection.execute("DROP TYPE street")
    connection.execute("DROP TYPE IF EXISTS street")
    assert rows(connection, "DESCRIBE streets")[1] == ("s", "STRUCT<NAME VARCHAR(STRING), NUMBER INTEGER>")
    (entity,) = api.ksql("CREATE TYPE IF NOT EXISTS code AS DECIMAL(4, 2);")
    assert entity["commandStatus"]["message"] == "Registered custom type with name 'CODE' and SQL type DECIMAL(4, 2)"
    (entity,) = api.ksql("CREATE TYPE IF NOT EXISTS code AS INT;")
    assert entity["commandStatus"]["message"] == "CODE is already registered with type DECIMAL(4, 2)"
    assert api.ksql("DROP TYPE code;")[0]["commandStatus"]["message"] == "Dropped type 'CODE'"
    for text in ("DROP STREAM streets", "DROP STREAM people", "DROP TYPE `Address`"):
        connection.execute(text.encode())
    assert rows(connection, "SHOW TYPES") == []


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE TYPE known AS INT", "42710", "Cannot register custom type 'KNOWN' since it is already registered with type: BIGINT"),
        ("CREATE TYPE int AS BIGINT", "42710", 'type "INT" already exists'),
        ("CREATE TYPE a AS nothing", "42704", "Cannot resolve unknown type: NOTHING"),
        ("CREATE TYPE a AS MAP<INT, INT>", "0A000", "MAP<INTEGER, INTEGER> is not supported"),
        ("DROP TYPE nothing", "42704", 'type "nothing" does not exist'),
        ("CREATE STREAM x (a nothing) WITH (kafka_topic = 'p', value_format = 'json')", "42704", "Cannot resolve unknown type: NOTHING"),
    ],
)
def test_wrong_types(connection: psycopg.Connection[Any], text: str, sqlstate: str, message: str) -> None:
    connection.execute("CREATE TYPE known AS BIGINT")
    try:
        with pytest.raises(psycopg.Error) as error:
            connection.execute(text.encode())
    finally:
        connection.execute("DROP TYPE known")
    assert (error.value.sqlstate, message in (error.value.diag.message_primary or "")) == (sqlstate, True), error.value


def test_replaced_and_altered_items(connection: psycopg.Connection[Any], api: Api) -> None:
    text = "CREATE OR REPLACE STREAM s (a VARCHAR KEY, b INT) WITH (kafka_topic = 's', value_format = 'json')"
    assert connection.execute(text.encode()).statusmessage == "CREATE STREAM"
    assert connection.execute("ALTER STREAM s ADD COLUMN c DOUBLE").statusmessage == "ALTER STREAM"
    (entity,) = api.ksql("ALTER STREAM s ADD COLUMN d ARRAY<INT>;")
    assert entity["commandStatus"] == {"status": "SUCCESS", "message": "Stream altered"}
    assert [name for name, _ in rows(connection, "DESCRIBE s")] == ["a", "b", "c", "d"]
    connection.execute("CREATE OR REPLACE STREAM f AS SELECT a, b FROM s WHERE b > 1")
    (before,) = (query for query, *_ in rows(connection, "SHOW QUERIES") if "_F_" in query)
    connection.execute("CREATE OR REPLACE STREAM f AS SELECT a, b, c FROM s EMIT CHANGES")
    assert [query for query, *_ in rows(connection, "SHOW QUERIES") if "_F_" in query] == [before]
    assert [name for name, _ in rows(connection, "DESCRIBE f")] == ["a", "b", "c"]
    connection.execute("CREATE TABLE k (a VARCHAR PRIMARY KEY, b INT) WITH (kafka_topic = 'k', value_format = 'json')")
    assert connection.execute("ALTER TABLE k ADD COLUMN c INT").statusmessage == "ALTER TABLE"
    for drop in ("DROP STREAM f", "DROP STREAM s", "DROP TABLE k"):
        connection.execute(drop.encode())


def test_variables_of_a_session(connection: psycopg.Connection[Any], world: KsqldbWorld) -> None:
    connection.execute("DEFINE format = 'json'")
    connection.execute(
        "DEFINE Name = 'v_one'; CREATE STREAM ${name} (a VARCHAR KEY, b INT) WITH (kafka_topic = '${name}', format = '${format}')"
    )
    assert rows(connection, "SHOW VARIABLES") == [("format", "json"), ("name", "v_one")]
    assert ("v_one", "v_one", "JSON", "JSON") in rows(connection, "SHOW STREAMS")
    before = len(world.engine._statements.ksqldb.messages)
    connection.execute("INSERT INTO ${name} VALUES ('a', 1)")
    connection.execute("INSERT INTO v_one VALUES ('${format}', 2)")
    connection.execute("INSERT INTO v_one VALUES ('$${format}', 3)", prepare=True)
    keys = [key for _, key, _ in world.engine._statements.ksqldb.messages[before:]]
    assert keys == [b'"a"', b'"json"', b'"${format}"']
    assert rows(connection, "SELECT '${format}'") == [("${format}",)]
    long = f"/* {'x' * LONG_CHARACTERS} */ DESCRIBE"
    assert [name for name, _ in rows(connection, f"{long} ${{name}}")] == ["a", "b"]
    with pytest.raises(psycopg.errors.UndefinedObject, match='variable "n" is not defined'):
        connection.execute(f"{long} ${{n}}".encode())
    connection.execute("INSERT INTO t VALUES (77, '${format}', 1)")
    assert rows(connection, "SELECT name FROM t WHERE id = 77") == [("${format}",)]
    connection.execute("DELETE FROM t WHERE id = 77")
    assert connection.execute("UNDEFINE NAME").statusmessage == "UNDEFINE"
    with pytest.raises(psycopg.errors.UndefinedObject, match='variable "name" is not defined'):
        connection.execute("DROP STREAM ${name}")
    with psycopg.connect(world.dsn, autocommit=True) as other:
        assert rows(other, "SHOW VARIABLES") == []
    connection.execute("DROP STREAM v_one")
    connection.execute("DISCARD ALL")
    assert rows(connection, "SHOW VARIABLES") == []
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        connection.execute(f"DEFINE a = '{'x' * ((1 << 20) + 1)}'")


def test_a_query_that_waits_for_kafka_is_in_error(connection: psycopg.Connection[Any], api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.execute("CREATE STREAM stalled (k VARCHAR KEY, n INT) WITH (kafka_topic = 'stalled', value_format = 'json')")
    connection.execute("CREATE STREAM waits AS SELECT k, n FROM stalled EMIT CHANGES")
    connection.execute("CREATE STREAM above AS SELECT k, n FROM waits EMIT CHANGES")

    def states() -> list[set[str]]:
        (listed,), (extended,) = api.ksql("SHOW QUERIES;"), api.ksql("SHOW QUERIES EXTENDED;")
        explained = [api.ksql(f"EXPLAIN {q['id']};")[0]["queryDescription"] for q in listed["queries"]]
        return [
            {q["sinks"][0] for q in explained if q["state"] == "ERROR"},
            {q["sinks"][0] for q in listed["queries"] if q["state"] == "ERROR" and q["statusCount"] == {"ERROR": 1}},
            {q["sinks"][0] for q in extended["queryDescriptions"] if q["state"] == "ERROR"},
            {row[3].upper() for row in rows(connection, "SHOW QUERIES") if row[2] == "ERROR"},
        ]

    assert states() == [set()] * 4
    for status, broken in (
        ({"sources": {"stalled": {"error": "the broker does not answer"}}}, {"WAITS"}),
        ({"sinks": {"above_topic": {"error": "the registry does not answer"}}}, {"ABOVE"}),
        ({"sources": {"stalled": {"error": None}}}, set()),
    ):
        answers: dict[str, Any] = status

        async def answered(control: Control, *, lags: bool = True, answer: dict[str, Any] = answers) -> dict[str, Any]:
            return answer

        monkeypatch.setattr(Control, "status", answered)
        assert states() == [broken] * 4
    for name in ("above", "waits", "stalled"):
        connection.execute(f"DROP STREAM {name}")


def test_a_query_that_inserts_into_a_derived_stream(connection: psycopg.Connection[Any], api: Api) -> None:
    connection.execute("CREATE STREAM a (k VARCHAR KEY, n INT) WITH (kafka_topic = 'a', value_format = 'json')")
    connection.execute("CREATE STREAM b AS SELECT k, n FROM a EMIT CHANGES")
    (entity,) = api.ksql("INSERT INTO b WITH (query_id = 'more') SELECT k, n + 1 AS n FROM a;")
    assert (entity["commandStatus"]["status"], entity["warnings"]) == ("SUCCESS", [])
    assert entity["commandSequenceNumber"] > 0
    (queries,) = api.ksql("SHOW QUERIES;")
    assert [q["sinks"] for q in queries["queries"] if q["id"] == "MORE"] == [["B"]]
    (streams,) = api.ksql("SHOW STREAMS;")
    assert not any(stream["name"].startswith("INSERTQUERY") for stream in streams["streams"])
    (described,) = api.ksql("DESCRIBE b;")
    assert [q["id"] for q in described["sourceDescription"]["writeQueries"]][1:] == ["MORE"]
    (extended,) = api.ksql("SHOW QUERIES EXTENDED;")
    more = next(q for q in extended["queryDescriptions"] if q["id"] == "MORE")
    assert (extended["@type"], more["sinks"], more["state"]) == ("query_descriptions", ["B"], "RUNNING")
    assert "readings" not in more["executionPlan"] and more["executionPlan"]
    assert ("ID : MORE",) in rows(connection, "SHOW QUERIES EXTENDED")
    _, document = api.failed("/ksql", {"ksql": "DROP STREAM b;"})
    assert document["message"].startswith("Cannot drop B.\nThe following queries write into this source: [MORE].")
    for text in ("TERMINATE more", "DROP STREAM b", "DROP STREAM a"):
        connection.execute(text.encode())


def test_defaults_of_declarations(connection: psycopg.Connection[Any], api: Api) -> None:
    """ALTER in a session with other defaults keeps the formats."""
    properties = {"ksql.persistence.default.format.key": "JSON", "ksql.persistence.default.format.value": "JSON"}
    api.ksql("CREATE STREAM d (a INT KEY, b INT KEY, n INT) WITH (kafka_topic = 'd');", streamsProperties=properties)
    (streams,) = api.ksql("SHOW STREAMS;", streamsProperties={"ksql.streams.max.task.idle.ms": "0", "ksql.lambdas.enabled": "true"})
    assert [(s["keyFormat"], s["valueFormat"]) for s in streams["streams"] if s["name"] == "D"] == [("JSON", "JSON")]
    connection.execute("SET 'ksql.persistence.default.format.key' = 'AVRO'")
    connection.execute("SET 'ksql.persistence.wrap.single.values' = 'false'")
    connection.execute("ALTER STREAM d ADD COLUMN m INT")
    assert [row[0] for row in rows(connection, "DESCRIBE d")] == ["a", "b", "n", "m"]
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute("SET 'ksql.persistence.default.format.value' = 'xml'")
    connection.execute("UNSET 'ksql.persistence.default.format.key'")
    connection.execute("CREATE STREAM e (n INT) WITH (kafka_topic = 'e', value_format = 'json')")
    assert "UNWRAPPED" in str(rows(connection, "SHOW CREATE SOURCE e")[0])
    failure = api.failed("/ksql", {"ksql": "CREATE STREAM f (n INT) WITH (kafka_topic = 'f');"})
    assert "VALUE_FORMAT" in failure[1]["message"]


def test_terminate_deletes_topics_with_their_items(connection: psycopg.Connection[Any], api: Api, world: KsqldbWorld) -> None:
    """Names and patterns match whole names of topics, and those of derived items only. Readers are dropped first."""
    connection.execute("CREATE STREAM ended WITH (kafka_topic = 'ended.a') AS SELECT sensor, reading FROM readings EMIT CHANGES")
    connection.execute("CREATE STREAM after_ended WITH (kafka_topic = 'ended.b') AS SELECT sensor, reading FROM ended EMIT CHANGES")
    connection.execute("CREATE TABLE b_ended WITH (kafka_topic = 'ended.c') AS SELECT sensor, count(*) FROM after_ended GROUP BY sensor")
    connection.execute("CREATE STREAM staying WITH (kafka_topic = 'not.ended.d') AS SELECT sensor, reading FROM readings EMIT CHANGES")
    request = {"deleteTopicList": [r"ended\..", "averages", "r"]}
    status, _, body = api.request("POST", "/ksql/terminate", request)
    assert (status, [entity["statementText"] for entity in json.loads(body)]) == (200, ["TERMINATE CLUSTER;"])
    assert rows(connection, "SHOW QUERIES") == []
    assert sorted(world.engine._statements.ksqldb.deleted) == ["ended.a", "ended.b", "ended.c"]
    names = {name for name, *_ in rows(connection, "SHOW STREAMS")}
    assert {"readings", "staying"} <= names and names.isdisjoint({"ended", "after_ended"})
    connection.execute("CREATE STREAM reading_staying AS SELECT sensor, reading FROM readings EMIT CHANGES")
    status, document = api.failed("/ksql/terminate", {"deleteTopicList": ["READING_STAYING", "a" * 1_001]})
    assert (status, document["error_code"]) == (400, 40000)
    assert len(rows(connection, "SHOW QUERIES")) == 1


def test_bodies_are_utf_8_with_whole_characters(api: Api) -> None:
    text = json.dumps({"ksql": "SHOW STREAMS; -- \ud800"})
    for body in (text.encode(), text.encode("utf-16"), b'{"ksql": "SHOW STREAMS; -- \xed\xa0\x80"}'):
        status, document = api.failed("/ksql", body)
        assert (status, document["message"]) == (400, "Malformed JSON in the request body")
    assert api.request("POST", "/ksql", b'\xef\xbb\xbf{"ksql": "SHOW STREAMS;"}')[0] == 200


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM long AS SELECT sensor, {} AS n FROM readings EMIT CHANGES;",
        "CREATE STREAM long AS SELECT sensor FROM readings WHERE reading IN (1.5, '{}') EMIT CHANGES;",
        "CREATE STREAM long (n INT) WITH (kafka_topic = 'long', value_format = 'json', partitions = {});",
        "CREATE STREAM long (n INT) WITH (kafka_topic = 'long', value_format = 'json', partitions = '{}');",
        "CREATE STREAM long (n DECIMAL({}, 2)) WITH (kafka_topic = 'readings', value_format = 'json');",
        "SET 'ksql.functions.collect_list.limit' = '{}';",
        "CREATE STREAM long (n INT) WITH (kafka_topic = 'long', value_format = 'json', partitions = '²');",
    ],
)
def test_numbers_with_too_many_digits_are_refused(api: Api, text: str) -> None:
    status, document = api.failed("/ksql", {"ksql": text.format("9" * 5_000)})
    assert (status, document["error_code"] // 100) == (400, 400)


def test_a_derived_stream_or_target_of_inserts_may_be_a_keyword(api: Api, world: KsqldbWorld) -> None:
    """DESCRIBE STREAMS lists the streams."""
    (created,) = api.ksql("CREATE STREAM streams AS SELECT sensor, area FROM readings;")
    assert created["commandStatus"]["queryId"].startswith("CSAS_STREAMS_")
    api.ksql("DROP STREAM `STREAMS`;")
    status, document = api.failed("/inserts-stream", b'{"target": "STREAMS"}\n')
    assert (status, document["error_code"]) == (400, 40000)
    assert document["message"].startswith("Cannot insert values into an unknown stream/table: STREAMS")
    api.ksql("CREATE STREAM `STREAMS` (k VARCHAR KEY, v INT) WITH (kafka_topic = 's', value_format = 'json');")
    status, _, body = api.request("POST", "/inserts-stream", b'{"target": "streams"}\n{"K": "a", "V": 1}\n')
    assert (status, json.loads(body)) == (200, {"status": "ok", "seq": 0})
    api.ksql("DROP STREAM `STREAMS`;")


def test_large_patterns_of_terminate_do_not_block_other_requests(api: Api) -> None:
    with ThreadPoolExecutor(1) as executor:
        patterns = [rf"{n}\pL{{100}}" for n in range(20)]  # each takes 400 ms alone
        terminated = executor.submit(api.request, "POST", "/ksql/terminate", {"deleteTopicList": patterns})
        longest = 0.0
        while not terminated.done():
            began = time.monotonic()
            assert api.request("GET", "/info")[0] == 200
            longest = max(longest, time.monotonic() - began)
    assert longest < 0.5
    assert terminated.result()[0] == 400
