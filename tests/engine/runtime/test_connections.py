"""Sources and sinks over TLS and SASL: an engine and sinks that know a key, a Kafka and a registry that want to know who comes."""

from __future__ import annotations

import base64
import logging
import os
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from embedded.children import Child
from embedded.kafka import Guard, Kafka
from embedded.registry import RegistryServer
from lake import Lake
from tests.certificates import Authority
from tests.engine.runtime.parts import EngineProcess, rows, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PASSWORD, NEW_PASSWORD, REGISTRY_PASSWORD = "unsaid 'word\"; x", "said-later", "registry unsaid"
KNOWN = {"ann": PASSWORD.replace('"', "").replace(";", ""), "bob": NEW_PASSWORD}


class World:
    def __init__(self, folder: Path) -> None:
        self.folder, self.authority = folder, Authority()
        own = self.authority.pair()
        users = {"ann": "unsaid-word", "bob": "bobs-word"}
        self.kafka = Kafka(folder / "kafka", guard=Guard("SASL_SSL", own.certificate, own.key, self.authority.certificate, users))
        self.kafka.start()
        self.registry = _registry(folder, self.authority)
        key, self.secrets = folder / "key", folder / "secrets"
        key.write_bytes(base64.b64encode(os.urandom(32)))
        key.chmod(0o600)
        self.secrets.mkdir()
        (self.secrets / "ca.pem").write_text(self.authority.certificate)
        given = ("--secret-key-file", str(key), "--secrets-dir", str(self.secrets))
        self.engine = EngineProcess(folder / "lake", *given)
        self.engine.start()
        self.lake = Lake(folder / "lake")
        command = [sys.executable, "-m", "cli", "sinks", "--data", str(folder / "lake"), *given]
        self.sinks = Child("sinks", command, log=folder / "sinks.log")
        self.producer = Producer({"bootstrap.servers": self.kafka.address, "linger.ms": 0, "log_level": 2})
        self.run("CREATE SECRET word AS 'unsaid-word'")
        self.run("CREATE SECRET registry_word AS 'registry-word'")

    def run(self, sql: str) -> dict[str, Any]:
        return self.engine.execute(sql.replace("{kafka}", self.kafka.guarded).replace("{ca}", self.authority.certificate))

    def send(self, topic: str, *values: str) -> None:
        for value in values:
            self.producer.produce(topic, value.encode())
        assert self.producer.flush(30) == 0

    def stop(self) -> None:
        self.sinks.stop()
        self.engine.stop()
        self.registry.shutdown()
        self.registry.server_close()
        self.kafka.stop()

    def said(self) -> bytes:
        """All that any process of ours wrote down, but for Kafka's own."""
        files = [f for f in self.folder.rglob("*") if f.is_file() and "kafka" not in f.parts and "secrets" not in f.parts]
        return b"".join(f.read_bytes() for f in files)


def _registry(folder: Path, authority: Authority) -> RegistryServer:
    own = authority.pair()
    (folder / "registry").mkdir()
    (folder / "registry" / "pair.pem").write_text(own.key + own.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "registry" / "pair.pem")
    server = RegistryServer(folder / "registry", 0, user=("reg", "registry-word"), tls=context)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("connections"))
    yield made
    made.stop()
    log = logging.getLogger(__name__)
    log.debug("stopped")


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
    assert b"unsaid-word" not in world.said()
