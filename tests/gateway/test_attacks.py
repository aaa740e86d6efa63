"""Attacks on a gateway: small ones always, whole ones in the long tests; `tools/attack.py` prints what the whole ones cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.serving import results
from lake.errors import OutOfMemory
from tests.gateway.attacks import ATTACKS, attacked, running

GROWN_MB_MAX = {"half-open connections": 200, "a reader that stops": 4096}  # above what the gateway began with
GROWN_MB = 150
POLL_MAX_S = 20.0  # of a busy machine; what a quiet one takes stands in docs/security.md


@pytest.mark.parametrize("name", ATTACKS)
def test_a_small_attack(name: str, tmp_path: Path) -> None:
    _stands(name, ATTACKS[name][1], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_a_whole_attack(name: str, tmp_path: Path) -> None:
    _stands(name, ATTACKS[name][2], tmp_path)


def _stands(name: str, size: int, folder: Path) -> None:
    with running(folder, roles=name == "wrong passwords") as target:
        figures = attacked(name, target, size)
    assert figures["grown_mb"] < GROWN_MB_MAX.get(name, GROWN_MB)
    assert figures["poll_max_ms"] < POLL_MAX_S * 1000
    assert figures["polls"] > 1
    if name == "wrong passwords":
        assert figures["least_ms"] >= 200
        assert figures["there_median_ms"] < 4 * figures["absent_median_ms"] < 16 * figures["there_median_ms"]
    if name == "cancel storm":
        assert figures["cancelled"] == 0  # a cancel request of an idle session hits nothing later


def test_results_are_counted_until_they_are_gone() -> None:
    held = results.Held(100)
    held.add(60)
    with pytest.raises(OutOfMemory, match="out of memory"):
        held.add(41)
    held.remove(60)
    held.add(100)
