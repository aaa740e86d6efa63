"""Tables without Spark: a gateway, and the engine's inbox, resolver and control.

A tick only commits the writes of the inbox.

    gateway ──POST /statement──► engine.runtime.control.statements ──► log entry
            ──POST /write──► engine.runtime.ticks.writes ──► inbox ──► [tick] ──► log entry
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import uvloop

from tailgate.embedded.children import Child
from tailgate.gateway.server.server import Server
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.folder import Lake
from tests.tables.engine import Engine

REACH_S = 30.0  # on a busy machine; an idle gateway takes milliseconds


class Served:
    """A gateway over a lake, in its thread, with the connection string `dsn`."""

    def __init__(self, lake: Lake, listen: str | None = None) -> None:
        self._lake, self._listen = lake, listen
        self.loop = uvloop.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(30)

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=ann dbname=shop"

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self.serving = Serving(self._lake)
        await self.serving.start()
        server = Server(Gateway(self._lake, self.serving, control_listen=self._listen))
        ((_, self.port),) = await server.listen("127.0.0.1", 0)
        self._stop = asyncio.Event()
        self._started.set()
        await self._stop.wait()
        await server.stop()
        await self.serving.stop()

    def reach(self, time: int) -> None:
        """Returns when the gateway has reached this time of the lake."""
        assert asyncio.run_coroutine_threadsafe(self.serving.progress.wait(time - 1, REACH_S), self.loop).result() >= time

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)


def engine_process(lake: Path, crash: str = "") -> Child:
    """Starts an engine in a process, which is killed at a crash point."""
    command = [sys.executable, "-m", "tests.tables.engine", str(lake)]
    return Child("engine", command, log=lake.parent / "engine.log", environment={"TAILGATE_CRASH": crash}, announces="ready")


class World:
    """A lake with an engine and some gateways."""

    def __init__(self, path: Path, gateways: int = 1) -> None:
        self.path = path
        self.lake = Lake.create(path)
        self.engine = Engine(self.lake)
        self.gateways = [Served(self.lake) for _ in range(gateways)]

    @property
    def dsn(self) -> str:
        return self.gateways[0].dsn

    def together(self) -> None:
        """Waits until all gateways have reached the newest time."""
        for gateway in self.gateways:
            gateway.reach(self.engine.writer.newest.time)

    def close(self) -> None:
        for gateway in self.gateways:
            gateway.close()
        self.engine.close()


def leave(connection: psycopg.Connection[Any]) -> None:
    """Ends a connection that a thread may wait for, as a client that crashes does.

    After `close`, the thread would read the memory of libpq's connection, which may be that of the next one: it takes that one's answers.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
