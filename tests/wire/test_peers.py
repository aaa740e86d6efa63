"""Tests two gateways of one lake: each lists the other's sessions and forwards requests to them."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.gateway.session import peers as gateway_peers
from tailgate.lake import peers
from tailgate.lake.host.process_tls import split
from testing.engine_process import until
from tests.tables.world import World
from tests.wire.canceling import cancel_by_function, cancel_by_request
from tests.wire.live import Live


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


def test_a_statement_of_the_other_is_cancelled(first: psycopg.Connection, second: psycopg.Connection) -> None:
    cancel_by_function(canceled=first, by=second)
    assert first.execute("SELECT 1").fetchone() == (1,)


def test_a_session_of_the_other_is_ended(first: psycopg.Connection, second: psycopg.Connection) -> None:
    assert second.execute("SELECT pg_terminate_backend(%s)", [first.info.backend_pid]).fetchone() == (True,)
    with pytest.raises(psycopg.errors.AdminShutdown):
        first.execute("SELECT 1")
    assert second.execute("SELECT pg_cancel_backend(1)").fetchone() == (False,)


def test_a_cancel_request_reaches_a_session_of_another_gateway(world: World, second: psycopg.Connection) -> None:
    cancel_by_request(world.gateways[0].port, world.gateways[1].port, asking=second)


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


def test_a_request_is_read_only_with_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection with another token is closed at once, while its request is not complete."""
    monkeypatch.setattr(gateway_peers, "ANSWER_S", 60)
    live = Live(tmp_path)
    (peer,) = peers.of_this_machine(live.model.lake)
    for beginning in (peers.token_part("x" * len(peer.token)), b"x" * 200):
        with socket.create_connection(split(peer.address), timeout=30) as connection:
            connection.sendall(beginning)
            assert connection.recv(1) == b""
    with socket.create_connection(split(peer.address), timeout=0.1) as connection:
        connection.sendall(peers.token_part(peer.token))
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(30)
        connection.sendall(b', "do": "lags"}\n')
        assert connection.recv(100).startswith(b'{"lags"')
    live.close()


def test_a_gateway_whose_announcement_fails_is_announced_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create, failures = peers.Announcement, [OSError("the store does not answer")] * 2

    def announce(*words: Any) -> peers.Announcement:
        if failures:
            raise failures.pop()
        return create(*words)

    monkeypatch.setattr(peers, "Announcement", announce)
    monkeypatch.setattr(peers, "RENEW_S", 0.05)
    live = Live(tmp_path)
    try:
        until(lambda: peers.of_this_machine(live.model.lake))
        assert not failures
    finally:
        live.close()
    assert not peers.of_this_machine(live.model.lake)
