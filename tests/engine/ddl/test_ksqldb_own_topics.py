"""The topics of the catalog's own streams and tables: schemas that queries write, and DROP … DELETE TOPIC."""

from __future__ import annotations

import json

import pytest

from tailgate.engine.ddl.ksqldb import check_unused, subjects_of
from tailgate.engine.ddl.ksqldb.own_topics import written_schema
from tailgate.lake.catalog import Change, Table
from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import Drop, Name, parse
from tests.engine.ddl.ksqldb_items import AVERAGES, READINGS, declared, derived


def test_the_schema_that_a_query_writes() -> None:
    """A schema has the columns that are not in the key, with ksqlDB's names. The catalog has it before the registry."""
    text = AVERAGES.replace(" AS SELECT", " WITH (value_format = 'avro') AS SELECT")
    _, _, catalog = derived(text, declared(READINGS))
    schema = written_schema("value", "AVG_READINGS", catalog)
    assert schema is not None
    assert subjects_of(catalog.relation("avg_readings")) == ("AVG_READINGS-value",)
    assert [field["name"] for field in json.loads(schema.texts[-1])["fields"]] == ["AVG"]
    assert (written_schema("value", "r", catalog), written_schema("value", "other", catalog)) == (None, None)
    again = declared("CREATE STREAM again WITH (kafka_topic = 'AVG_READINGS', value_format = 'avro')", catalog).relation("again")
    assert [(c.name, str(c.type)) for c in again.columns][:1] == [("avg", "double precision")]


def test_a_topic_that_others_use_is_not_deleted() -> None:
    catalog = declared(READINGS)
    assert check_unused(catalog.relation("readings"), catalog) == "r"
    catalog = declared(READINGS.replace("readings", "same"), catalog)
    with pytest.raises(TailgateError, match=r"Found other data sources \(SAME\) using topic r") as error:
        check_unused(catalog.relation("readings"), catalog)
    assert error.value.sqlstate == "55006"
    with pytest.raises(TailgateError, match='"t" is not a stream or table of ksqlDB'):
        check_unused(catalog.apply(Change(put=(Table(5000, "t", (), stored=True),))).relation("t"), catalog)


def test_the_statement_says_whether_the_topic_is_deleted() -> None:
    assert parse("DROP STREAM IF EXISTS s DELETE TOPIC") == Drop("stream", (Name("s"),), if_exists=True, delete_topic=True, of_ksqldb=True)
    assert parse("DROP TABLE t DELETE TOPIC") == Drop("table", (Name("t"),), delete_topic=True, of_ksqldb=True)
    assert parse("DROP STREAM s") == Drop("stream", (Name("s"),), of_ksqldb=True)
