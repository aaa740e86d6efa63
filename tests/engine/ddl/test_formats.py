"""Formats and INCLUDE columns through the real circuit: a message's bytes become a row."""

from __future__ import annotations

import base64
import io
import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest

from tailgate.lake.errors import TailgateError
from testing.change_data import Message, Source

pytestmark = pytest.mark.spark


def create_source(session: Any, folder: Path, rest: str, columns: str = "") -> Source:
    return Source(session, folder, f"CREATE SOURCE s {columns} FROM KAFKA BROKER 'kafka:9092' TOPIC 't' {rest}")


def raw(*values: bytes, key: bytes | None = None) -> list[Message]:
    encoded = [base64.b64encode(v).decode() for v in values]
    of_key = None if key is None else base64.b64encode(key).decode()
    return [{"partition": 0, "offset": i, "timestamp": 1500, "key_b64": of_key, "value_b64": v} for i, v in enumerate(encoded)]


def test_csv(session: Any, tmp_path: Path) -> None:
    lines = (b"1,a\n", b'2,"b, ""c""\nd"', b",x", b"1,2,3", b'"open', b"\xff,x")
    source = create_source(session, tmp_path / "1", "FORMAT CSV WITH 2 COLUMNS")
    assert [c.name for c in source.item.columns] == ["column1", "column2"]
    assert source.rows_after(raw(*lines)) == [("", "x"), ("1", "a"), ("2", 'b, "c"\nd')]
    assert len(source.reasons()) == 3
    with_columns = create_source(session, tmp_path / "2", "FORMAT CSV WITH 2 COLUMNS DELIMITED BY ';'", "(n int, t text)")
    assert with_columns.rows_after(raw(b'1;"2;3"', b";", b"x;y", b'"";z')) == [(1, "2;3"), (None, None)]
    with_header = create_source(session, tmp_path / "3", "FORMAT CSV WITH HEADER (id, name)")
    assert with_header.rows_after(raw(b"name,other,id\nAnn,x,7", b"name\nAnn")) == [("7", "Ann")]


def test_regex(session: Any, tmp_path: Path) -> None:
    source = create_source(session, tmp_path, r"FORMAT REGEX '^(?P<ip>[\d.]+) (\w+)( \d+)?$'")
    assert [c.name for c in source.item.columns] == ["ip", "column2", "column3"]
    assert source.rows_after(raw(b"10.0.0.1 GET", b"nothing", b"10.0.0.2 PUT 5")) == [("10.0.0.1", "GET", None), ("10.0.0.2", "PUT", " 5")]
    assert source.reasons() == ["the text does not match the regular expression"]


def test_include_columns(session: Any, tmp_path: Path) -> None:
    source = create_source(
        session,
        tmp_path,
        "KEY FORMAT TEXT VALUE FORMAT TEXT INCLUDE KEY AS k, PARTITION, OFFSET AS at, TIMESTAMP, HEADERS, "
        "HEADER 'trace' AS trace, HEADER 'raw' AS raw BYTES",
    )
    first, second = raw(b"a", b"b", key=b"key")
    first["headers"] = [["trace", "b25l"], ["raw", "/wA="], ["trace", "dHdv"]]
    moment = datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=timezone.utc)
    headers = json.dumps([{"key": "trace", "value": "one"}, {"key": "raw", "value": "\\xff00"}, {"key": "trace", "value": "two"}])
    assert source.rows_after([first, second]) == [
        ("a", "key", 0, 0, moment, headers, "two", b"\xff\x00"),
        ("b", "key", 0, 1, moment, None, None, None),
    ]


