"""Streams and tables of ksqlDB for tests: declared and derived without a broker."""

from __future__ import annotations

import json

from tailgate.engine.ddl.kafka.connection import create_connection, create_secret
from tailgate.engine.ddl.kafka.registry import RegisteredSchema
from tailgate.engine.ddl.ksqldb import Endpoints, declared_source, derived_sink, derived_view
from tailgate.engine.ddl.view import errors_item
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Sink
from tailgate.sql.statements import CreateKsqldbItem, parse

ENDPOINTS = Endpoints("kafka:9092", "http://registry:8081")
NESTED = """CREATE STREAM n (k VARCHAR KEY, tags ARRAY<VARCHAR>, sizes MAP<VARCHAR, DECIMAL(4, 1)>, day DATE, at TIMESTAMP,
  owner STRUCT<id INT, "names" ARRAY<STRUCT<`first` VARCHAR>>>) WITH (kafka_topic = 'n', value_format = 'json')""".replace('"', "`")
READINGS = "CREATE STREAM readings (sensor VARCHAR KEY, area VARCHAR, reading INT) WITH (kafka_topic = 'r', value_format = 'json')"
ROWTIME = ("rowtime", "timestamp with time zone")
RECORD = (("rowpartition", "integer"), ("rowoffset", "bigint"), ROWTIME)  # the pseudo columns of a declared table
AVERAGES = "CREATE TABLE avg_readings AS SELECT sensor, AVG(reading) AS avg FROM readings GROUP BY sensor EMIT CHANGES"
HIGH = "CREATE STREAM high WITH (partitions = 1) AS SELECT *, reading * 2 AS twice FROM readings WHERE reading > 40 EMIT CHANGES"
CALL = {"type": "record", "name": "row", "fields": [{"name": "name", "type": "string"}, {"name": "seconds", "type": ["null", "int"]}]}
CALLS = {
    "type": "record",
    "name": "event",
    "fields": [{"name": "before", "type": ["null", CALL]}, {"name": "after", "type": ["null", "row"]}],
}


class Schemas:
    """A registry with one schema."""

    def registered(self, url: str, schema: str | int, access: object = ()) -> RegisteredSchema | None:
        return RegisteredSchema("AVRO", (json.dumps(CALLS),)) if schema == "calls-value" else None


def creation(text: str) -> CreateKsqldbItem:
    statement = parse(text)
    assert isinstance(statement, CreateKsqldbItem)
    return statement


def declared(text: str, catalog: Catalog | None = None) -> Catalog:
    """Returns the catalog with a declared stream or table."""
    catalog = catalog or Catalog()
    items = declared_source(creation(text).statement, text, catalog, Schemas(), ENDPOINTS.within(catalog))  # type: ignore[arg-type]
    return catalog.apply(Change(put=items))


def connected(catalog: Catalog | None = None) -> Catalog:
    """Returns a catalog with the connections of ksqlDB's statements, and with the secret that they use."""
    catalog = catalog or Catalog()
    text = "CREATE SECRET word AS 'x'"
    catalog = catalog.apply(Change(put=(create_secret(parse(text), text, catalog, lambda value, id: "sealed"),)))  # type: ignore[arg-type]
    for text in (
        (
            "CREATE CONNECTION ksqldb_kafka TO KAFKA"
            " (BROKER 'far:9093', SASL MECHANISMS = 'PLAIN', SASL USERNAME = 'a', SASL PASSWORD = SECRET word)"
        ),
        "CREATE CONNECTION ksqldb_registry TO CONFLUENT SCHEMA REGISTRY (URL 'https://schemas', USERNAME = 'a', PASSWORD = SECRET word)",
    ):
        catalog = catalog.apply(Change(put=(create_connection(parse(text), text, catalog),)))  # type: ignore[arg-type]
    return catalog


def no_registry(subject: str, schema: object) -> int:
    raise AssertionError("no schema is registered")


def no_expression(text: str) -> object:
    raise AssertionError("no expression is evaluated")


def derived(text: str, catalog: Catalog, registry: object = None) -> tuple[MaterializedView, Sink, Catalog]:
    """Returns the view and the sink of a derived table, and the catalog with them."""
    statement = creation(text).statement
    endpoints = ENDPOINTS.within(catalog)
    view = derived_view(statement, text, catalog, "latest", registry or Schemas(), endpoints)  # type: ignore[arg-type]
    catalog = catalog.apply(Change(put=(view, errors_item(view))))
    sink = derived_sink(statement, view, catalog, 3, endpoints)  # type: ignore[arg-type]
    return view, sink, catalog.apply(Change(put=(sink,)))
