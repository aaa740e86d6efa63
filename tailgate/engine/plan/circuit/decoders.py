"""The decoders of a circuit's sources as values: the conversion of records to columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailgate.lake.types import Field

# columns that the first step of a Kafka source's shape may read; `value` is a struct for AVRO and
# for JSON with declared columns
DECODED = ("key", "value", "__topic", "__partition", "__offset", "__timestamp", "__headers", "__tick", "__order")


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """The conversion of the bytes of a key or a value to a column, by `kind`.

    - none: not decoded; the column is a binary NULL.
    - bytes: the bytes themselves.
    - text: UTF-8 as a string.
    - json: canonical text of a jsonb.
    - json_columns: an object as a struct of `columns` (Spark DDL).
    - ksqldb: a format of ksqlDB as a struct c0, c1, …; `schema` is JSON (tailgate/engine/java, KsqldbFormats), and
      AVRO is decoded with the writer's schema, which has an id in `registry`.
    - connect_json: Debezium's envelope or key; `schema` has the columns (tailgate/engine/java,
      ConnectFormat).
    - csv: a line as a struct of texts; `schema` is JSON with columns, delimiter, header and nulls.
    - regex: the groups of the pattern `schema` as a struct of texts.
    - avro: decoded with the writer's schema, which has an id in `registry` (a URL), and resolved to
      the reader's `schema` (JSON text). Without a registry the writer's schema equals the reader's,
      and `wire` is true if messages begin with Confluent's header.
    - protobuf: a message as a struct, described by `schema` (tailgate/engine/java, ProtobufSchema).

    `access` has the settings for requests to the registry (`lake.catalog.secrets`, as JSON, secrets by id).
    It is empty if the URL suffices.
    """

    kind: Literal["none", "bytes", "text", "json", "json_columns", "connect_json", "csv", "regex", "avro", "protobuf", "ksqldb"]
    columns: str = ""
    schema: str = ""
    registry: str = ""
    wire: bool = True
    access: str = ""


@dataclass(frozen=True, slots=True)
class KafkaDecoder:
    """A decoder from Kafka records to the columns of DECODED.

    A record whose key and value together exceed `max_bytes` fails; None means no limit.
    """

    key: FormatSpec
    value: FormatSpec
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ArrowDecoder:
    """A decoder from weighted rows of a relation to c0, c1, …; backfills from stored relations use it."""

    columns: tuple[Field, ...]


DecoderSpec = KafkaDecoder | ArrowDecoder

# the effect of a record that fails: a dead letter is written, the source stalls, or the value is
# NULL
OnError = Literal["dead letter", "fail", "null"]
