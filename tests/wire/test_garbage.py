"""Sends random frames to a real gateway.

It answers, discards or disconnects, raises no internal error, and continues to serve other clients.
"""

from __future__ import annotations

import logging
import random
import socket
import time
from struct import pack

import psycopg
import pytest

from tailgate.gateway.protocol.backend import frame
from tailgate.gateway.protocol.decode import READERS
from tests.wire.live import Live
from tests.wire.wire import Bind, Client, Close, Describe, Execute, Flush, Parse, Query, Sync

GOOD = [
    Parse("", "select id from v where id = $1"),
    Parse("s", "select 1"),
    Bind("", "", ["1"]),
    Bind("p", "s"),
    Describe("S", "s"),
    Describe("P", ""),
    Execute("", 1),
    Execute("p"),
    Close("S", "s"),
    Close("P", "p"),
    Flush(),
    Sync(),
    Query("begin"),
    Query("select * from v"),
    Query("declare c cursor for tail v"),
    Query("fetch 2 c"),
    Query("selec"),
    Query("rollback"),
    Query("copy (select id from v) to stdout"),
    frame(b"d", b"1\n"),
    frame(b"c", b""),
    frame(b"F", b"\0\0\0\1"),
]


@pytest.mark.parametrize("kind", ["bytes", "frames", "messages"])
def test_garbage(live: Live, seed: int, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(f"{seed} {kind}")
    caplog.set_level(logging.ERROR)
    for _ in range(60):
        if kind == "bytes":
            client = socket.create_connection((live.host, live.port), timeout=5)
            data = chance.randbytes(chance.randrange(1, 200))
        else:
            client = Client.connect(live.host, live.port).socket
            if kind == "frames":
                letters = [bytes([letter]) for letter in READERS]
                data = b"".join(frame(chance.choice(letters), chance.randbytes(chance.randrange(20))) for _ in range(20))
            else:
                data = b"".join(chance.choice(GOOD) for _ in range(40))
        at = 0
        try:
            while at < len(data):
                size = chance.randrange(1, 100)
                client.sendall(data[at : at + size])
                at += size
            if kind != "bytes":
                client.sendall(Sync() + frame(b"X", b""))
            client.shutdown(socket.SHUT_WR)
            client.settimeout(10)
            while client.recv(65536):
                pass
        except TimeoutError:
            raise
        except OSError:
            pass  # disconnected
        finally:
            client.close()
    with psycopg.connect(live.dsn) as connection:
        assert connection.execute("select count(*) from v").fetchone() == (4,)
    deadline = time.monotonic() + 5
    while live.server.connections and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not live.server.connections
    assert not live.gateway.sessions
    assert caplog.records == []


def test_half_open_connections(live: Live) -> None:
    """Half-open connections use few resources, and other clients are served."""
    waiting = [socket.create_connection((live.host, live.port)) for _ in range(400)]
    for raw in waiting[:200]:
        raw.sendall(pack("!I", 100) + b"\0\3")
    with psycopg.connect(live.dsn) as connection:
        assert connection.execute("select count(*) from v").fetchone() == (4,)
    for raw in waiting:
        raw.close()
