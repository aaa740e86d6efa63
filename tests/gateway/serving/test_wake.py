"""Tests how serving notices new entries: by the engine's stream or, without an engine, by polling."""

import threading
import time

import pytest

from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import EntryStream
from tailgate.lake import wake
from tailgate.lake.host import disk
from tailgate.lake.wake import Wake
from tests.gateway.serving.model_lake import ModelLake, serving

WORKS_S = 5.0
ONE_POLL_S = 60.0  # so long that only the stream can be fast enough


def engine_of(model: ModelLake, token: str = "") -> Control:
    """Returns a control interface that announces the entries of the model, at the lake's address."""
    control = Control(Answers(lambda *_: {}, EntryStream(model.lake.log).serve, dict, lambda *_: {}))
    control.start()
    model.writer.announce(address=control.address, token=token or control.token)
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
