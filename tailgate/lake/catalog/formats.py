"""Values that items of the catalog contain: settings of connections, formats of messages, other options, and the columns of companions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from tailgate.lake.types import BOOL, BYTEA, INT4, INT8, TEXT, TIMESTAMPTZ, Field


@dataclass(frozen=True, slots=True)
class Record:
    """A value that the catalog stores as a JSON object (`lake.catalog.codec`).

    - `unknown`: the fields that this version does not know. They are written back unchanged.
    """

    _: KW_ONLY
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)


def option(name: str = "", *, always: bool = False) -> dict[str, Any]:
    """Returns the metadata of a field of a record: its name in JSON if that differs, and whether its default is written, too."""
    return {"json": name, "always": always}


# ---- settings of connections -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SecretReference(Record):
    """A setting whose value is a secret. `secret`: the id of its item."""

    secret: int


@dataclass(frozen=True, slots=True)
class FileReference(Record):
    """A setting whose value is the content of a file in the folder of `--secrets-dir`."""

    file: str


ConnectionSettings: TypeAlias = Mapping[str, str | SecretReference | FileReference]  # by the names of `lake.clients`


# ---- formats of a source's messages ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bytes(Record):
    """One column of type bytea."""

    type: ClassVar[Literal["bytes"]] = "bytes"


@dataclass(frozen=True, slots=True)
class Text(Record):
    """One column of type text."""

    type: ClassVar[Literal["text"]] = "text"


@dataclass(frozen=True, slots=True)
class Json(Record):
    """The declared columns from a JSON object, or one column of type jsonb."""

    type: ClassVar[Literal["json"]] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv(Record):
    """One column for each field of a line.

    - `header`: the names in the first record of each file, or empty.
    - `nulls`: whether an empty field is NULL.
    """

    type: ClassVar[Literal["csv"]] = "csv"
    names: tuple[str, ...]
    header: tuple[str, ...]
    delimiter: str
    nulls: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex(Record):
    """One column for each group of a regular expression in Java's syntax."""

    type: ClassVar[Literal["regex"]] = "regex"
    pattern: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Avro(Record):
    """The columns of an Avro schema.

    - `schema`: the reader's schema.
    - `registry`: the URL of the registry with the writers' schemas; empty if they have the reader's schema.
    - `wire`: whether messages begin with Confluent's header.
    - `access`: the settings for access to the registry.
    """

    type: ClassVar[Literal["avro"]] = "avro"
    registry: str = ""
    schema: str
    wire: bool = True
    access: ConnectionSettings = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protobuf(Record):
    """The columns of a Protobuf message. `schema`: the message and the types that it contains (`engine.plan.sources.protobuf`)."""

    type: ClassVar[Literal["protobuf"]] = "protobuf"
    schema: str


