"""The topics of the catalog's own streams and tables: schemas that queries write, and DROP … DELETE TOPIC."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailgate.engine.ddl.ksqldb import check_unused, declared_schemas, subjects_of
from tailgate.engine.ddl.ksqldb.own_topics import written_schema
from tailgate.lake.catalog import Catalog, Change, Source, Table
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb.statements import CreateItem
from tailgate.sql.statements import CreateKsqldbItem, Drop, Name, parse
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


def test_the_schemas_of_declared_columns() -> None:
    """A key and a value have one if their format has, their columns are declared and no query writes the topic."""
    avro = "CREATE STREAM {} (k INT KEY, n INT, h BYTES HEADER('h')) WITH (kafka_topic = '{}', format = 'avro')"
    catalog = declared(avro.format("a", "t"))
    schemas = _schemas(avro.format("a", "t"), "a", catalog)
    assert {subject: [field["name"] for field in schema["fields"]] for subject, schema in schemas.items() if "fields" in schema} == {
        "t-value": ["N"]
    }
    assert set(schemas) == {"t-key", "t-value"}
    json = "CREATE STREAM j (k INT KEY, n INT) WITH (kafka_topic = 'j', value_format = 'json')"
    assert _schemas(json, "j", declared(json)) == {}
    text = AVERAGES.replace(" AS SELECT", " WITH (value_format = 'avro') AS SELECT")
    _, _, catalog = derived(text, declared(READINGS))
    again = "CREATE STREAM again (average DOUBLE) WITH (kafka_topic = 'AVG_READINGS', value_format = 'avro')"
    assert _schemas(again, "again", declared(again, catalog)) == {}


def _schemas(text: str, name: str, catalog: Catalog) -> dict[str, Any]:
    statement = parse(text, "ksqldb")
    assert isinstance(statement, CreateKsqldbItem) and isinstance(statement.statement, CreateItem)
    source = catalog.relation(name)
    assert isinstance(source, Source)
    return declared_schemas(statement.statement, source, catalog)


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
