"""Secrets and connections as catalog items: errors, and the options of sources and sinks."""

from __future__ import annotations

from typing import Any

import pytest

from tailgate.engine.ddl import alter, alter_secret, create_connection, create_secret, create_sink, create_source, drop
from tailgate.lake.catalog import Catalog, Change, Item
from tailgate.lake.catalog.codec import encode_catalog
from tailgate.lake.catalog.formats import SecretReference
from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import AlterItem, AlterSecret, CreateConnection, CreateSecret, CreateSink, CreateSource, Drop, parse
from tests.engine.ddl.test_statements import REGISTRY

PASSWORD = "SASL USERNAME 'ann', SASL PASSWORD = SECRET s"
AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION r"
PEM = "SSL CERTIFICATE 'c', SSL KEY = SECRET s"


def seal(value: str, id: int) -> str:
    return f"sealed {len(value)} of {id}"


def catalog_of(*texts: str) -> Catalog:
    """Returns the catalog after these statements."""
    catalog = Catalog()
    for text in texts:
        statement = parse(text)
        match statement:
            case CreateSecret():
                catalog = put(catalog, create_secret(statement, text, catalog, seal))
            case CreateConnection():
                catalog = put(catalog, create_connection(statement, text, catalog))
            case CreateSource():
                catalog = put(catalog, *create_source(statement, text, catalog, REGISTRY))
            case CreateSink():
                catalog = put(catalog, create_sink(statement, text, catalog))
            case AlterItem():
                catalog = catalog.apply(alter(statement, catalog)[0])
            case Drop():
                catalog = catalog.apply(drop(statement, catalog)[0])
    return catalog


def put(catalog: Catalog, *items: Item) -> Catalog:
    return catalog.apply(Change(put=items))


def item_named(catalog: Catalog, name: str) -> Item:
    item = catalog.find(name)
    assert item is not None
    return item


SECRET = "CREATE SECRET s AS E'un\\'said'"
KAFKA = f"CREATE CONNECTION k TO KAFKA (BROKERS ('a', 'b:1'), SASL MECHANISMS = 'plain', {PASSWORD})"
CSR = "CREATE CONNECTION r TO CONFLUENT SCHEMA REGISTRY (URL 'https://registry/', USERNAME 'u', PASSWORD = SECRET s)"


def test_a_secret_keeps_no_value() -> None:
    catalog = catalog_of(SECRET)
    item = item_named(catalog, "s")
    assert item.sql == "CREATE SECRET s AS '********'" and item.ciphertext == f"sealed 7 of {item.id}"
    assert "said" not in str(encode_catalog(catalog)) and not item.is_relation
    statement = parse("ALTER SECRET s AS 'longer than before'")
    assert isinstance(statement, AlterSecret) and "longer" not in repr(statement)
    altered = alter_secret(statement, catalog, seal)
    assert altered is not None and altered.ciphertext == f"sealed 18 of {item.id}"


