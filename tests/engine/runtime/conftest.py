"""A separate Kafka for tests whose topics have the names of the shop."""

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
