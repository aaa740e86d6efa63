"""A gateway in a thread, over a lake that the test writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

import uvloop

from tailgate.gateway.security.tls import Files, Tls
from tailgate.gateway.server.server import Server
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.gateway import Gateway
from tailgate.operations.settings.process import ProcessSettings
from tests.gateway.serving.model_lake import ModelLake, Row

ROWS: list[Row] = [(0, "name 0", 0.0), (1, "name 1", 1.5), (2, "", 3.0), (3, None, 4.5)]


class Live:
    """A gateway with a materialized view `v` (id, name, amount; key id) that first holds ROWS."""

    def __init__(self, path: Path, tls: Files | None = None, settings: ProcessSettings | None = None) -> None:
        self.tls, self.settings = tls, settings
        self.model = ModelLake(path)
        self.v = self.model.create("v")
        self.model.tick({self.v.id: [(row, 1) for row in ROWS]})
        self.loop = uvloop.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(30)
        self.host = "127.0.0.1"

    @property
    def dsn(self) -> str:
        return f"host={self.host} port={self.port} user=ann dbname=shop"

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self.serving = Serving(self.model.lake)
        await self.serving.start()
        self.gateway = Gateway(self.model.lake, self.serving, Tls(self.tls) if self.tls else None, settings=self.settings)
        self.server = Server(self.gateway)
        ((_, self.port),) = await self.server.listen("127.0.0.1", 0)
        self._stop = asyncio.Event()
        self._started.set()
        await self._stop.wait()
        await self.server.stop()
        await self.serving.stop()

    def call(self, work: Coroutine[Any, Any, Any], timeout: float = 30) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def tick(self, changes: Iterable[tuple[Row, int]] = ()) -> int:
        """Appends a tick with changes of `v`. Waits until the gateway has it, and returns its time."""
        time = self.model.tick({self.v.id: list(changes)} if changes else {})
        self.call(self.serving.progress.wait(time - 1, 10))
        return time

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self.model.writer.close()
