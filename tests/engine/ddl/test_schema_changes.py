"""A topic's schema changes while a source reads it: the source goes on with the columns that it has."""

from __future__ import annotations

import base64
import io
import json
import urllib.request
from pathlib import Path
from typing import Any

import fastavro
import pytest

from embedded.registry import Registry
from lake.errors import UndefinedObject
from tests.engine.ddl.cdc import Message, Source

pytestmark = pytest.mark.spark


class Topic:
    """Writes by schemas that it registers."""

    def __init__(self, registry: Registry, name: str) -> None:
        self.registry, self.name, self.sent = registry, name, 0
        config = json.dumps({"compatibility": "NONE"}).encode()
        self._ask("PUT", f"/config/{name}-value", config)

    def register(self, *fields: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        schema = {"type": "record", "name": "row", "fields": list(fields)}
        answer = self._ask("POST", f"/subjects/{self.name}-value/versions", json.dumps({"schema": json.dumps(schema)}).encode())
        return int(answer["id"]), schema

    def message(self, schema: tuple[int, dict[str, Any]], **values: Any) -> Message:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema[1]), values)
        value = b"\0" + schema[0].to_bytes(4, "big") + out.getvalue()
        self.sent += 1
        return {"partition": 0, "offset": self.sent, "timestamp": 0, "key_b64": None, "value_b64": base64.b64encode(value).decode()}

    def _ask(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.registry.url + path, body, headers, method=method), timeout=10) as answer:
            return dict(json.load(answer))


def field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def test_added_dropped_widened(session: Any, tmp_path: Path, registry: Registry) -> None:
    topic = Topic(registry, "changing")
    note = field("note", ["null", "string"], default=None)
    first = topic.register(field("id", "int"), field("price", "float"), note)
    avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'"
    made = Source(session, tmp_path, f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 'changing' {avro}")
    added = topic.register(field("new", "string"), field("id", "int"), field("price", "float"), note)
    dropped = topic.register(field("id", "int"), field("price", "float"))
    widened = topic.register(field("id", "long"), field("price", "float"), note)
    lacking = topic.register(field("price", "float"), note)
    rows = made.given(
        [
            topic.message(first, id=1, price=0.5, note="a"),
            topic.message(added, id=2, price=0.5, note="b", new="x"),
            topic.message(dropped, id=3, price=0.5),
            topic.message(widened, id=4, price=0.5, note="d"),
            topic.message(widened, id=2**40, price=0.5, note="too large"),
            topic.message(lacking, price=0.5, note="no id, which is NOT NULL"),
            topic.message(first, id=5, price=0.5, note="e"),
        ]
    )
    assert rows == [(1, 0.5, "a"), (2, 0.5, "b"), (3, 0.5, None), (4, 0.5, "d"), (5, 0.5, "e")]
    assert made.reasons() == ["integer out of range", "no field id, and it has no default"]


def test_strategies(session: Any, tmp_path: Path, registry: Registry) -> None:
    """The source has the schema that it was told, whatever the newest is."""
    topic = Topic(registry, "told")
    first = topic.register(field("id", "int"))
    newest = topic.register(field("id", "int"), field("name", "string"))
    create = f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 'told' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'"
    inline = json.dumps({"type": "record", "name": "row", "fields": [field("name", "string", default="?")]})
    sent = [topic.message(first, id=1), topic.message(newest, id=2, name="b")]
    for strategy, rows in ((f"ID {first[0]}", [(1,), (2,)]), (f"INLINE '{inline}'", [("?",), ("b",)]), ("LATEST", [(2, "b")])):
        made = Source(session, tmp_path / strategy[:2], f"{create} VALUE STRATEGY {strategy}")
        assert made.given(sent) == rows
    with pytest.raises(UndefinedObject, match="no schema 999"):
        Source(session, tmp_path, f"{create} KEY STRATEGY LATEST VALUE STRATEGY ID 999")
