"""Sources and sinks over TLS and SASL, with a Kafka and a registry that authenticate clients."""

from __future__ import annotations

import base64
import io
import json
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tailgate.embedded.children import Child
from tailgate.embedded.kafka import Guard, Kafka
from tailgate.embedded.registry import RegistryServer
from tailgate.embedded.subjects import Schema
from tailgate.lake.errors import ConnectionFailure, DependentObjectsStillExist, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.host.server_thread import ServerThread
from testing.engine_process import EngineProcess, rows, until
from tests.certificates import Authority

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

UNSAID = (b"unsaid-word", b"bobs-word", b"registry-word")  # passwords


class World:
    """An engine, sinks, a Kafka and a registry that use TLS and authenticate clients."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.authority = folder, Authority()
        own = self.authority.pair()
        users = {"ann": "unsaid-word", "bob": "bobs-word"}
        self.kafka = Kafka(folder / "kafka", guard=Guard("SASL_SSL", own.certificate, own.key, self.authority.certificate, users))
        self.kafka.start()
        self.registry = _registry(folder, self.authority)
        self.registry_thread = ServerThread(self.registry, "registry")
        self.registry_thread.start()
        key, self.secrets = folder / "key", folder / "secrets"
        key.write_bytes(base64.b64encode(os.urandom(32)))
        key.chmod(0o600)
        self.secrets.mkdir()
        (self.secrets / "ca.pem").write_text(self.authority.certificate)
        secret_options = ("--secret-key-file", str(key), "--secrets-dir", str(self.secrets))
        self.engine = EngineProcess(folder / "lake", *secret_options)
        self.engine.start()
        self.lake = Lake(folder / "lake")
        command = [sys.executable, "-m", "tailgate", "sinks", "--data", str(folder / "lake"), *secret_options]
        self.sinks = Child("sinks", command, log=folder / "sinks.log")
        self.producer = Producer({"bootstrap.servers": self.kafka.address, "linger.ms": 0, "log_level": 2})
        self.run("CREATE SECRET word AS 'unsaid-word'")
        self.run("CREATE SECRET registry_word AS 'registry-word'")
        self.run(f"CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL '{self.url}', {REGISTRY})")

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.registry.server_port}"

    def run(self, sql: str, settings: dict[str, str] | None = None) -> dict[str, Any]:
        return self.engine.execute(sql.replace("{kafka}", self.kafka.guarded).replace("{ca}", self.authority.certificate), settings)

    def send(self, topic: str, *values: str | bytes) -> None:
        for value in values:
            self.producer.produce(topic, value)
        assert self.producer.flush(30) == 0

    def stop(self) -> None:
        self.sinks.stop()
        self.engine.stop()
        self.registry_thread.stop()
        self.kafka.stop()

    def output(self) -> bytes:
        """Returns the content of all files that Tailgate wrote, without Kafka's files and secrets."""
        files = [f for f in self.folder.rglob("*") if f.is_file() and "kafka" not in f.parts and "secrets" not in f.parts]
        return b"".join(f.read_bytes() for f in files)

    def status(self, kind: str, name: str) -> dict[str, Any]:
        return dict(self.engine.get("/status")[kind][name])


REGISTRY = "USERNAME = 'reg', PASSWORD = SECRET registry_word, SSL CERTIFICATE AUTHORITY = '{ca}'"


def _registry(folder: Path, authority: Authority) -> RegistryServer:
    own = authority.pair()
    (folder / "registry").mkdir()
    (folder / "registry" / "pair.pem").write_text(own.key + own.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "registry" / "pair.pem")
    return RegistryServer(folder / "registry", 0, user=("reg", "registry-word"), tls=context)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("connections"))
    yield world
    world.stop()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_source_by_each_mechanism(world: World, mechanism: str) -> None:
    name = mechanism.lower().replace("-", "_")
    world.kafka.create_topic(name)
    world.send(name, "old")
    world.run(
        f"CREATE CONNECTION c_{name} TO KAFKA (BROKER '{{kafka}}', SASL MECHANISMS = '{mechanism}', SASL USERNAME = 'ann', "
        "SASL PASSWORD = SECRET word, SSL CERTIFICATE AUTHORITY = '{ca}')"
    )
    world.run(f"CREATE SOURCE s_{name} FROM KAFKA CONNECTION c_{name} (TOPIC '{name}') FORMAT TEXT")
    world.run(f"CREATE MATERIALIZED VIEW v_{name} AS SELECT * FROM s_{name}")
    world.send(name, "new")
    until(lambda: sorted(rows(world.lake, f"v_{name}")) == [("new",), ("old",)])
    assert world.engine.get("/status")["sources"][f"s_{name}"]["lag"] == 0


