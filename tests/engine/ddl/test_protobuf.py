"""FORMAT PROTOBUF with messages of Google's library (tests/fixtures/protobuf).

Covers field presence, damaged messages and schemas.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.registry import Registry
from tailgate.engine.plan.sources import protobuf
from tailgate.formats.protobuf.descriptors import described
from tailgate.formats.protobuf.text import parsed
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field
from testing.change_data import Message, Source

FIXTURES = Path(__file__).parents[2] / "fixtures" / "protobuf"
NAMES = {"shop.v1.Everything": "three", "shop.old.Old": "two"}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def descriptor(name: str) -> str:
    return "\\x" + (FIXTURES / f"{name}.desc").read_bytes().hex()


def recorded(message: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (FIXTURES / "messages.jsonl").read_text().splitlines())
    return [line for line in lines if line["message"] == message]


def create_source(session: Any, folder: Path, schema: str, rest: str = "", message: str = "M", columns: str = "") -> Source:
    schema = schema.replace("'", "''")
    format = f"FORMAT PROTOBUF MESSAGE '{message}' USING SCHEMA '{schema}' {rest}"
    return Source(session, folder, f"CREATE SOURCE s {columns} FROM KAFKA BROKER 'kafka:9092' TOPIC 't' {format}")


def sent(*values: bytes) -> list[Message]:
    encoded = [base64.b64encode(v).decode() for v in values]
    return [{"partition": 0, "offset": i, "timestamp": 0, "key_b64": None, "value_b64": v} for i, v in enumerate(encoded)]


@pytest.mark.parametrize("name", ["three", "two"])
def test_text_and_descriptor_are_equivalent(name: str) -> None:
    files, text = described((FIXTURES / f"{name}.desc").read_bytes()), (parsed((FIXTURES / f"{name}.proto").read_text()),)
    for message in [m for m, file in NAMES.items() if file == name]:
        by_descriptor, indexes = protobuf.chosen(files, message)
        assert protobuf.chosen(text, f".{message}") == (by_descriptor, indexes)
        one, other = (json.loads(protobuf.spec(f, message, indexes)) for f in (files, text))
        assert one["columns"] == other["columns"] and one["enums"] == other["enums"]
        assert one["messages"].keys() == other["messages"].keys()
        for m, described_as in one["messages"].items():
            assert described_as == other["messages"][m], m


@pytest.mark.parametrize("message", NAMES)
def test_recorded_specifications(message: str) -> None:
    name = NAMES[message]
    text = protobuf.spec(described((FIXTURES / f"{name}.desc").read_bytes()), message, None)
    assert json.loads(text) == json.loads((FIXTURES / f"{name}.spec.json").read_text())


@pytest.mark.spark
@pytest.mark.parametrize("message", NAMES)
def test_every_recorded_message(session: Any, tmp_path: Path, message: str) -> None:
    source = create_source(session, tmp_path, descriptor(NAMES[message]), "INCLUDE OFFSET AS place", message)
    lines = recorded(message)
    rows = {row[-1]: row for row in source.rows_after(sent(*(base64.b64decode(line["bytes"]) for line in lines)))}
    assert source.reasons() == []
    for i, line in enumerate(lines):
        for column, value in zip(source.item.columns, rows[i], strict=True):
            if column.name != "place":
                assert shown(column, value) == line["columns"][column.name], (i, column.name)


def shown(column: Field, value: Any) -> Any:
    """Returns a column's value in the form of the recorded message."""
    if value is None:
        return None
    if column.type.is_array:
        return [shown(Field(column.name, column.type.element), v) for v in value]
    match column.type.name:
        case "jsonb":
            # large numbers such as 1e300
            return plain(json.loads(value, parse_int=lambda digits: int(digits) if len(digits) < 25 else float(digits)))
        case "bytea":
            return value.hex()
        case "numeric":
            return str(Decimal(value))
        case "timestamptz":
            return (value - EPOCH) // timedelta(microseconds=1)
        case "interval":
            return dict(value)["micros"]
    return value


