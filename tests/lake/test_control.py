"""The control protocol: what one side encodes, the other side decodes; other versions are refused; a busy engine is waited for."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tailgate.engine.runtime.control import control as server
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.gateway import engine_looks
from tailgate.gateway.control import Control as Client
from tailgate.lake import control
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.errors import DivisionByZero, FeatureNotSupported, InvalidParameterValue
from tailgate.lake.folder import Lake
from tailgate.lake.writer.engines import Announcement
from tailgate.lake.writer.log_writer import open_epoch
from testing.engine_process import until


@pytest.fixture
def engine() -> Iterator[Control]:
    server = Control(Answers(lambda *_: {}, lambda connection: None, lambda lags: {}, lambda *_: {}))
    server.start()
    yield server
    server.stop()


def test_a_statement() -> None:
    request = control.StatementRequest("DROP VIEW v", {"role": "ann"}, Resolution(("public",), {Name("v"): 7}))
    assert control.StatementRequest.decode(request.encode()) == request


def test_a_write() -> None:
    parts = (control.Part(3, b"changes", memoryview(b"12345678").cast("Q")), control.Part(4, b"", memoryview(b"").cast("Q")))
    write = control.Write(9, (3, 5), parts, "name")
    assert control.Write.decode(write.encode()) == write


def test_paths() -> None:
    assert control.decode_recent(control.recent_path({5, 3}, 1.5).partition("?")[2]) == ([3, 5], 1.5)
    for query in ("relations=x", "timeout=nan", "timeout=-1", "timeout=x"):
        with pytest.raises(InvalidParameterValue):
            control.decode_recent(query)


@pytest.mark.parametrize("lags", [True, False])
def test_the_path_of_the_status(lags: bool) -> None:
    assert control.decode_status(control.status_path(lags=lags).partition("?")[2]) == lags


def test_an_error() -> None:
    error = DivisionByZero("division by zero", detail="d", hint="h", position=4)
    decoded = control.error_of(control.decode(control.encode(control.error_fields(error))))
    assert type(decoded) is DivisionByZero
    assert (decoded.message, decoded.detail, decoded.hint, decoded.position) == (error.message, "d", "h", 4)


def test_a_result() -> None:
    notice = {"severity": "WARNING", "sqlstate": "01000", "message": "m", "detail": None, "hint": "h"}
    result = control.StatementResult.of({"tag": "DROP VIEW", "n": 3, "time": 5, "notices": [notice], "lines": ["a"]})
    assert result == control.StatementResult("DROP VIEW", 3, 5, (control.Notice("m", "WARNING", "01000", None, "h"),), ("a",))
    with pytest.raises(ValueError, match="not a JSON object"):
        control.decode(b"[]")


@pytest.mark.parametrize(("version", "status"), [(None, 200), (str(control.VERSION), 200), (str(control.VERSION + 1), 400)])
def test_the_engine_refuses_other_versions(engine: Control, version: str | None, status: int) -> None:
    headers = {name: value for name, value in control.headers(engine.token).items() if name != control.VERSION_HEADER}
    headers |= {} if version is None else {control.VERSION_HEADER: version}
    host, _, port = engine.address.rpartition(":")
    for method, path in (("GET", control.STATUS), ("POST", control.WRITE)):
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        connection.request(method, path, body=b"" if method == "POST" else None, headers=headers)
        response = connection.getresponse()
        answer = control.decode(response.read())
        connection.close()
        assert response.status == status
        if status != 200:
            assert type(control.error_of(answer)) is FeatureNotSupported


def test_a_busy_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While its queue is full, the kernel drops requests for connections. TCP sends them again after a second."""
    monkeypatch.setattr(server._Server, "request_queue_size", 0)
    busy = Control(Answers(lambda *_: {}, lambda connection: None, lambda lags: {}, lambda *_: {"number": 7}))
    lake = Lake.create(tmp_path / "lake")
    Announcement.mine(1, busy.address, busy.token, None).write(lake)

    async def write() -> control.WriteResult:
        client = Client(lake)
        try:
            return await client.write(b"")
        finally:
            client.close()

    host, _, port = busy.address.rpartition(":")
    with socket.create_connection((host, int(port))), ThreadPoolExecutor(1) as threads:  # the queue has room for one
        sent = threads.submit(lambda: asyncio.run(write()))
        pending = f":{int(port):04X} 02 "  # an address and the state SYN_SENT
        until(lambda: sent.done() or pending in Path("/proc/net/tcp").read_text())
        busy.start()
        try:
            assert sent.result(60) == control.WriteResult(7)
        finally:
            busy.stop()


def test_an_engine_that_ends_answers_its_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for them up to a limit, and not for requests of locks."""
    begun, executed, released = threading.Semaphore(0), threading.Event(), threading.Event()

    def statement(*_: object) -> dict[str, int]:
        begun.release()
        executed.wait(60)
        return {"n": 7}

    def lock(*_: object) -> tuple[dict[str, bool], Callable[[], None]]:
        begun.release()
        released.wait(60)
        return {"granted": True}, lambda: None

    engine = Control(Answers(statement, lambda connection: None, lambda lags: {}, lambda *_: {}, lock=lock))
    engine.start()
    host, _, port = engine.address.rpartition(":")

    def request(path: str, body: bytes) -> Mapping[str, object]:
        with closing(http.client.HTTPConnection(host, int(port), timeout=60)) as connection:
            connection.request("POST", path, body, control.headers(engine.token))
            return control.decode(connection.getresponse().read())

    with ThreadPoolExecutor(2) as threads:
        locked = threads.submit(request, control.LOCK, b"")
        created = threads.submit(request, control.STATEMENT, control.StatementRequest("x", {}, Resolution((), {})).encode())
        for _ in range(2):
            begun.acquire()
        monkeypatch.setattr(server, "ANSWERED_S", 0.01)
        engine.stop()
        assert not created.done()
        monkeypatch.setattr(server, "ANSWERED_S", 60.0)
        threading.Timer(0.1, executed.set).start()
        engine.stop()
        assert executed.is_set()
        assert created.result(60) == {"n": 7}
        assert not locked.done()
        released.set()
        assert locked.result(60) == {"granted": True}


def test_an_engine_that_ends_does_not_wait_for_later_requests() -> None:
    unanswered = server._Unanswered()
    unanswered.add("first")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(unanswered.wait, 60)
        until(lambda: bool(unanswered._changed._waiters))  # type: ignore[attr-defined]
        unanswered.add("second")
        unanswered.discard("first")
        waiting.result(10)


def test_the_lake_is_looked_at_for_another_engine_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request goes to the engine of the last one, unless that one takes no connection or the log has a later epoch."""
    lake, looks, look = Lake.create(tmp_path / "lake"), list[Lake](), engine_looks._look
    monkeypatch.setattr(engine_looks, "_look", lambda lake: looks.append(lake) or look(lake))
    engines = [Control(Answers(lambda *_: {}, lambda connection: None, lambda lags, n=n: {"n": n}, lambda *_: {})) for n in range(3)]
    read = Lake(lake.path)
    client = Client(read)

    async def answered() -> list[int]:
        """Returns the engines that answer two requests."""
        return [(await client.status())["n"] for _ in range(2)]

    for number, engine in enumerate(engines):
        writer = open_epoch(lake)
        engine.start()
        Announcement.mine(writer.epoch, engine.address, engine.token, None).write(lake)
        if number == 1:
            engines[0].stop()
        if number == 2:
            read.log.newest()
        assert asyncio.run(answered()) == [number] * 2
        assert len(looks) == number + 1
        writer.close()
    for engine in engines[1:]:
        engine.stop()