def test_options_of_with_and_a_registry_by_its_url(world: World) -> None:
    """The older syntax WITH (…); the certificate authority is a file."""
    world.kafka.create_topic("persons")
    world.registry.subjects.register("persons-value", Schema(0, json.dumps(PERSON)))
    world.send("persons", person("old"))
    access = "security_protocol = 'SASL_SSL', sasl_mechanisms = 'SCRAM-SHA-256', sasl_username = 'ann', sasl_password = SECRET word"
    world.run(
        f"CREATE SOURCE persons FROM KAFKA BROKER '{{kafka}}' TOPIC 'persons' WITH ({access}, ssl_ca_location = 'ca.pem') "
        f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{world.url}' "
        "WITH (username = 'reg', password = SECRET registry_word, ssl_ca_location = 'ca.pem')"
    )
    world.run("CREATE MATERIALIZED VIEW people AS SELECT name FROM persons")
    world.send("persons", person("new"))
    until(lambda: sorted(rows(world.lake, "people")) == [("new",), ("old",)])
    for path in ("/etc/passwd", "../key"):
        with pytest.raises(TailgateError, match="not below --secrets-dir") as error:
            world.run(f"CREATE CONNECTION c TO KAFKA (BROKER '{{kafka}}', ssl_ca_location = '{path}')")
        assert error.value.sqlstate == "42501"


def test_a_sink_and_its_registry(world: World) -> None:
    world.kafka.create_topic("words")
    world.send("words", "one")
    world.run(f"CREATE CONNECTION scram TO KAFKA (BROKER '{{kafka}}', SASL MECHANISMS 'SCRAM-SHA-512', {ANN})")
    world.run("CREATE SOURCE words FROM KAFKA CONNECTION scram (TOPIC 'words') FORMAT TEXT")
    world.run("CREATE MATERIALIZED VIEW words_v AS SELECT * FROM words")
    world.run(
        "CREATE SINK sent FROM words_v INTO KAFKA CONNECTION scram (TOPIC 'out', TOPIC PARTITION COUNT 1) "
        "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry (AVRO VALUE FULLNAME 'a.word') ENVELOPE NONE"
    )
    until(lambda: world.status("sinks", "sent")["status"] == "running")
    world.send("words", "two")
    reader = Consumer({"bootstrap.servers": world.kafka.address, "group.id": "t", "isolation.level": "read_committed"})
    reader.assign([TopicPartition("out", 0, 0)])
    texts: list[str] = []

    def both() -> bool:
        message = reader.poll(0.5)
        if message is not None and message.error() is None:
            schema = fastavro.parse_schema(json.loads(world.registry.subjects.schema(int.from_bytes(message.value()[1:5], "big")).text))
            texts.append(fastavro.schemaless_reader(io.BytesIO(message.value()[5:]), schema)["text"])
        return sorted(texts) == ["one", "two"]

    until(both)
    reader.close()


