"""Conversion of Kafka's errors: a fenced producer, or a connection failure that may pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from tailgate.lake.errors import ConnectionFailure, TailgateError

FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class Fenced(Exception):
    """A newer producer has our transactional id, or the broker aborted our transaction after its timeout."""


class Replaced(TailgateError):
    """Another process runs this sink now. SQLSTATE 55000: the object is not in the required state."""

    sqlstate = "55000"


@contextmanager
def kafka(doing: str) -> Iterator[None]:
    """Converts Kafka's errors to Fenced or 08006. Refused logins and missing rights are retriable too: an operator can fix them."""
    try:
        yield
    except KafkaException as failure:
        error = failure.args[0]
        if isinstance(error, KafkaError) and error.code() in FENCED:
            raise Fenced(doing) from failure
        text = error.str() if isinstance(error, KafkaError) else str(error)
        raise ConnectionFailure(f"Kafka: {doing}: {text}") from failure
