"""Schemas of the events that sinks write. The engine shows them in EXPLAIN, and the sinks register them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tailgate.lake.events import avro, protobuf
from tailgate.lake.types import Field

Part = Literal["key", "value"]


def schema(kind: str, part: Part, columns: Sequence[Field], envelope: str, name: str) -> dict[str, Any] | str:
    """Returns the schema: JSON for Avro, text for Protobuf.

    `columns`: those of the key or of the row. `name`: the name of the record or message.
    """
    of: Any = protobuf if kind == "protobuf" else avro
    make = of.key if part == "key" else of.debezium if envelope == "debezium" else of.upsert
    result: dict[str, Any] | str = make(columns, name)
    return result
