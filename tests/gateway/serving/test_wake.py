"""Tests how serving notices new entries: with the engine's long poll or, without an engine, by polling."""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tailgate.gateway.mirrors import wake
from tailgate.lake.host.server_thread import ServerThread
from tests.gateway.serving.model_lake import ModelLake, serving


class Engine(ThreadingHTTPServer):
    """An HTTP server that answers GET /newest?after=n like an engine."""

    daemon_threads = True

    def __init__(self, model: ModelLake) -> None:
        self.model, self.asked = model, 0
        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = ServerThread(self, "engine")
        self.thread.start()
        model.writer.announce(address=f"127.0.0.1:{self.server_port}", token="secret")


class Handler(BaseHTTPRequestHandler):
    server: Engine
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked += 1
        after = int(parse_qs(urlsplit(self.path).query)["after"][0])
        end = time.monotonic() + 2
        while self.server.model.writer.newest.n <= after and time.monotonic() < end:
            time.sleep(0.002)
        newest = self.server.model.writer.newest
        good = self.headers["Authorization"] == "Bearer secret"
        body = json.dumps({"n": newest.n, "time": newest.time} if good else {}).encode()
        self.send_response(200 if good else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def test_woken_by_the_engine(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one poll per minute, only the long poll can be fast enough."""
    monkeypatch.setattr(wake, "POLL_WOKEN", 60.0)
    engine = Engine(model)

    async def work() -> None:
        async with serving(model) as server:
            deadline = time.monotonic() + 5
            while not server.mirrors._wake._answering and time.monotonic() < deadline:
                await server.progress.wait(server.progress.time, 0.05)
                model.tick({})
            for _ in range(5):
                before = server.progress.time
                began = time.monotonic()
                model.tick({})
                assert await server.progress.wait(before, 5) > before
                assert time.monotonic() - began < 2

    run(work)
    assert engine.asked > 3
    engine.thread.stop()


def test_the_engine_disconnects(model: ModelLake, run) -> None:
    async def work() -> None:
        engine = Engine(model)
        async with serving(model) as server:
            time_before = model.tick({})
            await server.progress.wait(time_before - 1, 5)
            engine.thread.stop()
            for _ in range(3):
                later = model.tick({})
                assert await server.progress.wait(later - 1, 5) == later

    run(work)
