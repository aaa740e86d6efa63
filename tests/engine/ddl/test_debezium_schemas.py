"""Change data capture with Avro schemas that have no before image."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tailgate.lake.errors import InvalidObjectDefinition
from testing.change_data import Message, Source, message
from tests.engine.ddl.debezium import TABLE, json_source, postgres, row

pytestmark = pytest.mark.spark

ROW = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}]}
ENVELOPE = {"type": "record", "name": "envelope", "fields": [{"name": "after", "type": ["null", ROW]}, {"name": "op", "type": "string"}]}
KEY = {"type": "record", "name": "key", "fields": [{"name": "id", "type": "int"}]}


def avro_source(session: Any, folder: Path, key: str, partitions: int = 1) -> Source:
    plain = "WITH (confluent_wire_format = false)"
    value = f"FORMAT AVRO USING SCHEMA '{json.dumps(ENVELOPE)}' {plain}"
    rest = f"KEY FORMAT {key} VALUE {value}" if key else value
    statement = f"CREATE SOURCE s FROM KAFKA BROKER 'kafka:9092' TOPIC 't' {rest} ENVELOPE DEBEZIUM"
    return Source(session, folder, statement, partitions)


def change(op: str, id: int, name: str | None = None) -> Message:
    """Returns an Avro message without a before image."""
    values = {"after": None if op == "d" else row(id, name), "op": op}
    key_b64, value_b64 = (base64.b64encode(encoded(s, v)).decode() for s, v in ((KEY, {"id": id}), (ENVELOPE, values)))
    return {**message(None, offset=id), "key_b64": key_b64, "value_b64": value_b64}


def encoded(schema: Any, values: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), values)
    return out.getvalue()


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_schema_without_a_before_image(session: Any, tmp_path: Path, partitions: int) -> None:
    key = f"AVRO USING SCHEMA '{json.dumps(KEY)}' WITH (confluent_wire_format = false)"
    source = avro_source(session, tmp_path, key, partitions)
    source.send([change("c", 1, "a"), change("c", 2, "b"), change("u", 1, "c")])
    assert source.held() == {(1, "c"), (2, "b")}
    source.lose_state()
    source.send([change("d", 1), change("u", 2, "d")])
    assert source.held() == {(2, "d")}


def test_a_change_without_key_and_before_image(session: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidObjectDefinition, match="has no field before"):
        avro_source(session, tmp_path, "")


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_declared_key_and_a_message_key(session: Any, tmp_path: Path, partitions: int) -> None:
    """The before image identifies the row, because the message's key is arbitrary text."""
    source = json_source(session, tmp_path, TABLE, "KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE DEBEZIUM", partitions)
    source.send([postgres("c", 1, row(1, "a")), postgres("c", 2, row(2, "b"))])
    source.send([postgres("u", 3, row(3, "c"), row(1, "a")), postgres("d", 4, None, row(2, "b"))])
    assert source.held() == {(3, "c")}
