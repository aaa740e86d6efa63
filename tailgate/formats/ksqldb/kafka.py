"""The format KAFKA: one column as Kafka's serializers of primitives write it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailgate.lake.types import Field

PACKED = {"int2": ">i", "int4": ">i", "int8": ">q", "float4": ">d", "float8": ">d"}


def encoded(column: Field, array: pa.Array) -> list[bytes | None]:
    """Returns the bytes of a column's values."""
    write: Callable[[Any], bytes] = bytes
    if column.type.name in PACKED:
        write = struct.Struct(PACKED[column.type.name]).pack
    elif column.type.name != "bytea":
        write = str.encode
    return [None if value is None else write(value) for value in array.to_pylist()]
