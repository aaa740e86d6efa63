"""The format KAFKA: one column as Kafka's serializers of primitives write it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tailgate.formats.ksqldb.values import Column, Values, kind

PACKED = {"int": ">i", "bigint": ">q", "double": ">d"}


def encoded(column: Column, values: Values) -> list[bytes | None]:
    """Returns the bytes of a column's values."""
    write: Callable[[Any], bytes] = bytes
    name = kind(column.type)
    if name in PACKED:
        write = struct.Struct(PACKED[name]).pack
    elif name != "bytes":
        write = str.encode
    return [None if value is None else write(value) for value in values]
