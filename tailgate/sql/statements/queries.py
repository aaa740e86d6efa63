"""Statements that read: queries, TAIL, SHOW, EXPLAIN, cursors, FETCH, COPY TO."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tailgate.lake.catalog.names import Name
from tailgate.lake.types import Type
from tailgate.sql.ksqldb.statements import CreateAs, InsertQuery, PushQuery
from tailgate.sql.statements.definitions import CreateView
from tailgate.sql.statements.kafka_statements import CreateSink
from tailgate.sql.statements.ksqldb_statements import FollowKsqldb
from tailgate.sql.statements.session_statements import Execute
from tailgate.sql.statements.values import Options, QueryText, Time
from tailgate.sql.statements.writes import CreateTableAs, Delete, Insert, Merge, Update, WithWrites

ExplainFormat: TypeAlias = Literal["text", "json", "xml", "yaml"]


@dataclass(frozen=True, slots=True)
class Select:
    """A query: SELECT, VALUES, WITH … or TABLE t. `as_of` is the time of AS OF."""

    query: QueryText
    as_of: Time | None = None


@dataclass(frozen=True, slots=True)
class KeyEnvelope:
    """ENVELOPE {UPSERT | DEBEZIUM} (KEY (names)): one row for each key that changes at a time."""

    kind: Literal["upsert", "debezium"]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderWithin:
    """A sort key of WITHIN TIMESTAMP ORDER BY. `column`: a name, or a number; mz_diff has number 1."""

    column: str | int
    descending: bool = False
    nulls_first: bool = False
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Tail:
    """TAIL, or SUBSCRIBE if `subscribes`, of a relation or query.

    `as_of` is inclusive, `up_to` exclusive. `limit`: the number of rows after which it ends.
    """

    target: Name | QueryText
    snapshot: bool = True
    progress: bool = False
    as_of: Time | None = None
    up_to: Time | None = None
    subscribes: bool = False
    envelope: KeyEnvelope | None = None
    order: tuple[OrderWithin, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW.

    `what`: one of SHOWS. `name`: the object of SHOW COLUMNS, SHOW CREATE and similar. `setting`: the name
    of a setting or of a function of ksqlDB, in lower case, or of a connector. `schema`: the schema whose objects to list.
    `hidden`: whether ksqlDB's SHOW ALL TOPICS also lists the topics of Kafka Connect, of registries and of sinks' progress.
    """

    what: str
    name: Name | None = None
    setting: str = ""
    like: str | None = None
    types: tuple[Type, ...] | None = None  # argument types of SHOW CREATE FUNCTION, if given
    schema: Name | None = None
    hidden: bool = False


SHOWS = (
    "sources", "topics", "views", "materialized views", "sinks", "subscriptions", "tables", "objects", "columns", "errors", "indexes",
    "schemas", "databases", "secrets", "connections", "create connection", "endpoints", "create endpoint", "tokens",
    "objectives", "create objective", "alerts", "create alert",
    "create source", "create view", "create materialized view", "create sink", "create table",
    "streams", "ksqldb tables", "ksqldb functions", "queries", "describe", "describe extended", "describe function",
    "queries extended", "topics extended", "types", "variables",
    "describe streams", "describe tables", "describe streams extended", "describe tables extended",
    "create function", "create index", "create subscription", "functions", "setting", "all",
)  # fmt: skip
# forms of SHOW and DESCRIBE that Kafka Connect answers
OF_CONNECTORS = ("connectors", "source connectors", "sink connectors", "connector plugins", "describe connector")


@dataclass(frozen=True, slots=True)
class QueryId:
    """The id of a persistent query of ksqlDB."""

    id: str


@dataclass(frozen=True, slots=True)
class KsqldbQuery:
    """A statement of ksqlDB with a query, which is explained and not executed. `text`: as typed, without EXPLAIN."""

    statement: CreateAs | InsertQuery | PushQuery
    text: str


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN [(options)] {MATERIALIZED VIEW name | CREATE MATERIALIZED VIEW … | statement}, or ksqlDB's EXPLAIN {query_id | statement}.

    Of DECLARE, the target is the statement of the cursor.

    `analyze`: the statement is executed; of a view, with statistics of its operators. `schema`: the part of EXPLAIN
    [KEY | VALUE] SCHEMA FOR {SINK name | CREATE SINK …}. `timing`, `summary`: with the times of the rows and of the whole.
    """

    target: (
        Name
        | QueryId
        | KsqldbQuery
        | CreateView
        | CreateTableAs
        | CreateSink
        | Select
        | Tail
        | Insert
        | Update
        | Delete
        | Merge
        | WithWrites
        | Execute
    )
    analyze: bool = False
    schema: Literal["key", "value"] | None = None
    format: ExplainFormat = "text"
    timing: bool = False
    summary: bool = False


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH HOLD] FOR statement.

    `scroll`: True for SCROLL, False for NO SCROLL, else None. The gateway rejects options that it does not
    support.
    """

    name: str
    statement: Select | Tail | FollowKsqldb
    hold: bool = False
    scroll: bool | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH [way] [count | ALL] [FROM] cursor [WITH (timeout = …)]. A `count` of None means ALL.

    `way`: forward, backward, absolute or relative. FIRST is absolute 1, LAST is absolute -1. `timeout`: as
    typed, or None.
    """

    cursor: str
    count: int | None = 1
    timeout: str | int | float | None = None
    move: bool = False  # MOVE, which returns no rows
    way: str = "forward"


@dataclass(frozen=True, slots=True)
class FetchSubscription:
    """FETCH [count | ALL] FROM SUBSCRIPTION name [WITH (timeout = …)].

    `count`, `timeout`: as in `Fetch`.
    """

    name: Name
    count: int | None = 1
    timeout: str | int | float | None = None


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """ACKNOWLEDGE name UP TO time: the client has processed all changes up to and including the time."""

    name: Name
    up_to: int | QueryText


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """CLOSE {name | ALL}. A `name` of None means ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY {(query) | relation} TO STDOUT. `options`: all options except the format, as typed. `relation`: None for a query.

    The query may write; then it has RETURNING.
    """

    statement: Select | Tail | FollowKsqldb | Insert | Update | Delete | WithWrites
    format: Literal["text", "csv", "binary"] = "text"
    options: Options = ()
    relation: Name | None = None