KsqldbFormatName = Literal["KAFKA", "JSON", "DELIMITED", "AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ksqldb(Record):
    """Declared columns in a format of ksqlDB.

    - `delimiter`: of DELIMITED.
    - `wrapped`: whether a value is an object or a record; otherwise it is the value of the only column.
    - `registry`, `access`: the URL of the registry with the schemas of AVRO, and the settings for access to it.
    - `schema`: the message of PROTOBUF and the types that it contains (`engine.plan.sources.protobuf`).
    - `window`: the form of the window behind a key: empty, "time" (its start) or "session" (both bounds).
    - `window_size`: the size of a time window in ms.
    """

    type: ClassVar[Literal["ksqldb"]] = "ksqldb"
    name: KsqldbFormatName
    columns: tuple[Field, ...]
    delimiter: str = ","
    wrapped: bool = True
    registry: str = ""
    access: ConnectionSettings = field(default_factory=dict)
    schema: str = ""
    window: Literal["", "time", "session"] = ""
    window_size: int = 0


MessageFormat: TypeAlias = Bytes | Text | Json | Csv | Regex | Avro | Protobuf | Ksqldb


# ---- other options ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn(Record):
    """A declared column of a source. `precision`: the declared digits of a time, or None."""

    field: Field
    precision: int | None = None


IncludeKind = Literal["key", "partition", "offset", "arrival", "timestamp", "headers", "header"]


@dataclass(frozen=True, slots=True)
class Include:
    """An INCLUDE clause of a source.

    - `name`: the column.
    - `header`, `bytes`: the name of one header, and whether it is a bytea. `bytes` of all headers: their values are base64, and the
      members are KEY and VALUE, as in ksqlDB.
    - `column`: the column that has the timestamp, instead of the message. `format`: ksqlDB's pattern of its text.
    """

    kind: IncludeKind
    name: str | None
    header: str = ""
    bytes: bool = False
    column: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata(Record):
    """The metadata with which ticks read whole transactions of a source's database (`engine.runtime.kafka.transactions`).

    - `source`, `topic`, `topic_id`: the source of the transaction topic, and that topic.
    - `collection`: the name of the source's table in the transaction topic.
    - `marks`, `block`: the formats of the transaction topic's messages, and of the transaction field of the changes.
    """

    source: int
    topic: str
    topic_id: str | None
    collection: str
    marks: MessageFormat
    block: MessageFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConstraint(Record):
    """A check constraint of a table. `text`: its condition. `columns`: the positions of the columns that the condition reads.

    `valid`: existing rows have been checked.
    """

    name: str
    text: str
    columns: tuple[int, ...]
    valid: bool = True
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexExpression(Record):
    """An expression of an index, or its condition. `text`: as typed, without outer parentheses. `columns`: the positions that it reads.

    `name`: of the column of the index, '' for a condition. `place`: of that column. `form`: decides about the parentheses of its text.
    """

    text: str
    columns: tuple[int, ...]
    name: str = ""
    place: int = 0
    form: Literal["call", "operator", "other"] = "other"


ReferentialAction = Literal["no action", "restrict", "cascade", "set null", "set default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKeyConstraint(Record):
    """A foreign key of a table: the values of `columns` are those of `references` in a row of the table with the id `table`, or NULL.

    - `columns`, `references`: positions.
    - `deferred`: it is checked at COMMIT unless SET CONSTRAINTS says otherwise.
    - `valid`: existing rows have been checked.
    - `match_full`: either all of `columns` are NULL or none.
    - `set_columns`: the positions of those that ON DELETE SET NULL and SET DEFAULT change; () for all.
    """

    name: str
    columns: tuple[int, ...]
    table: int
    references: tuple[int, ...]
    on_delete: ReferentialAction = "no action"
    on_update: ReferentialAction = "no action"
    deferrable: bool = False
    deferred: bool = False
    valid: bool = True
    comment: str = ""
    match_full: bool = False
    set_columns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure(Record):
    """The reason of a view's failure. `time`: the view's last tick. `message`: the text of the row in its errors."""

    time: int
    message: str


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The part of a source that a backfill of a view covers: the records before `ends`, by partition.

    - `done`: the time in ms when all were read, None before that.
    """

    ends: Mapping[str, int]
    done: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KsqldbItem(Record):
    """The properties of a stream or table of ksqlDB.

    - `type`: "stream" or "table". `statement`: the statement of ksqlDB as typed.
    - `topic`, `key_format`, `value_format`: of its topic; the formats have ksqlDB's names.
    - `key_delimiter`, `value_delimiter`: of the format DELIMITED. `wrapped`: whether a value with one column is a record.
    - `key_schema_name`, `value_schema_name`: the full names of the record or message in a schema, empty for the default.
    - `key_nullable`, `value_nullable`: how PROTOBUF represents NULL: OPTIONAL, WRAPPER or empty.
    - `key_schema`, `value_schema`: the text of the registry's schema with which a query writes, empty for that of the columns.
    - `window`, `window_size`: the form of the window in the key, and its size in ms, as in `Ksqldb`.
    - `message_key`: the names of the columns in the message's key.
    - `unnamed_key`: whether queries select the key as ROWKEY only, and the value has all other columns (KSQL 4 and 5).
    - `types`: the types of the columns that are arrays, maps or structures, as ksqlDB writes them.
    - `read_only`: whether it is a SOURCE stream or table, into which nothing can be inserted.
    - `query`: the id of the persistent query that maintains it; empty for a declared item, and after TERMINATE.
    - `number`: the number in that id.
    - `reset`: where the query begins to read streams.
    - `into`: the id of the stream that the query of INSERT INTO … SELECT writes to, else 0.
    """

    type: Literal["stream", "table"]
    statement: str
    topic: str
    key_format: str
    value_format: str
    key_delimiter: str = ","
    value_delimiter: str = ","
    wrapped: bool = True
    key_schema_name: str = ""
    value_schema_name: str = ""
    key_nullable: str = ""
    value_nullable: str = ""
    key_schema: str = ""
    value_schema: str = ""
    window: Literal["", "time", "session"] = ""
    window_size: int = 0
    message_key: tuple[str, ...] = ()
    unnamed_key: bool = False
    types: Mapping[str, str] = field(default_factory=dict, hash=False)
    read_only: bool = False
    query: str = ""
    number: int = -1
    reset: Literal["earliest", "latest"] = "earliest"
    into: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFormat(Record):
    """The format of a sink's keys or values.

    - `registry`, `access`: the URL of the registry of its schemas, and the settings for access.
    - `name`, `delimiter`, `wrapped`: of ksqlDB's formats, as in `Ksqldb`.
    - `schema_name`: the full name of the record or message in the schema of ksqlDB's formats; empty for the default.
    - `nullable`: how PROTOBUF of ksqlDB represents NULL. `schema`: as `key_schema` of KsqldbItem.
    """

    type: Literal["avro", "json", "text", "protobuf", "ksqldb"]
    registry: str | None = None
    access: ConnectionSettings | None = None
    name: str = ""
    delimiter: str = ","
    wrapped: bool = True
    schema_name: str = ""
    nullable: str = ""
    schema: str = ""


EndpointMethod: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]  # GET reads, the others write

# ---- columns of relations that are created with an item -------------------------------------------------------------------------------

# columns of a source's dead letters: records that could not be decoded, with the error
DEAD_LETTERS = (
    Field("topic", TEXT, False),
    Field("partition", INT4, False),
    Field("offset", INT8, False),
    Field("time", TIMESTAMPTZ),
    Field("key", BYTEA),
    Field("value", BYTEA),
    Field("error", TEXT, False),
    Field("attempts", INT4, False),
    Field("since", TIMESTAMPTZ),
    Field("backfill", BOOL),
)
DEAD_LETTERS_KEY = (0, 1, 2)
DEAD_LETTERS_FIRST = 8  # number of columns in the first version; `since` and `backfill` were added later

# columns of a maintained item's errors
ERRORS = (Field("sqlstate", TEXT, False), Field("message", TEXT, False))

# columns of the Idempotency-Keys of endpoints that write (`gateway.http.idempotency`), with the SHA-256 of the request and its response
IDEMPOTENCY_KEYS = (
    Field("endpoint", INT8, False),
    Field("role", INT8, False),
    Field("key", TEXT, False),
    Field("request", TEXT, False),
    Field("status", INT4, False),
    Field("body", TEXT, False),
    Field("until", TIMESTAMPTZ, False),
)
IDEMPOTENCY_KEYS_KEY = (0, 1, 2)