def test_options_of_sources_and_sinks() -> None:
    """Items have the address, settings and secret ids, and depend on the connections."""
    catalog = catalog_of(
        SECRET, KAFKA, CSR,
        f"CREATE SOURCE t FROM KAFKA CONNECTION k (TOPIC 't', START OFFSET (3)) {AVRO} ENVELOPE UPSERT",
        f"CREATE SINK o FROM t INTO KAFKA CONNECTION k (TOPIC 'o', TOPIC CONFIG MAP['a' => 'b']) {AVRO}",
    )  # fmt: skip
    secret = SecretReference(item_named(catalog, "s").id)
    kafka = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "ann", "password": secret}
    source, sink = item_named(catalog, "t"), item_named(catalog, "o")
    assert (source.brokers, source.kafka) == ("a:9092,b:1", kafka)
    assert source.value_format.access == {"username": "u", "password": secret}
    assert source.depends == (item_named(catalog, "k").id, item_named(catalog, "r").id)
    assert (sink.brokers, sink.kafka, sink.settings) == ("a:9092,b:1", kafka, {"topic.a": "b"})
    assert sink.depends == (source.id, *source.depends)
    renamed = catalog_of(
        SECRET, KAFKA, "CREATE SOURCE t FROM KAFKA CONNECTION k (TOPIC 't') FORMAT TEXT", 'ALTER CONNECTION k RENAME TO "K"'
    )
    assert item_named(renamed, "t").sql == "CREATE SOURCE t FROM KAFKA CONNECTION \"K\" (TOPIC 't') FORMAT TEXT"


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("TO KAFKA (SECURITY PROTOCOL SSL)", "22023", "a connection to Kafka needs a BROKER"),
        ("TO KAFKA (BROKER 'a', SECURITY PROTOCOL TLS)", "22023", 'security protocol "TLS" is not known'),
        (f"TO KAFKA (BROKER 'a', {PASSWORD})", "22023", "SASL needs SASL MECHANISMS"),
        (f"TO KAFKA (BROKER 'a', SASL MECHANISMS GSSAPI, {PASSWORD})", "0A000", "SASL mechanism GSSAPI is not supported"),
        ("TO KAFKA (BROKER 'a', SASL MECHANISMS PLAIN, SASL USERNAME 'u')", "22023", "SASL mechanism PLAIN needs SASL PASSWORD"),
        (f"TO KAFKA (BROKER 'a', SECURITY PROTOCOL SSL, SASL MECHANISMS PLAIN, {PASSWORD})", "22023", "options of SASL make no sense"),
        (f"TO KAFKA (BROKER 'a', SECURITY PROTOCOL PLAINTEXT, {PEM})", "22023", "options of SSL make no sense"),
        ("TO KAFKA (BROKER 'a', SSL KEY = SECRET s)", "22023", "SSL CERTIFICATE and SSL KEY belong together"),
        ("TO KAFKA (BROKER 'a', SSL KEY 'in the open', SSL CERTIFICATE 'c')", "22023", 'option "ssl_key" must be a SECRET'),
        ("TO KAFKA (BROKER 'a', SSL CERTIFICATE AUTHORITY 'c', ssl_ca_location 'f')", "22023", 'option "ssl_ca_location" says again'),
        ("TO KAFKA (BROKER 'a', PROGRESS TOPIC 'p')", "0A000", 'option "progress_topic" of Kafka is not supported'),
        ("TO KAFKA (BROKER 'a', SASL PASSWORD = SECRET nothing)", "42704", 'secret "nothing" does not exist'),
        ("TO KAFKA (BROKER 'a', SASL PASSWORD = SECRET k)", "42809", '"k" is not a secret'),
        ("TO CONFLUENT SCHEMA REGISTRY (USERNAME 'u')", "22023", "a connection to a schema registry needs a URL"),
        ("TO CONFLUENT SCHEMA REGISTRY (URL 'registry')", "22023", '"registry" is not the URL'),
        ("TO CONFLUENT SCHEMA REGISTRY (URL 'http://u:p@registry')", "22023", "the URL of a connection has no user and password in it"),
        ("TO CONFLUENT SCHEMA REGISTRY (URL 'http://r', SSL CERTIFICATE AUTHORITY 'c')", "22023", "options of SSL make no sense"),
        ("TO CONFLUENT SCHEMA REGISTRY (URL 'http://r', PASSWORD = SECRET s)", "22023", "a PASSWORD needs a USERNAME"),
    ],
)
def test_invalid_connections(text: str, sqlstate: str, message: str) -> None:
    refused(f"CREATE CONNECTION c {text}", sqlstate, message)


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE SOURCE t FROM KAFKA CONNECTION x (TOPIC 't') FORMAT TEXT", "42704", 'connection "x" does not exist'),
        ("CREATE SOURCE t FROM KAFKA CONNECTION s (TOPIC 't') FORMAT TEXT", "42809", '"s" is not a connection'),
        ("CREATE SOURCE t FROM KAFKA CONNECTION r (TOPIC 't') FORMAT TEXT", "42809", 'connection "r" is not to Kafka'),
        ("CREATE SOURCE t FROM KAFKA CONNECTION k (TOPIC 't') WITH (ssl_ca_pem = 'x') FORMAT TEXT", "22023", "is said by the connection"),
        ("CREATE SOURCE t FROM KAFKA BROKER 'a' TOPIC 't' WITH (sasl_password = 'open') FORMAT TEXT", "22023", "must be a SECRET"),
        ("CREATE SOURCE t FROM KAFKA BROKER 'a' TOPIC 't' WITH (max_message_bytes = 0) FORMAT TEXT", "22023", "is a number from 1"),
        ("DROP SECRET s", "2BP01", "cannot drop secret s because other objects depend on it"),
        ("DROP CONNECTION s", "42809", '"s" is not a connection'),
        ("DROP SECRET nothing", "42704", 'secret "nothing" does not exist'),
        ("CREATE SECRET k AS 'x'", "42P07", 'relation "k" already exists'),
    ],
)  # fmt: skip
def test_unsupported_statements_on_connections(text: str, sqlstate: str, message: str) -> None:
    refused(text, sqlstate, message)


def refused(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError) as error:
        catalog_of(SECRET, KAFKA, CSR, text)
    assert error.value.sqlstate == sqlstate and message in error.value.message
    assert "open" not in error.value.message and "said" not in error.value.message.replace("is said", "")


def test_the_protocol_follows_from_the_options() -> None:
    def protocol(options: str) -> Any:
        return item_named(catalog_of(SECRET, f"CREATE CONNECTION c TO KAFKA (BROKER 'a'{options})"), "c").settings.get("protocol")

    assert protocol("") is None
    assert protocol(", SSL CERTIFICATE AUTHORITY 'c'") == protocol(f", {PEM}") == "SSL"
    assert protocol(f", SASL MECHANISMS PLAIN, {PASSWORD}") == "SASL_SSL"
    assert protocol(f", SECURITY PROTOCOL sasl_plaintext, SASL MECHANISMS 'scram-sha-256', {PASSWORD}") == "SASL_PLAINTEXT"
