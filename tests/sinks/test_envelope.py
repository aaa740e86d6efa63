"""Changes of a time become events: pairs, copies, tombstones, order."""

from __future__ import annotations

import io
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tailgate.formats.events import avro as schema
from tailgate.lake import types
from tailgate.lake.errors import InvalidParameterValue, TailgateError
from tailgate.lake.types import Field, arrow_schema
from tailgate.sinks.envelope import Encoder, Envelope, Event
from tailgate.sinks.formats.row_formats import Avro, Json, Text
from tailgate.sinks.headers import EventMetadata, headers_of

COLUMNS = (Field("k", types.INT4), Field("v", types.TEXT))
DEBEZIUM = fastavro.parse_schema(schema.debezium(COLUMNS))
UPSERT = fastavro.parse_schema(schema.upsert(COLUMNS))
KEY = fastavro.parse_schema(schema.key(COLUMNS[:1]))


def changes(*rows: tuple[Any, Any, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("k", "v", "__weight"), row, strict=True)) for row in rows], arrow_schema(COLUMNS, weight=True))


def events(table: pa.Table, envelope: Envelope = "debezium", **options: Any) -> list[Any]:
    """Encodes a table and returns the decoded events: (key, before, after) or (key, row)."""
    out = []
    for key, value, *_ in Encoder(COLUMNS, envelope, Avro(7, 9), **options).events(table):
        k = None if key is None else fastavro.schemaless_reader(io.BytesIO(key[5:]), KEY)["k"]
        if envelope == "upsert":
            row = None if value is None else tuple(fastavro.schemaless_reader(io.BytesIO(value[5:]), UPSERT).values())
            out.append((k, row))
        else:
            assert value is not None
            assert value[:5] == b"\x00\x00\x00\x00\x07"
            decoded = fastavro.schemaless_reader(io.BytesIO(value[5:]), DEBEZIUM)
            out.append((k, *(None if decoded[side] is None else tuple(decoded[side].values()) for side in ("before", "after"))))
    return out


def test_without_a_key_an_update_is_a_deletion_and_an_insertion() -> None:
    assert events(changes((1, "new", 1), (1, "old", -1))) == [(None, (1, "old"), None), (None, None, (1, "new"))]


def test_without_a_key_a_weight_is_as_many_events() -> None:
    assert events(changes((1, "a", 2), (2, "b", -3))) == [(None, (2, "b"), None)] * 3 + [(None, None, (1, "a"))] * 2


def test_with_the_relations_key_an_update_is_one_event_without_message_key() -> None:
    got = events(changes((2, "x", 1), (1, "new", 1), (3, "gone", -1), (1, "old", -1)), relation_key=(0,))
    assert got == [(None, (1, "old"), (1, "new")), (None, None, (2, "x")), (None, (3, "gone"), None)]


def test_the_key_of_the_sink_is_the_message_key() -> None:
    got = events(changes((1, "new", 1), (1, "old", -1)), key=(0,))
    assert got == [(1, (1, "old"), (1, "new"))]
    assert Encoder(COLUMNS, "debezium", Avro(7, 9), key=(0,)).events(changes((None, "a", 1)))[0][0] == b"\x00\x00\x00\x00\x09\x00"


def test_a_key_that_is_not_unique_loses_nothing() -> None:
    got = events(changes((1, "a", -1), (1, "b", -1), (1, "c", 1)), relation_key=(0,))
    assert got == [(None, (1, "a"), (1, "c")), (None, (1, "b"), None)]


def test_upsert_writes_the_new_row_or_a_tombstone() -> None:
    got = events(changes((1, "new", 1), (1, "old", -1), (2, "gone", -1), (3, "come", 1)), "upsert", key=(0,))
    assert got == [(1, (1, "new")), (2, None), (3, (3, "come"))]


def test_the_empty_key_is_one_key() -> None:
    """The relation has at most one row, such as a total over all rows."""
    assert events(changes((1, "new", 1), (1, "old", -1)), relation_key=()) == [(None, (1, "old"), (1, "new"))]


@pytest.mark.parametrize("relation_key", [None, (0,)])
def test_rows_that_cancel_out_give_nothing(relation_key: Any) -> None:
    table = changes((1, "a", 1), (1, "b", 1), (1, "a", -1))
    assert events(table, relation_key=relation_key) == [(None, None, (1, "b"))]


