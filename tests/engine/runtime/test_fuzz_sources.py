"""Damaged messages of every format through a real engine: each becomes a row or a dead letter.

No message is lost, the engine continues, its memory stays flat, and other sources continue.
FuzzTest in tailgate/engine/java sends more messages to the decoders alone. TAILGATE_FUZZ is the total number
of messages; the fast suite sends some thousands.
"""

from __future__ import annotations

import base64
import json
import os
import random
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.types import WEIGHT
from testing.change_data import messages, schemas
from testing.engine_process import EngineProcess, rows, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

MESSAGES = int(os.environ.get("TAILGATE_FUZZ", "0"))
FEW, MANY = 1_600, 1_000_000
# sources of the fast suite, because creating one takes time
SHORT = ("avro_items", "schema_items", "columns", "everything")
ROUNDS = 4  # the first one loads everything once; later memory is compared with it
GROWTH_MB = 400  # permitted growth of the JVM, whose heap shrinks late
PROTOBUF = Path(__file__).parents[2] / "fixtures" / "protobuf"

STRANGE = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0", *(bytes([c]) for c in b'"{[]},\n'), b"null", b"e999999999", b"\\ud800"]
STRANGE += [
    b"\xff" * 9 + b"\x7f",
    b"\xfe" * 4 + b"\x0f",
    b'{"scale":-2147483648,"value":"AQ=="}',
    b'{"a":' * 3000,
    b"[" * 30_000,
    b"9" * 5000,
]


def damaged(message: bytes, chance: random.Random) -> bytes:
    out = message
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(8):
            case 0:
                out = out[:at]
            case 1:
                out = out[:at] + bytes([out[at] ^ 1 << chance.randrange(8)]) + out[at + 1 :] if at < len(out) else out
            case 2:
                out = out[:at] + chance.randbytes(chance.randrange(1, 9)) + out[at:]
            case 3 | 4:
                out = out[:at] + chance.choice(STRANGE) + out[at:]
            case 5:
                out = out[:at] + out[at : at + chance.randrange(1, 60)] + out[at:]
            case 6:
                out = out[:1] + chance.randrange(2 ** chance.choice([3, 32])).to_bytes(4, "big") + out[5:]
            case 7:
                out = out[:at] + out[at + chance.randrange(1, 20) :]
    return out


def values(folder: str, table: str) -> list[bytes]:
    return [base64.b64decode(m["value_b64"]) for m in messages(folder, table) if m["value_b64"] is not None]


ITEMS = (
    "(id int, name text, category text, price numeric(7,2), amount numeric, weight float8, tags jsonb, words text[], picture bytea, "
    "code uuid, updated_at timestamp(3), PRIMARY KEY (id) NOT ENFORCED)"
)
JSON = "(i int, l bigint, t text, d float8, n numeric(6,2), b boolean, at timestamptz, raw bytea)"
ONE = {"i": 1, "l": 9007199254740993, "t": "é", "d": 0.5, "n": 1.23, "b": True, "at": "2020-01-02T03:04:05Z", "raw": "AQID"}


def formats(registry: str) -> dict[str, tuple[str, str, list[bytes]]]:
    """Returns for each source: its columns, its format, and messages that it accepts."""
    avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry}'"
    descriptor = (PROTOBUF / "three.desc").read_bytes().hex()
    recorded = map(json.loads, (PROTOBUF / "messages.jsonl").read_text().splitlines())
    three = [base64.b64decode(m["bytes"]) for m in recorded if m["message"] == "shop.v1.Everything"]
    return {
        "avro_items": ("", f"{avro} INCLUDE OFFSET", values("postgres-avro", "public.items")),
        "avro_users": ("", f"{avro} INCLUDE OFFSET", values("postgres-avro", "public.users")),
        "json_items": (ITEMS, "FORMAT JSON INCLUDE OFFSET ENVELOPE DEBEZIUM", values("postgres-json", "public.items")),
        "schema_items": (ITEMS, "FORMAT JSON INCLUDE OFFSET ENVELOPE DEBEZIUM", values("postgres-jsonschema", "public.items")),
        "columns": (JSON, "FORMAT JSON INCLUDE OFFSET", [json.dumps(ONE).encode(), b'{"i": 7, "more": {"a": [1]}}']),
        "documents": ("", "FORMAT JSON INCLUDE OFFSET", [json.dumps(ONE).encode()]),
        "lines": ("(n int, t text, d date)", "FORMAT CSV WITH 3 COLUMNS INCLUDE OFFSET", [b'1,"a ""b""",2020-01-02', b"7,,"]),
        "access": ("", r"FORMAT REGEX '^((?:[0-9]|\.)+) ((?:a+)+)$' INCLUDE OFFSET", [b"10.0.0.1 aaaa"]),
        "words": ("", "FORMAT TEXT INCLUDE OFFSET", ["héllo 😀".encode()]),
        "everything": ("", f"FORMAT PROTOBUF MESSAGE 'shop.v1.Everything' USING SCHEMA '\\x{descriptor}' INCLUDE OFFSET", three),
    }


