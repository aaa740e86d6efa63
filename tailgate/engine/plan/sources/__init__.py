"""Sources: derives the decoder, the columns and the steps between them from a source's options."""

from __future__ import annotations

from tailgate.engine.plan.graph import KafkaDecoder, Linear
from tailgate.engine.plan.sources.layout import Layout, layout
from tailgate.lake.catalog import Item
from tailgate.lake.types import Field


def decoding(item: Item) -> tuple[KafkaDecoder, Linear, tuple[Field, ...]]:
    """Returns a source's decoder, the shape of its source node, and the columns of the shape."""
    of = layout(item.options)
    return of.decoder, of.shape, of.source_columns


def entering(item: Item) -> tuple[Linear, ...]:
    """Returns the steps from a stored source's node to the operator that stores its rows.

    There is an edge for each element.
    """
    return layout(item.options).entering


__all__ = ["Layout", "decoding", "entering", "layout"]
