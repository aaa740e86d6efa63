"""A broker that is killed and loses the last records of its transaction coordinator, as Kafka 4.3 once did."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tailgate.embedded.kafka import Kafka


@contextmanager
def forgetting(kafka: Kafka) -> Iterator[None]:
    """Kills a broker at the end of the block, and starts it again without what its coordinator wrote in the block.

    The block leaves a transaction open. Its records in the topics remain.
    """
    (transactions,) = kafka.data.glob("log/__transaction_state-*/*.log")
    size = transactions.stat().st_size
    yield
    assert transactions.stat().st_size > size
    os.kill(kafka.pid, signal.SIGKILL)
    kafka.stop()
    os.truncate(transactions, size)
    kafka.start()
