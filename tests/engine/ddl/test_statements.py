"""CREATE SOURCE, CREATE SINK and DROP: the resulting catalog items, and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailgate.engine.ddl import create_sink, create_source, drop
from tailgate.lake.catalog import DEAD_LETTERS, Catalog, Change, Item, MaterializedView
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.catalog.secrets import Settings
from tailgate.lake.errors import ConnectionFailure, TailgateError
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.sql.statements import CreateSink, CreateSource, Drop, parse

RECORD = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", RECORD], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
    ],
}


class Subjects:
    """A registry with these subjects."""

    def __init__(self, subjects: dict[str, Any]) -> None:
        self.subjects = subjects

    def latest(self, url: str, subject: str, settings: Settings = ()) -> str | None:
        if url == "http://down":
            raise ConnectionFailure(f"schema registry {url} does not answer")
        return json.dumps(self.subjects[subject]) if subject in self.subjects else None


REGISTRY = Subjects({"t-value": RECORD, "t-key": KEY, "d-value": ENVELOPE, "d-key": KEY, "n-value": ENVELOPE, "words-value": "string"})


def source(text: str, catalog: Catalog | None = None) -> tuple[Item, Item]:
    text = f"CREATE SOURCE s {text}"
    statement = parse(text)
    assert isinstance(statement, CreateSource)
    return create_source(statement, text, catalog or Catalog(), REGISTRY)


def shown(item: Item) -> str:
    """Returns an item's columns as `name type[!]`, with a star for key columns."""
    return ", ".join(
        f"{'*' if item.key and i in item.key else ''}{c.name} {c.type}{'' if c.nullable else '!'}" for i, c in enumerate(item.columns)
    )


KAFKA = "FROM KAFKA BROKER 'kafka' TOPIC 't'"
CSR = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://registry'"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (f"{KAFKA} FORMAT BYTES", "data bytea!"),
        (f"{KAFKA} FORMAT TEXT", "text text!"),
        (f"{KAFKA} FORMAT JSON", "data jsonb!"),
        (f"(a int, b text NOT NULL) {KAFKA} FORMAT JSON", "a integer, b text!"),
        (f"{KAFKA} {CSR}", "id bigint!, name text"),
        (f"FROM KAFKA BROKER 'kafka' TOPIC 'words' {CSR}", "data text!"),
        (
            f"{KAFKA} KEY FORMAT TEXT VALUE FORMAT BYTES INCLUDE KEY, PARTITION, OFFSET AS at, TIMESTAMP",
            "data bytea!, key text, partition integer!, at bigint!, timestamp timestamp with time zone",
        ),
        (f"{KAFKA} KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT", "*key0 text!, data jsonb!"),
        (f"{KAFKA} FORMAT TEXT ENVELOPE UPSERT", "*key0 text!, text text!"),
        (f"{KAFKA} {CSR} ENVELOPE UPSERT", "*id bigint!, name text"),
        (
            f"(name text, id bigint, PRIMARY KEY (id) NOT ENFORCED) {KAFKA} KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT",
            "name text, *id bigint!",
        ),
        (f"FROM KAFKA BROKER 'kafka' TOPIC 'd' {CSR} ENVELOPE DEBEZIUM", "*id bigint!, name text"),
        (f"(id int, name text, PRIMARY KEY (id) NOT ENFORCED) {KAFKA} FORMAT JSON ENVELOPE DEBEZIUM", "*id integer!, name text"),
    ],
)
def test_columns_by_format_and_envelope(text: str, columns: str) -> None:
    item, letters = source(text)
    assert shown(item) == columns
    assert item.stored == (item.key is not None)
    assert (letters.name, letters.columns, letters.depends) == ("s_dead_letters", DEAD_LETTERS, (item.id,))
    assert decode_catalog(json.loads(json.dumps(encode_catalog(Catalog().apply(Change(put=(item, letters))))))).items[item.id] == item


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        (f"{KAFKA} FORMAT JSON ENVELOPE DEBEZIUM", "42P17", "the columns of a JSON source with this envelope must be declared"),
        (
            f"(id int) {KAFKA} FORMAT JSON INCLUDE OFFSET ENVELOPE DEBEZIUM",
            "0A000",
            "INCLUDE with ENVELOPE DEBEZIUM of a table without a key is not supported",
        ),
        (f"(id int) {KAFKA} KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM", "42P17", "the columns of a key in JSON must be declared"),
        (f"{KAFKA} FORMAT TEXT ENVELOPE DEBEZIUM", "0A000", "ENVELOPE DEBEZIUM with FORMAT TEXT is not supported"),
        (f"{KAFKA} FORMAT JSON ENVELOPE UPSERT", "42P17", "ENVELOPE UPSERT needs the message's key"),
        (f"(a int) {KAFKA} FORMAT TEXT", "0A000", "columns can only be declared for FORMAT JSON, CSV and REGEX"),
        (f"(a int, a text) {KAFKA} FORMAT JSON", "42701", 'column "a" specified more than once'),
        (f"FROM KAFKA BROKER 'kafka' TOPIC 'x' {CSR}", "42704", 'schema registry has no subject "x-value"'),
        (f"FROM KAFKA BROKER 'kafka' TOPIC 'n' {CSR} ENVELOPE UPSERT", "42704", 'schema registry has no subject "n-key"'),
        (f"FROM KAFKA BROKER 'kafka' TOPIC 't' {CSR} ENVELOPE DEBEZIUM", "42P17", 'the schema of "t-value" is not a Debezium envelope'),
        (f"{KAFKA} {CSR.replace('http://registry', 'http://down')}", "08006", "schema registry http://down does not answer"),
        ("FROM KAFKA BROKER 'kafka' TOPIC 'a/b' FORMAT BYTES", "22023", '"a/b" is not the name of a topic'),
    ],
)
def test_invalid_sources(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError) as error:
        source(text)
    assert (error.value.sqlstate, error.value.message) == (sqlstate, message)


