"""Tests that Presto's users sign in to the gateway with their own credentials.

The credentials of the operator who started the process are never used.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.gateway.presto import main
from tailgate.gateway.security.tls import Files
from tailgate.lake.host.server_thread import ServerThread
from tests.wire.certificates import Authority
from tests.wire.live import Live
from tests.wire.statements import Statements


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def live(tmp_path: Path, authority: Authority) -> Iterator[Live]:
    live = Live(tmp_path / "lake", Files(*authority.sign("server"), authority.certificate))
    yield live
    live.close()


@pytest.fixture
def presto(live: Live, statements: Statements) -> Iterator[main.Server]:
    with psycopg.connect(f"{live.dsn} sslmode=disable", autocommit=True) as connection:
        connection.execute("create role ann login password 'secret'; create role bare login; create role op superuser login")
    server = main.Server(0, f"127.0.0.1:{live.port}")
    thread = ServerThread(server, "presto")
    thread.start()
    yield server
    thread.stop()


def answer(server: main.Server, user: str, text: str) -> dict[str, Any]:
    """Runs a statement over HTTP. Returns its last document."""
    base = f"http://127.0.0.1:{server.server_address[1]}"
    request = urllib.request.Request(f"{base}/v1/statement", text.encode(), {"X-Trino-User": user})
    with urllib.request.urlopen(request, timeout=30) as answer:
        document: dict[str, Any] = json.loads(answer.read())
    while "nextUri" in document:
        with urllib.request.urlopen(document["nextUri"], timeout=30) as answer:
            document = {**document, "nextUri": None, **json.loads(answer.read())}
            document = {k: v for k, v in document.items() if v is not None}
    return document


def test_the_operators_password_and_files_are_not_used(
    presto: main.Server, live: Live, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tmp_path / "passwords"
    words.write_text("*:*:*:*:secret\n")
    words.chmod(0o600)
    service = tmp_path / "services"
    service.write_text(f"[mine]\npassword=secret\nport={live.port}\n")
    certificate, key = authority.sign("operator", common_name="op")
    for name, value in {
        "PGPASSWORD": "secret",
        "PGPASSFILE": str(words),
        "PGSERVICE": "mine",
        "PGSERVICEFILE": str(service),
        "PGSSLCERT": str(certificate),
        "PGSSLKEY": str(key),
        "PGSSLROOTCERT": str(authority.certificate),
        "PGSSLMODE": "require",
    }.items():
        monkeypatch.setenv(name, value)
    with psycopg.connect(f"host=localhost port={live.port} user=ann dbname=shop") as connection:
        assert connection.execute("select current_user").fetchone() == ("ann",)  # a client may use the environment
    refused = answer(presto, "ann", "SELECT current_user")
    assert "error" in refused, refused
    assert "password" in refused["error"]["message"] or "SASL" in refused["error"]["message"]
    assert answer(presto, "bare", "SELECT current_user AS u")["data"] == [["bare"]]
