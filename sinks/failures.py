"""Kafka's errors in our words: replaced, or the broker's state of affairs, which may pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from lake.errors import ConnectionFailure, TailgateError

FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class Fenced(Exception):
    """A newer producer has our transactional id; or the broker ended our transaction because it took too long."""


class Replaced(TailgateError):
    """Another process runs this sink now. 55000, as for any object that is not in the state asked for."""

    sqlstate = "55000"


@contextmanager
def kafka(doing: str) -> Iterator[None]:
    """Kafka's errors inside become Fenced or 08006 (retriable): also refused logins and missing rights, which an operator can mend."""
    try:
        yield
    except KafkaException as failure:
        error = failure.args[0]
        if isinstance(error, KafkaError) and error.code() in FENCED:
            raise Fenced(doing) from failure
        text = error.str() if isinstance(error, KafkaError) else str(error)
        raise ConnectionFailure(f"Kafka: {doing}: {text}") from failure
