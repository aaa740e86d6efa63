"""Sources: from a source's options to its decoder, its columns and the steps between."""

from __future__ import annotations

from engine.plan.graph import DELETED, POSITION, KafkaDecoder, Linear
from engine.plan.sources.layout import Layout, layout
from lake.catalog import Item
from lake.types import BOOL, TEXT, Field

UPSERT_COLUMNS = (Field(DELETED, BOOL, False), Field(POSITION, TEXT))  # after those of the row


def decoding(item: Item) -> tuple[KafkaDecoder, Linear, tuple[Field, ...]]:
    """Of a source: its decoder, the shape of its source node and the columns that the shape gives."""
    of = layout(item.options)
    return of.decoder, of.shape, item.columns + (UPSERT_COLUMNS if of.key is not None else ())


__all__ = ["Layout", "decoding", "layout"]
