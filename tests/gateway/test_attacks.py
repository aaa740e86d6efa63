"""Attacks on a gateway: small ones always, full ones in the long tests; `attack_table` prints their figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.gateway.mirrors.snapshots import OPEN_EACH
from tailgate.gateway.resources.memory import parsed
from tests.gateway.attacks import ATTACKS, run_attack
from tests.gateway.target import MEMORY, Figures, Target, running

POLL_MAX_MS = 500  # of the slowest answer to a client that polls meanwhile, without the time for which the machine is busy
SWITCHES = 4  # between threads, for one poll: client, gateway's event loop, its thread for queries, event loop, client
TRIES = 2  # a delay between two pauses of the poller is not measured; what holds the gateway up does so every time


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running(tmp_path_factory.mktemp("run_attack")) as target:
        yield target


@pytest.mark.parametrize("name", ATTACKS)
def test_a_small_attack(name: str, target: Target) -> None:
    _stands(name, target, ATTACKS[name][1])


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_a_whole_attack(name: str, tmp_path: Path) -> None:
    with running(tmp_path) as target:
        _stands(name, target, ATTACKS[name][2])


def _stands(name: str, target: Target, size: int) -> None:
    slowest = []
    for _ in range(TRIES):
        figures = run_attack(name, target, size)
        _stood(name, figures)
        slowest.append((round(figures["poll_max_ms"]), round(figures["late_max_ms"])))
        if figures["poll_max_ms"] < POLL_MAX_MS + SWITCHES * figures["late_max_ms"]:
            return
    raise AssertionError(f"the slowest answers took, and the machine delayed a process by: {slowest} ms")


def _stood(name: str, figures: Figures) -> None:
    assert figures["most_mb"] < parsed(MEMORY).total / 2**20
    assert figures["polls"] > 1
    if name == "wrong passwords":
        assert figures["least_ms"] >= 200
        assert figures["present_median_ms"] < 4 * figures["absent_median_ms"] < 16 * figures["present_median_ms"]
    if name == "cancel storm":
        assert figures["cancelled"] == 0  # a cancel request of an idle session hits nothing later
    if name == "open blocks":
        assert figures["refused"] == max(figures["transactions"] - OPEN_EACH, 0)
