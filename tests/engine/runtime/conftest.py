"""A separate Kafka for a test whose topics have the names of the shop, or for a module whose tests stop it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.embedded.kafka import Kafka


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path / "kafka")
    kafka.start()
    yield kafka
    kafka.stop()


@pytest.fixture(scope="module")
def module_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    kafka.start()
    yield kafka
    kafka.stop()