def plain(value: Any) -> Any:
    """Converts times in JSON to numbers, because Python's types lack the precision."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, str) and value.endswith("s") and value[:-1].replace("-", "").replace(".", "").isdigit():
        return {"nanos": int(Decimal(value[:-1]).scaleb(9))}
    if isinstance(value, str) and value.endswith("Z") and value[4:5] == "-":
        return {"micros": micros(value)}
    return value


def micros(text: str) -> int:
    seconds, _, fraction = text[:-1].partition(".")
    since = datetime.fromisoformat(seconds).replace(tzinfo=timezone.utc) - EPOCH
    return since // timedelta(microseconds=1) + int((fraction or "0").ljust(9, "0")[:6])


THREE = """syntax = "proto3";
message M { int32 n = 1; string t = 2; repeated int32 a = 3; Part p = 4; message Part { int32 x = 1; repeated int32 y = 2; } }"""


@pytest.mark.spark
def test_wire_format_variants(session: Any, tmp_path: Path) -> None:
    """Unknown fields and groups are skipped, and lists may be packed or not.

    The last value of a field wins, and repeated submessages are merged.
    """
    source = create_source(session, tmp_path, THREE)
    unknown = b"\xc0\x3e\x05" + b"\xc3\x3e\x08\x01\xc4\x3e" + b"\xc5\x3e\x00\x00\x00\x00"
    rows = source.rows_after(
        sent(
            b"\x08\x01\x12\x01a" + unknown,
            b"\x08\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x18\x01\x1a\x02\x02\x03\x18\x04",
            b"\x22\x02\x08\x01\x22\x02\x10\x05\x22\x02\x10\x06",
            b"\x0a\x01a",
        )
    )
    part = '{"x": 1, "y": [5, 6]}'
    assert sorted(rows, key=repr) == sorted(
        [(1, "a", (), None), (-1, "", (), None), (0, "", (1, 2, 3, 4), None), (0, "", (), part), (0, "", (), None)], key=repr
    )
    assert source.reasons() == []


DAMAGE = {
    b"\x08": "the message ends within a value",
    b"\x12\x05a": "the message ends within a value",
    b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f": "the message ends within a value",
    b"\x12\x01\xff": 'invalid byte sequence for encoding "UTF8": 0xff',
    b"\x08" + b"\xff" * 10: "an integer has more than ten bytes",
    b"\x00\x01": "invalid field number 0",
    b"\x0f": "invalid wire type 7",
    b"\xc4\x3e": "a group ends that did not begin",
    b"\xc3\x3e\x08\x01": "the message ends within a value",
    b"\x1a\x02\x02\x80": "the message ends within a value",
    b"\xc3\x3e" * 200: "messages are nested more than 100 levels deep",
}


@pytest.mark.spark
def test_damage_is_a_dead_letter(session: Any, tmp_path: Path) -> None:
    source = create_source(session, tmp_path, THREE)
    assert source.rows_after(sent(*DAMAGE, b"\x08\x07")) == [(7, "", (), None)]
    assert sorted(source.reasons()) == sorted(DAMAGE.values())


@pytest.mark.spark
def test_a_required_field(session: Any, tmp_path: Path) -> None:
    source = create_source(session, tmp_path, "message M { required int32 n = 1; optional M again = 2; }")
    assert source.rows_after(sent(b"\x08\x01", b"", b"\x08\x01\x12\x00")) == [(1, None)]
    assert source.reasons() == ["required field n is missing"] * 2


@pytest.mark.spark
def test_confluent_header(session: Any, tmp_path: Path) -> None:
    """The header says which message of the schema follows: here the second, [1].

    The short form 0 is the first one.
    """
    schema = 'syntax = "proto3"; message First { int32 n = 1; } message M { int32 n = 1; message In { int32 n = 1; } }'
    header = b"\0\0\0\0\x09"
    wired = "(confluent_wire_format = true)"
    source = create_source(session, tmp_path / "1", schema, wired)
    rows = source.rows_after(sent(header + b"\x02\x02\x08\x05", header + b"\x00\x08\x06", b"\x08\x05", header + b"\x7e\x02", header))
    assert rows == [(5,)]
    assert sorted(source.reasons()) == [
        "message [0] of the schema, the source reads [1]",
        "not in Confluent's wire format",
        "not in Confluent's wire format",
        "the message ends within a value",
    ]
    first = create_source(session, tmp_path / "2", schema, wired, "First")
    assert first.rows_after(sent(header + b"\x00\x08\x06", header + b"\x02\x00\x08\x07")) == [(6,), (7,)]
    inner = create_source(session, tmp_path / "3", schema, wired, "M.In")
    assert inner.rows_after(sent(header + b"\x04\x02\x00\x08\x08")) == [(8,)]


@pytest.mark.spark
def test_keys(session: Any, tmp_path: Path) -> None:
    key, value = 'syntax = "proto3"; message K { int64 id = 1; }', 'syntax = "proto3"; message V { string name = 2; }'
    statement = (
        "CREATE SOURCE s FROM KAFKA BROKER 'kafka:9092' TOPIC 't' "
        f"KEY FORMAT PROTOBUF MESSAGE 'K' USING SCHEMA '{key}' VALUE FORMAT PROTOBUF MESSAGE 'V' USING SCHEMA '{value}' ENVELOPE UPSERT"
    )
    source = Source(session, tmp_path, statement)
    assert [(c.name, str(c.type), c.nullable) for c in source.item.columns] == [("id", "bigint", False), ("name", "text", False)]
    first, second, third = sent(b"\x12\x01a", b"\x12\x01b", b"")
    for m, k in ((first, b"\x08\x01"), (second, b"\x08\x01"), (third, b"\x08\x02")):
        m["key_b64"] = base64.b64encode(k).decode()
    source.send([first, second, {**third, "value_b64": None}])
    assert list(source.rows[source.item.id].elements()) == [(1, "b")]


def register(registry: Registry, subject: str, schema: str, kind: str = "PROTOBUF", references: Any = ()) -> None:
    body = json.dumps({"schema": schema, "schemaType": kind, "references": list(references)}).encode()
    url = f"{registry.url}/subjects/{subject}/versions"
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST"), timeout=10).close()


@pytest.mark.spark
def test_newest_schema_of_a_registry(session: Any, tmp_path: Path, registry: Registry) -> None:
    """The source reads the schema's first message, with its imports.

    Older messages lack new fields, and unknown fields of newer messages are skipped.
    """
    register(registry, "part", 'syntax = "proto3"; package shop; message Part { int32 n = 1; }')
    schema = 'syntax = "proto3"; import "part.proto"; message Order { int64 id = 1; shop.Part part = 2; %s } message Other { int32 n = 1; }'
    imports = [{"name": "part.proto", "subject": "part", "version": 1}]
    register(registry, "proto-value", schema % "", references=imports)
    register(registry, "proto-value", schema % "string note = 3;", references=imports)
    register(registry, "avro-value", '"long"', "AVRO")
    statement = "CREATE SOURCE s FROM KAFKA BROKER 'kafka:9092' TOPIC '{}' FORMAT {} USING CONFLUENT SCHEMA REGISTRY '{}'"
    source = Source(session, tmp_path, statement.format("proto", "PROTOBUF", registry.url))
    assert [(c.name, str(c.type)) for c in source.item.columns] == [("id", "bigint"), ("part", "jsonb"), ("note", "text")]
    header = b"\0\0\0\0\x09\0"
    assert source.rows_after(sent(header + b"\x08\x01", header + b"\x08\x02\x12\x02\x08\x05\x1a\x01a\x22\x01b")) == [
        (1, None, ""),
        (2, '{"n": 5}', "a"),
    ]
    for topic, format, error in (
        ("avro", "PROTOBUF", "the schema of avro-value is AVRO, not PROTOBUF"),
        ("proto", "AVRO", "the schema of proto-value is PROTOBUF, not AVRO"),
        ("gone", "PROTOBUF", 'schema registry has no subject "gone-value"'),
    ):
        with pytest.raises(TailgateError) as raised:
            Source(session, tmp_path, statement.format(topic, format, registry.url))
        assert raised.value.message == error


@pytest.mark.parametrize(
    ("schema", "message", "error"),
    [
        ("message M { int32 n = 1 }", "M", 'the Protobuf schema is not understood at line 1: "}"'),
        ("message M {\n int32 n = 1;\n", "M", "the Protobuf schema is not understood at line 3: it ends there"),
        ("message M { int32 n = 0; }", "M", 'the Protobuf schema is not understood at line 1: "0"'),
        ("message M { int32 n = 1; int32 m = 1; }", "M", "the Protobuf schema has a number twice in message M"),
        ("message M { Gone n = 1; }", "M", 'the Protobuf schema has no type "Gone"'),
        ("message M { int32 n = 1; }", "N", 'the Protobuf schema has no message "N"'),
        ('edition = "2023"; message M { int32 n = 1; }', "M", 'Protobuf of syntax "editions" is not supported'),
        ("message M { }", "M", 'the Protobuf message "M" has no fields, and a source needs a column at least'),
        ("\\xff", "M", "the schema is not a Protobuf descriptor set"),
        ("\\xzz", "M", "the descriptor set is not written in hexadecimal digits"),
        ("", "M", 'the Protobuf schema has no message "M"'),
        ("message M {" * 500, "M", 'the Protobuf schema is not understood at line 1: "M"'),
    ],
)
def test_invalid_schemas(schema: str, message: str, error: str) -> None:
    with pytest.raises(TailgateError) as raised:
        create_source(None, Path(), schema, message=message)
    assert raised.value.message == error


def test_names_resolve_from_the_inner_scope() -> None:
    text = """syntax = "proto3"; package a.b; message O { int32 outer = 1; }
    message M { message N { O o = 1; } message O { int32 inner = 1; } N n = 1; .a.b.O p = 2; b.O q = 3; }"""
    spec = json.loads(protobuf.spec((parsed(text),), "a.b.M", None))
    types = {name: {f["name"]: f["of"] for f in m["fields"]} for name, m in spec["messages"].items()}
    assert types["a.b.M.N"] == {"o": "a.b.M.O"}
    assert types["a.b.M"] == {"n": "a.b.M.N", "p": "a.b.O", "q": "a.b.O"}
