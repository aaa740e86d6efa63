"""Tests TLS with real clients.

The tests cover sslmode=require to verify-full, SCRAM with channel binding to the certificate, and
the replacement of certificates.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import asyncpg
import psycopg
import psycopg2
import pytest

from tailgate.gateway.security.tls import Files, Tls, end_point
from tailgate.gateway.server import connection as gateway_connection
from tailgate.gateway.server import handshake
from tailgate.gateway.server.server import check_address
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported, TailgateError
from testing.engine_process import until
from tests.wire.certificates import Authority
from tests.wire.live import Live
from tests.wire.statements import Statements

SSL_REQUEST = pack("!II", 8, 80877103)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def live(tmp_path: Path, authority: Authority) -> Iterator[Live]:
    live = Live(tmp_path / "lake", Files(*authority.sign("server")))
    try:
        yield live
    finally:
        live.close()


@pytest.fixture
def role(live: Live, statements: Statements) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute("create role ann login password 'secret'")
        connection.execute("grant select on v to ann")


def words(live: Live, authority: Authority, mode: str, **more: str) -> str:
    root = f"sslrootcert={authority.certificate}" if mode.startswith("verify") else ""
    rest = " ".join(f"{key}={value}" for key, value in more.items())
    return f"host=localhost port={live.port} user=ann dbname=shop password=secret sslmode={mode} {root} {rest}"


@pytest.mark.parametrize("mode", ["disable", "prefer", "require", "verify-ca", "verify-full"])
def test_libpq(live: Live, authority: Authority, role: None, mode: str) -> None:
    with psycopg.connect(words(live, authority, mode)) as connection:
        assert connection.execute("select count(*) from v").fetchone() == (4,)
        assert connection.pgconn.ssl_in_use == (mode != "disable")
    connection = psycopg2.connect(words(live, authority, mode))
    assert connection.info.ssl_in_use == (mode != "disable")
    connection.close()
    result = subprocess.run(
        ["psql", "-X", "-At", words(live, authority, mode), "-c", "select count(*) from v"], capture_output=True, text=True, timeout=20
    )
    assert result.stdout == "4\n", result.stderr


@pytest.mark.parametrize("binding", ["prefer", "require"])
def test_channel_binding(live: Live, authority: Authority, role: None, binding: str) -> None:
    with psycopg.connect(words(live, authority, "require", channel_binding=binding)) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(words(live, authority, "disable", channel_binding="require"))


def test_asyncpg(live: Live, authority: Authority, role: None) -> None:
    async def ask(how: ssl.SSLContext | str) -> int:
        connection = await asyncpg.connect(host="localhost", port=live.port, user="ann", database="shop", password="secret", ssl=how)
        try:
            return await connection.fetchval("select count(*) from v")
        finally:
            await connection.close()

    assert live.call(ask(ssl.create_default_context(cafile=str(authority.certificate)))) == 4
    assert live.call(ask("require")) == 4


def test_a_certificate_of_somebody_else_is_not_taken(live: Live, authority: Authority, role: None, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        psycopg.connect(words(live, other, "verify-full"))
    with psycopg.connect(words(live, authority, "verify-full")):
        pass


def test_failed_handshakes_are_logged(live: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """One line in LOG_S seconds, which counts the others."""
    monkeypatch.setattr(handshake, "LOG_S", 60.0)
    caplog.set_level(logging.INFO, "tailgate.gateway")

    def fail() -> None:
        with socket.create_connection(("localhost", live.port)) as client:
            client.sendall(SSL_REQUEST)
            assert client.recv(1) == b"S"
            client.sendall(b"this is not a handshake")
            with contextlib.suppress(ConnectionError):
                while client.recv(4096):
                    pass

    for _ in range(3):
        fail()
    (line,) = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert line.startswith("a TLS connection from 127.0.0.1 is refused: the handshake has failed: ")
    monkeypatch.setattr(handshake, "LOG_S", 0.0)
    fail()
    until(lambda: "(2 more since the last message)" in caplog.text)


def test_a_certificate_is_replaced_while_it_runs(live: Live, authority: Authority, role: None, tmp_path: Path) -> None:
    def serial() -> bytes | None:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        with socket.create_connection(("localhost", live.port)) as raw:
            raw.sendall(SSL_REQUEST)
            assert raw.recv(1) == b"S"
            with context.wrap_socket(raw, server_hostname="localhost") as shaken:
                return shaken.getpeercert(True)

    assert live.tls is not None
    before = serial()
    with psycopg.connect(words(live, authority, "verify-full")) as connection:
        certificate, key = authority.sign("next")
        live.tls.key.write_text("half written")
        assert serial() == before  # a certificate that cannot be loaded is ignored
        os.replace(key, live.tls.key)
        os.replace(certificate, live.tls.certificate)
        assert serial() != before
        assert connection.execute("select 1").fetchone() == (1,)  # open connections stay
    with psycopg.connect(words(live, authority, "verify-full", channel_binding="require")):
        pass


def test_client_certificates(tmp_path: Path, authority: Authority) -> None:
    """With --tls-ca a client must show a certificate, which replaces the password of a role without one."""
    live = Live(tmp_path / "lake", Files(*authority.sign("server"), authority.certificate))
    statements = Statements(live)
    try:
        with psycopg.connect(f"{live.dsn} sslmode=disable", autocommit=True) as connection:  # local connection without TLS
            connection.execute("create role ann login; create role bob login password 'x'")
        certificate, key = authority.sign("client", common_name="ann")
        shown = {"sslcert": str(certificate), "sslkey": str(key)}
        with psycopg.connect(words(live, authority, "verify-full", **shown)) as connection:
            assert connection.execute("select current_user").fetchone() == ("ann",)
            assert not connection.pgconn.used_password
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(words(live, authority, "verify-full"))
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(words(live, authority, "verify-full", **shown) + " user=bob")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(words(live, authority, "verify-full", **shown) + " user=tailgate")
        certificate, key = authority.sign("operator", common_name="tailgate")
        shown = {"sslcert": str(certificate), "sslkey": str(key)}
        with psycopg.connect(words(live, authority, "verify-full", **shown) + " user=tailgate") as connection:  # local connection
            assert connection.execute("select current_user").fetchone() == ("tailgate",)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(words(live, authority, "verify-full", **shown))
    finally:
        statements.stop()
        live.close()


def test_bytes_before_tls_are_no_part_of_it(live: Live) -> None:
    with socket.create_connection(("localhost", live.port), timeout=5) as raw:
        raw.sendall(SSL_REQUEST + b"\0\0\0\x08")
        response = b""
        while data := raw.recv(1000):
            response += data
        assert b"received unencrypted data after SSL request" in response


def test_bytes_between_the_answer_and_the_handshake_are_no_part_of_it(live: Live, authority: Authority) -> None:
    """A start-up message before the end of the handshake must not count as received over TLS."""
    startup = pack("!II", 41, 196608) + b"user\0ann\0database\0shop\0\0"
    startup = pack("!I", len(startup)) + startup[4:]
    with socket.create_connection(("localhost", live.port), timeout=5) as raw:
        until(lambda: bool(live.server.connections))

        async def both() -> None:
            (connection,) = live.server.connections
            connection.data_received(SSL_REQUEST)
            connection.data_received(startup)  # read before the handshake's task runs

        live.call(both())
        response = b""
        while data := raw.recv(1000):
            response += data
    assert response.startswith(b"SE"), response
    assert b"received unencrypted data after SSL request" in response


@pytest.mark.parametrize("sent", [b"", SSL_REQUEST, pack("!II", 18, 196608) + b"user\0ann\0"], ids=["nothing", "TLS", "a start-up message"])
def test_a_client_that_does_not_sign_in_in_time_is_disconnected(
    live: Live, role: None, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_connection, "STARTUP_TIMEOUT_S", 0.1)
    with socket.create_connection(("localhost", live.port), timeout=30) as raw:
        raw.sendall(sent)
        while raw.recv(1000):  # a connection that stays open times out
            pass


def test_an_invalid_handshake_ends_only_its_connection(live: Live, authority: Authority) -> None:
    with socket.create_connection(("localhost", live.port), timeout=5) as raw:
        raw.sendall(SSL_REQUEST)
        assert raw.recv(1) == b"S"
        raw.sendall(b"Q\0\0\0\x0cselect\0\0" * 10)
        raw.settimeout(5)
        while raw.recv(1000):  # an alert, then the end
            pass
    with psycopg.connect(words(live, authority, "require")) as connection:
        assert connection.execute("select count(*) from v").fetchone() == (4,)


def test_cancel_over_tls(live: Live, authority: Authority, role: None) -> None:
    import threading

    with psycopg.connect(words(live, authority, "require")) as connection:
        threading.Timer(0.5, connection.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("tail v with (snapshot = false)")


def test_keys_that_others_can_read_are_refused(authority: Authority) -> None:
    certificate, key = authority.sign("server")
    key.chmod(0o644)
    with pytest.raises(TailgateError, match="has group or world access"):
        Tls(Files(certificate, key))


@pytest.mark.parametrize("hash", ["sha256", "sha384", "sha512"])
def test_the_end_point_is_hashed_as_the_certificate_is_signed(authority: Authority, hash: str) -> None:
    import hashlib

    certificate, _ = authority.sign("server", hash=hash)
    der = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    assert end_point(der) == hashlib.new(hash, der).digest()


def test_other_addresses_need_tls_and_roles(live: Live, role: None) -> None:
    with pytest.raises(FeatureNotSupported, match="without TLS is refused"):
        check_address("0.0.0.0", False, live.model.lake.catalog())
    with pytest.raises(FeatureNotSupported, match="without roles is refused"):
        check_address("0.0.0.0", True, Catalog())
    check_address("0.0.0.0", True, live.model.lake.catalog())
