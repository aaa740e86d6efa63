"""Tests two gateways of one lake: each lists the other's sessions and forwards requests to them."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import psycopg
import pytest

from tailgate.lake import peers
from tailgate.lake.host.process_tls import split
from testing.engine_process import until
from tests.tables.world import World
from tests.wire.live import Live
from tests.wire.wire import Client, Query

SLOW = "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("peers") / "lake", gateways=2)
    yield world
    world.close()


@pytest.fixture
def first(world: World) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.gateways[0].dsn, autocommit=True, application_name="first") as connection:
        yield connection


@pytest.fixture
def second(world: World) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.gateways[1].dsn, autocommit=True, application_name="second") as connection:
        yield connection


def test_all_sessions_are_listed(first: psycopg.Connection, second: psycopg.Connection) -> None:
    text = "SELECT pid, application_name, state, backend_start < now() FROM pg_stat_activity WHERE application_name <> '' ORDER BY 2"
    for asking in (first, second):
        rows = asking.execute(text).fetchall()
        assert [row[:2] for row in rows] == [(first.info.backend_pid, "first"), (second.info.backend_pid, "second")]
        assert {row[2] for row in rows} == {"active", "idle"}
        assert all(row[3] for row in rows)


def begun(asking: psycopg.Connection, pid: int) -> None:
    """Waits until the session runs SLOW."""
    text = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND query = %s"
    until(lambda: asking.execute(text, [pid, SLOW]).fetchone() == (1,))


def running(connection: psycopg.Connection, asking: psycopg.Connection) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            connection.execute(SLOW)
        except psycopg.Error as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    begun(asking, connection.info.backend_pid)
    return thread, errors


def test_a_statement_of_the_other_is_cancelled(first: psycopg.Connection, second: psycopg.Connection) -> None:
    thread, errors = running(first, second)
    assert second.execute("SELECT pg_cancel_backend(%s)", [first.info.backend_pid]).fetchone() == (True,)
    thread.join(20)
    assert isinstance(errors[0], psycopg.errors.QueryCanceled)
    assert first.execute("SELECT 1").fetchone() == (1,)


def test_a_session_of_the_other_is_ended(first: psycopg.Connection, second: psycopg.Connection) -> None:
    assert second.execute("SELECT pg_terminate_backend(%s)", [first.info.backend_pid]).fetchone() == (True,)
    with pytest.raises(psycopg.errors.AdminShutdown):
        first.execute("SELECT 1")
    assert second.execute("SELECT pg_cancel_backend(1)").fetchone() == (False,)


def test_a_cancel_request_reaches_a_session_of_another_gateway(world: World, second: psycopg.Connection) -> None:
    client = Client.connect("127.0.0.1", world.gateways[0].port, "ann", "shop")
    client.send(Query(SLOW))
    begun(second, client.key[0])
    with socket.create_connection(("127.0.0.1", world.gateways[1].port)) as connection:
        connection.sendall(pack("!III", 12 + len(client.key[1]), 80877102, client.key[0]) + client.key[1])
    assert [letter for letter, _ in client.until_ready()] == ["E", "Z"]
    client.close()


def test_a_dead_gateway_is_removed_from_the_list(world: World, first: psycopg.Connection) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    stale = Path(world.lake.path, peers.FOLDER, "1.json")
    stale.write_text(json.dumps({"pid": ended.pid, "port": 1, "token": "x"}))
    first.execute("SELECT count(*) FROM pg_stat_activity")
    assert not stale.exists()


def test_requests_end_with_their_gateway(tmp_path: Path) -> None:
    live = Live(tmp_path)
    (peer,) = peers.of_this_machine(live.model.lake)
    with socket.create_connection(split(peer.address)) as connection:
        until(lambda: live.gateway.peers.connections == 1)
        live.close()
        assert connection.recv(1) == b""
    assert live.gateway.peers.connections == 0
