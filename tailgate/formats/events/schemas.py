"""The schema of a key or a value in the format of a sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tailgate.formats.events import avro, protobuf
from tailgate.lake.types import Field

Part = Literal["key", "value"]


def schema(kind: str, part: Part, columns: Sequence[Field], envelope: str, name: str) -> dict[str, Any] | str:
    """Returns the schema: JSON for Avro, text for Protobuf.

    `columns`: those of the key or of the row. `name`: the name of the record or message.
    """
    format: Any = protobuf if kind == "protobuf" else avro
    make = format.key if part == "key" else format.debezium if envelope == "debezium" else format.upsert
    result: dict[str, Any] | str = make(columns, name)
    return result
