"""ksqlDB's formats of messages that sinks write."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from tailgate.formats.ksqldb import avro
from tailgate.formats.ksqldb.serde import Serde, encoded
from tailgate.formats.ksqldb.values import Column
from tailgate.lake.catalog import MaterializedView
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import BOOL, BYTEA, DATE, FLOAT8, INT4, INT8, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, WEIGHT, Field, Type
from tailgate.sinks.envelope import Encoder, Event
from tailgate.sinks.formats.ksqldb import KsqldbKey, KsqldbValue, Types, has_new_key, named, timestamp, types_of, value_positions
from tailgate.sinks.headers import EventMetadata
from tests.engine.ddl.ksqldb_items import declared, derived

COLUMNS = (
    Field("sensor", TEXT),
    Field("n", INT4),
    Field("Avg", FLOAT8),
    Field("price", Type("numeric", (6, 2))),
    Field("at", TIMESTAMP),
    Field("day", DATE),
    Field("raw", BYTEA),
    Field("ok", BOOL),
)
ROW = ("a", 1, 68.5, Decimal("1.50"), datetime(1970, 1, 1, 0, 0, 1, 500_000), date(1970, 1, 3), b"\x00\xff", True)


def typed(columns: tuple[Field, ...]) -> Types:
    """Returns the types of columns in ksqlDB."""
    return types_of(MaterializedView(id=1, name="v", columns=columns))


def changes(columns: tuple[Field, ...], *rows: tuple[object, ...]) -> pa.Table:
    """Returns weighted rows; the weight is the last value of each."""
    arrays = [pa.array([row[i] for row in rows], c.type.arrow) for i, c in enumerate(columns)]
    return pa.table([*arrays, pa.array([row[-1] for row in rows], pa.int64())], names=[*(f"c{i}" for i in range(len(columns))), WEIGHT])


def encoder(columns: tuple[Field, ...], kind: str) -> Encoder:
    return Encoder(
        columns, "upsert", KsqldbValue(Serde(kind), (0,), typed(columns)), key=(0,), key_form=KsqldbKey(Serde("KAFKA"), typed(columns))
    )


def test_json() -> None:
    nulls = ("b", *(None,) * 7)
    events = encoder(COLUMNS, "JSON").events(changes(COLUMNS, (*ROW, 1), (*nulls, 1)))
    assert [e.key for e in events] == [b"a", b"b"]
    assert events[0].value == b'{"N":1,"Avg":68.5,"PRICE":1.50,"AT":1500,"DAY":2,"RAW":"AP8=","OK":true}'
    assert events[1].value == b'{"N":null,"Avg":null,"PRICE":null,"AT":null,"DAY":null,"RAW":null,"OK":null}'


def test_delimited() -> None:
    columns = (*COLUMNS[:2], Field("text", TEXT))
    events = encoder(columns, "DELIMITED").events(changes(columns, ("a", 1, 'x,"y"', 1), ("b", None, "z", 1)))
    assert [e.value for e in events] == [b'1,"x,""y"""', b",z"]


def test_rows_of_different_keys_with_equal_values() -> None:
    columns = COLUMNS[:2]
    events = encoder(columns, "JSON").events(changes(columns, ("a", 1, -1), ("b", 1, 1)))
    assert events == [Event(b"a", None), Event(b"b", b'{"N":1}')]


def test_a_windowed_key_ends_with_the_start_of_the_window() -> None:
    columns = (*COLUMNS[:2], Field("windowstart", INT8), Field("windowend", INT8))
    key_form = KsqldbKey(Serde("KAFKA"), typed(columns))
    encoder = Encoder(columns, "upsert", KsqldbValue(Serde("JSON"), (0, 2), typed(columns)), key=(0, 2), key_form=key_form)
    events = encoder.events(changes(columns, ("a", 1, 258, 300, 1), ("a", 1, 0, 42, -1)))
    assert sorted(events, key=str) == [Event(b"a" + bytes(8), None), Event(b"a" + bytes(6) + b"\1\2", b'{"N":1}')]


def test_a_session_has_both_bounds_in_its_key() -> None:
    columns = (Field("k", TEXT), Field("windowstart", INT8), Field("windowend", INT8))
    arrays = [pa.array(["a"]), pa.array([1]), pa.array([258])]
    form = KsqldbKey(Serde("KAFKA"), typed(columns))
    assert [form.key(row) for row in form.rows(columns, arrays, 1)] == [b"a" + bytes(6) + b"\1\2" + bytes(7) + b"\1"]


STREAM = (Field("k", TEXT), Field("n", INT4), Field("rowtime", TIMESTAMPTZ), Field("rowpartition", INT4), Field("rowoffset", INT8))


