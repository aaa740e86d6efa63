"""The schema of a topic changes while a source reads it: the source keeps its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.registry import Registry
from tailgate.lake.errors import UndefinedObject
from testing.change_data import Source
from tests.engine.ddl.topics import Topic, field

pytestmark = pytest.mark.spark


def test_added_dropped_and_widened_columns(session: Any, tmp_path: Path, registry: Registry) -> None:
    topic = Topic(registry, "changing")
    note = field("note", ["null", "string"], default=None)
    first = topic.register(field("id", "int"), field("price", "float"), note)
    avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'"
    source = Source(session, tmp_path, f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 'changing' {avro}")
    added = topic.register(field("new", "string"), field("id", "int"), field("price", "float"), note)
    dropped = topic.register(field("id", "int"), field("price", "float"))
    widened = topic.register(field("id", "long"), field("price", "float"), note)
    lacking = topic.register(field("price", "float"), note)
    rows = source.rows_after(
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
    assert source.reasons() == ["integer out of range", "the field id is missing and has no default"]


def test_strategies(session: Any, tmp_path: Path, registry: Registry) -> None:
    """The strategy selects the source's schema, independently of the newest one."""
    topic = Topic(registry, "told")
    first = topic.register(field("id", "int"))
    newest = topic.register(field("id", "int"), field("name", "string"))
    create = f"CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 'told' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'"
    inline = json.dumps({"type": "record", "name": "row", "fields": [field("name", "string", default="?")]})
    messages = [topic.message(first, id=1), topic.message(newest, id=2, name="b")]
    for strategy, rows in ((f"ID {first[0]}", [(1,), (2,)]), (f"INLINE '{inline}'", [("?",), ("b",)]), ("LATEST", [(2, "b")])):
        source = Source(session, tmp_path / strategy[:2], f"{create} VALUE STRATEGY {strategy}")
        assert source.rows_after(messages) == rows
    with pytest.raises(UndefinedObject, match="no schema 999"):
        Source(session, tmp_path, f"{create} KEY STRATEGY LATEST VALUE STRATEGY ID 999")
