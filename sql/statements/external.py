"""What CREATE, ALTER and the like of sources, sinks, secrets and connections say, and what else speaks of topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from lake.names import Name
from lake.types import Type
from sql.statements.values import Options, QueryText
from sql.statements.written import Expression


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`precision`: digits of seconds that a time was declared with. They tell a number's unit, values keep microseconds."""

    name: str
    type: Type
    nullable: bool = True
    position: int | None = field(default=None, compare=False)
    precision: int | None = None


@dataclass(frozen=True, slots=True)
class Bytes:
    """One column `data bytea`."""


@dataclass(frozen=True, slots=True)
class Text:
    """One column `text text`."""


@dataclass(frozen=True, slots=True)
class Json:
    """The declared columns by name, or one column `data jsonb`."""


Strategy: TypeAlias = int | str | None  # which schema of a registry: that of an id, one that is written out, the newest


@dataclass(frozen=True, slots=True)
class Avro:
    """Confluent's header and Avro: the schema from a registry (`registry`: its URL, or `connection`) or written out (`schema`). One of
    the three."""

    registry: str | None = None
    schema: str | None = None
    options: Options = ()
    connection: Name | None = None
    key_strategy: Strategy = None
    value_strategy: Strategy = None


@dataclass(frozen=True, slots=True)
class Protobuf:
    """Protobuf: the schema from a registry (`registry`: its URL, or `connection`), behind Confluent's header, or written out: a
    descriptor set, `\\x` and hexadecimal digits, or the text of a `.proto` file. `message`: its name, None for the first one."""

    registry: str | None = None
    schema: str | None = None
    message: str | None = None
    options: Options = ()
    connection: Name | None = None


@dataclass(frozen=True, slots=True)
class Csv:
    """A line of `columns` fields: columns column1, column2, …; or those of `header`, which a first line names in an order of its own."""

    columns: int
    header: tuple[str, ...] = ()
    delimiter: str = ","


@dataclass(frozen=True, slots=True)
class Regex:
    """A column of text for each group: its name, or column1, column2, …"""

    pattern: str


Format: TypeAlias = Bytes | Text | Json | Avro | Protobuf | Csv | Regex
Envelope: TypeAlias = Literal["none", "debezium", "upsert"]


@dataclass(frozen=True, slots=True)
class Include:
    """INCLUDE KEY | PARTITION | OFFSET | TIMESTAMP | HEADERS [AS name], or HEADER 'header' AS name [BYTES]."""

    kind: Literal["key", "partition", "offset", "timestamp", "headers", "header"]
    name: str | None = None
    header: str = ""
    bytes: bool = False


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """(TRANSACTION METADATA (SOURCE name, COLLECTION 'collection')) behind ENVELOPE DEBEZIUM: the source of the transaction topic, and what
    its messages call the table."""

    source: Name
    collection: str


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE SOURCE name [(columns)] FROM KAFKA BROKER … TOPIC …, or FROM KAFKA CONNECTION name (TOPIC …)

    `brokers`: with port (9092 if none was written), comma-separated; empty with a `connection`. `columns`: None if none were declared.
    `key_format`: None if only FORMAT was written. `primary_key`: names of PRIMARY KEY (…) NOT ENFORCED, in its order; empty if absent.
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


@dataclass(frozen=True, slots=True)
class CreateSecret:
    """CREATE SECRET name AS 'value'. `value_at`: where the value stands in the text, quotes included, so that it can be kept out."""

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
    """CREATE CONNECTION name TO KAFKA | CONFLUENT SCHEMA REGISTRY (options) [WITH (VALIDATE = false)]. Options have `_` for blanks."""

    name: Name
    kind: Literal["kafka", "schema registry"]
    options: Options
    validate: bool = True
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ValidateConnection:
    """VALIDATE CONNECTION name: whether the other side answers now."""

    name: Name


@dataclass(frozen=True, slots=True)
class Pause:
    """PAUSE SOURCE name, …, or RESUME."""

    names: tuple[Name, ...]
    resume: bool = False


@dataclass(frozen=True, slots=True)
class RetryDeadLetters:
    """RETRY DEAD LETTERS OF source."""

    name: Name


@dataclass(frozen=True, slots=True)
class DeleteDeadLetters:
    """DELETE DEAD LETTERS OF source [WHERE condition]. The condition is over the columns of the source's dead letters."""

    name: Name
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class ResumeSource:
    """ALTER SOURCE [IF EXISTS] source RESUME AT EARLIEST: records that its topic has lost are accepted as lost."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RefreshSchema:
    """ALTER SOURCE [IF EXISTS] source REFRESH SCHEMA: the columns that its schema has got since."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Print:
    """PRINT 'topic' [FROM BROKER '…' | FROM CONNECTION name] [FROM BEGINNING] [LIMIT n]. `brokers`: empty if none were written."""

    topic: str
    brokers: str = ""
    beginning: bool = False
    limit: int | None = None
    connection: Name | None = None


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK name FROM item | (query) INTO KAFKA BROKER … TOPIC … [KEY (…)], or INTO KAFKA CONNECTION name (TOPIC …).

    `brokers`: empty with a `connection`. `key`: names of columns, empty if absent. `envelope`: None if none was written. `snapshot`: the
    rows there are come first. `headers`: the column that has them, or them all; empty if absent.
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
