"""The console in the loop of a gateway, over a lake that an engine without Spark writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tailgate.gateway.console.server import ConsoleServer
from tailgate.gateway.server.server import Server
from tailgate.gateway.session.gateway import Gateway
from tests.authorization.world import World
from tests.gateway.requests import Requests

Events = list[tuple[str, Any]]  # kind and data


def parsed(body: bytes) -> Events:
    """Returns the events of a response."""
    events = []
    for part in body.decode().split("\n\n")[:-1]:
        kind, data = part.split("\n")
        events.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


class Web(Requests):
    """A console."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._loop = world.served.loop
        self.port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)

    async def _start(self) -> int:
        gateway = Gateway(self.world.lake, self.world.served.serving)
        self._postgresql = Server(gateway)
        self.server = ConsoleServer(gateway, self._postgresql, "127.0.0.1", 0)
        ((_, port),) = await self.server.listen()
        await self.server.start()
        return port

    def events(self, sql: str, **headers: str) -> Events:
        """Returns the events of a statement."""
        status, _, body = self.request("POST", "/statement", {"sql": sql}, **{"Tailgate_Console": "1", **headers})
        assert status == 200, body
        return parsed(body)

    def rows(self, sql: str) -> list[list[str | None]]:
        """Returns the rows of a statement that succeeds."""
        events = self.events(sql)
        assert events[-1][0] == "end", events
        return [row for kind, data in events if kind == "rows" for row in data]

    async def _stop(self) -> None:
        await self.server.stop()
        await self._postgresql.stop()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("console") / "lake")
    with world.connect() as connection:
        connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY, name text)")
        connection.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM orders")
    yield world
    world.close()


@pytest.fixture(scope="package")
def web(world: World) -> Iterator[Web]:
    web = Web(world)
    yield web
    web.close()
