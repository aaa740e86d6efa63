"""ksqlDB's formats of arrays, maps and structures, and the formats whose schemas are in a registry."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tailgate.embedded.kinds import KINDS
from tailgate.formats.ksqldb.serde import Serde, encoded, schema
from tailgate.formats.ksqldb.values import Column
from tailgate.formats.registry import JsonSchema
from tailgate.lake.errors import TailgateError

STRUCT = [
    "struct",
    ["Z", "int"],
    ["A", ["array", ["struct", ["X", ["decimal", 4, 1]], ["Y", "timestamp"]]]],
    ["R", "bytes"],
    ["D", "double"],
]
COLUMNS = (Column("TAGS", ["array", "varchar"]), Column("M", ["map", "double"]), Column("S", STRUCT))
TEXTS = ('["a", null]', '{"x": 1}', '{"A": [{"X": 1.5, "Y": 1000}], "D": 2, "R": "AP8=", "Z": 5}')  # in the order of jsonb
JSON = '{"TAGS":["a",null],"M":{"x":1.0},"S":{"Z":5,"A":[{"X":1.5,"Y":1000}],"R":"AP8=","D":2.0}}'


def bytes_of(serde: Serde, columns: tuple[Column, ...], *values: Any, id: int | None = None) -> bytes | None:
    """Returns the bytes of one row."""
    arrays = [pa.array([value]) if value is not None else pa.array([None], pa.string()) for value in values]
    (out,) = encoded(serde, columns, arrays, 1, id)
    return out


def test_fields_are_in_the_order_of_the_type_and_doubles_have_a_fraction() -> None:
    assert bytes_of(Serde("JSON"), COLUMNS, *TEXTS) == JSON.encode()
    assert bytes_of(Serde("JSON"), COLUMNS[:1], None) == b'{"TAGS":null}'
    assert bytes_of(Serde("JSON", wrapped=False), COLUMNS[2:], '{"Z": 1}') == b'{"Z":1,"A":null,"R":null,"D":null}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.5e-7, "-1.5E-7"),
        (1.25e300, "1.25E300"),
        (-0.0, "-0.0"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert bytes_of(Serde("JSON", wrapped=False), (Column("D", "double"),), value) == text.encode()


def test_json_with_a_schema_has_maps_as_entries() -> None:
    value = bytes_of(Serde("JSON_SR"), COLUMNS, *TEXTS, id=7)
    assert value == b"\0\0\0\0\7" + JSON.replace('{"x":1.0}', '[{"key":"x","value":1.0}]').encode()
    registered = schema(Serde("JSON_SR"), COLUMNS)
    assert isinstance(registered, JsonSchema)
    properties = registered.content["properties"]
    assert properties["TAGS"] == {"connect.index": 0, "oneOf": [{"type": "null"}, {"type": "array", "items": {"oneOf": NULLABLE_TEXT}}]}
    assert properties["M"]["oneOf"][1]["connect.type"] == "map"
    alone = schema(Serde("JSON_SR", wrapped=False), (Column("K", "int"),))
    assert isinstance(alone, JsonSchema)
    assert alone.content == {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int32"}]}


NULLABLE_TEXT = [{"type": "null"}, {"type": "string"}]


def test_avro() -> None:
    registered = schema(Serde("AVRO", schema_name="a.b.Row"), COLUMNS)
    assert isinstance(registered, dict)
    assert (registered["name"], registered["namespace"]) == ("Row", "a.b")
    entry = registered["fields"][1]["type"][1]["items"]
    assert (entry["name"], entry["connect.internal.type"]) == ("Row_M", "MapEntry")
    assert registered["fields"][2]["type"][1]["name"] == "Row_S"
    value = bytes_of(Serde("AVRO"), COLUMNS, *TEXTS)
    assert value is not None
    assert fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(registered)) == {
        "TAGS": ["a", None],
        "M": [{"key": "x", "value": 1.0}],
        "S": {
            "Z": 5,
            "A": [{"X": Decimal("1.5"), "Y": AT}],
            "R": b"\0\xff",
            "D": 2.0,
        },
    }


AT = fastavro.schemaless_reader(io.BytesIO(b"\xd0\x0f"), {"type": "long", "logicalType": "timestamp-millis"})


def test_values_fit_a_schema_of_the_registry() -> None:
    """Fields have other names of types, another form of maps, and more fields than there are columns."""
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "Z", "type": "long"}, {"name": "D", "type": ["float", "null"]}]}
    fields = [
        {"name": "first", "type": "string", "default": "x"},
        {"name": "TAGS", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "M", "type": {"type": "map", "values": "double"}},
        {"name": "S", "type": ["null", inner]},
        {"name": "T", "type": ["null", "Inner"], "default": None},
        {"name": "E", "type": ["null", {"type": "array", "items": {"type": "record", "name": "MapEntry", "fields": ENTRY}}]},
        {"name": "AT", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "P", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}},
        {"name": "U", "type": ["null", "string", "a.Inner", "long"]},
    ]
    text = json.dumps({"type": "record", "name": "R", "namespace": "a", "fields": fields})
    struct = ["struct", ["Z", "int"], ["D", "double"]]
    columns = (
        *COLUMNS[:2],
        Column("S", struct),
        Column("T", struct),
        Column("E", ["map", "int"]),
        Column("AT", "timestamp"),
        Column("P", ["decimal", 4, 1]),
        Column("U", ["struct", ["string", "varchar"], ["Inner", struct], ["long", "bigint"]]),
    )
    serde = Serde("AVRO", schema=text)
    row = (*TEXTS[:2], '{"D": 2, "Z": 5}', '{"Z": 1}', '{"k": 3}', 1_000_000, Decimal("1.5"), '{"Inner": {"Z": 7}}')
    value = bytes_of(serde, columns, *row, id=7)
    assert value is not None and value[:5] == b"\0\0\0\0\7"
    assert schema(serde, columns) == json.loads(text)
    assert fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(json.loads(text))) == {
        "first": "x",
        "TAGS": ["a", None],
        "M": {"x": 1.0},
        "S": {"Z": 5, "D": 2.0},
        "T": {"Z": 1, "D": None},
        "E": [{"key": "k", "value": 3}],
        "AT": AT,
        "P": Decimal("1.5"),
        "U": {"Z": 7, "D": None},
    }
    with pytest.raises(TailgateError, match="does not fit the schema of the registry") as error:
        bytes_of(serde, columns[:1], None)
    assert error.value.sqlstate == "22P02"
    point = {"type": "record", "name": "P", "fields": [{"name": "X", "type": "int", "default": 4}, {"name": "Y", "type": "int"}]}
    record = json.dumps({"type": "record", "name": "R", "fields": [{"name": "P", "type": point}]})
    of_point = (Column("P", ["struct", ["X", "int"], ["Y", "int"]]),)
    assert bytes_of(Serde("AVRO", schema=record), of_point, '{"X": null, "Y": 1}') == b"\x08\2"
    with pytest.raises(TailgateError, match="does not fit the schema of the registry"):
        bytes_of(Serde("AVRO", schema=record), of_point, '{"X": 1}')
    alone = Serde("AVRO", wrapped=False, schema='["null", "string"]')
    assert bytes_of(alone, (Column("K", "varchar"),), "a") == b"\2\2a"
    assert bytes_of(alone, (Column("K", "varchar"),), None) is None


@pytest.mark.parametrize(
    ("union", "type", "value", "expected"),
    [
        (["int", "long"], [["int", "int"], ["long", "bigint"]], '{"long": 5}', b"\2\n"),
        (["null", "float", "double"], [["float", "double"], ["double", "double"]], '{"float": 1}', b"\2\0\0\x80?"),
        (["null", "string", "bytes"], [["string", "varchar"], ["bytes", "bytes"]], None, b"\0"),
        (
            ["null", *({"type": "record", "name": name, "fields": [{"name": "V", "type": "int"}]} for name in ("X", "Y"))],
            [["X", ["struct", ["V", "int"]]], ["Y", ["struct", ["V", "int"]]]],
            '{"X": null, "Y": {"V": 5}}',
            b"\4\n",
        ),
    ],
)
def test_a_union_has_the_type_of_the_field(union: list[Any], type: list[Any], value: str | None, expected: bytes) -> None:
    text = json.dumps({"type": "record", "name": "R", "namespace": "a", "fields": [{"name": "U", "type": union}]})
    assert bytes_of(Serde("AVRO", schema=text), (Column("U", ["struct", *type]),), value) == expected


ENTRY = [{"name": "key", "type": "string"}, {"name": "value", "type": ["null", "int"]}]


def test_maps_have_the_form_of_the_json_schema() -> None:
    entries, of_json = schema(Serde("JSON_SR"), COLUMNS[1:2]), {"type": "object", "properties": {"M": {"type": "object"}}}
    assert isinstance(entries, JsonSchema)
    assert bytes_of(Serde("JSON_SR", schema=json.dumps(entries.content)), COLUMNS[1:2], TEXTS[1]) == b'{"M":[{"key":"x","value":1.0}]}'
    assert bytes_of(Serde("JSON_SR", schema=json.dumps(of_json)), COLUMNS[1:2], TEXTS[1]) == b'{"M":{"x":1.0}}'
    assert schema(Serde("JSON_SR", schema=json.dumps(of_json)), COLUMNS[1:2]) == JsonSchema(of_json)


def test_avro_of_one_column() -> None:
    column = (Column("K", "varchar"),)
    assert schema(Serde("AVRO", wrapped=False), column) == ["null", "string"]
    assert bytes_of(Serde("AVRO", wrapped=False), column, "ab", id=1) == b"\0\0\0\0\1\2\4ab"
    assert bytes_of(Serde("AVRO", wrapped=False), column, None, id=1) is None
    digits = (Column("N", ["decimal", 38, 10]),)
    number = Decimal("-1234567890123456789012345678.0123456789")
    value = bytes_of(Serde("AVRO"), digits, number)
    assert value is not None
    assert fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(schema(Serde("AVRO"), digits))) == {"N": number}


SCALARS = (Column("I", "int"), Column("T", "varchar"), Column("B", "boolean"), Column("D", "double"))


NUMBERS = """
syntax = "proto3";
message First { int32 x = 1; }
message Row {
  sint32 a = 16; fixed64 b = 2; float c = 3; string d = 4; Kind e = 5; google.protobuf.Int32Value f = 6;
  repeated sint64 g = 7; map<string, int32> h = 8; oneof i { int32 j = 9; Inner k = 10; } optional bool l = 11;
  enum Kind { NONE = 0; SOME = 3; } message Inner { string m = 1; repeated Inner n = 2; } int64 unused = 12; repeated string o = 13;
}
"""
INNER = ["struct", ["m", "varchar"], ["n", ["array", ["struct", ["m", "varchar"]]]]]
OF_SCHEMA = {
    "a": ("int", -2, "8001 03"),
    "b": ("bigint", 1, "11 0100000000000000"),
    "c": ("double", 0.5, "1d 0000003f"),
    "d": ("varchar", "", ""),
    "e": ("varchar", "SOME", "28 03"),
    "f": ("int", 0, "32 00"),
    "g": (["array", "bigint"], [1, None, -1], "3a 03 020001"),
    "h": (["map", "int"], {"q": 5}, "42 05 0a0171 1005"),
    "i_0": (["struct", ["j", "int"], ["k", INNER]], {"j": None, "k": {"m": "z", "n": [{"m": None}]}}, "52 05 0a017a 1200"),
    "l": ("boolean", False, "58 00"),
    "o": (["array", "varchar"], ["a", None], "6a0161 6a00"),
}


def test_protobuf_with_a_schema_of_the_registry() -> None:
    serde = Serde("PROTOBUF", schema_name="Row", schema=NUMBERS)
    assert schema(serde, ()) == NUMBERS
    prefix = bytes.fromhex("00 00000007 02 02")  # the id, and the path of the second message
    for name, (type, value, encoded_field) in OF_SCHEMA.items():
        content = json.dumps(value) if isinstance(type, list) else value
        columns = (Column(name, type),)
        expected = bytes.fromhex(encoded_field)
        assert bytes_of(serde, columns, content, id=7) == prefix + expected, name
        assert bytes_of(serde, columns, None, id=7) == prefix
    of_all = tuple(Column(name, type) for name, (type, _, _) in OF_SCHEMA.items())
    contents = [json.dumps(value) if isinstance(type, list) else value for type, value, _ in OF_SCHEMA.values()]
    length = sum(len(bytes.fromhex(encoded_field)) for *_, encoded_field in OF_SCHEMA.values())
    together = bytes_of(serde, of_all, *contents, id=7)
    assert together is not None and len(together) == len(prefix) + length
    with pytest.raises(TailgateError, match='has no symbol "OTHER"'):
        bytes_of(serde, (Column("e", "varchar"),), "OTHER", id=7)


def test_protobuf() -> None:
    assert bytes_of(Serde("PROTOBUF"), SCALARS, -1, "é", True, 0.5, id=3) == (
        b"\0\0\0\0\3\0" + b"\x08" + b"\xff" * 9 + b"\x01" + b"\x12\2" + "é".encode() + b"\x18\1" + b"\x21" + b"\0" * 6 + b"\xe0\x3f"
    )
    assert bytes_of(Serde("PROTOBUF_NOSR"), SCALARS, 0, "", False, 0.0) == b""  # defaults have no presence
    assert bytes_of(Serde("PROTOBUF_NOSR", nullable="OPTIONAL"), SCALARS[:2], 0, "") == b"\x08\0\x12\0"
    assert bytes_of(Serde("PROTOBUF_NOSR", nullable="WRAPPER"), SCALARS[:2], 0, "a") == b"\x0a\0\x12\3\x0a\1a"
    texts = b"\x0a\1a\x0a\0"  # a null element has the default
    entry = b"\x12\x0c\x0a\1x\x11" + b"\0" * 6 + b"\xf0\x3f"
    element = b"\x12\x0d\x0a\7\x0a\1\x0f\x10\4\x18\1\x12\2\x08\1"
    assert bytes_of(Serde("PROTOBUF_NOSR"), COLUMNS, *TEXTS) == (
        texts + entry + b"\x1a\x1e\x08\5" + element + b"\x1a\2\0\xff\x21" + b"\0" * 7 + b"\x40"
    )


def test_the_text_of_a_message() -> None:
    columns = (*SCALARS[:1], *COLUMNS, Column("DAY", "date"), Column("NUMBERS", ["array", ["array", "int"]]))
    for nullable in ("", "OPTIONAL", "WRAPPER"):
        text = schema(Serde("PROTOBUF", nullable=nullable), columns[:5])
        assert isinstance(text, str)
        KINDS["PROTOBUF"].parsed([text])  # the registry accepts it
    text = schema(Serde("PROTOBUF", schema_name="a.Row"), COLUMNS[2:])
    assert isinstance(text, str)
    assert text.startswith('syntax = "proto3";\npackage a;\nimport "confluent/type/decimal.proto";\n')
    assert "message Row {\n  ConnectDefault2 S = 1;\n  message ConnectDefault2 {\n    int32 Z = 1;\n" in text
    assert "repeated ConnectDefault3 A = 2;" in text
    assert '{ key: "scale", value: "1" }' in text


def test_a_text_that_begins_with_a_blank_is_quoted_in_a_line() -> None:
    columns = (Column("A", "varchar"), Column("B", "varchar"))
    assert bytes_of(Serde("DELIMITED"), columns, "", " b") == b'""," b"'
    assert bytes_of(Serde("DELIMITED"), columns, None, "") == b","
    assert bytes_of(Serde("DELIMITED"), columns, "-1", "-1") == b'"-1",-1'  # the first field, as in ksqlDB
    assert bytes_of(Serde("DELIMITED", "|"), columns, "a,b", "c|d") == b'a,b|"c|d"'


def test_jsonb_of_another_dialect_is_written_as_it_is() -> None:
    assert json.loads(bytes_of(Serde("JSON"), (Column("J", "json"),), '{"a": [1]}') or b"") == {"J": {"a": [1]}}
