"""`tailgate doctor` signs in at brokers and schema registries with the credentials of the lake's items."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.children import free_port
from tailgate.embedded.kafka import Guard, Kafka
from tailgate.embedded.registry import RegistryServer
from tailgate.lake.catalog import Change, Connection, Secret
from tailgate.lake.catalog.formats import SecretReference
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.folder import Lake
from tailgate.lake.host.server_thread import ServerThread
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.operations import doctor, sign_in
from tailgate.operations.doctor import Environment
from tests.certificates import Authority

RIGHT, WRONG = 16384, 16385  # secrets
PASSWORD = "unsaid-word"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    key = tmp_path / "key"
    key.write_bytes(base64.b64encode(os.urandom(32)))
    key.chmod(0o600)
    return Vault(key)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def registry(tmp_path: Path, authority: Authority) -> Iterator[str]:
    """Yields the URL of a registry with TLS and a password."""
    own = authority.pair()
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "pair.pem").write_text(own.key + own.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "registry" / "pair.pem")
    server = RegistryServer(tmp_path / "registry", 0, user=("ann", PASSWORD), tls=context)
    thread = ServerThread(server, "registry")
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    thread.stop()


def environment(folder: Path, vault: Vault, *connections: Connection) -> Environment:
    """Returns the environment of a lake with these connections, and with the right password and a wrong one as secrets."""
    lake = Lake.create(folder / "lake")
    words = ((RIGHT, PASSWORD), (WRONG, "guessed"))
    secrets = [Secret(id, f"s{id}", ciphertext=vault.sealed(word, id)) for id, word in words]
    writer = open_epoch(lake)
    writer.append(kind="catalog", catalog=Change(put=(*secrets, *connections)))
    writer.close()
    return Environment(folder / "lake", f"127.0.0.1:{free_port()}", vault=vault)


def results(environment: Environment) -> list[tuple[bool, str]]:
    """Returns whether each sign-in succeeded, and its result, the failed ones first."""
    return sorted((finding.ok, finding.result) for finding in doctor.findings(environment) if finding.check.endswith("sign-in"))


def connection(number: int, kind: Any, address: str, secret: int, **more: str) -> Connection:
    of_kind = {"brokers": address} if kind == "kafka" else {"url": address}
    references = {"username": "ann", "password": SecretReference(secret), **more}
    return Connection(16390 + number, f"c{number}", depends=(secret,), type=kind, settings=references, **of_kind)  # type: ignore[arg-type]


def test_a_registry(registry: str, authority: Authority, vault: Vault, tmp_path: Path) -> None:
    ca = authority.certificate
    right, wrong = (connection(n, sign_in.REGISTRY, registry, secret, ca=ca) for n, secret in enumerate((RIGHT, WRONG)))
    untrusted = connection(2, sign_in.REGISTRY, registry, RIGHT)
    of_lake = environment(tmp_path, vault, right, wrong, untrusted)
    untrusting, unknown, accepted = results(of_lake)
    assert not untrusting[0]
    assert "CERTIFICATE_VERIFY_FAILED" in untrusting[1]
    assert unknown == (False, f"{registry}: it answers 401 Unauthorized")
    assert accepted == (True, f"{registry} answers with the credentials of its items")
    without_key = results(Environment(of_lake.data, of_lake.listen))
    assert {result for _, result in without_key} == {f"{registry}: secrets need a key"}
    assert all(PASSWORD not in f"{finding.result} {finding.hint}" for finding in doctor.findings(of_lake))


def test_a_registry_that_is_absent(authority: Authority, vault: Vault, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert results(environment(tmp_path, vault, connection(0, sign_in.REGISTRY, url, RIGHT))) == [
        (False, f"{url}: [Errno 111] Connection refused")
    ]


def test_settings_that_the_client_of_a_broker_refuses(vault: Vault, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    broker = connection(0, "kafka", address, RIGHT, protocol="SSL", ca="not a certificate")
    [(ok, result)] = results(environment(tmp_path, vault, broker))
    assert not ok
    assert result.startswith(f"{address}: Failed to create admin client: failed to read certificate")


@pytest.mark.kafka
@pytest.mark.long
def test_a_broker(authority: Authority, vault: Vault, tmp_path: Path) -> None:
    own = authority.pair()
    kafka = Kafka(tmp_path / "kafka", guard=Guard("SASL_SSL", own.certificate, own.key, authority.certificate, {"ann": PASSWORD}))
    kafka.start()
    try:
        access = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-256", "ca": authority.certificate}
        right, wrong = (connection(n, "kafka", kafka.guarded, secret, **access) for n, secret in enumerate((RIGHT, WRONG)))
        refused, accepted = results(environment(tmp_path, vault, right, wrong))
        assert not refused[0]
        assert "uthentication failed" in refused[1]
        assert accepted == (True, f"{kafka.guarded} answers with the credentials of its items")
    finally:
        kafka.stop()
