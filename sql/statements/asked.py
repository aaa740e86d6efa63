"""What statements that read say: queries, TAIL, SHOW, EXPLAIN, cursors, COPY to the client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lake.names import Name
from lake.types import Type
from sql.statements.defined import CreateView
from sql.statements.external import CreateSink
from sql.statements.values import Options, QueryText, Time


@dataclass(frozen=True, slots=True)
class Select:
    """A query: SELECT, VALUES, WITH …, TABLE t. `as_of`: a time in ms, or the text of an expression that gives it."""

    query: QueryText
    as_of: Time | None = None


@dataclass(frozen=True, slots=True)
class KeyEnvelope:
    """ENVELOPE UPSERT or DEBEZIUM (KEY (names)): one row a key and time, with what became of it."""

    kind: Literal["upsert", "debezium"]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderWithin:
    """A key of WITHIN TIMESTAMP ORDER BY: a column's name, or its number, where mz_diff is 1."""

    column: str | int
    descending: bool = False
    nulls_first: bool = False
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Tail:
    """TAIL, or SUBSCRIBE if `subscribes`, of a relation or a query. `as_of` is inclusive, `up_to` exclusive."""

    target: Name | QueryText
    snapshot: bool = True
    progress: bool = False
    as_of: Time | None = None
    up_to: Time | None = None
    subscribes: bool = False
    envelope: KeyEnvelope | None = None
    order: tuple[OrderWithin, ...] = ()


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW. `what`: one of SHOWS; `name`: of columns and create; `setting`: of what = 'setting', in lower case; `schema`: of a list."""

    what: str
    name: Name | None = None
    setting: str = ""
    like: str | None = None
    types: tuple[Type, ...] | None = None  # of create function, if they were written
    schema: Name | None = None


SHOWS = (
    "sources", "topics", "views", "materialized views", "sinks", "subscriptions", "tables", "objects", "columns", "errors", "indexes",
    "schemas", "databases", "secrets", "connections", "create connection",
    "create source", "create view", "create materialized view", "create sink", "create table",
    "create function", "create index", "create subscription", "functions", "setting", "all",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN MATERIALIZED VIEW name | CREATE MATERIALIZED VIEW … | query; words before it, in lower case, are `options`.

    `analyze`: with what the operators of the view have done and hold. `schema`: of EXPLAIN [KEY | VALUE] SCHEMA FOR SINK
    name | CREATE SINK …, which of the two.
    """

    target: Name | CreateView | CreateSink | Select | Tail
    options: Options = ()
    analyze: bool = False
    schema: Literal["key", "value"] | None = None


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """`hold`: WITH HOLD; `scroll`: SCROLL is True, NO SCROLL is False; `binary`: BINARY. The gateway says what of these it has."""

    name: str
    statement: Select | Tail
    hold: bool = False
    scroll: bool | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH [way] [count | ALL] [FROM] cursor [WITH (timeout = …)]. `count`: None is ALL. `timeout`: as written, or None.

    `way`: forward, backward, absolute or relative; FIRST is absolute 1, LAST absolute -1.
    """

    cursor: str
    count: int | None = 1
    timeout: str | int | float | None = None
    move: bool = False  # MOVE: as FETCH, without rows
    way: str = "forward"


@dataclass(frozen=True, slots=True)
class FetchSubscription:
    """FETCH [count | ALL] FROM SUBSCRIPTION name [WITH (timeout = …)]. `count`, `timeout`: as of `Fetch`."""

    name: Name
    count: int | None = 1
    timeout: str | int | float | None = None


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """ACKNOWLEDGE name UP TO time: all of that time and of those before it is taken."""

    name: Name
    up_to: int | QueryText


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """`name`: None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY (query) TO STDOUT. `format`: 'text', 'csv' or 'binary'. Other options of COPY as written."""

    statement: Select | Tail
    format: Literal["text", "csv", "binary"] = "text"
    options: Options = ()
