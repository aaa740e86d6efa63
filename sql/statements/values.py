"""What a statement says, as frozen values; nothing here is looked up in a catalog yet.

    text ──► tokens ──► parse ──► Statement (this module) ──► engine (CREATE, DROP) | gateway (all others)

Names are folded as PostgreSQL folds them. Positions are 0-based offsets in the text given to `parse` and take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sqlglot import exp

from lake.names import Name
from lake.routines import Volatility
from lake.types import Type
from sql.statements.written import CopyFrom, CreateTable, Delete, Insert, Truncate, Update


@dataclass(frozen=True, slots=True)
class SecretName:
    """SECRET name, as the value of an option."""

    name: Name


OptionValue: TypeAlias = str | int | float | bool | SecretName | tuple["OptionValue", ...] | None
Options: TypeAlias = tuple[tuple[str, OptionValue], ...]  # in the order typed; names in lower case


@dataclass(frozen=True, slots=True)
class QueryText:
    """A SELECT, VALUES or UNION … as typed, with its tree.

    `offset`: where `text` begins in the statement. Positions in the tree, and so in errors of binding it, count from the
    statement's start.
    """

    text: str
    offset: int = field(default=0, compare=False)
    tree: exp.Expr = field(default_factory=exp.Select, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """AS OF AT LEAST: this time, or the oldest that can be read if that is later."""

    time: int | QueryText


Time: TypeAlias = int | QueryText | AtLeast  # in ms, or the query of the expression that gives it


# --- CREATE ----------------------------------------------------------------------------------------------------------------------


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
class Print:
    """PRINT 'topic' [FROM BROKER '…' | FROM CONNECTION name] [FROM BEGINNING] [LIMIT n]. `brokers`: empty if none were written."""

    topic: str
    brokers: str = ""
    beginning: bool = False
    limit: int | None = None
    connection: Name | None = None


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [TEMPORARY] [MATERIALIZED] VIEW name [(columns)] [WITH (options)] AS query.

    `replace`: OR REPLACE was written. `temporary`: it ends with the session; never of a materialized view.
    """

    name: Name
    query: QueryText
    materialized: bool = False
    columns: tuple[str, ...] = ()
    options: Options = ()
    if_not_exists: bool = False
    replace: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK name FROM item INTO KAFKA BROKER … TOPIC … [KEY (…)], or INTO KAFKA CONNECTION name (TOPIC …).

    `brokers`: empty with a `connection`. `key`: names of columns, empty if absent. `envelope`: None if none was written. `snapshot`: the
    rows there are come first.
    """

    name: Name
    from_item: Name
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


@dataclass(frozen=True, slots=True)
class CreateSubscription:
    """CREATE SUBSCRIPTION name FROM relation. `retention`: an interval as written, or None. `snapshot`, `progress`: as of TAIL."""

    name: Name
    from_item: Name
    retention: str | None = None
    snapshot: bool = True
    progress: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument, or a column of RETURNS TABLE. `name`: empty if it has none. `default`: the text of its expression."""

    name: str
    type: Type
    default: str | None = None


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION name (arguments) RETURNS … LANGUAGE SQL … AS body, or RETURN expression.

    One of `returns`, `table` (RETURNS TABLE) and `row` (RETURNS SETOF relation). `many`: a set of rows.
    """

    name: Name
    arguments: tuple[FunctionArgument, ...]
    returns: Type | None
    table: tuple[FunctionArgument, ...] | None
    row: Name | None
    many: bool
    body: QueryText
    volatility: Volatility = "volatile"
    strict: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class FunctionName:
    """name [(types)]; `types`: None if none were written, which is right if there is one function of the name."""

    name: Name
    types: tuple[Type, ...] | None = None


@dataclass(frozen=True, slots=True)
class DropFunction:
    functions: tuple[FunctionName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class IndexColumn:
    name: str
    descending: bool = False
    nulls_first: bool = False
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE [UNIQUE] INDEX [name] ON relation (columns), or CREATE DEFAULT INDEX ON relation."""

    name: Name | None
    relation: Name
    columns: tuple[IndexColumn, ...] = ()
    include: tuple[str, ...] = ()
    unique: bool = False
    method: Literal["btree", "hash"] = "btree"
    default: bool = False
    if_not_exists: bool = False


