import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gateway.serving.model_lake import ModelLake


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
