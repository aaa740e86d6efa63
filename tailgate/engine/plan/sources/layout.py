"""The layout of a source: the mapping from records to columns and a key, as Spark SQL.

`envelopes.layout` derives it from the source's options, both for CREATE SOURCE (the item's columns)
and for the circuit (their expressions), so the two always agree. Options:

    topic, brokers, channel       origin of the records; the channel is "<reader>/<topic>"
    kafka                         connection settings of lake.secrets
    value_format, key_format      {"type": "bytes" | "text" | "json" | "csv" | "regex" | "avro" |
                                  "protobuf", …}; key_format may be null
                                  avro: "schema" of the reader, "registry" URL or absent, "access"
                                  to it (as `kafka`), "wire": whether messages begin with
                                  Confluent's header
                                  protobuf: "schema" of the message and of the types that it
                                  contains (engine.plan.sources.protobuf)
    envelope                      "none" | "upsert" | "debezium"
    columns                       the declared columns of JSON (lake.types.field_to_json;
                                  "precision" of a time), or null
    decimals                      Debezium's JSON without schema: "precise" (base64) or "string"
    materialized                  whether rows without an envelope are stored
    primary_key                   column names of PRIMARY KEY (…) NOT ENFORCED
    include                       [kind, name] of each INCLUDE; ["header", name, header, as bytes]
    on_error                      "dead letter", "fail" or "null"
    paused                        whether the source is not read
    transactions                  transaction metadata of Debezium, to keep transactions whole
                                  (engine.ddl.transactions)
    max_message_bytes             limit for key and value together; absent: no limit
    max_records_per_second        limit; absent: no limit
    added, first_columns          names of the columns that REFRESH SCHEMA has added at the end;
                                  number of the other columns
    start                         start of each partition; absent: its first record
    topic_id                      distinguishes the topic from another of the same name

Columns by envelope (a column that the key and the value have is taken from the key):

    none        value columns, included columns
    upsert      key columns, value columns, included columns
    debezium    columns of `after`, included columns; without a key, a bag of rows
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.engine.plan.decoders import KafkaDecoder
from tailgate.engine.plan.steps import Steps
from tailgate.lake.types import Field


@dataclass(frozen=True, slots=True)
class Layout:
    """The mapping from records to rows.

    `columns` are those of the item, and `key` has the positions of the key among them, or None.
    `shape` computes `source_columns`. If the rows are `stored`, each of `entering` maps these to
    the input of the operator that stores the rows.
    """

    decoder: KafkaDecoder
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    shape: Steps
    stored: bool
    source_columns: tuple[Field, ...]
    entering: tuple[Steps, ...] = (Steps(),)
