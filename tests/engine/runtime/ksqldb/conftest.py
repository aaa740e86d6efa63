"""An engine with the address of a Kafka, which starts once for all tests of this folder, and is killed once (test_when_killed)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailgate.embedded.kafka import Kafka
from tests.engine.runtime.ksqldb_world import World


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("ksqldb"), kafka)
    yield world
    world.engine.stop()
