"""Streams and tables of the tests in this folder continue after the engine was killed."""

from __future__ import annotations

import pytest

from tests.engine.runtime.ksqldb_world import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_after_a_kill(world: World) -> None:
    """The tests of other files run first, in the order of the files."""
    world.engine.kill()
    world.start_again()
