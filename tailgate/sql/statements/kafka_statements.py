"""Statements about sources, sinks, secrets, connections and topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tailgate.lake.catalog.formats import KsqldbFormatName
from tailgate.lake.catalog.names import Name
from tailgate.lake.types import Type
from tailgate.sql.statements.values import Options, QueryText
from tailgate.sql.statements.writes import Expression


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A declared column of a source.

    `precision`: the declared fractional digits of a time. It is the unit of times that arrive as numbers
    (3: milliseconds). Values keep microseconds.
    """

    name: str
    type: Type
    nullable: bool = True
    position: int | None = field(default=None, compare=False)
    precision: int | None = None
    type_position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Bytes:
    """FORMAT BYTES: one column `data bytea`."""


@dataclass(frozen=True, slots=True)
class Text:
    """FORMAT TEXT: one column `text text`."""


@dataclass(frozen=True, slots=True)
class Json:
    """FORMAT JSON: the declared columns, by name, or one column `data jsonb`."""


Strategy: TypeAlias = int | str | None  # the schema to use: a registry id, the text of a schema, or the newest (None)


@dataclass(frozen=True, slots=True)
class Avro:
    """FORMAT AVRO, with Confluent's header.

    Exactly one of `registry` (a URL), `connection` (to a registry) and `schema` (its text) is set.
    """

    registry: str | None = None
    schema: str | None = None
    options: Options = ()
    connection: Name | None = None
    key_strategy: Strategy = None
    value_strategy: Strategy = None


@dataclass(frozen=True, slots=True)
class Protobuf:
    """FORMAT PROTOBUF.

    The schema is in a registry (`registry`: its URL, or `connection`), and messages begin with Confluent's
    header. Or it is in `schema`: a descriptor set as `\\x` and hexadecimal digits, or the text of a
    `.proto` file. `message`: the name of the message type, None for the first one.
    """

    registry: str | None = None
    schema: str | None = None
    message: str | None = None
    options: Options = ()
    connection: Name | None = None


@dataclass(frozen=True, slots=True)
class Csv:
    """FORMAT CSV: a line with `columns` fields, by default with the names column1, column2, …

    With `header`, these are the names. A line before the data line then names the fields, in any order.
    """

    columns: int
    header: tuple[str, ...] = ()
    delimiter: str = ","


@dataclass(frozen=True, slots=True)
class Regex:
    """FORMAT REGEX: one text column per group, with the name of the group, or column1, column2, …"""

    pattern: str


@dataclass(frozen=True, slots=True)
class Ksqldb:
    """FORMAT KSQLDB: declared columns in a format of ksqlDB. The fields are those of the format in the catalog."""

    name: KsqldbFormatName
    columns: tuple[str, ...]
    delimiter: str = ","
    wrapped: bool = True
    registry: str = ""
    schema: str = ""
    window: Literal["", "time", "session"] = ""
    window_size: int = 0
    connection: Name | None = None  # to the registry


Format: TypeAlias = Bytes | Text | Json | Avro | Protobuf | Csv | Regex | Ksqldb
Envelope: TypeAlias = Literal["none", "debezium", "upsert"]


