"""ALTER SOURCE … REFRESH SCHEMA adds columns, with existing state and older messages."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.registry import Registry
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, ObjectNotInPrerequisiteState
from testing.change_data import Source
from tests.engine.ddl.topics import Topic, field

pytestmark = pytest.mark.spark

NULL_TEXT = ["null", "string"]


def test_refresh_of_an_append_only_source(session: Any, tmp_path: Path, registry: Registry) -> None:
    """Covers views, INCLUDE columns and older messages.

    An existing view keeps its columns, INCLUDE columns keep their places, and messages with older
    schemas are still read.
    """
    topic = Topic(registry, "only_come")
    first = topic.register(field("id", "int"), field("price", "int"))
    avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}' INCLUDE OFFSET"
    source = Source(session, tmp_path, f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 'only_come' {avro}")
    assert source.rows_after([topic.message(first, id=1, price=10)]) == [(1, 10, 1)]
    second = topic.register(field("name", "string"), field("id", "int"), field("price", "long"))
    assert source.refresh() == [
        'column "name" of type text was added',
        'column "price" is of type bigint in the schema, and stays integer',
    ]
    assert [(c.name, c.nullable) for c in source.item.columns] == [("id", False), ("price", False), ("offset", False), ("name", True)]
    assert source.refresh()[1:] == ['source "s" has all columns of its schema']
    sent = [
        topic.message(first, id=2, price=20),
        topic.message(second, id=3, price=30, name="c"),
        topic.message(second, id=4, price=2**40, name="d"),
    ]
    assert source.rows_after(sent) == [(1, 10, 1), (2, 20, 2), (3, 30, 3)]
    assert source.reasons() == ["integer out of range"]
    lost = topic.register(field("name", "string"), field("price", "int"), field("more", {"type": "array", "items": "string"}))
    assert source.refresh() == [
        'column "more" of type text[] was added',
        'column "id" is no longer in the schema, and is NULL in later rows',
    ]
    assert [c.name for c in source.item.columns] == ["id", "price", "offset", "name", "more"]
    assert source.rows_after([topic.message(lost, price=50, name="e", more=["x"])])[-1] == (None, 50, 5)


def test_refresh_of_an_upsert_source(session: Any, tmp_path: Path, registry: Registry) -> None:
    """Rows from before are compared, changed and deleted.

    This also works after two refreshes, and after the state is rebuilt.
    """
    topic = Topic(registry, "by_key")
    first = topic.register(field("price", "int"))
    formats = f"KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'"
    source = Source(session, tmp_path, f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 'by_key' {formats} INCLUDE PARTITION ENVELOPE UPSERT")
    source.send([topic.message(first, key=k, price=1) for k in "abcd"])
    second = topic.register(
        field("price", "int"), field("at", {"type": "long", "logicalType": "timestamp-micros"}), field("note", NULL_TEXT)
    )
    source.refresh()
    assert source.held() == {(k, 1, 0, None, None) for k in "abcd"}
    same = topic.message(first, key="a", price=1)  # equals the current row
    source.send([same, topic.message(second, key="b", price=2, at=0, note=None), topic.message(None, key="c")])
    assert source.held("key0", "price", "note") == {("a", 1, None), ("b", 2, None), ("d", 1, None)}
    third = topic.register(field("price", "int"), *({**f, "default": None} for f in [field("note", NULL_TEXT), field("last", NULL_TEXT)]))
    assert "is no longer in the schema" in source.refresh()[1]
    source.send([topic.message(third, key="b", price=3, note="n", last="l"), topic.message(first, key="e", price=5)])
    expected = {("a", 1, None, None), ("b", 3, "n", "l"), ("d", 1, None, None), ("e", 5, None, None)}
    assert source.held("key0", "price", "note", "last") == expected
    source.lose_state()
    source.send([topic.message(third, key="d", price=4, note=None, last="l"), topic.message(None, key="e")])
    assert source.held("key0", "price", "note", "last") == {("a", 1, None, None), ("b", 3, "n", "l"), ("d", 4, None, "l")}


def envelope(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    row = {"type": "record", "name": "Value", "namespace": "db", "fields": list(fields)}
    source = {"type": "record", "name": "Source", "namespace": "db", "fields": [field("lsn", ["null", "long"], default=None)]}
    images = [field("before", ["null", row], default=None), field("after", ["null", "db.Value"], default=None)]
    return [*images, field("source", source), field("op", "string")]


def change(op: str, lsn: int, before: Any, after: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"lsn": lsn}, "op": op}


@pytest.mark.parametrize("key", ["PRIMARY KEY", "no key"])
def test_change_data(session: Any, tmp_path: Path, registry: Registry, key: str) -> None:
    """With a key, and as a bag, where before images have values that the existing rows lack."""
    name = key.replace(" ", "_")
    topic = Topic(registry, name)
    first = topic.register(*envelope(field("id", "int"), field("name", "string")))
    if key == "PRIMARY KEY":
        topic.register_key(field("id", "int"))
    avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}' ENVELOPE DEBEZIUM"
    source = Source(session, tmp_path, f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC '{name}' {avro}")

    def send(schema: Any, op: str, lsn: int, before: Any, after: Any) -> None:
        id = (after or before)["id"]
        source.send([topic.message(schema, key={"id": id} if key == "PRIMARY KEY" else None, **change(op, lsn, before, after))])

    for i in (1, 2, 3):
        send(first, "c", i, None, {"id": i, "name": f"n{i}"})
    second = topic.register(*envelope(field("id", "int"), field("vip", "boolean"), field("name", "string"), field("total", "double")))
    source.refresh()
    assert [c.name for c in source.item.columns] == ["id", "name", "vip", "total"]
    assert source.held() == {(i, f"n{i}", None, None) for i in (1, 2, 3)}
    old = {"id": 1, "name": "n1", "vip": False, "total": 0.5}  # the database set defaults, without events
    send(second, "u", 4, old, {**old, "name": "m1"})
    send(second, "d", 5, {**old, "id": 2, "name": "n2"}, None)
    send(second, "c", 6, None, {"id": 4, "name": "n4", "vip": True, "total": 1.5})
    send(first, "u", 7, {"id": 3, "name": "n3"}, {"id": 3, "name": "m3"})  # a delayed message
    send(second, "c", 6, None, {"id": 4, "name": "n4", "vip": True, "total": 1.5})  # a duplicate
    assert source.held() == {(1, "m1", False, 0.5), (3, "m3", None, None), (4, "n4", True, 1.5)}
    source.lose_state()
    send(second, "d", 8, {**old, "id": 3, "name": "m3"}, None)
    send(second, "u", 9, {**old, "name": "m1"}, {**old, "name": "l1"})
    assert source.held() == {(1, "l1", False, 0.5), (4, "n4", True, 1.5)}


def test_what_is_refused(session: Any, tmp_path: Path, registry: Registry) -> None:
    topic = Topic(registry, "refused")
    first = topic.register(field("id", "int"))
    create = "CREATE SOURCE s {} FROM KAFKA BROKER 'k' TOPIC 'refused' FORMAT "
    avro = f"AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'"
    inline = 'AVRO USING SCHEMA \'{"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}\''
    for i, (format, columns) in enumerate(((inline, ""), (f"{avro} VALUE STRATEGY ID {first[0]}", ""), ("JSON", "(id int)"))):
        source = Source(session, tmp_path / str(i), create.format(columns) + format)
        with pytest.raises(FeatureNotSupported if columns else ObjectNotInPrerequisiteState, match=r"its statement says|FORMAT JSON"):
            source.refresh()
    source = Source(session, tmp_path / "record", create.format("") + avro)
    topic.register_schema("long")
    with pytest.raises(InvalidObjectDefinition, match="cannot keep its columns"):
        source.refresh()


def test_protobuf(session: Any, tmp_path: Path, registry: Registry) -> None:
    """Fields are matched by number: new enum symbols, a removed field and a new one."""
    topic = Topic(registry, "proto")
    old = 'syntax = "proto3"; enum K { A = 0; } message V { int64 id = 1; string url = 2; K k = 3; }'
    topic.register_text("PROTOBUF", old)
    source = Source(
        session,
        tmp_path,
        f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 'proto' FORMAT PROTOBUF USING CONFLUENT SCHEMA REGISTRY '{registry.url}'",
    )
    assert [c.name for c in source.item.columns] == ["id", "url", "k"]
    topic.register_text("PROTOBUF", 'syntax = "proto3"; enum K { A = 0; B = 1; } message V { int64 id = 1; K k = 3; int32 n = 4; }')
    assert source.refresh() == [
        'column "n" of type integer was added',
        'column "url" is no longer in the schema, and is NULL in later rows',
    ]
    assert [(c.name, c.nullable) for c in source.item.columns] == [("id", False), ("url", True), ("k", False), ("n", True)]
    header = b"\0" + (9).to_bytes(4, "big") + b"\0"
    bytes = header + b"\x08\x05\x18\x01\x20\x07"  # id = 5, k = 1, n = 7
    view = source.rows_after(
        [{"partition": 0, "offset": 1, "timestamp": 0, "key_b64": None, "value_b64": base64.b64encode(bytes).decode()}]
    )
    assert view == [(5, None, "B")]
    assert json.loads(source.item.value_format.schema)["columns"][-1] == {"name": "n", "spark": "int"}
