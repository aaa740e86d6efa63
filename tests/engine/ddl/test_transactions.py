"""TRANSACTION METADATA of CREATE SOURCE: options, errors, and shared transaction topics."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tailgate.engine.ddl import create_source, drop
from tailgate.engine.runtime.kafka import transactions
from tailgate.engine.runtime.kafka.readers import apart, readers
from tailgate.lake.catalog import Catalog, Change, Source
from tailgate.lake.catalog.formats import Avro, Json
from tailgate.lake.errors import TailgateError
from tailgate.sql.definitions import rename_references
from tailgate.sql.statements import CreateSource, Drop, parse
from tests.engine.ddl.test_statements import CSR, ENVELOPE, KEY, RECORD, Subjects

AT = "FROM KAFKA BROKER 'kafka' TOPIC"
NULLABLE = ["null", {"type": "record", "name": "block", "namespace": "event", "fields": [{"name": "id", "type": "string"}]}]
BLOCK = {**ENVELOPE, "fields": [*ENVELOPE["fields"], {"name": "transaction", "type": NULLABLE, "default": None}]}
COUNT = {
    "type": "record",
    "name": "collection",
    "namespace": "event",
    "fields": [{"name": "data_collection", "type": "string"}, {"name": "event_count", "type": "long"}],
}
END = {
    "type": "record",
    "name": "TransactionMetadataValue",
    "namespace": "io.debezium.connector.common",
    "fields": [
        {"name": "status", "type": "string"},
        {"name": "id", "type": "string"},
        {"name": "data_collections", "type": ["null", {"type": "array", "items": ["null", COUNT]}]},
    ],
}
REGISTRY = Subjects({"a-value": BLOCK, "a-key": KEY, "none-value": ENVELOPE, "none-key": KEY, "avro-value": END, "t-value": RECORD})


def source_of(text: str, catalog: Catalog) -> Source:
    statement = parse(text)
    assert isinstance(statement, CreateSource)
    return create_source(statement, text, catalog, REGISTRY)[0]


def with_(catalog: Catalog, text: str, **options: Any) -> Catalog:
    """Adds a source. `options` are those that the engine adds after a request to Kafka."""
    item = source_of(text, catalog)
    item = replace(item, **options)
    return catalog.apply(Change(put=(item,)))


def source_statement(name: str, topic: str, rest: str = "FORMAT JSON", of: str = "ends", collection: str = "") -> str:
    columns = "(id int, PRIMARY KEY (id) NOT ENFORCED)" if "JSON" in rest else ""
    metadata = f"(TRANSACTION METADATA (SOURCE {of}, COLLECTION '{collection or name}'))"
    return f"CREATE SOURCE {name} {columns} {AT} '{topic}' {rest} ENVELOPE DEBEZIUM {metadata}"


CATALOG = with_(Catalog(), f"CREATE SOURCE ends {AT} 'ends' FORMAT JSON", topic_id="id-of-ends")
CATALOG = with_(CATALOG, f"CREATE SOURCE avro {AT} 'avro' {CSR}")
CATALOG = with_(CATALOG, f"CREATE SOURCE words {AT} 'words' FORMAT TEXT")
CATALOG = with_(CATALOG, f"CREATE SOURCE records {AT} 't' {CSR}")
CATALOG = with_(CATALOG, "CREATE SOURCE elsewhere FROM KAFKA BROKER 'other' TOPIC 'ends' FORMAT JSON")
CATALOG = with_(CATALOG, source_statement("one", "topic_of_one"), channel="kafka:9092#3/topic_of_one")


def test_transaction_metadata_of_a_source() -> None:
    metadata = source_of(source_statement("s", "a", CSR, "avro"), CATALOG).transactions
    assert metadata is not None
    block, marks = metadata.block, metadata.marks
    assert isinstance(block, Avro) and isinstance(marks, Avro)
    assert [f["name"] for f in json.loads(block.schema)["fields"]] == ["transaction"]
    assert block.registry == marks.registry == "http://registry"
    assert [f["name"] for f in json.loads(marks.schema)["fields"]] == ["status", "id", "data_collections"]
    metadata = source_of(source_statement("s", "a"), CATALOG).transactions
    assert metadata is not None
    assert (metadata.source, metadata.topic, metadata.topic_id) == (CATALOG.relation("ends").id, "ends", "id-of-ends")
    assert (metadata.collection, metadata.block, metadata.marks) == ("s", Json(), Json())


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        (source_statement("s", "a", of="nobody"), "42704", 'source "nobody" does not exist'),
        (source_statement("s", "a", of="words"), "0A000", 'source "words" as the transaction topic is not supported'),
        (source_statement("s", "a", of="one"), "0A000", 'source "one" as the transaction topic is not supported'),
        (source_statement("s", "a", of="records"), "42P17", 'source "records" is not of a transaction topic'),
        (source_statement("s", "a", of="elsewhere"), "22023", 'source "elsewhere" reaches Kafka in another way'),
        (source_statement("s", "none", CSR), "42P17", 'the schema of "none-value" has no field transaction'),
        (
            source_statement("s", "a", "WITH (max_records_per_second = 5) FORMAT JSON"),
            "0A000",
            "max_records_per_second with TRANSACTION METADATA is not supported",
        ),
        (
            source_statement("s", "topic_of_one"),
            "0A000",
            'a second source of topic "topic_of_one" with the transactions of "ends" is not supported',
        ),
        (source_statement("s", "a", collection="one"), "22023", 'collection "one" is that of source "one"'),
    ],
)
def test_refused(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError) as raised:
        source_of(text, CATALOG)
    assert (raised.value.sqlstate, raised.value.message) == (sqlstate, message)


def test_the_transaction_topic_is_needed() -> None:
    statement = parse("DROP SOURCE ends")
    assert isinstance(statement, Drop)
    with pytest.raises(TailgateError) as raised:
        drop(statement, CATALOG)
    assert raised.value.sqlstate == "2BP01"


def test_its_name_may_change() -> None:
    ends, one = CATALOG.relation("ends"), CATALOG.relation("one")
    renamed = replace(ends, name="finished")
    assert "(SOURCE finished, COLLECTION 'one')" in rename_references(one, CATALOG, CATALOG.apply(Change(put=(renamed,)))).sql


def test_one_reader() -> None:
    catalog = with_(CATALOG, source_statement("two", "topic_of_two", of="ends"), channel="kafka:9092#3/topic_of_two")
    one, two, words = (catalog.relation(n) for n in ("one", "two", "words"))
    assert not apart(one, two)
    assert apart(one, words)
    (reader,) = readers((one, two), catalog)
    assert (reader.name, reader.topics) == ("kafka:9092#3", ("ends", "topic_of_one", "topic_of_two"))
    assert transactions.topic(reader.transactions) == "ends"
    assert {t: c["collection"] for t, c in json.loads(reader.transactions)["changes"].items()} == {
        "topic_of_one": "one",
        "topic_of_two": "two",
    }
    assert readers((words,), catalog)[0].transactions == ""
