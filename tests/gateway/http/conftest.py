"""A gateway with HTTP over a lake that an engine without Spark writes."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tailgate.gateway.http.server import HttpOptions, HttpServer
from tailgate.gateway.security.tls import Tls
from tailgate.gateway.session.gateway import Gateway
from tests.authorization.world import World


class Web:
    """A World with an HTTP server in the loop of its gateway."""

    def __init__(self, world: World, options: HttpOptions, tls: Tls | None = None) -> None:
        self.world, self._tls = world, tls
        self._loop = world.served.loop
        self.port = asyncio.run_coroutine_threadsafe(self._start(options), self._loop).result(30)

    async def _start(self, options: HttpOptions) -> int:
        self.gateway = Gateway(self.world.lake, self.world.served.serving, self._tls)
        self.server = HttpServer(self.gateway, options)
        ((_, port),) = await self.server.listen()
        await self.server.start()
        return port

    def request(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Sends a request and returns status, header fields and body. `_` in the names of headers stands for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Any:
        """Returns the JSON of a successful response."""
        status, _, body = self.request(path, **headers)
        assert status == 200, (status, body)
        return json.loads(body)

    def error(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """Returns status and SQLSTATE of a failed request."""
        status, _, body = self.request(path, method, **headers)
        return status, json.loads(body)["error"]["sqlstate"]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)

    async def _stop(self) -> None:
        await self.server.stop()
        self.gateway.control.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("http") / "lake")
    yield world
    world.close()


@pytest.fixture(scope="module")
def web(world: World) -> Iterator[Web]:
    web = Web(world, HttpOptions("127.0.0.1", 0, frozenset({"https://app.example"})))
    yield web
    web.close()
