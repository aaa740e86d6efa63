"""PRINT: records of a topic as lines of text, those that it has or those that arrive."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.lake.errors import ConnectionFailure
from tailgate.lake.writer.inbox import Record
from tailgate.sql.statements import Print

LINES_MAX = 10_000  # limit of a PRINT that ends
LINES = 100  # its default limit
WAIT_S = 0.25  # for the next records, until the client is looked at
BATCH_MAX = 500  # records that are sent together


def present(brokers: str, settings: Mapping[str, str], statement: Print) -> list[str]:
    """Returns the first or the last records of a topic."""
    limit = LINES if statement.limit is None else min(statement.limit, LINES_MAX)
    bounds, reach = kafka.topic(brokers, statement.topic, settings).bounds, limit * statement.interval
    begin = {p: low if statement.beginning else max(low, high - reach) for p, (low, high) in bounds.items()}
    records = []
    for record in kafka.history(brokers, statement.topic, begin, {p: high for p, (_, high) in bounds.items()}, settings):
        records.append(record)
        if statement.beginning and len(records) >= reach:
            break
    records.sort(key=lambda r: (r.timestamp, r.partition, r.offset))
    records = records[:: statement.interval] if statement.beginning else records[:: -statement.interval][::-1]
    return [_line(r) for r in (records[:limit] if statement.beginning else records[-limit:] if limit else [])]


def arriving(brokers: str, settings: Mapping[str, str], statement: Print) -> Generator[list[str]]:
    """Yields the records of a topic as they arrive, from the first or the next one on, up to the limit of the statement.

    Yields an empty list if none arrives within WAIT_S. Raises 42704 at the call if the topic does not exist.
    """
    bounds = kafka.topic(brokers, statement.topic, settings).bounds
    return _arriving(brokers, settings, statement, {int(p): low if statement.beginning else high for p, (low, high) in bounds.items()})


def _arriving(brokers: str, settings: Mapping[str, str], statement: Print, begin: Mapping[int, int]) -> Generator[list[str]]:
    count, limit = 0, statement.limit
    client = kafka.consumer(brokers, settings)
    try:
        client.assign([TopicPartition(statement.topic, p, at) for p, at in begin.items()])
        while limit is None or limit > 0:
            records = []
            for message in client.consume(BATCH_MAX, timeout=WAIT_S):
                if (error := message.error()) is None:
                    records.append(kafka.record(statement.topic, message))
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise ConnectionFailure(f"Kafka at {brokers}, topic {statement.topic}: {error.str()}")
            lines = [_line(record) for n, record in enumerate(records, count) if n % statement.interval == 0][:limit]
            count += len(records)
            limit = None if limit is None else limit - len(lines)
            yield lines
    except KafkaException as error:
        raise ConnectionFailure(f"Kafka at {brokers}, topic {statement.topic}: {error.args[0].str()}") from error
    finally:
        client.close()


def _line(record: Record) -> str:
    """Returns a record as a line of PRINT."""
    place = f"partition: {record.partition}, offset: {record.offset}"
    return f"timestamp: {record.timestamp}, key: {_text(record.key)}, value: {_text(record.value)}, {place}"


def _text(value: bytes | None) -> str:
    """Returns printable text as it is and other bytes as bytea prints them."""
    if value is None:
        return "NULL"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "\\x" + value.hex()
    return text if text.isprintable() else "\\x" + value.hex()
