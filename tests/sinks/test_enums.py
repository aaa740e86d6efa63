"""A sink writes labels of enum types as strings, and follows changes of the type."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa

from tailgate.embedded.kafka import Kafka
from tailgate.lake.catalog import Change, Enum, MaterializedView, Sink
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.types import INT4, Field, arrow_schema
from tests.sinks.feed import ERRORS, FIRST_SINK, VIEW, Feed, records, until
from tests.sinks.running import Running, reached

MOOD = VIEW + 100
SPACING = 1 << 32


def test_labels(feed: Feed, kafka: Kafka, topic: str, running: Running) -> None:
    mood = Enum(MOOD, "mood", labels=((SPACING, "sad"), (2 * SPACING, "ok")))
    type = mood.type("public")
    columns = (Field("k", INT4, False), Field("m", type), Field("ms", type.array()))
    schema = arrow_schema(columns, weight=True)

    def tick(k: int, number: int | None) -> None:
        row = dict(zip(schema.names, (k, number, [number, SPACING], 1), strict=True))
        feed.writer.append([(VIEW, pa.Table.from_pylist([row], schema))])

    view = MaterializedView(VIEW, "view", columns, key=(0,), stored=True, errors=ERRORS)
    feed.writer.append(kind="catalog", catalog=Change(put=(mood, view)))
    sink = Sink(FIRST_SINK, "s", depends=(VIEW,), brokers=kafka.address, topic=topic, value_format=SinkFormat(type="json"), envelope="none")
    feed.writer.append(kind="catalog", catalog=Change(put=(sink,)))
    tick(1, 2 * SPACING)
    tick(2, None)
    until(lambda: reached(feed))
    feed.writer.append(kind="catalog", catalog=Change(put=(replace(mood, labels=(*mood.labels, (3 * SPACING, "happy"))),)))
    tick(3, 3 * SPACING)
    until(lambda: reached(feed))
    values = [json.loads(value or b"") for _, value in records(kafka.address, topic)]
    assert values == [
        {"k": 1, "m": "ok", "ms": ["ok", "sad"]},
        {"k": 2, "m": None, "ms": [None, "sad"]},
        {"k": 3, "m": "happy", "ms": ["happy", "sad"]},
    ]