def test_network_addresses(session: Any, tmp_path: Path) -> None:
    """Strings of JSON and fields of CSV are read as by PostgreSQL's casts."""
    columns = "(id int, ip inet, net cidr, mac macaddr)"
    source = create_source(session, tmp_path / "json", "FORMAT JSON", columns)
    lines = (
        b'{"id": 1, "ip": "10.1.2.3/8", "net": "10/8", "mac": "08002b:010203"}',
        b'{"id": 2, "ip": "::ffff:1.2.3.4", "net": null}',
        b'{"id": 3, "ip": "localhost"}',
        b'{"id": 4, "net": "10.0.0.1/8"}',
    )
    address, network, mapped = (bytes.fromhex(form) for form in FORMS)
    assert source.rows_after(raw(*lines)) == [
        (1, address, network, "08:00:2b:01:02:03"),
        (2, mapped, None, None),
    ]
    assert len(source.reasons()) == 2
    csv = create_source(session, tmp_path / "csv", "FORMAT CSV WITH 2 COLUMNS", "(ip inet, mac macaddr)")
    assert csv.rows_after(raw(b"10.1.2.3/8,08002b010203")) == [(address, "08:00:2b:01:02:03")]


def test_bit_strings(session: Any, tmp_path: Path) -> None:
    source = create_source(session, tmp_path / "json", "FORMAT JSON", "(id int, bits bit varying)")
    lines = (b'{"id": 1, "bits": "0101"}', b'{"id": 2, "bits": "x1F"}', b'{"id": 3}', b'{"id": 4, "bits": "2"}', b'{"id": 5, "bits": ""}')
    assert source.rows_after(raw(*lines)) == [(1, "0101"), (2, "00011111"), (3, None), (5, "")]
    assert source.reasons() == ['"2" is not a valid binary digit']
    with pytest.raises(TailgateError, match=r"type bit\(3\) of a source's column is not supported"):
        create_source(session, tmp_path / "declared", "FORMAT JSON", "(bits bit(3))")


# the stored forms of 10.1.2.3/8, 10.0.0.0/8 and ::ffff:1.2.3.4
FORMS = ("040a000000080a010203", "040a00000008", "06" + "0" * 20 + "ffff0102030480")
UNION = {"type": "record", "name": "Pair", "fields": [{"name": "x", "type": "int"}]}
ALL = {
    "type": "record",
    "name": "All",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "f", "type": "float"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {
            "name": "fixed_price",
            "type": {"type": "fixed", "name": "Price", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "at", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["red", "blue"]}},
        {"name": "raw", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "pair", "type": ["null", UNION]},
        {"name": "several", "type": ["null", "int", "string", "Pair"]},
        {"name": "many", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "days", "type": {"type": "array", "items": {"type": "int", "logicalType": "date"}}},
        {"name": "uuids", "type": {"type": "array", "items": {"type": "string", "logicalType": "uuid"}}},
        {"name": "pairs", "type": {"type": "array", "items": "Pair"}},
        {"name": "named", "type": {"type": "map", "values": "int"}},
        {"name": "maybe", "type": ["null", "string"]},
    ],
}
ONE = UUID("00000000-0000-4000-8000-000000000001")
RECORD = {
    "flag": True,
    "f": 0.5,
    "price": Decimal("-1.25"),
    "fixed_price": Decimal("3.50"),
    "u": ONE,
    "day": date(2026, 1, 2),
    "millis": datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=timezone.utc),
    "local": datetime(2026, 1, 2, 3, 4, 5, 6),
    "at": (3, 4),
    "color": "blue",
    "raw": b"\x00\xff",
    "pair": {"x": 1},
    "several": "text",
    "many": [1, None],
    "days": [date(1970, 1, 2)],
    "uuids": [ONE],
    "pairs": [{"x": 2}],
    "named": {"b": 2},
    "maybe": None,
}


def encoded(schema: Any, record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), record)
    return out.getvalue()


