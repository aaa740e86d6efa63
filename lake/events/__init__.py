"""The schemas of the events that a sink writes: what the engine explains and the sinks register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lake.events import avro, protobuf
from lake.types import Field

Part = Literal["key", "value"]


def schema(kind: str, part: Part, columns: Sequence[Field], envelope: str, name: str) -> dict[str, Any] | str:
    """Of FORMAT AVRO its JSON, of PROTOBUF its text. `columns`: of the key, or of the row; `name`: of the record or message."""
    of: Any = protobuf if kind == "protobuf" else avro
    make = of.key if part == "key" else of.debezium if envelope == "debezium" else of.upsert
    made: dict[str, Any] | str = make(columns, name)
    return made