def test_a_duplicate_name_is_refused() -> None:
    catalog = Catalog().apply(Change(put=source(f"{KAFKA} FORMAT BYTES")))
    with pytest.raises(TailgateError) as error:
        source(f"{KAFKA} FORMAT BYTES", catalog)
    assert error.value.sqlstate == "42P07"


def test_the_readers_schema_has_only_the_columns_that_are_read() -> None:
    item, _ = source(f"FROM KAFKA BROKER 'kafka' TOPIC 'd' {CSR} ENVELOPE DEBEZIUM")
    schema = json.loads(item.value_format.schema)
    assert [f["name"] for f in schema["fields"]] == ["after", "op"]
    # the type is spelled out here, because the before image is removed
    assert schema["fields"][0]["type"][1]["name"] == "Value"


# ---- sinks and DROP ----------------------------------------------------------------------------------------------------------------


def world() -> Catalog:
    s, letters = source(f"{KAFKA} FORMAT BYTES")
    catalog = Catalog().apply(Change(put=(s, letters)))
    columns = (Field("id", INT8), Field("n", TEXT))
    view = MaterializedView(catalog.next_id, "v", columns, (0,), True, catalog.next_id + 1, (s.id,))
    catalog = catalog.apply(Change(put=(view,)))
    second = MaterializedView(catalog.next_id, "w", columns, None, True, catalog.next_id + 1, (view.id,))
    return catalog.apply(Change(put=(second,)))


INTO = "INTO KAFKA BROKER 'kafka' TOPIC 'out'"


def sink(text: str) -> Item:
    text = f"CREATE SINK k {text}"
    statement = parse(text)
    assert isinstance(statement, CreateSink)
    return create_sink(statement, text, world())