def test_every_type_of_avro(session: Any, tmp_path: Path) -> None:
    from datetime import time

    source = create_source(session, tmp_path, f"FORMAT AVRO USING SCHEMA '{json.dumps(ALL)}'")
    several = [{**RECORD, "at": time(3, 4), "several": v} for v in (7, "text", ("Pair", {"x": 3}))]
    rows = source.rows_after(raw(*(b"\0\0\0\0\x09" + encoded(ALL, r) for r in several), b"\0\0\0\0\x09\x01"))
    names = [c.name for c in source.item.columns]
    values = [dict(zip(names, row, strict=True)) for row in rows]
    assert [(r["several1"], r["several2"], r["several3"]) for r in values] == [
        (7, None, None),
        (None, "text", None),
        (None, None, '{"x": 3}'),
    ]
    one = values[0]
    expected = {
        **{n: RECORD[n] for n in ("flag", "f", "price", "fixed_price", "day", "millis", "local", "color", "raw", "maybe")},
        "u": str(ONE), "at": 11_040_000_000, "pair": '{"x": 1}', "many": (1, None), "days": (date(1970, 1, 2),), "uuids": (str(ONE),),
        "pairs": ('{"x": 2}',), "named": '{"b": 2}',
    }  # fmt: skip
    assert {n: one[n] for n in expected} == expected
    assert source.reasons() == ["the message ends within a value"]
    bare = create_source(session, tmp_path / "bare", "FORMAT AVRO USING SCHEMA '\"string\"' WITH (confluent_wire_format = false)")
    assert bare.rows_after(raw(encoded("string", "word"))) == [("word",)]


def test_a_type_that_contains_itself_is_refused_by_name(session: Any, tmp_path: Path) -> None:
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]}
    with pytest.raises(TailgateError, match="recursive Avro type Tree is not supported"):
        create_source(session, tmp_path, f"FORMAT AVRO USING SCHEMA '{json.dumps(tree)}'")


# ---- errors ------------------------------------------------------------------------------------------------------------------------


def test_on_error_null_reads_the_value_as_null(session: Any, tmp_path: Path) -> None:
    source = create_source(session, tmp_path, "FORMAT JSON INCLUDE OFFSET ON ERROR NULL", "(id int, name text NOT NULL)")
    rows = source.rows_after(raw(b'{"id": 1, "name": "a"}', b"{", b'{"id": "x"}'))
    assert rows == [(1, "a", 0), (None, None, 1), (None, None, 2)]
    assert source.reasons() == []


def test_on_error_fail_stalls_the_source(session: Any, tmp_path: Path) -> None:
    source = create_source(session, tmp_path, "FORMAT JSON ON ERROR FAIL")
    with pytest.raises(Exception, match="partition 0, offset 1: invalid input syntax for type json"):
        source.send(raw(b"{}", b"{"))
    source.send(raw(b"{}"))
    assert source.rows_after([]) == [("{}",)]
    with pytest.raises(TailgateError, match="ON ERROR NULL with ENVELOPE UPSERT is not supported"):
        create_source(session, tmp_path, "KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT ON ERROR NULL")


def test_dead_letters_are_counted_and_end_when_they_decode(session: Any, tmp_path: Path) -> None:
    from tailgate.engine.plan.views import nodes

    source = create_source(session, tmp_path, "KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT")
    source.send(raw(b'{"n": 1}', b"{", key=b"k"))
    letters = source.items[1].id
    assert [(*r[:3], *r[4:8]) for r in source.rows[letters]] == [("t", 0, 1, b"k", b"{", "invalid input syntax for type json", 1)]
    ((since, backfill),) = [r[8:] for r in source.rows[letters]]
    assert not backfill
    assert since == datetime.fromtimestamp(0.001, timezone.utc)  # the time of the first letter's tick
    source.channel = f"$retry/{nodes.source_node(source.item)}"
    headers = [[name, base64.b64encode(value).decode()] for name, value in (("attempts", b"2"), ("since", b"1"))]
    again = {**raw(b"{", key=b"k")[0], "offset": 1, "headers": headers}
    source.send([again])
    assert [r[7:] for r in source.rows[letters]] == [(2, since, False)]
    source.send([{**again, "value_b64": base64.b64encode(b'{"n": 2}').decode()}])
    assert not source.rows[letters]
    assert source.held() == {("k", '{"n": 2}')}
    # A retried record that is older than its key's row is removed and changes nothing.
    source.send([{**again, "offset": 0, "value_b64": base64.b64encode(b'{"n": 0}').decode()}])
    assert source.held() == {("k", '{"n": 2}')}
