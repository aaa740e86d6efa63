"""A source that reads a sink's topic has the view's rows.

This holds for every format, envelope and type.
"""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailgate.formats.events import avro as schema
from tailgate.lake import types
from tailgate.lake.types import Field, Type, arrow_schema
from tailgate.sinks.envelope import Encoder, Envelope
from tailgate.sinks.formats.row_formats import Avro, Json
from testing.change_data import Source

pytestmark = pytest.mark.spark

COLUMNS = (
    Field("id", types.INT4, False),
    Field("name", types.TEXT),
    Field("small", types.INT8),
    Field("price", Type("numeric", (9, 2))),
    Field("ratio", types.FLOAT8),
    Field("flag", types.BOOL),
    Field("day", types.DATE),
    Field("at", types.TIMESTAMP),
    Field("moment", types.TIMESTAMPTZ),
    Field("clock", types.TIME),
    Field("raw", types.BYTEA),
    Field("tags", types.JSONB),
    Field("code", types.UUID),
    Field("words", types.TEXT.array()),
)
DECLARED = (
    "id int NOT NULL, name text, small bigint, price numeric(9,2), ratio float8, flag bool, day date, at timestamp, moment timestamptz, "
    "clock time, raw bytea, tags jsonb, code uuid, words text[]"
)


def row(id: int, r: random.Random) -> tuple[Any, ...]:
    moment = datetime(2026, 1, 1 + r.randrange(20), 3, 4, 5, r.randrange(1_000_000))
    full = (
        r.choice(("Zoë 🚀", 'a"b\\', "")), -r.randrange(2**40), Decimal(r.randrange(10**6)).scaleb(-2), r.random(), True,
        date(1969, 12, 31), moment, moment.replace(tzinfo=timezone.utc), r.randrange(86_400_000_000), bytes((0, 255, r.randrange(256))),
        '{"a": [1, null]}', "00000000-0000-4000-8000-00000000000a", ["x", None],
    )  # fmt: skip
    return (id, *(None if r.random() < 0.2 else v for v in full))


def messages(encoder: Encoder, ticks: list[list[tuple[tuple[Any, ...], int]]]) -> list[list[dict[str, Any]]]:
    out, offset = [], 0
    names = [c.name for c in COLUMNS]
    for tick in ticks:
        lines = [{**dict(zip(names, r, strict=True)), "__weight": w} for r, w in tick]
        batch = []
        for key, value, *_ in encoder.events(pa.Table.from_pylist(lines, arrow_schema(COLUMNS, weight=True))):
            k, v = (None if b is None else base64.b64encode(b).decode() for b in (key, value))
            batch.append({"partition": 0, "offset": offset, "timestamp": 0, "key_b64": k, "value_b64": v})
            offset += 1
        out.append(batch)
    return out


@pytest.mark.parametrize(
    ("form", "envelope", "keyed"),
    [
        ("avro", "debezium", True),
        ("avro", "upsert", True),
        ("avro", "debezium", False),
        ("json", "debezium", True),
        ("json", "debezium", False),
    ],
)
def test_rows_that_are_read_back_equal_the_view(
    session: Any, tmp_path: Path, seed: int, form: str, envelope: Envelope, keyed: bool
) -> None:
    r = random.Random(seed)
    held: dict[int, tuple[Any, ...]] = {}
    ticks = []
    for _ in range(5):
        changes = []
        for id in r.sample(range(6), 3):
            if id in held:
                changes.append((held.pop(id), -1))
            if r.random() < 0.8:
                held[id] = row(id, r)
                changes.append((held[id], 1))
        ticks.append(changes)
    key = (0,) if keyed else None
    encoder = Encoder(COLUMNS, envelope, Avro(1, 2) if form == "avro" else Json(), key=key)
    if form == "avro":
        make = schema.upsert if envelope == "upsert" else schema.debezium
        value = f"FORMAT AVRO USING SCHEMA '{json.dumps(make(COLUMNS))}'"
        formats = f"KEY FORMAT AVRO USING SCHEMA '{json.dumps(schema.key(COLUMNS[:1]))}' VALUE {value}" if keyed else value
        columns = ""
    else:
        formats = "FORMAT JSON"
        columns = f"({DECLARED}{', PRIMARY KEY (id) NOT ENFORCED' if keyed else ''})"
    statement = f"""CREATE SOURCE s {columns} FROM KAFKA BROKER 'kafka' TOPIC 't' WITH (decimal_handling_mode = 'string')
        {formats} ENVELOPE {envelope.upper()}"""
    source = Source(session, tmp_path, statement if form == "json" else statement.replace("WITH (decimal_handling_mode = 'string')", ""))
    for batch in messages(encoder, ticks):
        source.send(batch)
    assert source.reasons() == []
    expected = Counter(tuple(tuple(v) if isinstance(v, list) else v for v in r) for r in held.values())
    # both timestamp types are timestamp-micros in Avro, as in Materialize, and are read as
    # timestamptz
    if form == "avro":
        expected = Counter(tuple(in_utc(v) for v in r) for r in expected)
    assert source.counted(*(c.name for c in COLUMNS)) == expected


def in_utc(value: Any) -> Any:
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value
