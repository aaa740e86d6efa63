"""Tests how serving notices new entries: by the engine's stream or, without an engine, by polling."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import WAITING_BYTES_MAX, EntryStream
from tailgate.lake import control as protocol
from tailgate.lake import wake
from tailgate.lake.host import disk, process_tls
from tailgate.lake.log.recent import SENT_BYTES_MAX
from tailgate.lake.wake import Wake
from tailgate.lake.writer.engines import Announcement
from tests.gateway.serving.model_lake import ModelLake, bag, serving

WORKS_S = 5.0
ALL_S = 20.0  # on a busy machine; milliseconds on an idle one
ONE_POLL_S = 60.0  # so long that only the stream can be fast enough


def engine_of(model: ModelLake, token: str = "", listen: str | None = None) -> Control:
    """Returns a control interface that announces the entries of the model, at the lake's address."""
    control = Control(Answers(lambda *_: {}, EntryStream(model.lake.log).serve, lambda lags: {}, lambda *_: {}), listen=listen)
    control.start()
    model.writer.announce(address=control.address, token=token or control.token, certificate=control.certificate)
    return control


def test_woken_by_the_engine(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake, "POLL_WOKEN", ONE_POLL_S)
    engine = engine_of(model)

    async def work() -> None:
        async with serving(model) as server:
            deadline = time.monotonic() + WORKS_S
            while not server.mirrors._wake.answering and time.monotonic() < deadline:
                await server.progress.wait(server.progress.time, 0.05)
                model.tick({})
            assert server.mirrors._wake.answering
            for _ in range(5):
                before = server.progress.time
                model.tick({})
                assert await server.progress.wait(before, WORKS_S) > before

    run(work)
    engine.stop()


