"""The exact Avro schemas, and the bytes of every type compared with fastavro."""

from __future__ import annotations

import io
import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tailgate.formats.events import avro as schema
from tailgate.formats.wire import header
from tailgate.lake import sortable, types
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.ranges import ALL_RANGES
from tailgate.lake.types import FACTS, EnumType, Field, Type
from tailgate.sinks.formats import avro, jsons
from tailgate.values.numeric.scales import scale_of
from tailgate.values.registry import read_text, text_writer
from tailgate.values.strings.registered import REGISTERED


def test_debezium_schema_is_materializes() -> None:
    columns = (Field("a", types.INT8), Field("b", types.INT8, False))
    assert json.dumps(schema.debezium(columns), separators=(",", ":")) == (
        '{"type":"record","name":"envelope","fields":['
        '{"name":"before","type":["null",{"type":"record","name":"row","fields":['
        '{"name":"a","type":["null","long"]},{"name":"b","type":"long"}]}]},'
        '{"name":"after","type":["null","row"]}]}'
    )


def test_upsert_and_key_schemas_are_flat() -> None:
    columns = (Field("a", types.TEXT), Field("b", types.INT4, False))
    assert schema.upsert(columns) == {
        "type": "record",
        "name": "envelope",
        "fields": [{"name": "a", "type": ["null", "string"]}, {"name": "b", "type": "int"}],
    }
    assert schema.key(columns[1:]) == {"type": "record", "name": "row", "fields": [{"name": "b", "type": "int"}]}


def test_a_full_name_is_a_name_and_a_namespace() -> None:
    assert schema.upsert((), "abc.def.ghi") == {"type": "record", "name": "ghi", "namespace": "abc.def", "fields": []}


@pytest.mark.parametrize(
    ("names", "avro_names"),
    [
        (["col a", "col_a", "col_a"], ["col_a", "col_a1", "col_a2"]),
        (["1st", "%"], ["_1st", "_"]),
        (["a1", "a1", "ä"], ["a1", "a1_1", "_"]),
        (["?column?", "?column?"], ["_column_", "_column_1"]),
    ],
)
def test_names_become_avro_names(names: list[str], avro_names: list[str]) -> None:
    assert schema.field_names(names) == avro_names


RECORD = Type("record", fields=(Field("x", types.INT4), Field("y z", types.TEXT, False)))

MOOD = Type("enum", enum=EnumType(16384, "mood", "public", ((1, "sad"), (2, "ok"))))

