"""`tailgate gateway --http`: the process, a port that gateways share, and TLS files that are replaced."""

from __future__ import annotations

import http.client
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testing.engine_process import until
from tests.authorization.world import World
from tests.certificates import Authority, Pair


@contextmanager
def gateway(data: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Starts a gateway, and returns the scheme and the port of its HTTP service."""
    command = [sys.executable, "-m", "tailgate", "gateway", "--data", str(data), "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            served = re.fullmatch(r"serving (https?)://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
            assert served is not None
            assert process.stdout.readline().startswith("ready ")
            yield served[1], int(served[2])
        finally:
            process.terminate()
            assert process.wait(30) == 0


def get(connection: http.client.HTTPConnection) -> bytes:
    try:
        connection.request("GET", "/one")
        response = connection.getresponse()
        assert response.status == 200
        return response.read()
    finally:
        connection.close()


def test_gateways_share_a_port(world: World) -> None:
    world.sql("tailgate", "CREATE ENDPOINT one GET '/one' AS SELECT 1 AS one")
    with gateway(world.lake.path, "--http", "127.0.0.1:0") as (scheme, port):
        with gateway(world.lake.path, "--http", f"127.0.0.1:{port}") as (_, second):
            assert (scheme, second) == ("http", port)
            assert {get(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) for _ in range(20)} == {b'{"one":1}'}
        assert get(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) == b'{"one":1}'
    world.sql("tailgate", "DROP ENDPOINT one")


def _write(folder: Path, pair: Pair) -> None:
    (folder / "server.pem").write_text(pair.certificate)
    (folder / "server.key").write_text(pair.key)
    (folder / "server.key").chmod(0o600)


def test_tls_files_are_read_again(world: World, tmp_path: Path) -> None:
    world.sql("tailgate", "CREATE ENDPOINT one GET '/one' AS SELECT 1 AS one")
    old, new = Authority(), Authority()
    _write(tmp_path, old.pair())
    files = ("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key"))
    with gateway(world.lake.path, "--http", "127.0.0.1:0", *files) as (scheme, port):
        assert scheme == "https"

        def trusts(authority: Authority) -> bool:
            context = ssl.create_default_context(cadata=authority.certificate)
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
            try:
                return get(connection) == b'{"one":1}'
            except ssl.SSLCertVerificationError:
                return False

        assert (trusts(old), trusts(new)) == (True, False)
        _write(tmp_path, new.pair())
        until(lambda: trusts(new) and not trusts(old))
    world.sql("tailgate", "DROP ENDPOINT one")