def test_the_engine_disconnects(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of an engine that does not announce them are found by polling."""
    monkeypatch.setattr(wake, "SILENCE", 0.2)

    async def work() -> None:
        engine = engine_of(model)
        async with serving(model) as server:
            time_before = model.tick({})
            await server.progress.wait(time_before - 1, WORKS_S)
            engine.stop()
            model.lake.log._listeners.clear()
            for _ in range(3):
                later = model.tick({})
                assert await server.progress.wait(later - 1, WORKS_S) == later

    run(work)


def test_a_refused_stream_is_not_followed(model: ModelLake) -> None:
    engine = engine_of(model, token="of another engine")
    waiting = Wake(model.lake)
    waiting.start(0)
    for _ in range(3):
        waiting.wait()
    assert not waiting.answering
    waiting.close()
    engine.stop()


def test_announced_entries_are_not_synced_again(model: ModelLake, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(model)
    reader = type(model.lake)(model.lake.path)
    waiting = Wake(reader)
    newest = reader.log.newest()
    assert newest is not None
    waiting.start(newest.n)
    while not waiting.answering:
        waiting.wait()
    synced: list[str] = []
    monkeypatch.setattr(
        disk, "hook", lambda name, path, action: (synced.append(name) if path == reader.path / "log" else None, action())[1]
    )
    thread = threading.Thread(target=lambda: model.tick({}))
    thread.start()
    waiting.wait()
    thread.join()
    before = synced.count("fsync")
    header = reader.log.newest()
    assert header is not None
    assert header.n == newest.n + 1
    assert synced.count("fsync") == before
    waiting.close()
    engine.stop()


@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"], ids=["loopback", "TLS"])
def test_an_entry_arrives_with_its_bytes_unless_it_is_large(model: ModelLake, monkeypatch: pytest.MonkeyPatch, listen: str | None) -> None:
    item = model.create("v")
    engine = engine_of(model, listen=listen)
    reader = type(model.lake)(model.lake.path)
    newest = reader.log.newest()
    assert newest is not None
    waiting = Wake(reader)
    waiting.start(newest.n)
    while not waiting.answering:
        waiting.wait()
    for name, size in (("small", 1), ("large", SENT_BYTES_MAX), ("small again", 10)):
        row = (len(name), "x" * size, 1.0)
        with monkeypatch.context() as patch:
            if size < SENT_BYTES_MAX:
                for access in ("get", "get_range", "exists"):
                    patch.setattr(type(reader.store), access, None)
            thread = threading.Thread(target=model.tick, args=({item.id: [(row, 1)]},))
            thread.start()
            waiting.wait()
            header = reader.log.newest()
            assert header is not None
            changes = reader.log.read(header.n).changes(item.id)
            assert changes is not None
            assert bag(changes) == {row: 1}
            waiting.seen(header.n)
            patch.undo()
            thread.join()
    waiting.close()
    engine.stop()


@contextlib.contextmanager
def unread(model: ModelLake, listen: str | None = None) -> Iterator[socket.socket]:
    """Yields a connection that has requested the entries, with a small buffer."""
    engine = engine_of(model, listen=listen)
    host, port = engine.address.split(":")
    with contextlib.ExitStack() as closing:
        connection = closing.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.settimeout(WORKS_S)
        connection.connect((host, int(port)))
        if (context := process_tls.trusting(engine.certificate)) is not None:
            connection = closing.enter_context(context.wrap_socket(connection))
        headers = "".join(f"{name}: {value}\r\n" for name, value in protocol.headers(engine.token).items())
        connection.sendall(f"GET {protocol.ENTRIES} HTTP/1.1\r\n{headers}\r\n".encode())
        received = b""
        while b"\n1 0\n" not in received:
            received += connection.recv(1 << 10)
        yield connection
    engine.stop()


def write(model: ModelLake, bytes_: int) -> int:
    """Appends entries with so many bytes that the engine sends. Returns the number of the last one."""
    item = model.create("v")
    row = (1, "x" * (SENT_BYTES_MAX // 2), 1.0)
    for _ in range(0, bytes_, SENT_BYTES_MAX // 2):
        model.tick({item.id: [(row, 1)]})
    return model.writer.newest.n


@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"], ids=["loopback", "TLS"])
def test_a_reader_that_takes_its_entries_late_gets_all_of_them(model: ModelLake, listen: str | None) -> None:
    with unread(model, listen) as connection:
        last = write(model, WAITING_BYTES_MAX)  # more than the buffers of the system take
        received, deadline = b"", time.monotonic() + ALL_S
        while b"\n%d 0\n" % last not in received[-100:]:  # a heartbeat
            received += connection.recv(1 << 20)
            assert time.monotonic() < deadline
    assert received.count(b'{"format":') == last - 1


def test_a_reader_that_takes_no_entries_is_disconnected(model: ModelLake) -> None:
    with unread(model) as connection:
        write(model, WAITING_BYTES_MAX + (16 << 20))
        deadline = time.monotonic() + ALL_S
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(1 << 20):
                assert time.monotonic() < deadline


def test_an_engine_with_many_connections_sends_entries(model: ModelLake) -> None:
    with contextlib.ExitStack() as descriptors:
        for _ in range(1024):
            descriptors.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        with unread(model) as connection:
            last = write(model, 1)
            received, deadline = b"", time.monotonic() + ALL_S
            while b"\n%d 0\n" % last not in received[-100:]:  # a heartbeat
                data = connection.recv(1 << 20)
                assert data
                received += data
                assert time.monotonic() < deadline


def test_an_engine_that_sends_numbers_only(model: ModelLake) -> None:
    """An earlier version does so. The reader gets the entries from the store."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "127.0.0.1:{}".format(*server.getsockname()[1:])
        Announcement.mine(model.writer.epoch, address, "token", None).write(model.lake)
        waiting = Wake(model.lake)
        waiting.start(0)
        model.tick({})

        def answer() -> None:
            connection, _ = server.accept()
            connection.recv(1 << 12)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n%d\n" % model.writer.newest.n)
            ended.wait(WORKS_S)
            connection.close()

        ended = threading.Event()
        thread = threading.Thread(target=answer)
        thread.start()
        deadline = time.monotonic() + ALL_S
        while not waiting.answering:
            waiting.wait()
            assert time.monotonic() < deadline
        assert model.lake.log.newest() == model.writer.newest
        waiting.close()
        ended.set()
        thread.join()