def offsets(lake: Lake, name: str) -> list[int]:
    table = reading.snapshot(lake, lake.catalog().relation(name).id)
    assert set(table.column(WEIGHT).to_pylist()) <= {1}, name
    return list(table.column("offset").to_pylist())


class World:
    """An engine over a shared Kafka and registry."""

    def __init__(self, folder: Path, kafka: Kafka, registry: Registry) -> None:
        self.kafka, self.registry = kafka, registry
        self.engine = EngineProcess(folder / "lake")
        self.engine.start()
        self.lake = Lake(folder / "lake")

    def register(self, subject: str, schema: str) -> int:
        url = f"{self.registry.url}/subjects/{subject}/versions"
        request = urllib.request.Request(url, json.dumps({"schema": schema}).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(json.load(answer)["id"])

    def megabytes(self) -> int:
        status = Path(f"/proc/{self.engine.jvm}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka, registry: Registry) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("fuzz"), kafka, registry)
    yield world
    world.engine.stop()


@pytest.mark.parametrize("count", [FEW, pytest.param(MESSAGES or MANY, marks=pytest.mark.long)])
def test_broken_messages(world: World, seed: int, count: int) -> None:
    chance = random.Random(seed)
    prefix = f"f{count}_"
    registered = {}
    for table in ("items", "users"):
        newest = [s for s in schemas("postgres-avro") if s["subject"] == f"postgres-avro.public.{table}-value"]
        for s in newest:
            registered[s["id"]] = world.register(f"{prefix}avro_{table}-value", s["schema"])
    sources = {name: of for name, of in formats(world.registry.url).items() if count > FEW or name in SHORT}
    for name, (columns, format, seeds) in sources.items():
        world.kafka.create_topic(prefix + name)
        world.engine.execute(
            f"CREATE MATERIALIZED SOURCE {prefix}{name} {columns} FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{prefix}{name}' {format}"
        )
        if name.startswith("avro"):
            seeds[:] = [m[:1] + registered[int.from_bytes(m[1:5], "big")].to_bytes(4, "big") + m[5:] for m in seeds]
    steady = f"{prefix}steady"
    world.kafka.create_topic(steady)
    world.engine.execute(f"CREATE SOURCE {steady} (n bigint) FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{steady}' FORMAT JSON")
    world.engine.execute(f"CREATE MATERIALIZED VIEW {steady}_sum AS SELECT count(*) AS n, sum(n) AS s FROM {steady}")
    producer = Producer({"bootstrap.servers": world.kafka.address, "queue.buffering.max.messages": 1_000_000, "log_level": 2})
    sent, memory = 0, []
    each = count // len(sources) // ROUNDS
    for _ in range(ROUNDS):
        for i in range(each):
            for name, (_, _, seeds) in sources.items():
                producer.produce(prefix + name, damaged(chance.choice(seeds), chance), partition=0)
            producer.produce(steady, json.dumps({"n": i}), partition=0)
            producer.poll(0)
        producer.flush()
        sent += each
        names = [prefix + name for name in sources]
        until(lambda: all(world.engine.get("/status")["sources"][n]["records"] == sent for n in names), 60 + count / 500)  # noqa: B023
        memory.append(world.megabytes())
    total = (ROUNDS * each, ROUNDS * sum(range(each)))
    until(lambda: [tuple(map(int, row)) for row in rows(world.lake, f"{steady}_sum")] == [total])
    status = world.engine.get("/status")["sources"]
    for name, (_, format, _) in sources.items():
        letters = set(offsets(world.lake, f"{prefix}{name}_dead_letters"))
        row_offsets = offsets(world.lake, prefix + name)
        print(f"{name}: {len(row_offsets)} rows, {len(letters)} dead letters")
        assert status[prefix + name]["dead_letters"] == len(letters) > 0, name
        assert status[prefix + name]["status"] == "running", name
        if "ENVELOPE" in format:  # one row per key
            assert not letters & set(row_offsets), name
        else:
            assert (
                len(row_offsets) == len(set(row_offsets))
                and set(row_offsets) | letters == set(range(sent))
                and not letters & set(row_offsets)
            ), name
    print(f"memory of the JVM in MB: {memory}")
    assert memory[-1] < memory[0] + GROWTH_MB, memory
