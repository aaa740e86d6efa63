"""The words of a statement decide its dialect."""

from __future__ import annotations

import pytest

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, SyntaxError_
from tailgate.sql.ksqldb.dialect import is_ksqldb
from tailgate.sql.statements import Explain, KsqldbQuery, Set, parse, split

KSQLDB = [
    "CREATE STREAM s (i INT) WITH (kafka_topic = 't', value_format = 'json')",
    "create or replace stream s as select * from r",
    "CREATE SOURCE STREAM s WITH (kafka_topic = 't')",
    "CREATE SOURCE TABLE s (k INT PRIMARY KEY) WITH (kafka_topic = 't')",
    "CREATE SOURCE CONNECTOR c WITH ('connector.class' = 'x')",
    "CREATE SINK CONNECTOR c WITH ('connector.class' = 'x')",
    "CREATE TYPE address AS STRUCT<street VARCHAR>",
    "DROP TYPE `Address`",
    "CREATE TABLE t (k INT PRIMARY KEY) WITH (kafka_topic = 't', value_format = 'json')",
    "CREATE TABLE t AS SELECT a, count(*) FROM s GROUP BY a EMIT CHANGES",
    "CREATE OR REPLACE TABLE t AS SELECT a, count(*) FROM s GROUP BY a",
    "CREATE TABLE t WITH (partitions = 1) AS SELECT a, count(*) FROM s GROUP BY a",
    "LIST STREAMS",
    "SHOW STREAMS",
    "SHOW QUERIES EXTENDED",
    "SHOW TOPICS EXTENDED",
    "SHOW SOURCE CONNECTORS",
    "SHOW CONNECTOR PLUGINS",
    "DESCRIBE s",
    "DESCRIBE EXTENDED s",
    "TERMINATE CTAS_T_0",
    "TERMINATE ALL",
    "PAUSE CTAS_T_0",
    "EXPLAIN CTAS_T_0;",
    "EXPLAIN SELECT * FROM s EMIT CHANGES",
    "EXPLAIN CREATE STREAM t AS SELECT * FROM s;",
    "DEFINE a = 'b'",
    "UNSET 'auto.offset.reset'",
    "SET 'auto.offset.reset' = 'earliest'",
    "SELECT * FROM s EMIT CHANGES",
    "SELECT * FROM s EMIT FINAL LIMIT 3;",
    "INSERT INTO s SELECT * FROM r EMIT CHANGES",
    "INSERT INTO s VALUES (1, ARRAY[STRUCT(a := 1)])",
    "INSERT INTO s VALUES (MAP('a' := 1))",
    "DROP STREAM s",
    "RUN SCRIPT 'f'",
    "ALTER STREAM s ADD COLUMN i INT",
]
POSTGRESQL = [
    "SELECT * FROM s",
    "SELECT emit, changes FROM s",
    "CREATE SOURCE stream FROM KAFKA BROKER 'k' TOPIC 't' FORMAT JSON",
    "CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 't' FORMAT JSON",
    "CREATE TYPE mood AS ENUM ('sad')",
    "DROP TYPE mood CASCADE",
    "DROP TYPE address;",
    "DROP TYPE IF EXISTS address",
    "CREATE TYPE pair AS (a int, b int)",
    "CREATE TABLE t (k int PRIMARY KEY)",
    "CREATE TABLE t (k int) WITH (retain history for '1h')",
    "CREATE TABLE t AS SELECT a, count(*) FROM s GROUP BY a",
    "CREATE TABLE t WITH (retain history for '1h') AS SELECT 1",
    "INSERT INTO s VALUES (1)",
    "INSERT INTO s SELECT f(a := 1), struct, map FROM t",
    "SHOW TABLES",
    "SHOW TOPICS",
    "SHOW server_version",
    "SET search_path = a",
    "PAUSE SOURCE s",
    "DROP TABLE t",
    "EXPLAIN SELECT 1",
    "EXPLAIN INSERT INTO s SELECT * FROM t",
    "EXPLAIN CTAS_T_0 SELECT 1",
    "PRINT 't'",
    "list",
    "",
]


