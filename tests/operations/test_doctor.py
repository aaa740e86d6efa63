"""Tests `tailgate doctor`: each problem of the environment has a hint, and gives exit code 1."""

from __future__ import annotations

import json
import resource
import shutil
import socket
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tailgate import cli
from tailgate.embedded.children import free_port
from tailgate.lake.store.bucket import BucketStore
from tailgate.operations import doctor
from tailgate.operations.doctor import Environment, Finding
from tests.gateway.serving.model_lake import ModelLake

ENOUGH = doctor.FILES_MIN


@pytest.fixture(autouse=True)
def healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the results of this machine's own disk, limit and Java the same everywhere."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (ENOUGH, ENOUGH))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 50, 50))  # type: ignore[attr-defined]


def problems(environment: Environment) -> dict[str, Finding]:
    return {finding.check: finding for finding in doctor.findings(environment) if not finding.ok}


def environment(tmp_path: Path, **more: object) -> Environment:
    return Environment(tmp_path / "lake", f"127.0.0.1:{free_port()}", **more)  # type: ignore[arg-type]


def test_a_healthy_environment_has_no_problems(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert not problems(environment(tmp_path, kafka=address, registry=f"http://ann:word@{address}"))


def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.write_text(java.read_text().replace("21", "11"))
    assert problems(environment(tmp_path))["java"].result.endswith("version 11")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")
    assert problems(environment(tmp_path))["java"].result == "java is not on PATH and JAVA_HOME is not set"


def test_limits_and_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (ENOUGH - 1, ENOUGH))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 95, 5))  # type: ignore[attr-defined]
    (tmp_path / "lake").mkdir(mode=0o755)
    (tmp_path / "lake").chmod(0o755)
    assert set(problems(environment(tmp_path))) == {"open files", "disk", "permissions"}


def test_a_port_that_another_process_has(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert problems(Environment(tmp_path / "lake", f"127.0.0.1:{port}"))["port"].result.startswith(f"port {port} is in use by process ")


def test_addresses_that_cannot_be_reached(tmp_path: Path) -> None:
    broker, registry = free_port(), free_port()
    findings = problems(environment(tmp_path, kafka=f"127.0.0.1:{broker}", registry=f"http://ann:word@127.0.0.1:{registry}"))
    assert findings["broker"].result == f"127.0.0.1:{broker} cannot be reached: Connection refused"
    assert findings["schema registry"].result == f"127.0.0.1:{registry} cannot be reached: Connection refused"


@pytest.mark.parametrize(("days", "good"), [(400, True), (5, False)])
def test_certificates(tmp_path: Path, days: int, good: bool) -> None:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=days))
    path = tmp_path / "server.pem"
    path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    assert ("certificate" not in problems(environment(tmp_path, certificate=path))) == good


def test_the_command_prints_json_and_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["doctor", "--data", str(tmp_path / "lake"), "--listen", f"127.0.0.1:{free_port()}"]
    assert cli.main([*words, "--json"]) == 0
    assert all(json.loads(line)["ok"] for line in capsys.readouterr().out.splitlines())
    assert cli.main([*words, "--kafka", f"127.0.0.1:{free_port()}"]) == 1
    assert "HINT:  Check the address, the network, and whether it runs." in capsys.readouterr().out


def test_the_clock_is_compared_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModelLake(tmp_path / "lake")
    try:
        model.create("v")
        assert "clock" not in problems(environment(tmp_path))
        monkeypatch.setattr(doctor.time, "time_ns", lambda: 10**15)
        found = problems(environment(tmp_path))["clock"]
        assert found.hint is not None and "NTP" in found.hint
    finally:
        model.writer.close()


def test_versions_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requires = ["duckdb==0.1", "nothing-of-this-name==1", "rich>=1", "ruff==0.1; extra == 'dev'"]
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: requires)
    result = problems(environment(tmp_path))["versions"].result
    assert result.startswith("duckdb is ") and "nothing-of-this-name is missing instead of 1" in result
    assert "ruff" not in result


def test_a_bucket(bucket: BucketStore, tmp_path: Path) -> None:
    """The bucket is checked, and the disk of the working folder."""
    environment = Environment(bucket.location(""), f"127.0.0.1:{free_port()}", work_dir=tmp_path)
    results = {finding.check: finding for finding in doctor.findings(environment)}
    assert results["object store"].result == f"{bucket.location('')} can be written and obeys conditions"
    assert results["disk"].ok
    missing = Environment("s3://other/lake", f"127.0.0.1:{free_port()}", work_dir=tmp_path)
    assert not next(finding for finding in doctor.findings(missing) if finding.check == "object store").ok
