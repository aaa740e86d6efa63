import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailgate.gateway.answers import polls
from tests.gateway.serving.model_lake import ModelLake
from tests.gateway.serving.polling import World


@pytest.fixture
def model(tmp_path: Path) -> Iterator[ModelLake]:
    model = ModelLake(tmp_path / "lake")
    yield model
    model.writer.close()


@pytest.fixture
def run() -> Callable[..., None]:
    """Returns a function that runs a coroutine function with a time limit."""

    def run(work: Callable[[], object], timeout: float = 60) -> None:
        async def limited() -> None:
            await asyncio.wait_for(work(), timeout)  # type: ignore[arg-type]

        asyncio.run(limited())

    return run


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path / "lake", monkeypatch)
    yield world
    world.close()


@pytest.fixture
def slow(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Returns a gateway that updates a poll however long it takes."""
    monkeypatch.setattr(polls, "REFRESH_S_MAX", 60.0)
    return world