@pytest.mark.parametrize("text", KSQLDB)
def test_words_of_ksqldb(text: str) -> None:
    assert is_ksqldb(text)
    assert not is_ksqldb(text, "postgresql")


@pytest.mark.parametrize("text", POSTGRESQL)
def test_words_of_postgresql(text: str) -> None:
    assert not is_ksqldb(text)


def test_the_dialect_ksqldb_has_all_statements_except_a_bare_select() -> None:
    assert all(
        is_ksqldb(text, "ksqldb") for text in [*KSQLDB, "SHOW TABLES", "INSERT INTO s VALUES (1)", "DROP TABLE t", "EXPLAIN CTAS_T_0"]
    )
    texts = ["SELECT * FROM s", "BEGIN", "SHOW server_version", "SET a = b", "DROP VIEW v", "EXPLAIN SELECT 1"]
    assert not any(is_ksqldb(text, "ksqldb") for text in texts)


def test_reserved_words_of_one_dialect_are_names_in_the_other() -> None:
    from tailgate.sql.ksqldb.parser import parse as parse_ksqldb

    parse_ksqldb("CREATE STREAM order_ (user VARCHAR KEY, references INT, offset INT, \"from\" INT) WITH (kafka_topic = 't')")
    parse("SELECT stream, emit, changes FROM partition")


def test_a_text_with_statements_of_both() -> None:
    texts = [part.text for part in split("CREATE STREAM `a;b` AS \\\n SELECT a->b FROM c; SELECT ';';\nLIST STREAMS")]
    assert texts == ["CREATE STREAM `a;b` AS \\\n SELECT a->b FROM c", "SELECT ';'", "LIST STREAMS"]


def test_the_text_of_an_explained_statement() -> None:
    explain = parse("/* the plan */ EXPLAIN\n SELECT a FROM s -- all\n EMIT CHANGES ;\n")
    assert isinstance(explain, Explain) and isinstance(explain.target, KsqldbQuery)
    assert explain.target.text == "SELECT a FROM s -- all\n EMIT CHANGES"


def test_properties() -> None:
    assert parse("SET 'auto.offset.reset' = 'earliest'") == Set("auto.offset.reset", ("earliest",))
    assert parse("UNSET 'auto.offset.reset'") == Set("auto.offset.reset", ())
    assert parse("SET 'ksql.streams.Auto.Offset.Reset' = 'earliest'") == Set("auto.offset.reset", ("earliest",))
    assert parse("SET 'ksql.streams.producer.linger.ms' = '5'") == Set("producer.linger.ms", ("5",))
    assert parse("SET 'ksql.functions.collect_list.limit' = '5'") == Set("ksql.functions.collect_list.limit", ("5",))
    assert parse("SET 'ksql.functions.formula.base.value' = '5'") == Set("ksql.functions.formula.base.value", ("5",))
    with pytest.raises(InvalidParameterValue, match=r"Not recognizable as ksql, streams, consumer, or producer property: 'no\.such'"):
        parse("SET 'no.such' = '1'")
    with pytest.raises(InvalidParameterValue, match=r"Invalid value never for configuration auto\.offset\.reset: String must be one of: "):
        parse("SET 'auto.offset.reset' = 'never'")
    with pytest.raises(SyntaxError_):
        parse("SET 'auto.offset.reset' = 'earliest'", "postgresql")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RUN SCRIPT 'f.sql'", "RUN SCRIPT"),
        ("ALTER SYSTEM 'a' = 'b'", "ALTER SYSTEM"),
    ],
)
def test_what_is_not_executed_is_refused_by_name(text: str, name: str) -> None:
    with pytest.raises(FeatureNotSupported) as error:
        parse(text)
    assert error.value.message == f"{name} is not supported"
    assert error.value.hint