def test_options_of_a_sink() -> None:
    item = sink(f"FROM v {INTO} KEY (id) WITH (partition_count = 3) {CSR} ENVELOPE UPSERT WITHOUT SNAPSHOT")
    assert item.depends == (world().relation("v").id,)
    assert item.brokers == "kafka:9092"
    assert (item.topic, item.message_key, item.envelope, item.snapshot) == ("out", (0,), "upsert", False)
    assert item.settings == {"partition_count": 3}
    assert item.value_format == SinkFormat(type="avro", registry="http://registry", access={})
    assert sink(f"FROM v {INTO} {CSR}").envelope == "debezium"


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        (f"FROM x {INTO} {CSR}", "42P01", 'relation "x" does not exist'),
        (f"FROM s {INTO} {CSR}", "55000", 'source "s" is not stored, so it has no changes to send'),
        (f"FROM v {INTO} {CSR} ENVELOPE UPSERT", "22023", "ENVELOPE UPSERT needs a key"),
        (f"FROM w {INTO} KEY (id) {CSR} ENVELOPE UPSERT", "42P10", "upsert key could not be validated as unique"),
        (f"FROM v {INTO} KEY (x) {CSR} ENVELOPE UPSERT", "42703", 'column "x" named in key does not exist'),
        (f"FROM v {INTO} FORMAT CSV WITH 2 COLUMNS", "0A000", "sinks of format CSV are not supported"),
        (f"FROM v {INTO} FORMAT TEXT", "0A000", "FORMAT TEXT of a sink needs a relation of one column and ENVELOPE UPSERT or NONE"),
    ],
)
def test_invalid_sinks(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError) as error:
        sink(text)
    assert (error.value.sqlstate, error.value.message) == (sqlstate, message)


def dropped(text: str) -> tuple[list[str], list[str | None]]:
    statement = parse(text)
    assert isinstance(statement, Drop)
    change, notices = drop(statement, world())
    return [world()[i].name for i in change.drop], [n["message"] for n in notices]


def test_drop() -> None:
    assert dropped("DROP MATERIALIZED VIEW w") == (["w"], [])
    assert dropped("DROP MATERIALIZED VIEW v, w") == (["v", "w"], [])
    assert dropped("DROP SOURCE s CASCADE") == (["s", "s_dead_letters", "v", "w"], ["drop cascades to 2 other objects"])
    assert dropped("DROP MATERIALIZED VIEW v CASCADE") == (["v", "w"], ["drop cascades to materialized view w"])
    assert dropped("DROP VIEW IF EXISTS x") == ([], ['view "x" does not exist, skipping'])


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("DROP SOURCE s", "2BP01", "cannot drop source s because other objects depend on it"),
        ("DROP MATERIALIZED VIEW v", "2BP01", "cannot drop materialized view v because other objects depend on it"),
        ("DROP VIEW w", "42809", '"w" is not a view'),
        ("DROP SOURCE s_dead_letters", "2BP01", "cannot drop s_dead_letters because source s requires it"),
        ("DROP SINK x", "42704", 'sink "x" does not exist'),
        ("DROP VIEW nowhere.x", "3F000", 'schema "nowhere" does not exist'),
    ],
)
def test_drop_is_refused(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError) as error:
        dropped(text)
    assert (error.value.sqlstate, error.value.message) == (sqlstate, message)


def test_retention_of_dead_letters() -> None:
    item, _ = source(f"{KAFKA} WITH (DEAD LETTER RETENTION = '1 day 2 hours', DEAD LETTER RETENTION BYTES = 5000) FORMAT TEXT")
    assert (item.dead_letter_retention_ms, item.dead_letter_retention_bytes) == (26 * 3_600_000, 5000)
    for option in ("= '0 days'", "= 'never'", "= 7", "BYTES = 0", "BYTES = '1 GB'"):
        with pytest.raises(TailgateError) as e:
            source(f"{KAFKA} WITH (DEAD LETTER RETENTION {option}) FORMAT TEXT")
        assert e.value.sqlstate in ("22023", "22007"), option
