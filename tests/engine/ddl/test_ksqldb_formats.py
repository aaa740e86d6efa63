"""Formats, schemas and keys of ksqlDB's streams and tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from tailgate.engine.ddl.kafka.registry import RegisteredSchema
from tailgate.engine.ddl.ksqldb import declared_source, message_of, upgraded, with_columns
from tailgate.engine.plan.sources.envelopes import source_layout
from tailgate.formats.registry import Schema
from tailgate.lake.catalog import Catalog, Change, Source, ksqldb_of
from tailgate.lake.catalog.codec import decode_item, encode_item
from tailgate.lake.catalog.formats import Ksqldb, SinkFormat
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.queries.scopes import column_types
from tailgate.sql.statements import AlterKsqldbItem, InsertMessage, parse
from tests.engine.ddl.ksqldb_items import ENDPOINTS, RECORD, creation, declared, derived, no_expression

LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "Kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A"]}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "exact", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "either", "type": ["string", "long"]},
    ],
}
JSON = {
    "type": "object",
    "properties": {
        "b": {"connect.index": 1, "oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int32"}]},
        "a": {"connect.index": 0, "type": "integer"},
        "price": {
            "type": "number",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "5"},
        },
        "day": {"type": "integer", "title": "org.apache.kafka.connect.data.Date", "connect.type": "int32"},
        "inner": {"type": "object", "properties": {"x": {"type": "string"}}},
        "counts": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}
SPLIT = {
    "$id": "http://example.com/order.json",
    "type": "object",
    "properties": {"who": {"$ref": "who.json"}, "at": {"$ref": "types.json#/definitions/Point"}, "all": {"$ref": "#/definitions/All"}},
    "definitions": {"All": {"type": "array", "items": {"$ref": "http://example.com/point.json"}}},
}
POINT = {"$id": "http://example.com/point.json", "$ref": "#/definitions/P", "definitions": {"P": {"type": "integer"}}}
OTHERS = {
    "point": json.dumps(POINT),
    "http://example.com/who.json": json.dumps({"type": "object", "properties": {"name": {"type": "string"}, "p": {"$ref": "point"}}}),
    "types.json": json.dumps({"definitions": {"Point": {"type": "array", "items": {"$ref": "#/definitions/X"}}, "X": {"type": "number"}}}),
}
NODE = {"type": "object", "properties": {"next": {"$ref": "#"}}}
REFERRING = {
    "$ref": "#/definitions/Order",
    "definitions": {
        "Order": {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "any": True,
                "either": {"anyOf": [True, {"type": "null"}]},
                "a": {"$ref": "#/definitions/In"},
                "l": {"type": "array", "items": {"$ref": "#/$defs/n~1"}},
            },
        },
        "In": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/n~1"}]},
    },
    "$defs": {"n/": {"type": "object", "properties": {"definitions": {"type": "string"}}}},
}
MIXED = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "only", "type": "int"},
        {"name": "In", "type": {"type": "record", "name": "I", "fields": [{"name": "X", "type": "int"}, {"name": "y", "type": "int"}]}},
    ],
}
PROTO = """
syntax = "proto3";
package shop;
import "google/type/date.proto";
import "confluent/type/decimal.proto";
message Other { string x = 1; }
message Order {
  int32 id = 3;
  repeated Line lines = 1;
  map<string, int64> counts = 2;
  google.type.Date day = 4;
  confluent.type.Decimal price = 5 [(confluent.field_meta) = { params: [{ value: "5", key: "precision" }, { value: "2", key: "scale" }] }];
  repeated ConnectDefault2Entry pairs = 6;
  oneof choice { int32 number = 7; string text = 8; }
  message Line { optional double price = 1; }
  message ConnectDefault2Entry { string key = 1; bool value = 2; }
}
"""
FIELDS = [
    {"name": "b", "type": ["null", "int"]},
    {"name": "c", "type": "string"},
    {"name": "d", "type": "long", "default": 7},
]
PHYSICAL = {"type": "record", "name": "Physical", "fields": FIELDS}
EVOLVED = {**PHYSICAL, "fields": [*FIELDS, {"name": "e", "type": ["null", "int"], "default": None}]}
REGISTERED = {
    "avro-value": RegisteredSchema("AVRO", (json.dumps(ORDER),)),
    "avro-key": RegisteredSchema("AVRO", ('"long"',)),
    "alone-value": RegisteredSchema("AVRO", (json.dumps({"type": "record", "name": "R", "fields": [{"name": "ROWVAL", "type": "int"}]}),)),
    "json-value": RegisteredSchema("JSON", (json.dumps(JSON),)),
    "node-value": RegisteredSchema("JSON", (json.dumps(NODE),)),
    "outside-value": RegisteredSchema("JSON", (json.dumps({"$ref": "other.json"}),)),
    "no-uri-value": RegisteredSchema("JSON", (json.dumps({"$id": "http://[", "$ref": "other.json"}),)),
    "referring-value": RegisteredSchema("JSON", (json.dumps(REFERRING),)),
    "split-value": RegisteredSchema("JSON", (*OTHERS.values(), json.dumps(SPLIT)), tuple(OTHERS.items())),
    "proto-value": RegisteredSchema("PROTOBUF", (PROTO,)),
    "proto-key": RegisteredSchema("PROTOBUF", ('syntax = "proto3"; message K { int32 a = 1; string b = 2; }',)),
    7: RegisteredSchema("AVRO", (json.dumps(MIXED),)),
    8: RegisteredSchema("AVRO", ('["null", "string"]',)),
    10: RegisteredSchema("AVRO", (json.dumps(PHYSICAL),)),
    11: RegisteredSchema("AVRO", (json.dumps(EVOLVED),)),
    12: RegisteredSchema("PROTOBUF", (PROTO,)),
    13: RegisteredSchema("PROTOBUF", (PROTO, PROTO)),
}


@dataclass
class Registry:
    """A registry with some schemas."""

    requests: list[str | int] = field(default_factory=list)

    def registered(self, url: str, schema: str | int, access: object = ()) -> RegisteredSchema | None:
        self.requests.append(schema)
        return REGISTERED.get(schema)


def source(text: str, catalog: Catalog | None = None) -> tuple[Source, Catalog]:
    """Returns a declared stream or table, and the catalog with it."""
    catalog = catalog or Catalog()
    items = declared_source(creation(text).statement, text, catalog, Registry(), ENDPOINTS)  # type: ignore[arg-type]
    assert decode_item(encode_item(items[0])) == items[0]
    return items[0], catalog.apply(Change(put=items))


def shown(item: Source) -> dict[str, str]:
    """Returns the types of the columns as ksqlDB writes them, without the position."""
    return {
        name: types.text(type)
        for name, type in column_types(item).items()
        if not name.startswith(("row", "_")) or name in ("rowkey", "rowval")
    }


def test_columns_of_an_avro_schema() -> None:
    item, _ = source("CREATE STREAM s WITH (kafka_topic = 'avro', format = 'avro')")
    assert shown(item) == {
        "rowkey": "BIGINT",
        "id": "BIGINT",
        "kind": "VARCHAR",
        "at": "TIMESTAMP",
        "exact": "BIGINT",
        "lines": "ARRAY<STRUCT<PRICE DECIMAL(6, 2)>>",
        "tags": "MAP<VARCHAR, VARCHAR>",
        "either": "STRUCT<STRING VARCHAR, LONG BIGINT>",
    }
    assert "KEY FORMAT KSQLDB AVRO (rowkey) UNWRAPPED USING CONFLUENT SCHEMA REGISTRY 'http://registry:8081'" in item.sql
    spec = json.loads(source_layout(item).decoder.value.schema)
    assert spec["columns"][4]["nested"] == '["array", ["struct", ["PRICE", ["decimal", 6, 2]]]]'
    assert source_layout(item).decoder.value.registry == "http://registry:8081"


def test_columns_of_a_json_schema() -> None:
    item, _ = source("CREATE TABLE t (k INT PRIMARY KEY) WITH (kafka_topic = 'json', value_format = 'json_sr')")
    assert shown(item) == {
        "k": "INT",
        "a": "BIGINT",
        "b": "INT",
        "price": "DECIMAL(5, 2)",
        "day": "DATE",
        "inner": "STRUCT<X VARCHAR>",
        "counts": "MAP<VARCHAR, DOUBLE>",
    }


def test_columns_of_a_json_schema_with_references() -> None:
    item, _ = source("CREATE STREAM s WITH (kafka_topic = 'referring', value_format = 'json_sr')")
    of_node = "STRUCT<DEFINITIONS VARCHAR>"
    assert shown(item) == {"id": "BIGINT", "a": of_node, "l": f"ARRAY<{of_node}>"}
    item, _ = source("CREATE STREAM s WITH (kafka_topic = 'split', value_format = 'json_sr')")
    assert shown(item) == {"who": "STRUCT<NAME VARCHAR, P BIGINT>", "at": "ARRAY<DOUBLE>", "all": "ARRAY<BIGINT>"}
    for topic, message in (
        ("node", "more than 100 references"),
        ("outside", 'the reference "other.json"'),
        ("no-uri", 'the reference "other.json"'),
    ):
        with pytest.raises(TailgateError, match=message):
            source(f"CREATE STREAM s WITH (kafka_topic = '{topic}', value_format = 'json_sr')")


def test_columns_of_a_protobuf_schema() -> None:
    """A key of PROTOBUF is a message; the message has a name, and an index in the file."""
    item, _ = source("CREATE STREAM s WITH (kafka_topic = 'proto', format = 'protobuf', value_schema_full_name = 'shop.Order')")
    assert shown(item) == {
        "a": "INT",
        "b": "VARCHAR",
        "choice_0": "STRUCT<NUMBER INT, TEXT VARCHAR>",
        "id": "INT",
        "lines": "ARRAY<STRUCT<PRICE DOUBLE>>",
        "counts": "MAP<VARCHAR, BIGINT>",
        "day": "DATE",
        "price": "DECIMAL(5, 2)",
        "pairs": "MAP<VARCHAR, BOOLEAN>",
    }
    assert isinstance(item.value_format, Ksqldb)
    message = json.loads(item.value_format.schema)
    assert (message["message"], message["index"]) == ("shop.Order", [1])


def test_schemas_by_id() -> None:
    item, _ = source("CREATE STREAM s WITH (kafka_topic = 'x', value_format = 'avro', value_schema_id = 7)")
    assert shown(item) == {"ONLY": "INT", "In": "STRUCT<X INT, `y` INT>"}  # ksqlDB's names `only` and `In`
    item, _ = source("CREATE STREAM s WITH (kafka_topic = 'x', value_format = 'avro', value_schema_id = 8)")
    assert shown(item) == {"rowval": "VARCHAR"}
    assert isinstance(item.value_format, Ksqldb)
    assert not item.value_format.wrapped


def test_a_record_with_the_field_rowval() -> None:
    item, _ = source("CREATE STREAM s WITH (kafka_topic = 'alone', value_format = 'avro')")
    assert shown(item) == {"rowval": "INT"}
    assert isinstance(item.value_format, Ksqldb)
    assert item.value_format.wrapped


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE STREAM s WITH (kafka_topic = 'x', value_format = 'avro')", "42704", "Schema for message values on topic 'x'"),
        ("CREATE TABLE s WITH (kafka_topic = 'x', format = 'avro')", "42704", "Schema for message keys on topic 'x'"),
        ("CREATE STREAM s WITH (kafka_topic = 'x', value_format = 'avro', value_schema_id = 9)", "42704", "Schema for message values"),
        ("CREATE STREAM s WITH (kafka_topic = 'json', value_format = 'avro')", "22023", "Value schema is JSON"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'avro', value_schema_id = 7)", "22023", "Table elements and VALUE_SCHEMA_ID"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', value_schema_id = 7)", "22023", "doesn't support registering"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', value_schema_full_name = 'a')", "22023", "fullSchemaName"),
        ("CREATE STREAM s (a INT) WITH (value_format = 'protobuf', wrap_single_value = false)", "22023", "does not support 'WRAP_SINGLE"),
        (
            "CREATE STREAM s (a INT) WITH (value_format = 'json', value_protobuf_nullable_representation = 'optional')",
            "22023",
            "nullableRep",
        ),
        ("CREATE STREAM s (a INT) WITH (value_format = 'json', window_type = 'session')", "42P16", "Windowed sources require a key"),
        ("CREATE STREAM s (a INT KEY, b INT) WITH (value_format = 'json', window_type = 'hopping')", "22023", "HOPPING windows require"),
        (
            "CREATE STREAM s (a INT KEY, b INT) WITH (value_format = 'json', window_type = 'session', window_size = '1 day')",
            "22023",
            "should not be set for SESSION",
        ),
        (
            "CREATE STREAM s (a VARCHAR) WITH (value_format = 'json', timestamp = 'a')",
            "22023",
            "without also specifying the timestamp_format",
        ),
        (
            "CREATE STREAM s (a BIGINT) WITH (value_format = 'json', timestamp = 'a', timestamp_format = 'yyyy')",
            "22023",
            "can only be used when the timestamp column is of type STRING",
        ),
        ("CREATE STREAM s (a INT) WITH (value_format = 'none')", "22023", "'NONE' format"),
    ],
)
def test_wrong_declarations(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        source(text)
    assert error.value.sqlstate == sqlstate


ROWS = "CREATE STREAM s (k INT KEY, a INT, t VARCHAR) WITH (kafka_topic = 's', value_format = 'json')"


def test_a_query_writes_with_the_schema_of_an_id() -> None:
    """The schema of an item over its topic has the same text."""
    text = "CREATE STREAM d WITH (value_format = 'avro', value_schema_id = 10) AS SELECT k, a AS `b`, t AS `c` FROM s EMIT CHANGES"
    view, sink, catalog = derived(text, declared(ROWS), Registry())
    assert decode_item(encode_item(view)) == view and decode_item(encode_item(sink)) == sink
    assert sink.value_format.schema == json.dumps(PHYSICAL)
    item, _ = source("CREATE STREAM e WITH (kafka_topic = 'D', value_format = 'avro')", catalog)
    assert shown(item) == {"b": "INT", "c": "VARCHAR", "d": "BIGINT"}
    _, above, _ = derived("CREATE STREAM f AS SELECT * FROM d EMIT CHANGES", catalog, Registry())
    assert above.value_format.schema == ""
    properties = "value_format = 'protobuf', value_schema_id = 12, value_schema_full_name = 'shop.Order'"
    view, sink, _ = derived(f"CREATE STREAM p WITH ({properties}) AS SELECT k, a AS `id` FROM s EMIT CHANGES", declared(ROWS), Registry())
    assert (sink.value_format.schema, sink.value_format.schema_name) == (PROTO, "shop.Order")
    assert view.ksqldb is not None and view.ksqldb.value_schema == PROTO
    alone = "CREATE STREAM h WITH (value_format = 'avro', value_schema_id = 8) AS SELECT k, t AS rowval FROM s EMIT CHANGES"
    view, sink, _ = derived(alone, declared(ROWS), Registry())
    assert (sink.value_format.schema, sink.value_format.wrapped) == ('["null", "string"]', False)
    assert view.ksqldb is not None and not view.ksqldb.wrapped
    keyed = "CREATE STREAM g WITH (key_format = 'avro', key_schema_id = 8) AS SELECT t, k, a FROM s PARTITION BY t EMIT CHANGES"
    _, sink, _ = derived(keyed, declared(ROWS), Registry())
    assert sink.key_format is not None and sink.key_format.schema == '["null", "string"]'


@pytest.mark.parametrize(
    ("properties", "select", "sqlstate", "message"),
    [
        (
            "value_format = 'avro', value_schema_id = 10",
            "k, t AS `c`, a AS `b`",
            "42P16",
            "value columns are changed, missing or reordered",
        ),
        ("value_format = 'avro', value_schema_id = 10", "k, a AS `b`, a AS `c`", "42P16", r"\[`b` INTEGER, `c` INTEGER\]. Schema"),
        (
            "value_format = 'avro', value_schema_id = 10",
            "k, a AS `b`, t AS `x`",
            "42P16",
            r"registry is \[`b` INTEGER, `c` STRING, `d` BIGINT",
        ),
        ("value_format = 'avro', value_schema_id = 10", "k, a AS `b`", "42P16", "field c of the schema in the registry has no default"),
        ("value_format = 'avro', value_schema_id = 9", "k, a", "42704", "Schema for message values"),
        ("value_format = 'json_sr', value_schema_id = 7", "k, a", "22023", "Value schema is AVRO"),
        ("value_format = 'json', value_schema_id = 7", "k, a", "22023", "doesn't support registering"),
        ("value_format = 'protobuf', value_schema_id = 7", "k, a", "22023", "Value schema is AVRO"),
        ("value_format = 'protobuf', value_schema_id = 12", "k, a AS `none`", "42P16", r"\[`none` INTEGER\]. Schema from schema registry"),
        ("value_format = 'protobuf', value_schema_id = 13", "k, a", "0A000", "with references to other schemas"),
        ("key_format = 'avro', key_schema_id = 8", "k, a", "42P16", r"\[`k` INTEGER\]. Schema from schema registry is \[`k` STRING\]"),
    ],
)
def test_wrong_schemas_of_queries(properties: str, select: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message.replace("`k`", "`K`")) as error:
        derived(f"CREATE STREAM d WITH ({properties}) AS SELECT {select} FROM s EMIT CHANGES", declared(ROWS), Registry())
    assert error.value.sqlstate == sqlstate


def test_messages_register_their_schemas() -> None:
    registered: dict[str, Schema] = {}

    def register(subject: str, schema: Schema) -> int:
        registered[subject] = schema
        return len(registered)

    def message(text: str, catalog: Catalog) -> tuple[bytes | None, bytes | None]:
        statement = parse(text, "ksqldb")
        assert isinstance(statement, InsertMessage)
        written = message_of(statement.statement, catalog, register, no_expression)[1]
        return written.key, written.value

    _, catalog = source("CREATE STREAM my_rows (k INT KEY, s STRUCT<a INT>) WITH (kafka_topic = 't', format = 'avro')")
    assert message("INSERT INTO my_rows VALUES (1, STRUCT(a := 2))", catalog) == (b"\0\0\0\0\1\2\2", b"\0\0\0\0\2\2\2\4")
    assert registered["t-key"] == ["null", "int"]
    _, catalog = source(
        "CREATE STREAM my_rows (k INT KEY, l INT KEY, a INT) WITH (kafka_topic = 't', key_format = 'avro', value_format = 'protobuf')"
    )
    assert message("INSERT INTO my_rows VALUES (1, 2, 3)", catalog) == (b"\0\0\0\0\2\2\2\2\4", b"\0\0\0\0\2\0\x08\3")
    assert isinstance(registered["t-key"], dict)
    assert registered["t-key"]["name"] == "MyRowsKey"
    _, catalog = source("CREATE STREAM my_rows WITH (kafka_topic = 'i', format = 'avro', key_schema_id = 8, value_schema_id = 10)")
    assert message("INSERT INTO my_rows (rowkey, `c`) VALUES ('k', 'x')", catalog) == (b"\0\0\0\0\3\2\2k", b"\0\0\0\0\4\0\2x\x0e")
    assert (registered["i-key"], registered["i-value"]) == (["null", "string"], PHYSICAL)
    _, catalog = source("CREATE TABLE w (k INT PRIMARY KEY, a INT) WITH (value_format = 'json', window_type = 'session')")
    with pytest.raises(TailgateError, match="Cannot insert values into windowed"):
        message("INSERT INTO w VALUES (1, 2)", catalog)


def test_windowed_keys_and_headers() -> None:
    item, _ = source(
        "CREATE TABLE w (a INT, k INT PRIMARY KEY, h ARRAY<STRUCT<key VARCHAR, value BYTES>> HEADERS)"
        " WITH (value_format = 'json', window_type = 'tumbling', window_size = '2 minutes')"
    )
    assert "KEY FORMAT KSQLDB KAFKA (k) WINDOW 120000" in item.sql
    assert "INCLUDE HEADERS AS h BYTES" in item.sql
    assert [c.name for c in item.columns] == ["a", "k", "h", "windowstart", "windowend", *(name for name, _ in RECORD)]
    ksqldb = ksqldb_of(item)
    assert ksqldb is not None
    assert ksqldb.message_key == ("k", "windowstart")
    stream, _ = source("CREATE STREAM w (k INT KEY, a INT) WITH (value_format = 'json', window_type = 'session')")
    assert "WINDOW SESSION" in stream.sql
    assert [c.name for c in stream.columns][:4] == ["k", "a", "windowstart", "windowend"]


def test_the_stored_form_has_the_column_of_the_time() -> None:
    """`source` compares each item with its stored form."""
    text = "CREATE STREAM s (a VARCHAR) WITH (value_format = 'json', timestamp = 'a', timestamp_format = 'yyyy-MM-dd')"
    item, _ = source(text)
    assert "tg_ksqldb_parse_timestamp(`value`.c0, 'yyyy-MM-dd', 'UTC')" in str(source_layout(item).shape)


def test_a_declaration_over_the_topic_of_a_query_has_its_columns() -> None:
    catalog = declared("CREATE STREAM s (k INT KEY, a ARRAY<INT>) WITH (kafka_topic = 's', value_format = 'json')")
    for name in ("avro", "json_sr", "protobuf"):
        _, sink, above = derived(f"CREATE STREAM d WITH (format = '{name}') AS SELECT * FROM s EMIT CHANGES", catalog)
        assert sink.value_format == SinkFormat(type="ksqldb", name=name.upper(), registry="http://registry:8081")
        item, _ = source(f"CREATE STREAM e WITH (kafka_topic = 'D', format = '{name}')", above)
        assert shown(item) == {"k" if name == "protobuf" else "rowkey": "INT", "a": "ARRAY<INT>"}


def test_a_stream_with_the_schema_of_an_id_gets_columns() -> None:
    """INSERT writes with the new schema, or after ALTER with that of the columns."""
    text = "CREATE OR REPLACE STREAM s WITH (kafka_topic = 'x', value_format = 'avro', value_schema_id = {})"
    old, catalog = source(text.format(10))
    new = upgraded(creation(text.format(11)).statement, text.format(11), old, catalog, Registry(), ENDPOINTS)[0]  # type: ignore[arg-type]
    assert isinstance(new, Source) and new.ksqldb is not None
    assert shown(new) == {"B": "INT", "C": "VARCHAR", "D": "BIGINT", "E": "INT"}
    assert new.ksqldb.value_schema == json.dumps(EVOLVED)
    altering = parse("ALTER STREAM s ADD COLUMN f INT", "ksqldb")
    assert isinstance(altering, AlterKsqldbItem)
    item, extended, declaration = with_columns(altering.statement, catalog)
    new = upgraded(extended, declaration, item, catalog, Registry(), ENDPOINTS)[0]  # type: ignore[arg-type]
    assert isinstance(new, Source) and new.ksqldb is not None
    assert shown(new) == {"B": "INT", "C": "VARCHAR", "D": "BIGINT", "f": "INT"}
    assert new.ksqldb.value_schema == ""