NUMBERED = (*STREAM, Field("_rownumber", TEXT))


def stream_events(key: tuple[int, ...] | None, *rows: tuple[object, ...], columns: tuple[Field, ...] = STREAM) -> list[Event]:
    value = KsqldbValue(Serde("JSON"), key, typed(columns), is_stream=True)
    encoder = Encoder(
        columns,
        "none",
        value,
        key=key,
        key_form=KsqldbKey(Serde("KAFKA"), typed(columns)),
        metadata=EventMetadata(timestamp=timestamp(columns)),
    )
    return encoder.events(changes(columns, *rows))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [("a, b", b'{"A":null,"B":null}'), ("a", None), ("", None)],
)
def test_a_key_of_nulls(columns: str, expected: bytes | None) -> None:
    """A key of several columns that PARTITION BY gives is present, although they are NULL; a message without a key keeps none."""
    catalog = declared("CREATE STREAM s (a INT KEY, b INT KEY, n INT) WITH (kafka_topic = 's', format = 'json')")
    view, sink, _ = derived(f"CREATE STREAM o AS SELECT * FROM s{' PARTITION BY ' if columns else ''}{columns}", catalog)
    assert sink.message_key is not None
    of_key = [view.columns[i] for i in sink.message_key]
    form = KsqldbKey(Serde("JSON", wrapped=len(of_key) > 1), types_of(view), is_new=has_new_key(view))
    arrays = [pa.array([None], c.type.arrow) for c in of_key]
    assert [form.key(row) for row in form.rows(of_key, arrays, 1)] == [expected]


def test_a_stream_is_written_in_the_order_of_positions() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [("a", 1, at, 0, 300, 1), ("a", 2, at, 0, 2, 1), ("a", 2, at, 0, 3, 1), (None, 9, at, 1, 1, 1), ("", 7, at, 1, 0, 1)]
    assert {e.timestamp for e in stream_events((0,), *rows)} == {1767225600000}
    assert [(e.key, e.value) for e in stream_events((0,), *rows)] == [
        (None, b'{"N":9}'),
        (b"", b'{"N":7}'),
        (b"a", b'{"N":2}'),
        (b"a", b'{"N":2}'),
        (b"a", b'{"N":1}'),
    ]
    assert [e.value for e in stream_events(None, *rows[:3])] == [b'{"K":"a","N":2}', b'{"K":"a","N":2}', b'{"K":"a","N":1}']


def test_rows_of_one_record_are_written_in_the_order_of_their_numbers() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    numbers = [(9, "00000001"), (5, "00000002"), (5, "00000003"), (7, "0000000a"), (1, "00000010")]
    rows = [("a", n, at, 0, 5, number, 1) for n, number in reversed(numbers)]
    events = stream_events((0,), *rows, ("a", 3, at, 0, 4, "00000002", 1), columns=NUMBERED)
    assert [e.value for e in events] == [f'{{"N":{n}}}'.encode() for n in (3, 9, 5, 5, 7, 1)]


def test_late_records_of_other_partitions_are_written_where_they_arrived() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    columns = (*STREAM, Field("_arrival", TEXT))
    rows = [("a", 1, at, 1, 7, "0b", 1), ("a", 2, at, 1, 8, "0b", 1), ("a", 3, at, 0, 2, "0c", 1), ("a", 4, at, 0, 1, "0c", 1)]
    assert [e.value for e in stream_events((0,), *reversed(rows), columns=columns)] == [f'{{"N":{n}}}'.encode() for n in (1, 2, 4, 3)]


def test_messages_of_a_table_have_its_rowtime() -> None:
    """A row with another ROWTIME is another message, also with the same values. A tombstone has that of the old row, and comes first."""
    columns = (Field("k", TEXT), Field("n", INT4), Field("rowtime", TIMESTAMPTZ))
    value, key_form = KsqldbValue(Serde("JSON"), (0,), typed(columns)), KsqldbKey(Serde("KAFKA"), typed(columns))
    metadata = EventMetadata(timestamp=timestamp(columns))
    encoder = Encoder(columns, "upsert", value, key=(0,), key_form=key_form, metadata=metadata)
    first, second = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    events = encoder.events(changes(columns, ("a", 1, first, -1), ("a", 1, second, 1), ("b", 2, first, -1), ("c", 3, first, 1)))
    assert [(e.key, e.value, e.timestamp) for e in events] == [
        (b"b", None, 1767225600000),
        (b"a", b'{"N":1}', 1767312000000),
        (b"c", b'{"N":3}', 1767225600000),
    ]


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [(TEXT, "é", "é".encode()), (INT4, -2, b"\xff\xff\xff\xfe"), (INT8, 1, b"\0" * 7 + b"\1"), (FLOAT8, 1.0, b"\x3f\xf0" + b"\0" * 6)],
)
def test_keys(type: object, value: object, expected: bytes) -> None:
    columns = (Field("k", type),)  # type: ignore[arg-type]
    assert encoded(Serde("KAFKA"), named(columns, typed(columns)), [pa.array([value], columns[0].type.arrow)], 1) == [expected]


