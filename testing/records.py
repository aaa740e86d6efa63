"""Kafka records as the batch of a tick. They reach the JVM as Arrow: for rows of Python, Spark would start Python processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

FIELDS = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestampType", pa.int32()),
    ("headers", pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))),
)


def frame_of(session: Any, records: Iterable[Sequence[Any]]) -> Any:
    """Returns a DataFrame of records, each with the values of all FIELDS."""
    columns = list(zip(*records, strict=True)) or [()] * len(FIELDS)
    arrays = {name: pa.array(values, type) for (name, type), values in zip(FIELDS, columns, strict=True)}
    return session.createDataFrame(pa.table(arrays))