def test_a_refused_client_gets_the_reason(world: World) -> None:
    world.run("CREATE SECRET wrong AS 'guessed'")
    wrong = "SASL USERNAME = 'ann', SASL PASSWORD = SECRET wrong, SSL CERTIFICATE AUTHORITY = '{ca}'"
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        with pytest.raises(ConnectionFailure, match=r"(?i)authentication failed"):
            world.run(f"CREATE CONNECTION no TO KAFKA (BROKER '{{kafka}}', SASL MECHANISMS = '{mechanism}', {wrong})")
    with pytest.raises(ConnectionFailure, match=r"(?i)certificate verify failed"):
        world.run("CREATE CONNECTION no TO KAFKA (BROKER '{kafka}', SASL MECHANISMS PLAIN, SASL USERNAME 'ann', SASL PASSWORD SECRET word)")
    with pytest.raises(ConnectionFailure, match="refused the user or the password: 401"):
        world.run(f"CREATE CONNECTION no TO CONFLUENT SCHEMA REGISTRY (URL '{world.url}', {REGISTRY.replace('registry_word', 'wrong')})")
    with pytest.raises(ConnectionFailure, match="CERTIFICATE_VERIFY_FAILED"):
        world.run(f"CREATE CONNECTION no TO CONFLUENT SCHEMA REGISTRY (URL '{world.url}')")


def test_an_altered_secret_and_a_new_life(world: World) -> None:
    """A wrong password stalls the connection's sources and sinks, and the right one resumes them.

    They also continue after a restart.
    """
    world.kafka.create_topic("late")
    world.run("CREATE SECRET own AS 'unsaid-word'")
    world.run(f"CREATE CONNECTION c_own TO KAFKA (BROKER '{{kafka}}', SASL MECHANISMS = 'SCRAM-SHA-256', {ANN.replace('word,', 'own,')})")
    world.run("CREATE SOURCE late FROM KAFKA CONNECTION c_own (TOPIC 'late') FORMAT TEXT")
    world.run("CREATE MATERIALIZED VIEW late_v AS SELECT * FROM late")
    world.run("CREATE SINK later FROM late_v INTO KAFKA CONNECTION c_own (TOPIC 'later') FORMAT JSON ENVELOPE NONE")
    world.send("late", "one")
    until(lambda: sorted(rows(world.lake, "late_v")) == [("one",)])
    world.run("ALTER SECRET own AS 'bobs-word'")
    until(lambda: world.status("sources", "late")["status"] == "stalled")
    assert "uthentication failed" in world.status("sources", "late")["error"]
    until(lambda: world.status("sinks", "later")["status"] == "retrying")
    world.run("ALTER SECRET own AS 'unsaid-word'")
    world.send("late", "two")
    until(lambda: sorted(rows(world.lake, "late_v")) == [("one",), ("two",)])
    until(lambda: world.status("sinks", "later")["status"] == "running")
    world.engine.stop()
    world.engine.start()
    world.send("late", "three")
    until(lambda: sorted(rows(world.lake, "late_v")) == [("one",), ("three",), ("two",)])


def test_dependencies_of_connections(world: World) -> None:
    world.run("CREATE SECRET s AS 'unsaid-word'")
    world.run(f"CREATE CONNECTION c TO KAFKA (BROKER '{{kafka}}', SASL MECHANISMS = 'PLAIN', {ANN.replace('word,', 's,')})")
    world.kafka.create_topic("dep")
    world.run("CREATE SOURCE dep FROM KAFKA CONNECTION c (TOPIC 'dep') FORMAT TEXT")
    for kind, name in (("SECRET", "s"), ("CONNECTION", "c")):
        with pytest.raises(DependentObjectsStillExist):
            world.run(f"DROP {kind} {name}")
    world.run("ALTER CONNECTION c RENAME TO d")
    world.run("ALTER SECRET s RENAME TO t")
    catalog = world.lake.catalog()
    assert "FROM KAFKA CONNECTION d (" in catalog.relation("dep").sql
    assert "SECRET t," in next(i.sql for i in catalog.items.values() if i.name == "d")
    world.run("DROP SECRET t CASCADE")
    assert not {"t", "d", "dep"} & {i.name for i in world.lake.catalog().items.values()}