TWO = (Field("k1", INT4), Field("k2", TEXT))


@pytest.mark.parametrize(
    ("serde", "columns", "row", "expected"),
    [
        (Serde("JSON", wrapped=False), TWO[:1], (1,), b"1"),
        (Serde("JSON", wrapped=False), TWO[1:], ("a",), b'"a"'),
        (Serde("JSON", wrapped=False), TWO[:1], (None,), None),
        (Serde("JSON"), TWO[:1], (None,), b'{"K1":null}'),
        (Serde("JSON"), TWO, (1, "é"), '{"K1":1,"K2":"é"}'.encode()),
        (Serde("DELIMITED"), TWO, (1, 'a,"b'), b'1,"a,""b"'),
        (Serde("DELIMITED", "\t"), TWO, (None, "a"), b"\ta"),
        (Serde("DELIMITED"), TWO[:1], (None,), b""),
        (Serde("KAFKA"), TWO[:1], (None,), None),
    ],
)
def test_formats(serde: Serde, columns: tuple[Field, ...], row: tuple[object, ...], expected: bytes | None) -> None:
    arrays = [pa.array([value], c.type.arrow) for c, value in zip(columns, row, strict=True)]
    assert encoded(serde, named(columns, typed(columns)), arrays, 1) == [expected]


def test_avro() -> None:
    columns = (*COLUMNS, Field("t", TIME))
    record = named([columns[i] for i in value_positions(columns, (0,))], typed(columns))
    value = KsqldbValue(Serde("AVRO"), (0,), typed(columns), schema_id=7)
    encoder = Encoder(columns, "upsert", value, key=(0,), key_form=KsqldbKey(Serde("KAFKA", wrapped=False), typed(columns)))
    schema = avro.schema(record)
    assert (schema["name"], schema["namespace"]) == ("KsqlDataSourceSchema", "io.confluent.ksql.avro_schemas")
    assert all(field["default"] is None and field["type"][0] == "null" for field in schema["fields"])
    values = [e.value or b"" for e in encoder.events(changes(columns, (*ROW, 5_000, 1), ("b", *(None,) * 8, 1)))]
    assert [value[:5] for value in values] == [b"\0\0\0\0\7"] * 2
    rows = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema) for value in values]
    assert rows[0] == {
        "N": 1,
        "Avg": 68.5,
        "PRICE": Decimal("1.50"),
        "AT": datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
        "DAY": date(1970, 1, 3),
        "RAW": b"\x00\xff",
        "OK": True,
        "T": time(0, 0, 0, 5_000),
    }
    assert set(rows[1].values()) == {None}


def test_a_key_of_several_columns() -> None:
    columns = (*TWO, Field("n", INT4), Field("windowstart", INT8), Field("windowend", INT8))
    key = (0, 1, 3)
    encoder = Encoder(
        columns, "upsert", KsqldbValue(Serde("JSON"), key, typed(columns)), key=key, key_form=KsqldbKey(Serde("JSON"), typed(columns))
    )
    assert encoder.events(changes(columns, (1, "a", 7, 258, 300, 1))) == [Event(b'{"K1":1,"K2":"a"}' + bytes(6) + b"\1\2", b'{"N":7}')]


@pytest.mark.parametrize("name", ["JSON", "DELIMITED", "PROTOBUF_NOSR"])
def test_a_key_whose_columns_are_null_is_absent(name: str) -> None:
    columns = (*TWO, Field("windowstart", INT8))
    rows = [(None, None, None), (None, "a", 258)]
    arrays = [pa.array(column, field.type.arrow) for column, field in zip(zip(*rows, strict=True), columns, strict=True)]
    form = KsqldbKey(Serde(name), typed(columns))
    absent, present = map(form.key, form.rows(columns, arrays, 2))
    assert absent is None
    assert present is not None and present.endswith(bytes(6) + b"\1\2")


def test_a_type_without_a_form_is_refused() -> None:
    with pytest.raises(FeatureNotSupported, match="SPAN"):
        encoded(Serde("JSON"), (Column("SPAN", "interval"),), [pa.array([None], pa.int64())], 1)