ObjectKind: TypeAlias = Literal[
    "source", "table", "view", "materialized view", "sink", "index", "subscription", "secret", "connection"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drop:
    kind: ObjectKind
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AlterItem:
    """ALTER kind [IF EXISTS] name RENAME TO `rename` | SET SCHEMA `schema`. One of the two; ALTER TABLE takes any relation."""

    kind: ObjectKind
    name: Name
    if_exists: bool = False
    rename: str = ""
    schema: str = ""


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION owner]. One of the two is there; without a name it has the owner's."""

    name: Name | None
    owner: Name | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """ALTER SCHEMA name RENAME TO `rename` | OWNER TO `owner`. One of the two."""

    name: Name
    rename: Name | None = None
    owner: Name | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON kind name IS text. `column`: of COMMENT ON COLUMN relation.column, where `kind` is None. `text`: None removes it."""

    kind: ObjectKind | Literal["schema"] | None
    name: Name
    column: str
    text: str | None


@dataclass(frozen=True, slots=True)
class CommentOnFunction:
    """COMMENT ON FUNCTION name [(types)] IS text."""

    function: FunctionName
    text: str | None


# --- reading ---------------------------------------------------------------------------------------------------------------------


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

    `analyze`: with what the operators of the view have done and hold.
    """

    target: Name | CreateView | Select | Tail
    options: Options = ()
    analyze: bool = False


# --- cursors and COPY ------------------------------------------------------------------------------------------------------------


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


# --- sessions --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """`modes`: words of the transaction mode, in lower case: 'isolation level serializable', 'read only', …

    `start`: START TRANSACTION was written, which has a tag of its own."""

    modes: tuple[str, ...] = ()
    start: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class Release:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class Set:
    """SET [SESSION | LOCAL] name {= | TO} value, … . `values`: empty is DEFAULT. SET TRANSACTION is Set('transaction', modes)."""

    name: str
    values: tuple[str, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """`name`: None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    what: Literal["all", "plans", "sequences", "temp"]


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name [(types)] AS statement; `text` is the statement's, from the word after AS."""

    name: str
    types: tuple[Type, ...]
    statement: Statement
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name [(arguments)]; `arguments` is a query of one row that computes them."""

    name: str
    arguments: QueryText | None = None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """`name`: None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Empty:
    """No statement: blanks and comments."""


# --- roles -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """`login`, `superuser`: None if not said. `password`: None without one, or to take it away; `sets_password`: whether anything is
    said of it; `password_at`: where it stands in the text, quotes included, so that it can be kept out of what is passed on."""

    login: bool | None = None
    superuser: bool | None = None
    password: str | None = field(default=None, repr=False)
    sets_password: bool = False
    password_at: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CreateRole:
    name: Name
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True, slots=True)
class AlterRole:
    name: Name
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True, slots=True)
class DropRole:
    names: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT, or REVOKE if not `grants`. `objects` are of the `kind`, or schemas; `roles` may be the name public, for everybody."""

    grants: bool
    privileges: tuple[str, ...]
    kind: Literal["relation", "relations of a schema", "schema", "secret", "connection"]
    objects: tuple[Name, ...]
    roles: tuple[Name, ...]


Statement: TypeAlias = (
    CreateSource | CreateView | CreateSink | CreateTable | Drop | Select | Tail | Show | Explain | DeclareCursor | Fetch | CloseCursor
    | CopyTo | CopyFrom | Insert | Update | Delete | Truncate | Begin | Commit | Rollback | Savepoint | Release | RollbackTo | Set | Reset
    | Discard | Prepare | Execute | Deallocate | Empty | AlterItem | AlterSchema | Comment | CreateSchema | DropSchema
    | CreateRole | AlterRole | DropRole | Grant | Pause | RetryDeadLetters | Print | CreateFunction | DropFunction | CommentOnFunction
    | CreateIndex | CreateSubscription | FetchSubscription | Acknowledge | CreateSecret | AlterSecret | CreateConnection
    | ValidateConnection
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a text: as typed, without the semicolon. `position`: where it begins in the whole text.

    `terminated`: a semicolon followed; a statement that ends too early is a syntax error at it, otherwise at the end of input.
    """

    text: str
    position: int
    terminated: bool = False


def option(options: Options, name: str, default: OptionValue = None) -> OptionValue:
    """The last value given for an option, or the default.

    >>> option((("snapshot", False),), "snapshot", True)
    False
    """
    return next((value for key, value in reversed(options) if key == name), default)
