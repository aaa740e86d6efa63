"""Topics whose Avro and Protobuf schemas are in a registry, and their messages."""

from __future__ import annotations

import base64
import io
import json
import urllib.request
from typing import Any

import fastavro

from tailgate.embedded.registry import Registry
from testing.change_data import Message

Registered = tuple[int, Any]


class Topic:
    """A writer of messages with schemas that it registers."""

    def __init__(self, registry: Registry, name: str) -> None:
        self.registry, self.name, self.sent = registry, name, 0
        self._key: Registered | None = None
        config = json.dumps({"compatibility": "NONE"}).encode()
        self._ask("PUT", f"/config/{name}-value", config)

    def register(self, *fields: dict[str, Any]) -> Registered:
        """Registers a record schema with these fields for values."""
        return self.register_schema({"type": "record", "name": "row", "fields": list(fields)})

    def register_key(self, *fields: dict[str, Any]) -> None:
        """Registers a record schema with these fields for keys, which `message` then uses."""
        self._key = self.register_schema({"type": "record", "name": "key", "fields": list(fields)}, "key")

    def register_schema(self, schema: Any, part: str = "value") -> Registered:
        return self.register_text("AVRO", json.dumps(schema), part), schema

    def register_text(self, kind: str, schema: str, part: str = "value") -> int:
        body = json.dumps({"schemaType": kind, "schema": schema}).encode()
        return int(self._ask("POST", f"/subjects/{self.name}-{part}/versions", body)["id"])

    def message(self, schema: Registered | None, *, key: Any = None, **values: Any) -> Message:
        """Returns a message; without a schema its value is NULL.

        The key is text, or follows the registered key schema.
        """
        self.sent += 1
        if key is not None:
            key = key.encode() if self._key is None else _framed(self._key, key)
        value = None if schema is None else _framed(schema, values)
        key_b64, value_b64 = (None if b is None else base64.b64encode(b).decode() for b in (key, value))
        return {"partition": 0, "offset": self.sent, "timestamp": 0, "key_b64": key_b64, "value_b64": value_b64}

    def _ask(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.registry.url + path, body, headers, method=method), timeout=10) as answer:
            return dict(json.load(answer))


def _framed(schema: Registered, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema[1]), value)
    return b"\0" + schema[0].to_bytes(4, "big") + out.getvalue()


def field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    """Returns a field of an Avro record schema."""
    return {"name": name, "type": type, **more}
