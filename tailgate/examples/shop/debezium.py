"""Change events of the shop's tables, as Debezium's MySQL connector writes them: Avro with a registry.

{"op": "u", "before": row | None, "after": row | None}  ──►  key {id}; value {before, after, source, op, ts_ms}
"""

from __future__ import annotations

import io
import json
import struct
import time
from decimal import Decimal
from typing import Any

import fastavro
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

ZONED = {"type": "string", "connect.version": 1, "connect.name": "io.debezium.time.ZonedTimestamp"}


def optional(type: Any) -> dict[str, Any]:
    return {"type": ["null", type], "default": None}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {
        "type": "bytes",
        "scale": scale,
        "precision": precision,
        "connect.version": 1,
        "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }


# table → its columns; the first is the key
TABLES: dict[str, list[dict[str, Any]]] = {
    "users": [
        {"name": "id", "type": "int"},
        {"name": "email", **optional("string")},
        {"name": "is_vip", "type": [{"type": "int", "connect.type": "int16"}, "null"], "default": 0},
        {"name": "created_at", "type": ZONED},
        {"name": "updated_at", **optional(ZONED)},
    ],
    "items": [
        {"name": "id", "type": "int"},
        {"name": "name", **optional("string")},
        {"name": "category", **optional("string")},
        {"name": "price", **optional(decimal(7, 2))},
    ],
    "purchases": [
        {"name": "id", "type": "int"},
        {"name": "user_id", **optional("int")},
        {"name": "item_id", **optional("int")},
        {"name": "quantity", "type": ["int", "null"], "default": 1},
        {"name": "purchase_price", **optional(decimal(12, 2))},
        {"name": "created_at", "type": ZONED},
    ],
}
SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "io.debezium.connector.mysql",
    "fields": [
        {"name": "version", "type": "string"},
        {"name": "connector", "type": "string"},
        {"name": "name", "type": "string"},
        {"name": "ts_ms", "type": "long"},
        {"name": "snapshot", "type": [{"type": "string", "connect.name": "io.debezium.data.Enum"}, "null"], "default": "false"},
        {"name": "db", "type": "string"},
        {"name": "sequence", **optional("string")},
        {"name": "table", **optional("string")},
        {"name": "server_id", "type": "long"},
        {"name": "gtid", **optional("string")},
        {"name": "file", "type": "string"},
        {"name": "pos", "type": "long"},
        {"name": "row", "type": "int"},
        {"name": "thread", **optional("long")},
        {"name": "query", **optional("string")},
    ],
    "connect.name": "io.debezium.connector.mysql.Source",
}


def topic(table: str) -> str:
    return f"mysql.shop.{table}"


def schemas(table: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the Avro schemas of a table's keys and values."""
    namespace, columns = topic(table), TABLES[table]
    row = {"type": "record", "name": "Value", "fields": columns, "connect.name": f"{namespace}.Value"}
    key = {"type": "record", "name": "Key", "namespace": namespace, "fields": columns[:1], "connect.name": f"{namespace}.Key"}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": namespace,
        "fields": [
            {"name": "before", **optional(row)},
            {"name": "after", **optional("Value")},
            {"name": "source", "type": SOURCE},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", **optional("long")},
        ],
        "connect.name": f"{namespace}.Envelope",
    }
    return key, envelope


class Encoder:
    """An encoder for a schema that is registered under a subject.

    It writes Confluent's wire format.
    """

    def __init__(self, registry: SchemaRegistryClient, subject: str, schema: dict[str, Any]) -> None:
        self._header = struct.pack(">bI", 0, registry.register_schema(subject, Schema(json.dumps(schema), "AVRO")))
        self._schema = fastavro.parse_schema(json.loads(json.dumps(schema)))

    def __call__(self, value: dict[str, Any]) -> bytes:
        out = io.BytesIO(self._header)
        out.seek(len(self._header))
        fastavro.schemaless_writer(out, self._schema, value)
        return out.getvalue()


class Table:
    """A table whose change events are encoded.

    `position` is that in the binary log, which only grows.
    """

    def __init__(self, registry: str, name: str) -> None:
        self.name = name
        key, envelope = schemas(name)
        with SchemaRegistryClient({"url": registry}) as client:
            self._key, self._value = Encoder(client, f"{topic(name)}-key", key), Encoder(client, f"{topic(name)}-value", envelope)
        self._decimals = [c["name"] for c in TABLES[name] if "decimal" in str(c)]
        self.position = int(time.time() * 1000)  # after the positions of earlier runs

    def change(
        self, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, snapshot: str = "false", distance: int = 300
    ) -> tuple[bytes, bytes]:
        """Returns the key and the value of a change event.

        The event is `distance` bytes of the binary log after the previous one. Decimals may be
        text.
        """
        if snapshot == "false":
            self.position += distance
        now = int(time.time() * 1000)
        source = {
            "version": "3.5.0.Final",
            "connector": "mysql",
            "name": "mysql",
            "ts_ms": now,
            "snapshot": snapshot,
            "db": "shop",
            "sequence": None,
            "table": self.name,
            "server_id": 223344,
            "gtid": None,
            "file": "mysql-bin.000003",
            "pos": self.position,
            "row": 0,
            "thread": None,
            "query": None,
        }
        value = {"before": self._row(before), "after": self._row(after), "source": source, "op": op, "ts_ms": now}
        return self.key((after or before or {})["id"]), self._value(value)

    def key(self, id: int) -> bytes:
        return self._key({"id": id})

    def _row(self, row: dict[str, Any] | None) -> dict[str, Any] | None:
        return row and {**row, **{n: Decimal(row[n]) for n in self._decimals if row.get(n) is not None}}
