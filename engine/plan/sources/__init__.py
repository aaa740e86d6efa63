"""Sources: from a source's options to its decoder, its columns and the steps between."""

from __future__ import annotations

from engine.plan.graph import KafkaDecoder, Linear
from engine.plan.sources.layout import Layout, layout
from lake.catalog import Item
from lake.types import Field


def decoding(item: Item) -> tuple[KafkaDecoder, Linear, tuple[Field, ...]]:
    """Of a source: its decoder, the shape of its source node and the columns that the shape gives."""
    of = layout(item.options)
    return of.decoder, of.shape, of.source_columns


def entering(item: Item) -> tuple[Linear, ...]:
    """Of a stored source: the steps from its source node to the operator that keeps its rows."""
    return layout(item.options).entering


__all__ = ["Layout", "decoding", "entering", "layout"]
