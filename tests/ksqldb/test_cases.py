"""Statements of ksqlDB over real topics: the records that they write, as cases.txt has them, in one running system."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from testing.engine_process import until
from tests.docs.system import System

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

FILE = Path(__file__).with_name("cases.txt")
WAIT_S = 60  # for the records of a topic
WINDOWED = re.compile(r"(.*)@(\d+)(?::(\d+))?")
REGISTERED = b"sr:"  # begins a key or value with a schema of the registry


@dataclass(frozen=True)
class Record:
    """A record of a topic. `timestamp`: None if it does not matter."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Case:
    """The statements of a case, the records that are written, and those that are expected.

    `schemas`: those that are registered before, each by subject, kind and text. `complete`: topics of tables of which all records are
    expected.
    """

    name: str
    schemas: tuple[tuple[str, str, str], ...]
    statements: tuple[str, ...]
    inputs: tuple[Record, ...]
    outputs: tuple[Record, ...]
    complete: frozenset[str]


def cases() -> list[Case]:
    parts = re.split(r"^== ", FILE.read_text(), flags=re.MULTILINE)[1:]
    return [case(number, *part.split("\n", 1)) for number, part in enumerate(parts)]


def case(number: int, name: str, body: str) -> Case:
    # derived items have topics in upper case
    lines = [re.sub("~(?=[A-Z])", f"C{number}_", line).replace("~", f"c{number}_") for line in body.splitlines() if line]
    records = {sign: tuple(record(line[2:]) for line in lines if line[0] == sign) for sign in "><="}
    schemas = tuple((subject, kind, text) for subject, kind, text in (line[2:].split(" ", 2) for line in lines if line[0] == "@"))
    statements = tuple(line for line in lines if line[0] not in (*records, "@"))
    return Case(name, schemas, statements, records[">"], records["<"] + records["="], frozenset(r.topic for r in records["="]))


def record(line: str) -> Record:
    topic, rest = line.split(" ", 1)
    key, value, *others = rest.split(" | ")
    headers = [header.split("=") for header in (others[1].split(",") if others[1:] else ())]
    return Record(topic, content(key), content(value), int(others[0]) if others else None, tuple((n, v.encode()) for n, v in headers))


def content(text: str) -> bytes | None:
    """Returns a key or a value. The bounds of a window follow the key, of a session its end first."""
    if (match := WINDOWED.fullmatch(text)) is not None:
        bounds = [int(bound) for bound in reversed(match.groups()[1:]) if bound is not None]
        return (content(match[1]) or b"") + b"".join(bound.to_bytes(8, "big") for bound in bounds)
    if text == "null":
        return None
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode().replace(b"\\t", b"\t")


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with System(tmp_path_factory.mktemp("cases")) as system:
        yield system


def encoded(registry: SchemaRegistryClient, subject: str, content: bytes | None) -> bytes | None:
    """Returns a key or value as it is written. What follows `sr:` has the newest schema of the subject: JSON, and of PROTOBUF the bytes."""
    if content is None or not content.startswith(REGISTERED):
        return content
    version, data = registry.get_latest_version(subject), content.removeprefix(REGISTERED)
    if version.schema.schema_type == "PROTOBUF":
        data = bytes.fromhex(data.decode())
    elif version.schema.schema_type == "AVRO":
        schema, avro = fastavro.parse_schema(json.loads(version.schema.schema_str)), io.BytesIO()
        fastavro.schemaless_writer(avro, schema, next(fastavro.json_reader(io.StringIO(data.decode()), schema)))
        data = avro.getvalue()
    return b"\0" + version.schema_id.to_bytes(4, "big") + data


def execute(system: System, case: Case) -> None:
    """Registers the schemas of a case, executes its statements and writes its records."""
    producer = Producer({"bootstrap.servers": system.kafka, "linger.ms": 0, "log_level": 2})
    with SchemaRegistryClient({"url": system.registry}) as registry, psycopg.connect(system.dsn, autocommit=True) as connection:
        for subject, kind, text in case.schemas:
            registry.register_schema(subject, Schema(text, kind))
        for statement in ("SET tailgate.dialect = 'ksqldb'", "SET 'auto.offset.reset' = 'earliest'", *case.statements):
            connection.execute(statement.encode())
        for input in case.inputs:
            key, value = (encoded(registry, f"{input.topic}-{part}", getattr(input, part)) for part in ("key", "value"))
            producer.produce(input.topic, value, key, timestamp=input.timestamp or 1, headers=list(input.headers))
            producer.flush()  # topics are read in the order of their records


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_case(system: System, case: Case) -> None:
    execute(system, case)
    for topic in sorted({output.topic for output in case.outputs}):
        is_table = topic not in case.complete and re.search(rf"TABLE {topic} ", " ".join(case.statements), re.IGNORECASE) is not None
        expected = folded([output for output in case.outputs if output.topic == topic], is_table=is_table)
        last: list[Rows] = []

        def is_written(topic: str = topic, is_table: bool = is_table, expected: Rows = expected, last: list[Rows] = last) -> bool:
            last[:] = [folded(written(system, topic), is_table=is_table)]
            return same(last[0], expected)

        try:
            until(is_written, WAIT_S)
        except AssertionError:
            raise AssertionError(f"{topic} has {last}, not {expected}") from None


Rows = dict[bytes | None, list[tuple[Any, int | None]]]


def folded(records: list[Record], *, is_table: bool) -> Rows:
    """Returns values and timestamps by key: all, or of a table the last one of each key unless it is a tombstone."""
    rows: Rows = defaultdict(list)
    for record in records:
        rows[record.key].append((parsed(record.value), record.timestamp))
    return {key: of_key[-1:] for key, of_key in rows.items() if of_key[-1][0] is not None} if is_table else dict(rows)


def parsed(value: bytes | None) -> Any:
    """Returns the value of JSON, whose numbers are texts, or the bytes of another format."""
    try:
        return value if value is None else json.loads(value, parse_float=str, parse_int=str)
    except ValueError:
        return value


def same(rows: Rows, expected: Rows) -> bool:
    """Returns whether rows have the expected values, and timestamps where they matter."""
    if rows.keys() != expected.keys() or any(len(rows[key]) != len(expected[key]) for key in expected):
        return False
    pairs = [pair for key in expected for pair in zip(rows[key], expected[key], strict=True)]
    return all(value == of_value and of_time in (None, time) for (value, time), (of_value, of_time) in pairs)


def written(system: System, topic: str) -> list[Record]:
    """Returns the committed records of a topic."""
    options = {"group.id": "cases", "isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": system.kafka, **options})
    try:
        remaining = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in remaining])
        records: list[Record] = []
        while remaining:
            message = consumer.poll(10)
            assert message is not None
            if message.error() is not None:
                remaining.discard(message.partition())
            else:
                records.append(Record(topic, message.key(), message.value(), message.timestamp()[1]))
        return records
    finally:
        consumer.close()
