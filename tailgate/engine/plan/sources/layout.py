"""The layout of a source: the mapping from records to columns and a key, as Spark SQL.

`envelopes.source_layout` derives it from the source, both for CREATE SOURCE (the item's columns)
and for the circuit (their expressions), so the two always agree.

Columns by envelope (a column that the key and the value have is taken from the key):

    none        value columns, included columns
    upsert      key columns, value columns, included columns
    debezium    columns of `after`, included columns; without a key, a bag of rows
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.engine.plan.circuit.decoders import KafkaDecoder
from tailgate.engine.plan.circuit.steps import Steps
from tailgate.lake.types import Field


@dataclass(frozen=True, slots=True)
class Layout:
    """The mapping from records to rows.

    `columns` are those of the item, and `key` has the positions of the key among them, or None.
    `shape` computes `source_columns`. If the rows are `stored`, each of `entering` maps these to
    the input of the operator that stores the rows. `time` computes the time of a record in
    milliseconds, from which freshness lag counts; None for Kafka's.
    """

    decoder: KafkaDecoder
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    shape: Steps
    stored: bool
    source_columns: tuple[Field, ...]
    entering: tuple[Steps, ...] = (Steps(),)
    time: Steps | None = None