@dataclass(frozen=True, slots=True)
class Include:
    """INCLUDE KEY | PARTITION | OFFSET | ARRIVAL | TIMESTAMP [FROM column [FORMAT 'pattern']] | HEADERS, each with [AS name].

    Or HEADERS AS name BYTES, HEADER 'header' AS name [BYTES].
    """

    kind: Literal["key", "partition", "offset", "arrival", "timestamp", "headers", "header"]
    name: str | None = None
    header: str = ""
    bytes: bool = False
    column: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """(TRANSACTION METADATA (SOURCE name, COLLECTION 'collection')), after ENVELOPE DEBEZIUM.

    `source`: the source of the transaction topic. `collection`: the name of the table in its messages.
    """

    source: Name
    collection: str


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE SOURCE name [(columns)] FROM KAFKA {BROKER … TOPIC … | CONNECTION name (TOPIC …)} …

    `brokers`: comma-separated, each with a port (default 9092); '' with a `connection`. `columns`: None if
    none are declared. `key_format`: None unless the statement has KEY FORMAT. `primary_key`: the columns of
    PRIMARY KEY (…) NOT ENFORCED, or (). `options_at`: as for CreateView, of the last WITH clause.
    """

    name: Name
    brokers: str
    topic: str
    value_format: Format
    key_format: Format | None = None
    envelope: Envelope = "none"
    columns: tuple[ColumnDefinition, ...] | None = None
    primary_key: tuple[str, ...] = ()
    include: tuple[Include, ...] = ()
    on_error: Literal["dead letter", "fail", "null"] = "dead letter"
    options: Options = ()
    if_not_exists: bool = False
    materialized: bool = False
    connection: Name | None = None
    transactions: TransactionMetadata | None = None
    options_at: tuple[int, int] = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class CreateSecret:
    """CREATE SECRET name AS 'value'.

    `value_at`: start and end of the value in the text, including quotes, so that it can be removed.
    """

    name: Name
    value: str = field(repr=False)
    value_at: tuple[int, int] = field(compare=False)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSecret:
    """ALTER SECRET [IF EXISTS] name AS 'value'."""

    name: Name
    value: str = field(repr=False)
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateConnection:
    """CREATE CONNECTION name TO {KAFKA | CONFLUENT SCHEMA REGISTRY} (options) [WITH (VALIDATE = false)].

    The names in `options` have `_` in place of blanks.
    """

    name: Name
    kind: Literal["kafka", "schema registry"]
    options: Options
    validate: bool = True
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ValidateConnection:
    """VALIDATE CONNECTION name: checks that the broker or registry answers."""

    name: Name


@dataclass(frozen=True, slots=True)
class Pause:
    """PAUSE SOURCE name, … or, with `resume`, RESUME SOURCE name, …"""

    names: tuple[Name, ...]
    resume: bool = False


@dataclass(frozen=True, slots=True)
class RetryDeadLetters:
    """RETRY DEAD LETTERS OF source."""

    name: Name


@dataclass(frozen=True, slots=True)
class DeleteDeadLetters:
    """DELETE DEAD LETTERS OF source [WHERE condition].

    The condition reads the columns of the dead letters.
    """

    name: Name
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class ResumeSource:
    """ALTER SOURCE [IF EXISTS] source RESUME AT EARLIEST: skips records that its topic no longer has."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RefreshSchema:
    """ALTER SOURCE [IF EXISTS] source REFRESH SCHEMA: adds the new columns of its schema in the registry."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Print:
    """PRINT 'topic' [FROM BROKER '…' | FROM CONNECTION name] [FROM BEGINNING] [INTERVAL n] [LIMIT n].

    `interval`: one of so many records is printed.
    """

    topic: str
    brokers: str = ""
    beginning: bool = False
    limit: int | None = None
    connection: Name | None = None
    interval: int = 1


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK name FROM {item | (query)} INTO KAFKA {BROKER … TOPIC … | CONNECTION name (TOPIC …)} [KEY (…)] …

    `brokers`: '' with a `connection`. `key`: the names of its columns, or (). `envelope`: None if not given.
    `snapshot`: write the existing rows first. `headers`: the name of the column with the headers, or
    constant headers (name, value); '' without headers.
    """

    name: Name
    from_item: Name | QueryText
    brokers: str
    topic: str
    value_format: Format
    key_format: Format | None = None
    envelope: Envelope | None = None
    key: tuple[str, ...] = ()
    key_not_enforced: bool = False
    snapshot: bool = True
    options: Options = ()
    if_not_exists: bool = False
    connection: Name | None = None
    headers: str | tuple[tuple[str, str], ...] = ""