def test_a_certificate_determines_the_role(world: World) -> None:
    """A client certificate authenticates without SASL."""
    own, client = world.authority.pair(), world.authority.pair("ann")
    kafka = Kafka(
        world.folder / "kafka-of-certificates" / "kafka", guard=Guard("SSL", own.certificate, own.key, world.authority.certificate)
    )
    kafka.start()
    try:
        kafka.create_topic("shown")
        world.run(f"CREATE SECRET own_key AS '{client.key}'")
        common = f"BROKER '{kafka.guarded}', SSL CERTIFICATE AUTHORITY '{{ca}}'"
        with pytest.raises(ConnectionFailure):
            world.run(f"CREATE CONNECTION c_shown TO KAFKA ({common})")
        world.run(f"CREATE CONNECTION c_shown TO KAFKA ({common}, SSL CERTIFICATE '{client.certificate}', SSL KEY = SECRET own_key)")
        world.run("CREATE SOURCE shown FROM KAFKA CONNECTION c_shown (TOPIC 'shown') FORMAT TEXT")
        world.run("CREATE MATERIALIZED VIEW shown_v AS SELECT * FROM shown")
        producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})
        producer.produce("shown", b"here")
        assert producer.flush(30) == 0
        until(lambda: sorted(rows(world.lake, "shown_v")) == [("here",)])
        assert client.key.encode().splitlines()[1] not in world.output()
        world.run("DROP SECRET own_key CASCADE")
    finally:
        kafka.stop()


def test_statements_of_ksqldb(world: World) -> None:
    """They name no brokers: those of two connections, which this engine has no options for."""
    with pytest.raises(TailgateError, match="there is no Kafka for statements of ksqlDB"):
        world.run("CREATE STREAM none (n INT) WITH (kafka_topic = 'none', partitions = 1, value_format = 'json')")
    world.run(f"CREATE CONNECTION ksqldb_kafka TO KAFKA (BROKER '{{kafka}}', SASL MECHANISMS = 'PLAIN', {ANN})")
    world.run(f"CREATE CONNECTION ksqldb_registry TO CONFLUENT SCHEMA REGISTRY (URL '{world.url}', {REGISTRY})")
    world.run("CREATE STREAM rides (k VARCHAR KEY, n INT) WITH (kafka_topic = 'rides', partitions = 1, value_format = 'avro')")
    world.run("CREATE STREAM doubled AS SELECT k, n * 2 AS n FROM rides EMIT CHANGES")
    world.run("INSERT INTO rides VALUES ('a', 4)", {"tailgate.dialect": "ksqldb"})
    world.run("ASSERT SCHEMA SUBJECT 'rides-value'")
    world.run("ASSERT TOPIC 'DOUBLED' WITH (partitions = 1)")
    until(lambda: [row[:2] for row in rows(world.lake, "doubled")] == [("a", 8)])
    world.run("ASSERT SCHEMA SUBJECT 'DOUBLED-value' TIMEOUT 60 SECONDS")  # the sink has registered it
    world.run("CREATE STREAM again WITH (kafka_topic = 'DOUBLED', value_format = 'avro')")  # with the columns of the registry
    world.run("CREATE TABLE counted AS SELECT n, COUNT(*) AS times FROM again GROUP BY n EMIT CHANGES", {"auto.offset.reset": "earliest"})
    until(lambda: [row[:2] for row in rows(world.lake, "counted")] == [(8, 1)])
    world.run("DROP TABLE counted DELETE TOPIC")
    world.run("DROP STREAM again")
    world.run("DROP STREAM doubled DELETE TOPIC")
    world.run("ASSERT NOT EXISTS TOPIC 'DOUBLED' TIMEOUT 60 SECONDS")
    world.run("ASSERT NOT EXISTS SCHEMA SUBJECT 'DOUBLED-value' TIMEOUT 60 SECONDS")
    world.run("DROP STREAM rides DELETE TOPIC")
    world.run("DROP CONNECTION ksqldb_kafka, ksqldb_registry")


def test_passwords_appear_in_no_output(world: World) -> None:
    output = world.output()
    assert all(word not in output for word in UNSAID)


ANN = "SASL USERNAME = 'ann', SASL PASSWORD = SECRET word, SSL CERTIFICATE AUTHORITY = '{ca}'"
PERSON = {"type": "record", "name": "person", "fields": [{"name": "name", "type": "string"}]}


def person(name: str) -> bytes:
    out = io.BytesIO(b"\0" + (1).to_bytes(4, "big"))
    out.seek(5)
    fastavro.schemaless_writer(out, PERSON, {"name": name})
    return out.getvalue()
