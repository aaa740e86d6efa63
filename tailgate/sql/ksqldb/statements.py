"""The values of ksqlDB's statements, as the parser returns them. `expressions` has those of queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tailgate.sql.ksqldb.expressions import Expression, SelectQuery, TypeName

ItemType: TypeAlias = Literal["stream", "table"]
PropertyValue: TypeAlias = str | int | float | bool | None
Properties: TypeAlias = tuple[tuple[str, PropertyValue], ...]  # names in upper case


@dataclass(frozen=True, slots=True)
class ColumnElement:
    """A declared column. `role`: where its value comes from, '' for the message's value. `header`: of HEADER('…')."""

    name: str
    type: TypeName
    role: Literal["", "key", "primary key", "headers", "header"] = ""
    header: str = ""
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CreateItem:
    """CREATE [OR REPLACE] [SOURCE] {STREAM | TABLE} [IF NOT EXISTS] name [(columns)] [WITH (properties)]."""

    type: ItemType
    name: str
    columns: tuple[ColumnElement, ...]
    properties: Properties
    replace: bool = False
    source: bool = False
    if_not_exists: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CreateAs:
    """CREATE [OR REPLACE] {STREAM | TABLE} [IF NOT EXISTS] name [WITH (properties)] AS query.

    `wraps`: the default of WRAP_SINGLE_VALUE. `key_format`: that of KEY_FORMAT, if the source has the format NONE.
    """

    type: ItemType
    name: str
    properties: Properties
    query: SelectQuery
    replace: bool = False
    if_not_exists: bool = False
    position: int = field(default=0, compare=False)
    wraps: bool = True
    key_format: str = "KAFKA"


@dataclass(frozen=True, slots=True)
class InsertValues:
    """INSERT INTO name [(columns)] VALUES (…)."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class InsertQuery:
    """INSERT INTO name [WITH (QUERY_ID = …)] query."""

    name: str
    query: SelectQuery
    properties: Properties = ()
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class PushQuery:
    """SELECT … EMIT CHANGES | EMIT FINAL."""

    query: SelectQuery


@dataclass(frozen=True, slots=True)
class DropItem:
    """DROP {STREAM | TABLE} [IF EXISTS] name [DELETE TOPIC]."""

    type: ItemType
    name: str
    if_exists: bool = False
    delete_topic: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ListItems:
    """{SHOW | LIST} … [EXTENDED]. `what`: "streams", "connector plugins", … `all`: SHOW ALL TOPICS."""

    what: str
    extended: bool = False
    all: bool = False


@dataclass(frozen=True, slots=True)
class DescribeItem:
    """DESCRIBE name [EXTENDED], DESCRIBE EXTENDED name, DESCRIBE {STREAMS | TABLES}, DESCRIBE {FUNCTION | CONNECTOR} name."""

    name: str
    kind: Literal["relation", "function", "connector", "streams", "tables"] = "relation"
    extended: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ControlQuery:
    """TERMINATE, PAUSE or RESUME of a query, or of ALL (`query` None)."""

    action: Literal["terminate", "pause", "resume"]
    query: str | None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ExplainQuery:
    """EXPLAIN {query_id | statement}, of a statement with a query."""

    query: str | CreateAs | InsertQuery | PushQuery
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SetProperty:
    """SET 'name' = 'value', UNSET 'name' (`value` None), or with `system` ALTER SYSTEM 'name' = 'value'."""

    name: str
    value: str | None
    system: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class DefineVariable:
    """DEFINE name = 'value', or UNDEFINE name (`value` None)."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ALTER {STREAM | TABLE} name ADD [COLUMN] column type, …"""

    type: ItemType
    name: str
    columns: tuple[ColumnElement, ...]
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CreateType:
    """CREATE TYPE [IF NOT EXISTS] name AS type."""

    name: str
    type: TypeName
    if_not_exists: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class DropType:
    """DROP TYPE [IF EXISTS] name."""

    name: str
    if_exists: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CreateConnector:
    """CREATE {SOURCE | SINK} CONNECTOR [IF NOT EXISTS] name WITH (properties). `properties`: names as typed."""

    direction: Literal["source", "sink"]
    name: str
    properties: Properties = field(repr=False)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConnector:
    """DROP CONNECTOR [IF EXISTS] name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AssertTopic:
    """ASSERT [NOT EXISTS] TOPIC name [WITH (properties)] [TIMEOUT …]. `timeout`: in ms."""

    topic: str
    properties: Properties = ()
    absent: bool = False
    timeout: int | None = None


@dataclass(frozen=True, slots=True)
class AssertSchema:
    """ASSERT [NOT EXISTS] SCHEMA [SUBJECT name] [ID n] [TIMEOUT …]. `timeout`: in ms."""

    subject: str | None
    id: int | None
    absent: bool = False
    timeout: int | None = None


@dataclass(frozen=True, slots=True)
class RunScript:
    """RUN SCRIPT 'file'."""

    file: str


KsqldbStatement: TypeAlias = (
    CreateItem
    | CreateAs
    | InsertValues
    | InsertQuery
    | PushQuery
    | DropItem
    | ListItems
    | DescribeItem
    | ControlQuery
    | ExplainQuery
    | SetProperty
    | DefineVariable
    | AddColumns
    | CreateType
    | DropType
    | CreateConnector
    | DropConnector
    | AssertTopic
    | AssertSchema
    | RunScript
)
