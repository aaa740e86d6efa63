"""Pull queries by key over simple Query messages: later texts with other literals are answered from an index, without parsing."""

from __future__ import annotations

import time
from itertools import count

import psycopg
import pytest

from tailgate.gateway.answers.lookups import LOOKUPS_BEFORE
from tailgate.gateway.session.statements import parsing
from tailgate.sql.ksqldb.declared.switches import SCANS
from tailgate.sql.ksqldb.functions.volatile import DAY_MS
from testing.engine_process import until
from tests.gateway.ksqldb.world import Api, KsqldbWorld

HTTP, POSTGRESQL = ("-c tailgate.dialect=ksqldb_http", "-c tailgate.dialect=postgresql")
DECLARED = ["`SENSOR` STRING KEY", "`N` BIGINT"]
BY_KEY = "SELECT sensor, n FROM averages WHERE sensor = '{}';"


def result(connection: psycopg.Connection, text: str) -> tuple[list[str], list[tuple[object, ...]]]:
    cursor = connection.execute(text.encode())
    return [column.name for column in cursor.description or ()], cursor.fetchall()


def test_texts_with_other_literals(world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dialect has its own answers, although the texts are equal."""
    parsed: list[str] = []
    read = parsing.read
    monkeypatch.setattr(parsing, "read", lambda text, *rest: (parsed.append(text), read(text, *rest))[1])
    with (
        psycopg.connect(world.dsn, autocommit=True, options=HTTP) as http,
        psycopg.connect(world.dsn, autocommit=True, options=POSTGRESQL) as other,
    ):
        keys = count()

        def in_memory() -> bool:
            text = BY_KEY.format(f"other {next(keys)}")
            assert result(http, text) == (DECLARED, [])
            return parsed[-1:] != [text]

        until(in_memory)
        for key, rows in (("s2", [("s2", 7)]), ("s''1", []), ("s1", [("s1", 2)])):
            text = BY_KEY.format(key)
            assert result(http, text) == (DECLARED, rows)
            assert text not in parsed
            assert result(other, text) == (["sensor", "n"], rows)
            assert result(http, text) == (DECLARED, rows)


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("sensor = UCASE('S1')", ["s1"]),
        ("sensor = LCASE('{}')", ["s1", "s2"]),
        ("sensor IN ('{}', 's2')", ["s1", "s2"]),
        ("sensor = '{}' AND n = 2", ["s1", "s2"]),
        ("sensor = '{}' OR sensor = 's2'", ["s1", "s2"]),
    ],
)
def test_conditions(world: KsqldbWorld, condition: str, keys: list[str]) -> None:
    """The answers in memory equal those that are computed."""
    rows = {"s1": 2, "s2": 7}
    expected = {
        "sensor = UCASE('S1')": lambda key: [],
        "sensor = LCASE('{}')": lambda key: [key],
        "sensor IN ('{}', 's2')": lambda key: sorted({key, "s2"}),
        "sensor = '{}' AND n = 2": lambda key: [key] if key == "s1" else [],
        "sensor = '{}' OR sensor = 's2'": lambda key: sorted({key, "s2"}),
    }[condition]
    with psycopg.connect(world.dsn, autocommit=True, options=HTTP) as http:
        for n in range(LOOKUPS_BEFORE + 10):
            key = keys[n % len(keys)]
            text = f"SELECT sensor, n FROM averages WHERE {condition.format(key)};"
            columns, shown = result(http, text)
            assert (columns, sorted(shown)) == (DECLARED, [(k, rows[k]) for k in expected(key)])


def test_the_time_is_that_of_the_answer(api: Api) -> None:
    """So a table may be read with it, in any clause, and no answer is kept."""
    before = time.time_ns() // 1_000_000
    select = "SELECT UNIX_TIMESTAMP() AS t, UNIX_DATE() AS d FROM averages WHERE sensor = 's1' AND UNIX_TIMESTAMP() > n;"
    answers = [api.lines(select)[1] for _ in range(LOOKUPS_BEFORE + 10)]
    times = [answer[0] for answer in answers]
    assert before <= times[0] < times[-1] <= time.time_ns() // 1_000_000 and times == sorted(times)
    assert {answer[1] for answer in answers} <= {before // DAY_MS, time.time_ns() // 1_000_000 // DAY_MS}


def test_network_addresses_are_strings(api: Api, world: KsqldbWorld) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE hosts (id int PRIMARY KEY, ip inet, net cidr, mac macaddr)")
        connection.execute("INSERT INTO hosts VALUES (1, '::ffff:10.0.0.1', '10.0.0.0/8', '08002b010203')")
    assert api.lines("SELECT * FROM hosts;")[1] == [1, "::ffff:10.0.0.1", "10.0.0.0/8", "08:00:2b:01:02:03"]


def test_types_that_ksqldb_lacks_are_strings(api: Api, world: KsqldbWorld) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE lacking (id int PRIMARY KEY, o oid, m macaddr, b bit(2))")
        connection.execute("INSERT INTO lacking VALUES (1, 7, '08002b010203', '10')")
    assert api.lines("SELECT * FROM lacking;")[1] == [1, "7", "08:00:2b:01:02:03", "10"]


def test_arrays_of_postgresql_are_arrays(api: Api, world: KsqldbWorld) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE lists (id int PRIMARY KEY, n int[], t text[], f float8[], b bytea[], at timestamp[])")
        connection.execute(
            """INSERT INTO lists VALUES (2, '{}', '{x}', NULL, NULL, NULL),"""
            """ (1, '{1,NULL}', '{"a,\\"b",NULL,"NULL"}', '{NaN,1.5}', '{"\\\\x00ff"}', '{2020-02-23 10:20:30.5}')"""
        )
    header, *rows = api.lines("SELECT * FROM lists;")
    assert header["columnTypes"][:3] == ["INTEGER", "ARRAY<INTEGER>", "ARRAY<STRING>"]
    first = [1, [1, None], ['a,"b', None, "NULL"], ["NaN", 1.5], ["AP8="], ["2020-02-23T10:20:30.500"]]
    assert sorted(rows, key=lambda row: row[0]) == [first, [2, [], ["x"], None, None, None]]


def test_keys_may_be_arrays_and_structures(api: Api, world: KsqldbWorld) -> None:
    """A constructor of literals is the value of a key, also without scans."""
    api.ksql(
        "CREATE STREAM nested (st STRUCT<b INT, a VARCHAR>, l ARRAY<INT>) WITH (kafka_topic = 'n', format = 'json', partitions = 1);"
        "CREATE TABLE by_structure AS SELECT st, COUNT(*) AS n FROM nested GROUP BY st;"
        "CREATE TABLE by_array AS SELECT l, COUNT(*) AS n FROM nested GROUP BY l;"
    )
    world.append("by_structure", [('{"A": "x", "B": 1}', 3), ('{"A": null, "B": 1}', 4)])
    world.append("by_array", [("[1, 2]", 5), ("[2, 1]", 6), ("[]", 7)])
    for relation, condition, n in (
        ("by_structure", "st = STRUCT(b := 1, a := 'x')", 3),
        ("by_structure", "STRUCT(b := 1, a := CAST(NULL AS VARCHAR)) = st", 4),
        ("by_array", "l = ARRAY[1, 2]", 5),
        ("by_array", "l IN (ARRAY[2, 1], ARRAY[3])", 6),
    ):
        for _ in range(LOOKUPS_BEFORE + 2):
            lines = api.lines(f"SELECT n FROM {relation} WHERE {condition};", properties={SCANS: "false"})
            assert lines[1:] == [[n]], condition


def test_structures_have_the_order_of_their_declaration(api: Api, world: KsqldbWorld) -> None:
    """So do those inside of arrays and maps. A DOUBLE has a fraction, also in a column."""
    types = "s STRUCT<b INT, a STRUCT<z DOUBLE, y VARCHAR>>, l ARRAY<STRUCT<b DECIMAL(4, 2), a DOUBLE>>, m MAP<VARCHAR, DOUBLE>, d DOUBLE"
    api.ksql(f"CREATE STREAM structures (k VARCHAR KEY, {types}) WITH (kafka_topic = 's', value_format = 'json', partitions = 1);")
    api.ksql("CREATE STREAM derived_structures AS SELECT * FROM structures;")
    nested = ('{"A": {"Y": "é", "Z": 1}, "B": 2}', '[{"A": 1e7, "B": 1.50}, null]', '{"b": null, "x": 3}', 2.0)
    world.append("derived_structures", [("k", *nested), ("n", None, None, None, None)])
    expected = [
        ["k", {"B": 2, "A": {"Z": 1.0, "Y": "é"}}, [{"B": 1.50, "A": 1e7}, None], {"b": None, "x": 3.0}, 2.0],
        ["n", None, None, None, None],
    ]
    shown = b'["k",{"B":2,"A":{"Z":1.0,"Y":"\xc3\xa9"}},[{"B":1.50,"A":1.0E7},null],{"b":null,"x":3.0},2.0]'
    select = "SELECT k, s, l, m, d FROM derived_structures"
    for path, member in (("/query-stream", "sql"), ("/query", "ksql")):
        for text in (f"{select};", f"{select} EMIT CHANGES LIMIT 2;"):
            status, _, body = api.request("POST", path, {member: text, "properties": {"auto.offset.reset": "earliest"}})
            assert (status, shown in body, body.count(b'["n",null,null,null,null]')) == (200, True, 1), body
    assert sorted(api.lines(f"{select};")[1:]) == expected
