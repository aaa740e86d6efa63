"""Sinks in Protobuf: the bytes match the schema, and a source that reads them has the same rows."""

from __future__ import annotations

import base64
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailgate.formats.events import protobuf as schemas
from tailgate.formats.protobuf.linking import linked
from tailgate.formats.protobuf.text import parsed
from tailgate.lake import types
from tailgate.lake.errors import NullValueNotAllowed
from tailgate.lake.types import Field, Type
from tailgate.sinks.formats import protobuf
from tailgate.sinks.formats.avro import stored
from testing.change_data import Message, Source

COLUMNS = (
    Field("id", types.INT8, False),
    Field("small", types.INT2),
    Field("yes", types.BOOL),
    Field("share", types.FLOAT8),
    Field("part", types.FLOAT4),
    Field("price", Type("numeric", (9, 2))),
    Field("a name", types.TEXT),
    Field("raw", types.BYTEA),
    Field("day", types.DATE),
    Field("at", types.TIMESTAMP),
    Field("when", types.TIMESTAMPTZ),
    Field("doc", types.JSONB),
    Field("wait", types.INTERVAL),
    Field("list", types.INT4.array()),
    Field("pair", Type("record", fields=(Field("x", types.INT4), Field("ys", types.TEXT.array())))),
    Field("times", types.TIMESTAMPTZ.array()),
)
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678_000, timezone.utc)
FULL: tuple[Any, ...] = (
    *(-5, 7, True, 0.5, 1.5, Decimal("-12.50"), "héllo", b"\0\xff", date(2026, 1, 2), MOMENT.replace(tzinfo=None), MOMENT),
    *('{"a": 1}', {"months": 14, "days": 3, "micros": 1_500_000}, [1, -1], {"f1": 1, "f2": ["a"]}, [MOMENT]),
)
EMPTY = (0, *[None] * (len(COLUMNS) - 1))
SHOWN: tuple[Any, ...] = (
    *(-5, 7, True, 0.5, 1.5, "-12.50", "héllo", b"\0\xff", "2026-01-02", MOMENT, MOMENT),
    *('{"a": 1}', "P1Y2M3DT1.5S", (1, -1), '{"x": 1, "ys": ["a"]}', (MOMENT,)),
)
NOTHING = (0, *[None] * 12, (), None, ())


def encoded(rows: list[tuple[Any, ...]]) -> list[bytes]:
    arrays = [pa.array([row[i] for row in rows], c.type.arrow) for i, c in enumerate(COLUMNS)]
    return protobuf.rows(COLUMNS, stored(pa.table(arrays, [c.name for c in COLUMNS]), COLUMNS), len(rows))


def sent(offset: int, value: bytes) -> Message:
    return {"partition": 0, "offset": offset, "timestamp": 0, "key_b64": None, "value_b64": base64.b64encode(value).decode()}


@pytest.mark.spark
def test_a_source_reads_what_a_sink_writes(session: Any, tmp_path: Path) -> None:
    schema = schemas.upsert(COLUMNS, "shop.total")
    text = schema.replace("'", "''")
    statement = f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 't' FORMAT PROTOBUF MESSAGE 'shop.total' USING SCHEMA '{text}'"
    source = Source(session, tmp_path, statement + " (confluent_wire_format = true)")
    form = protobuf.Protobuf(7)
    values = [form.value(row) for row in encoded([FULL, EMPTY])]
    assert values[0][:6] == b"\0\0\0\0\7\0"
    assert source.rows_after([sent(i, v) for i, v in enumerate(values)]) == [SHOWN, NOTHING]
    assert [c.name for c in source.item.columns][6] == "a_name"
    assert [c.nullable for c in source.item.columns][:2] == [False, True]


def test_an_envelope_is_two_rows() -> None:
    schema = linked([parsed(schemas.debezium(COLUMNS))])
    fields = [(f.number, f.name, f.of) for f in schema.messages["envelope"].fields]
    assert fields == [(1, "before", "envelope.row"), (2, "after", "envelope.row")]
    form, row = protobuf.Protobuf(1), encoded([EMPTY])[0]
    assert row == b"\x08\x00"
    head = b"\0\0\0\0\1\0"
    assert form.change(None, row) == head + b"\x12\x02" + row
    assert form.change(row, None) == head + b"\x0a\x02" + row
    assert form.change(row, row) == head + b"\x0a\x02" + row + b"\x12\x02" + row
    assert form.key(row) == head + row
    assert parsed(schemas.key(COLUMNS[:1], "a.b.K")).messages[0].name == "a.b.K"


def test_a_null_in_an_array_is_refused() -> None:
    row = list(EMPTY)
    row[13] = [1, None]
    with pytest.raises(NullValueNotAllowed):
        encoded([tuple(row)])
