"""Text of every format is valid UTF-8, or the record is a dead letter.

Covers values, keys, array elements, names in maps, headers and Debezium's rows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testing.change_data import Message, Source

pytestmark = pytest.mark.spark

GOOD = "é".encode()
BAD = {
    "Latin-1": b"\xe9",
    "a zero": b"a\x00",
    "an overlong form": b"\xc0\x80",
    "a surrogate": b"\xed\xa0\x80",
    "a cut character": b"\xe2\x82",
    "beyond Unicode": b"\xf5\x80\x80\x80",
}
# escapes in JSON
ESCAPED = {"a high surrogate": b"\\ud800", "a low surrogate": b"\\udc00", "an escaped zero": b"\\u0000"}

Encode = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Place:
    """A place of text in a message, as functions from a text to the value, key and header."""

    value: Encode
    key: Encode | None = None
    header: Encode | None = None


@dataclass(frozen=True)
class Case:
    """A source, the places of text in its messages, and whether these are in JSON."""

    rest: str
    places: tuple[Place, ...]
    columns: str = ""
    json: bool = False


def whole(text: bytes) -> bytes:
    return text


def fixed(value: bytes) -> Encode:
    return lambda text: value


def sized(text: bytes) -> bytes:
    """Encodes an Avro string of fewer than 64 bytes."""
    return bytes([2 * len(text)]) + text


def tagged(number: int, text: bytes) -> bytes:
    """Encodes a field of a Protobuf message."""
    return bytes([number << 3 | 2, len(text)]) + text


def record(**types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": type} for name, type in types.items()]}


def avro(schema: Any) -> str:
    return f"FORMAT AVRO USING SCHEMA '{json.dumps(schema)}' WITH (confluent_wire_format = false)"


def strings() -> tuple[str, tuple[Place, ...]]:
    """Returns a record format with text in every kind of Avro type, and a place for each text."""
    union, array = ["null", "int", "string"], {"type": "array", "items": "string"}
    maps = {"named": {"type": "map", "values": "int"}, "valued": {"type": "map", "values": "string"}}
    schema = record(t="string", u=union, a=array, zoned={"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}, **maps)
    parts: list[Encode] = [
        sized,
        lambda text: b"\x04" + sized(text),
        lambda text: b"\x02" + sized(text) + b"\x00",
        lambda text: sized(b"2026-01-01T00:00:00Z" if text == GOOD else text),
        lambda text: b"\x02" + sized(text) + b"\x02\x00",
        lambda text: b"\x02" + sized(b"k") + sized(text) + b"\x00",
    ]

    def place(at: int) -> Place:
        return Place(lambda text: b"".join(part(text if i == at else GOOD) for i, part in enumerate(parts)))

    return avro(schema), tuple(place(at) for at in range(len(parts)))


def envelope() -> str:
    row = {**record(id="int", t="string"), "name": "Row"}
    return avro({**record(before=["null", row], after=["null", "Row"], op="string"), "name": "Envelope"})


def debezium(after: bytes, text: bytes, end: bytes = b'"}}') -> bytes:
    return b'{"op": "c", "after": {"id": 1, ' + after + text + end


PROTOBUF = 'syntax = "proto3"; message M { string t = 1; repeated string many = 2; map<string, string> named = 3; }'
CASES = {
    "text": Case(
        "KEY FORMAT TEXT VALUE FORMAT TEXT INCLUDE KEY, HEADER 'h' AS h",
        (Place(whole, fixed(GOOD), whole), Place(fixed(GOOD), whole), Place(fixed(GOOD), fixed(GOOD), whole)),
    ),
    "text of a primary key": Case("KEY FORMAT TEXT VALUE FORMAT BYTES ENVELOPE UPSERT", (Place(whole, whole),)),
    "json": Case("FORMAT JSON", (Place(lambda text: b'{"t": "' + text + b'"}'), Place(lambda text: b'{"' + text + b'": 1}')), json=True),
    "json columns": Case("FORMAT JSON", (Place(lambda text: b'{"t": "' + text + b'"}'),), "(t text)", json=True),
    "csv": Case("FORMAT CSV WITH 2 COLUMNS", (Place(lambda text: b"1," + text),)),
    "regex": Case("FORMAT REGEX '^x (.+)$'", (Place(lambda text: b"x " + text),)),
    "avro": Case(*strings()),
    "avro, a string alone": Case(avro("string"), (Place(sized),)),
    "avro key": Case(f"KEY {avro(record(t='string'))} VALUE FORMAT BYTES ENVELOPE UPSERT", (Place(whole, sized),)),
    "debezium avro": Case(
        f"KEY {avro(record(id='int'))} VALUE {envelope()} ENVELOPE DEBEZIUM",
        (Place(lambda text: b"\x00\x02\x02" + sized(text) + sized(b"c"), fixed(b"\x02")),),
    ),
    "debezium json": Case(
        "FORMAT JSON ENVELOPE DEBEZIUM",
        (Place(lambda text: debezium(b'"t": "', text)), Place(lambda text: debezium(b'"j": {"k": "', text, b'"}}}'))),
        "(id int, t text, j jsonb, PRIMARY KEY (id) NOT ENFORCED)",
        json=True,
    ),
    "protobuf": Case(
        f"FORMAT PROTOBUF MESSAGE 'M' USING SCHEMA '{PROTOBUF}'",
        (
            Place(lambda text: tagged(1, text)),
            Place(lambda text: tagged(2, text)),
            Place(lambda text: tagged(3, tagged(1, text) + tagged(2, GOOD))),
            Place(lambda text: tagged(3, tagged(1, GOOD) + tagged(2, text))),
        ),
    ),
}


def message(place: Place, text: bytes, offset: int) -> Message:
    key, value, header = (None if e is None else base64.b64encode(e(text)).decode() for e in (place.key, place.value, place.header))
    headers = None if header is None else [["h", header]]
    return {"partition": 0, "offset": offset, "timestamp": 0, "key_b64": key, "value_b64": value, "headers": headers}


@pytest.mark.parametrize("name", CASES)
def test_text_that_is_not_utf8_is_a_dead_letter(session: Any, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    bad = [*BAD.values(), *(ESCAPED.values() if case.json else ())]
    source = Source(session, tmp_path, f"CREATE SOURCE s {case.columns} FROM KAFKA BROKER 'kafka:9092' TOPIC 't' {case.rest}")
    sent = [(place, text) for place in case.places for text in (GOOD, *bad)]
    source.send([message(place, text, i) for i, (place, text) in enumerate(sent)])
    letters = {r[2]: r[6] for r in source.rows[source.items[1].id]}
    assert sorted(letters) == [i for i, (_, text) in enumerate(sent) if text != GOOD]
    for at, reason in letters.items():
        if sent[at][1] in BAD.values():
            assert reason.startswith('invalid byte sequence for encoding "UTF8": 0x'), (name, sent[at][1], reason)
        assert "\0" not in reason and "\ufffd" not in reason
    rows = source.rows[source.item.id if source.item.stored else source.items[2].id]
    assert sum(rows.values()) == (1 if source.item.key else len(case.places))
    assert all("é" in str(row) for row in rows)
