"""Attacks on a gateway: small ones always, whole ones in the long tests; `tools/attack.py` prints what the whole ones cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.serving import results
from lake.errors import OutOfMemory
from tests.gateway.attacks import ATTACKS, Figures, Target, attacked, running

GROWN_MB_MAX = {"half-open connections": 200, "a reader that stops": 4096}  # above what the gateway began with
GROWN_MB = 150
POLL_MAX_S = 20.0  # of a busy machine; what a quiet one takes stands in docs/security.md


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running(tmp_path_factory.mktemp("attacked")) as target:
        yield target


@pytest.mark.parametrize("name", ATTACKS)
def test_a_small_attack(name: str, target: Target) -> None:
    _stood(name, attacked(name, target, ATTACKS[name][1]))


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_a_whole_attack(name: str, tmp_path: Path) -> None:
    with running(tmp_path) as target:
        _stood(name, attacked(name, target, ATTACKS[name][2]))


def _stood(name: str, figures: Figures) -> None:
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