@pytest.mark.parametrize("relation_key", [None, (0,), ()])
def test_order_does_not_depend_on_the_order_of_the_rows(relation_key: Any) -> None:
    rows = [(i % 7, str(i), 1 if i % 3 else -1) for i in range(50)]
    expected = events(changes(*rows), relation_key=relation_key)
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert events(changes(*rows), relation_key=relation_key) == expected
    net: Counter[Any] = Counter()
    for _, before, after in expected:
        if before is not None:
            net[before] -= 1
        if after is not None:
            net[after] += 1
    assert net == {(k, v): w for k, v, w in rows}


@pytest.mark.parametrize(
    ("envelope", "keys"),
    [
        *((envelope, {"key": (0,), "key_form": Text()}) for envelope in ("debezium", "upsert", "none")),
        *(("debezium", keys) for keys in ({}, {"relation_key": (0,)})),
        ("none", {}),
    ],
)
def test_events_of_new_rows_alone_are_those_among_changes(envelope: Envelope, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """New rows are encoded in pieces, and in another way than changes."""
    monkeypatch.setattr("tailgate.sinks.envelope.PIECE_ROWS", 7)
    monkeypatch.setattr("tailgate.sinks.envelope.NEW_ROWS_MIN", 1)
    columns = (*COLUMNS, Field("h", types.JSONB), Field("rowtime", types.TIMESTAMP))
    schema = arrow_schema(columns, weight=True)
    random_rows = random.Random(1)
    rows = [
        {
            "k": random_rows.randrange(6),
            "v": random_rows.choice(["a", "", None, "b" * 9]),
            "h": random_rows.choice([None, '{"a": "b"}']),
            "rowtime": datetime.fromtimestamp(random_rows.randrange(4), UTC).replace(tzinfo=None),
            "__weight": random_rows.randrange(1, 3),
        }
        for _ in range(50)
    ]
    canceled = [{"k": 7, "__weight": weight} for weight in (1, -1)]
    metadata = EventMetadata(2, (("c", b"d"),), 3)
    new, among = (
        Encoder(columns, envelope, Json(), metadata=metadata, **keys).events(pa.Table.from_pylist(table, schema))
        for table in (rows, [*rows, *canceled])
    )
    assert new == among
    assert len(new) == sum(row["__weight"] for row in rows)


# ---- other forms -----------------------------------------------------------------------------------------------------------------


def test_a_window_that_left_because_of_its_retention_has_no_tombstone() -> None:
    columns = (Field("k", types.INT4), Field("windowend", types.INT8))
    schema = arrow_schema(columns, weight=True)
    rows = [
        {"k": k, "windowend": end, "__weight": weight}
        for k, end, weight in ((1, 10, -1), (2, 20, -1), (3, 10, -1), (3, 10, 1), (4, 21, -1))
    ]
    rows.append({"k": 5, "windowend": 10, "__weight": 1})
    table = pa.Table.from_pylist(rows, schema)
    encoder = Encoder(columns, "upsert", Json(), key=(0,), key_form=Text())
    five = Event(b"5", b'{"k":5,"windowend":10}')
    assert encoder.events(table, released=20) == [Event(b"4", None), five]
    assert encoder.events(table, released=9) == encoder.events(table) == [Event(b"1", None), Event(b"2", None), Event(b"4", None), five]


def test_a_row_that_a_record_repeats_is_written_again() -> None:
    table = changes((1, "a", 0), (2, "b", -1), (2, "c", 1), (2, "b", 0))
    encoder = Encoder(COLUMNS, "upsert", Json(), key=(0,), key_form=Text())
    assert encoder.events(table) == [Event(b"1", b'{"k":1,"v":"a"}'), Event(b"2", b'{"k":2,"v":"c"}')]
    assert len(Encoder(COLUMNS, "debezium", Json(), key=(0,)).events(table)) == 1


def test_a_tombstone_has_the_time_of_the_record_that_caused_it_and_comes_first() -> None:
    columns = (Field("k", types.INT4), Field("rowtime", types.TIMESTAMP))
    rows = [
        {"k": k, "rowtime": datetime.fromtimestamp(at, UTC).replace(tzinfo=None), "__weight": w} for k, at, w in ((1, 5, 1), (2, 6, -1))
    ]
    table = pa.Table.from_pylist(rows, arrow_schema(columns, weight=True))
    encoder = Encoder(columns, "upsert", Json(), key=(0,), key_form=Text(), metadata=EventMetadata(None, (), 1))
    for single, time in ((None, 6000), (1000, 6000), (7000, 7000)):
        assert [(e.key, e.timestamp) for e in encoder.events(table, single=single)] == [(b"2", time), (b"1", 5000)]
    encoder = Encoder(columns, "upsert", Json(), key=(0,), key_form=Text(), metadata=EventMetadata(None, (), 1, joins=True))
    assert [e.timestamp for e in encoder.events(table, single=7000)] == [7000, 7000]


def test_json_events() -> None:
    table = changes((1, "new", 1), (1, 'o"ld', -1), (2, None, 1))
    assert Encoder(COLUMNS, "debezium", Json(), key=(0,)).events(table) == [
        Event(b'{"k":1}', b'{"before":{"k":1,"v":"o\\"ld"},"after":{"k":1,"v":"new"}}'),
        Event(b'{"k":2}', b'{"before":null,"after":{"k":2,"v":null}}'),
    ]
    deletion = changes((1, "a", -1))
    assert Encoder(COLUMNS, "upsert", Json(), key=(0,), key_form=Text()).events(deletion) == [Event(b"1", None)]


def test_envelope_none_refuses_deletions() -> None:
    assert Encoder(COLUMNS, "none", Json()).events(changes((1, "a", 2))) == [Event(None, b'{"k":1,"v":"a"}')] * 2
    assert Encoder(COLUMNS, "none", Json(), key=(0,), key_form=Text()).events(changes((1, "a", 1))) == [Event(b"1", b'{"k":1,"v":"a"}')]
    with pytest.raises(TailgateError, match="ENVELOPE NONE has no words for it"):
        Encoder(COLUMNS, "none", Json()).events(changes((1, "a", -1)))


def test_a_column_as_text() -> None:
    for type, value, text in ((types.TEXT, 'a"b', b'a"b'), (types.BOOL, True, b"t"), (types.INT8, -1, b"-1"), (types.JSONB, '"a"', b'"a"')):
        column = (Field("c", type),)
        table = pa.Table.from_pylist([{"c": value, "__weight": 1}], arrow_schema(column, weight=True))
        assert Encoder(column, "none", Text()).events(table) == [Event(None, text)]


# ---- headers ---------------------------------------------------------------------------------------------------------------------


def test_headers_are_those_of_the_new_row_or_of_the_deleted_row() -> None:
    columns = (Field("k", types.INT4), Field("h", types.JSONB))
    rows = [
        (1, '{"a": "new"}', 1),
        (1, '{"a": "old"}', -1),
        (2, '[{"key": "b", "value": "x"}, {"key": "b", "value": null}]', -1),
        (3, None, 1),
    ]
    table = pa.Table.from_pylist([dict(zip(("k", "h", "__weight"), row, strict=True)) for row in rows], arrow_schema(columns, weight=True))
    expected = [(("o", b"t"), ("a", b"new")), (("o", b"t"), ("b", b"x"), ("b", None)), (("o", b"t"),)]
    for envelope in ("debezium", "upsert"):
        encoder = Encoder(columns, envelope, Json(), key=(0,), metadata=EventMetadata(1, (("o", b"t"),)))  # type: ignore[arg-type]
        assert [e.headers for e in encoder.events(table)] == expected
    unpaired = Encoder(columns, "debezium", Json(), metadata=EventMetadata(1)).events(table)
    assert [e.headers for e in unpaired] == [(("a", b"old"),), expected[1][1:], (("a", b"new"),), ()]
    assert [e.headers for e in Encoder(columns, "none", Json(), metadata=EventMetadata(1)).events(table.slice(3))] == [()]


def test_invalid_headers() -> None:
    for text in ("1", "[1]", '[{"value": "x"}]', '"a"'):
        with pytest.raises(InvalidParameterValue, match="headers must be a JSON object"):
            headers_of(text)
    assert headers_of('{"n": 1.5, "o": {"a": "ä"}}') == (("n", b"1.5"), ("o", '{"a": "ä"}'.encode()))
