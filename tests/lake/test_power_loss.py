"""Power is lost at any file operation: the lake recovers from every state of the disk."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tailgate.lake.host import processes
from tests.lake.disk import Disk, PowerLoss
from tests.lake.life import STEPS, Life, short_history

CASES = int(os.environ.get("TAILGATE_POWER_LOSSES", "6"))  # in the short form
CASES_LONG = 400
IMAGES = 3  # per case: one loses everything that may be lost, the others a random part


def lose_power(seed: int, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    """Runs random steps until the power fails at some operation, then continues on each image."""
    chance = random.Random(seed)
    short_history(patch, chance.choice([0, 0, 5, 3_600_000]))
    folder = tmp_path / str(seed)
    folder.mkdir()
    disk = Disk(folder / "lake", folder / "shadow")
    with disk.recording():
        life = Life(folder / "lake", seed)
        for _ in range(chance.randrange(40)):
            life.step(chance.choice(STEPS))
        disk.fail_at(chance.randrange(60), chance.random() < 0.5, PowerLoss)
        try:
            while True:
                life.step(chance.choice(STEPS))
        except PowerLoss:
            life.writer._lock.release()  # the end of the process releases it
    images = [disk.image(folder / f"image-{n}", random.Random(seed + n) if n else None, chance.random()) for n in range(IMAGES)]
    state = (list(life.history.entries), dict(life.inbox_entries), life.consumed, dict(life.keyed), list(life.unknown), life.acknowledged)
    for n, image in enumerate(images):
        patch.setattr(processes, "boot", lambda n=n: f"boot {n}")
        life.history.entries, life.inbox_entries = list(state[0]), dict(state[1])
        life.consumed, life.keyed, life.unknown, life.acknowledged = state[2], dict(state[3]), list(state[4]), state[5]
        life.chance = random.Random(seed)
        life.resume(image)
        life.writer.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("number", range(CASES))
def test_power_loss(seed: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_power(seed * 1000 + number, tmp_path, monkeypatch)


@pytest.mark.long
def test_power_loss_at_length(tmp_path: Path) -> None:
    for seed in range(1000, 1000 + CASES_LONG):
        with pytest.MonkeyPatch.context() as patch:
            lose_power(seed, tmp_path, patch)
