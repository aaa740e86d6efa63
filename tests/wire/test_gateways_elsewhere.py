"""Tests gateways on two machines over a lake in a bucket. Only control with TLS connects them to each other and to the engine.

The second gateway is a process with another host name and another working folder.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from tailgate.embedded.children import Child, free_port
from tailgate.lake import peers
from tailgate.lake.folder import Lake
from tailgate.lake.host import processes
from tailgate.lake.store.bucket import BucketStore
from testing.engine_process import until
from tests.tables.world import Engine, Served
from tests.wire.canceling import cancel_by_function, cancel_by_request

READY = timedelta(seconds=60)
LISTEN = "127.0.0.1:0"
ELSEWHERE = "import socket, sys; socket.gethostname = lambda: 'elsewhere'; from tailgate.cli import main; sys.exit(main(sys.argv[1:]))"


class World(NamedTuple):
    lake: Lake
    here: Served
    elsewhere: Child
    port: int  # of the gateway elsewhere


@pytest.fixture
def world(bucket: BucketStore, tmp_path: Path) -> Iterator[World]:
    lake = Lake.create(bucket.location(""))
    engine = Engine(lake, listen=LISTEN)
    here = Served(lake, LISTEN)
    port = free_port()
    words = ["gateway", "--data", lake.location, "--work-dir", str(tmp_path / "elsewhere"), "--listen", f"127.0.0.1:{port}"]
    command = [sys.executable, "-c", ELSEWHERE, *words, "--control-listen", LISTEN]
    child = Child("elsewhere", command, log=tmp_path / "elsewhere.log", announces="ready ")
    child.wait_ready(child.announced, READY)
    yield World(lake, here, child, port)
    child.stop()
    here.close()
    engine.close()


def test_gateways_of_two_machines(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = f"host=127.0.0.1 port={world.port} user=ann dbname=shop"
    with (
        psycopg.connect(dsn, autocommit=True, application_name="elsewhere") as remote,
        psycopg.connect(world.here.dsn, autocommit=True, application_name="here") as here,
    ):
        remote.execute("CREATE TABLE t (id int PRIMARY KEY)")
        remote.execute("INSERT INTO t VALUES (1), (2)")
        until(lambda: here.execute("SELECT count(*) FROM t").fetchone() == (2,))
        for asking in (here, remote):
            rows = asking.execute("SELECT application_name FROM pg_stat_activity WHERE application_name <> '' ORDER BY 1").fetchall()
            assert rows == [("elsewhere",), ("here",)]
        cancel_by_function(canceled=remote, by=here)
        cancel_by_function(canceled=here, by=remote)
        cancel_by_request(world.here.port, world.port, asking=remote)
    elsewhere = [peer for peer in peers.announced(world.lake) if not peer.is_here]
    assert [peer.machine.host for peer in elsewhere] == ["elsewhere"]
    assert [peer.is_here for peer in peers.of_this_machine(world.lake)] == [True]
    a_gateway_that_was_killed_is_forgotten(world, monkeypatch)


def a_gateway_that_was_killed_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "EXPIRED_S", 0.0)
    (announced,) = (peer for peer in peers.announced(world.lake) if not peer.is_here)
    announcement = peers.Announcement(world.lake, "127.0.0.1:1", "token")
    world.elsewhere.kill()
    announcement.renew()
    assert announced in peers.announced(world.lake)  # seen for the first time
    announcement.renew()
    assert announced not in peers.announced(world.lake)


@pytest.mark.parametrize("same_name", [False, True])
def test_the_announcement_of_a_gateway_that_renews_it_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_name: bool) -> None:
    """Machines may have the same host name. Then the ids of their systems differ."""
    monkeypatch.setattr(peers, "EXPIRED_S", 0.0)
    monkeypatch.setattr(processes, "_machine_id", lambda: "a")
    lake = Lake.create(tmp_path / "lake")
    here = peers.Announcement(lake, "127.0.0.1:1", "token")
    with monkeypatch.context() as elsewhere:
        if same_name:
            elsewhere.setattr(processes, "_machine_id", lambda: "b")
            elsewhere.setattr(processes, "boot", lambda: "another boot")
        else:
            elsewhere.setattr(socket, "gethostname", lambda: "elsewhere")
        other = peers.Announcement(lake, "127.0.0.1:2", "another token", certificate="PEM")
    for _ in range(2):
        other.renew()
        here.renew()
        assert {peer.token for peer in peers.announced(lake)} == {"token", "another token"}
    lake.store.discard([other.name])  # as after a suspension
    other.renew()
    assert {peer.token for peer in peers.announced(lake)} == {"token", "another token"}


def test_gateways_have_different_numbers(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    first = peers.Announcement(lake, "127.0.0.1:1", "token 1", number=7)
    second = peers.Announcement(lake, "127.0.0.1:2", "token 2", number=7)
    assert first.number == 7
    assert second.number != 7
    lake.store.discard([first.name])  # as after a suspension, in which another gateway takes its number
    third = peers.Announcement(lake, "127.0.0.1:3", "token 3", number=7)
    first.renew()
    assert third.number == 7
    assert {peer.number for peer in peers.announced(lake)} == {first.number, second.number, 7}