TYPES: list[tuple[Type, Any]] = [
    (types.BOOL, "boolean"),
    (types.INT2, "int"),
    (types.INT4, "int"),
    (types.INT8, "long"),
    (types.OID, "long"),
    (types.FLOAT4, "float"),
    (types.FLOAT8, "double"),
    (types.TEXT, "string"),
    (Type("varchar", (5,)), "string"),
    (Type("bpchar", (5,)), "string"),
    (types.NAME, "string"),
    (types.UNKNOWN, "string"),
    (types.BYTEA, "bytes"),
    (types.DATE, {"type": "int", "logicalType": "date"}),
    (types.TIME, {"type": "long", "logicalType": "time-micros"}),
    (types.TIMESTAMP, {"type": "long", "logicalType": "timestamp-micros"}),
    (types.TIMESTAMPTZ, {"type": "long", "logicalType": "timestamp-micros"}),
    (Type("timestamp", (3,)), {"type": "long", "logicalType": "timestamp-millis"}),
    (Type("timestamptz", (0,)), {"type": "long", "logicalType": "timestamp-millis"}),
    (Type("timestamptz", (4,)), {"type": "long", "logicalType": "timestamp-micros"}),
    (types.INTERVAL, {"type": "fixed", "name": "interval", "namespace": "com.materialize.sink", "size": 16}),
    (Type("numeric", (10, 2)), {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    (types.NUMERIC, {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 16}),
    (
        types.GENERAL,
        {
            "type": "record",
            "name": "VariableScaleDecimal",
            "namespace": "io.debezium.data",
            "connect.name": "io.debezium.data.VariableScaleDecimal",
            "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
        },
    ),
    (types.numeric(0), {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}),
    (MOOD, "string"),
    (types.UUID, {"type": "string", "logicalType": "uuid"}),
    *(
        (Type(name), "string")
        for name in ("inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "timetz", "char", "money", "jsonpath", *REGISTERED)
    ),
    *((Type(name), "string") for name in ALL_RANGES),
    (types.JSON, {"type": "string", "connect.name": "io.debezium.data.Json"}),
    (types.JSONB, {"type": "string", "connect.name": "io.debezium.data.Json"}),
    (types.INT4.array(), {"type": "array", "items": ["null", "int"]}),
    (
        RECORD,
        {
            "type": "record",
            "name": "record0",
            "namespace": "com.materialize.sink",
            "fields": [{"name": "x", "type": ["null", "int"]}, {"name": "y_z", "type": "string"}],
        },
    ),
]


@pytest.mark.parametrize(("type", "expected"), TYPES, ids=lambda v: str(v) if isinstance(v, Type) else "")
def test_each_type(type: Type, expected: Any) -> None:
    assert schema.upsert((Field("c", type, False),))["fields"] == [{"name": "c", "type": expected}]
    assert schema.upsert((Field("c", type),))["fields"] == [{"name": "c", "type": ["null", expected]}]


def test_no_type_is_forgotten() -> None:
    assert {type.name for type, _ in TYPES} == set(FACTS)


def test_a_named_type_is_defined_once() -> None:
    columns = (Field("a", types.INTERVAL), Field("b", types.INTERVAL), Field("c", RECORD), Field("d", RECORD))
    columns += (Field("e", types.GENERAL), Field("f", types.GENERAL))
    value = schema.debezium(columns)
    fastavro.parse_schema(value)
    fields = value["fields"][0]["type"][1]["fields"]
    assert fields[1]["type"] == ["null", "com.materialize.sink.interval"]
    assert fields[3]["type"][1]["name"] == "record1"
    assert fields[5]["type"] == ["null", "io.debezium.data.VariableScaleDecimal"]


NOON = datetime(2026, 2, 3, 12, 0, 0, 123456, tzinfo=timezone.utc)
# types that are written as PostgreSQL's text, and texts
PRINTED = {
    "inet": ["10.0.0.1", "10.0.0.1/8", "::ffff:1.2.3.4"],
    "cidr": ["10.0.0.0/8", "::1/128"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit": ["", "101"],
    "varbit": ["0"],
    "timetz": ["00:00:00+00", "12:34:56.5-03:30"],
    "money": ["$0.00", "-$1,234.56"],
    "jsonpath": ['$."a"'],
    "regclass": ["123456"],
    "regtype": ["integer", "text[]"],
    "int4range": ["empty", "[1,5)"],
    "int8range": ["(,)"],
    "numrange": ["(1.50,2]"],
    "daterange": ["[2024-01-01,infinity)"],
    "tsrange": ['["2024-01-01 00:00:00",)'],
    "tstzrange": ['["2024-01-01 00:00:00+00",)'],
    "int4multirange": ["{}", "{[1,5),[7,9)}"],
    "int8multirange": ["{(,)}"],
    "nummultirange": ["{(1.50,2],(3.0,)}"],
    "datemultirange": ["{[2024-01-01,infinity)}"],
    "tsmultirange": ['{["2024-01-01 00:00:00",)}'],
    "tstzmultirange": ['{["2024-01-01 00:00:00+00",)}'],
}
VALUES: list[tuple[Type, list[Any]]] = [
    (types.BOOL, [True, False]),
    (types.INT2, [0, 1, -1, 32767, -32768]),
    (types.INT4, [63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31)]),
    (types.INT8, [2**63 - 1, -(2**63), 1 << 40]),
    (MOOD, [1, 2]),
    (types.OID, [2**32 - 1]),
    (types.FLOAT4, [1.5, -0.0, float("inf")]),
    (types.FLOAT8, [1.1, float("-inf"), 1e300]),
    (types.TEXT, ["", "ä€😀", "x" * 10_000]),
    (Type("varchar", (5,)), ["abc"]),
    (Type("bpchar", (5,)), ["abc"]),
    (types.NAME, ["n"]),
    (types.UNKNOWN, ["u"]),
    (Type("char"), ["", "a"]),
    (types.BYTEA, [b"", b"\x00\xff", b"x" * 200]),
    (types.DATE, [date(1970, 1, 1), date(1969, 12, 31), date(2026, 2, 3)]),
    (types.TIME, [0, 86_399_999_999]),
    (types.TIMESTAMP, [NOON.replace(tzinfo=None), datetime(1969, 1, 1)]),
    (types.TIMESTAMPTZ, [NOON]),
    (Type("timestamp", (3,)), [datetime(2026, 2, 3, 1, 2, 3, 4000), datetime(1960, 1, 1, 0, 0, 0, 1000)]),
    (types.INTERVAL, [{"months": 1, "days": -2, "micros": 3}, {"months": 0, "days": 0, "micros": -1}]),
    (Type("numeric", (10, 2)), [Decimal("1.26"), Decimal("-0.01"), Decimal("1.28"), Decimal("-1.28"), Decimal("-1.29"), Decimal("0.00")]),
    (types.NUMERIC, [Decimal("1234567890123456789012.1234567890123456"), Decimal(-1)]),
    (types.GENERAL, [sortable.stored(Decimal(t)) for t in ("1.10", "-128", "0.000", "-1" + "0" * 60, "0." + "3" * 50)]),
    (types.UUID, ["6f1e1d0a-0000-4000-8000-000000000001"]),
    *((Type(name), [read_text(text, Type(name)) for text in texts]) for name, texts in PRINTED.items()),
    (types.JSON, ['{"a" :1}']),
    (types.JSONB, ['{"a": 1}']),
    (types.INT4.array(), [[], [1, None, 3], [2**30]]),
    (types.TEXT.array(), [["a", ""], [None]]),
    (Type("numeric", (4, 1)).array(), [[Decimal("1.5"), None]]),
    (RECORD, [{"f1": 1, "f2": "a"}, {"f1": None, "f2": ""}]),
    (RECORD.array(), [[{"f1": 1, "f2": "a"}, None]]),
]


def decoded(data: bytes, parsed: Any) -> Any:
    reader = io.BytesIO(data)
    value = fastavro.schemaless_reader(reader, parsed)
    assert reader.read() == b"", "bytes left over"
    return value


def expected_value(type: Type, value: Any) -> Any:
    """Returns what fastavro decodes for a stored value."""
    if value is None:
        return None
    if type.is_array:
        return [expected_value(type.element, v) for v in value]
    if type.name == "record":
        names = schema.field_names([f.name for f in type.fields])
        return dict(zip(names, value.values(), strict=True))
    if type.enum is not None:
        return dict(type.labels)[value]
    if type.name == "interval":
        return b"".join(value[k].to_bytes(n, "little", signed=True) for k, n in (("months", 4), ("days", 4), ("micros", 8)))
    if type.general:
        number = sortable.loaded(**value)
        unscaled = int(number.scaleb(scale_of(number), context=sortable.EXACT))
        return {
            "scale": scale_of(number),
            "value": unscaled.to_bytes((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True),
        }
    if type.name == "time":
        seconds, micros = divmod(value, 1_000_000)
        return datetime(2000, 1, 1, seconds // 3600, seconds // 60 % 60, seconds % 60, micros).time()
    if type.name == "timestamp":
        return value.replace(tzinfo=timezone.utc)
    if type.name in REGISTERED:
        return text_writer(type)(value.encode()).decode()
    if type.name in PRINTED and not isinstance(value, str):
        return text_writer(type)(value).decode()
    if type.name == "uuid":
        import uuid

        return uuid.UUID(value)
    return value


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("type", "values"), VALUES, ids=lambda v: str(v) if isinstance(v, Type) else "")
def test_each_types_bytes_are_avros(type: Type, values: list[Any], nullable: bool) -> None:
    field = Field("c", type, nullable)
    parsed = fastavro.parse_schema(schema.upsert((field, Field("end", types.INT4, False))))
    column = [*values, None] if nullable else values
    padding = column[:1]
    array = pa.array([*padding, *column], type.arrow).slice(1)  # the array's offset must be respected
    end = pa.array(range(len(column)), pa.int32())
    encoded = avro.rows((field, Field("end", types.INT4, False)), [array, end], len(column))
    got = [decoded(row, parsed) for row in encoded]
    assert got == [{"c": expected_value(type, value), "end": i} for i, value in enumerate(column)]


def test_no_type_lacks_values() -> None:
    assert {type.name for type, _ in VALUES} == set(FACTS)


def test_null_where_none_may_be_is_refused() -> None:
    with pytest.raises(ValueError, match="not nullable"):
        avro.rows((Field("c", types.INT4, False),), [pa.array([1, None], pa.int32())], 2)


def test_the_header_is_confluents() -> None:
    assert header(258) == b"\x00\x00\x00\x01\x02"


def test_chunks_and_other_arrow_forms_are_converted() -> None:
    table = pa.table({"c": pa.chunked_array([pa.array([1], pa.int32()), pa.array([2], pa.int32())])})
    assert avro.stored(table, (Field("any", types.INT8),))[0].to_pylist() == [1, 2]
    assert avro.stored(table.slice(0, 0), (Field("any", types.INT8),))[0].to_pylist() == []


def test_numbers_that_are_not_finite() -> None:
    """JSON has them as strings, as PostgreSQL writes them. Debezium's decimal has none of them."""
    values = pa.array([sortable.stored(Decimal(t)) for t in ("NaN", "Infinity", "-Infinity", "1.10")], types.GENERAL.arrow)
    assert jsons.rows((Field("c", types.GENERAL),), [values], 4) == [
        f'{{"c":"{t}"}}'.encode() for t in ("NaN", "Infinity", "-Infinity", "1.10")
    ]
    with pytest.raises(FeatureNotSupported, match="numeric NaN is not supported in Avro"):
        avro.rows((Field("c", types.GENERAL),), [values], 4)
