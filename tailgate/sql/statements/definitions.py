"""CREATE, ALTER, DROP and COMMENT statements for views, functions, indexes, schemas, subscriptions, endpoints, objectives and alerts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tailgate.lake.catalog.formats import EndpointMethod
from tailgate.lake.catalog.items import CheckOption, Volatility
from tailgate.lake.catalog.names import Name
from tailgate.lake.types import Type
from tailgate.sql.statements.values import Options, OptionValue, QueryText, Time
from tailgate.sql.statements.writes import Expression, IndexColumn, WriteText

IndexMethod: TypeAlias = Literal["btree", "hash", "gin", "gist", "spgist", "brin"]


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [TEMPORARY] [RECURSIVE | MATERIALIZED] VIEW name [(columns)] [WITH (options)] AS query
    [WITH [CASCADED | LOCAL] CHECK OPTION].

    A temporary view lives as long as the session. A materialized view is never temporary.
    `options_at`: begin and end of the WITH clause in the text; equal if there is none and it could be
    inserted there. `plain`: for a RECURSIVE view, the text of the same view WITH RECURSIVE, which is stored.
    """

    name: Name
    query: QueryText
    materialized: bool = False
    columns: tuple[str, ...] = ()
    options: Options = ()
    if_not_exists: bool = False
    replace: bool = False
    temporary: bool = False
    options_at: tuple[int, int] = field(default=(0, 0), compare=False)
    plain: str = field(default="", compare=False)
    check_option: CheckOption = ""


@dataclass(frozen=True, slots=True)
class CreateSubscription:
    """CREATE SUBSCRIPTION name FROM relation [WITH (options)].

    `retention`: an interval as typed, or None. `snapshot`, `progress`: as for TAIL.
    """

    name: Name
    from_item: Name
    retention: str | None = None
    snapshot: bool = True
    progress: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateObjective:
    """CREATE [OR REPLACE] OBJECTIVE name ON {relation | endpoint} (goal, …) [OVER interval].

    `measure`: the freshness lag of a relation, or the latency of an endpoint. `limits`: by figure of it (p50, p95, p99, max), an interval
    as typed. `availability`: as typed, such as '99.9 %'.
    """

    name: Name
    from_item: Name
    measure: Literal["freshness", "latency"]
    limits: tuple[tuple[str, str], ...]
    availability: str | None = None
    over: str | None = None
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class AlertTopic:
    """KAFKA {BROKER 'brokers' TOPIC 'topic' | CONNECTION name (TOPIC 'topic')} of CREATE ALERT."""

    topic: str
    brokers: str
    connection: Name | None


@dataclass(frozen=True, slots=True)
class CreateAlert:
    """CREATE [OR REPLACE] ALERT name {ON objective | AS query} [FOR interval] [SEVERITY text] [NOTIFY {WEBHOOK | COMMAND | KAFKA} …, …].

    Exactly one of `objective` and `query` is not None. `hold`: an interval as typed.
    """

    name: Name
    objective: Name | None
    query: QueryText | None
    hold: str | None = None
    severity: str | None = None
    webhooks: tuple[tuple[str, Options], ...] = ()
    commands: tuple[str, ...] = ()
    topics: tuple[AlertTopic, ...] = ()
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """SILENCE alert UNTIL time. `until`: a time expression, or a timestamp as typed."""

    name: Name
    until: Time | str


@dataclass(frozen=True, slots=True)
class EndpointParameter:
    """A parameter of an endpoint.

    `type`: unknown if the query implies it. `optional`: has a DEFAULT; `default`: its text, None for NULL.
    """

    name: str
    type: Type
    optional: bool = False
    default: str | None = None
    position: int | None = field(default=None, compare=False)  # of the type


@dataclass(frozen=True, slots=True)
class CreateEndpoint:
    """CREATE [OR REPLACE] ENDPOINT name method path [(parameters)] [WITH (options)] AS {query | INSERT | UPDATE | DELETE}.

    `parameters`: of $1, $2, …, which stand for `:name` in `query`. The query of other methods than GET writes.
    """

    name: Name
    method: EndpointMethod
    path: str
    parameters: tuple[EndpointParameter, ...]
    query: QueryText | WriteText
    options: Options = ()
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument, or a column of RETURNS TABLE.

    `name`: '' without a name. `default`: the text of an expression. `variadic`: the last one, an array of the remaining arguments.
    """

    name: str
    type: Type
    default: str | None = None
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION name (arguments) RETURNS … LANGUAGE SQL … AS body, or RETURN expression.

    Exactly one of `returns`, `table` (RETURNS TABLE) and `row` (RETURNS SETOF relation) is not None.
    `many`: the function returns a set of rows.
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
    """name [(types)]. Without `types` (None) the name must be unique."""

    name: Name
    types: tuple[Type, ...] | None = None


@dataclass(frozen=True, slots=True)
class CancelBackfill:
    """CANCEL BACKFILL view: ends the backfill of a new view, which is dropped, or of its replacement."""

    name: Name


@dataclass(frozen=True, slots=True)
class DropFunction:
    """DROP FUNCTION [IF EXISTS] name [(types)], … [CASCADE | RESTRICT]."""

    functions: tuple[FunctionName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [name] ON relation (columns) [NULLS [NOT] DISTINCT] [WITH (…)] [WHERE condition].

    `default`: CREATE DEFAULT INDEX ON relation.
    """

    name: Name | None
    relation: Name
    columns: tuple[IndexColumn, ...] = ()
    include: tuple[str, ...] = ()
    unique: bool = False
    method: IndexMethod = "btree"
    default: bool = False
    if_not_exists: bool = False
    nulls_distinct: bool = True
    concurrently: bool = False
    condition: Expression | None = None
    options: Options = ()


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """The options of a sequence; None for those that are not set. MINVALUE and MAXVALUE are also None for NO MINVALUE and NO MAXVALUE.

    `owner`: the table and the column of OWNED BY; a column of '' is OWNED BY NONE. `unbounded`: "minimum" for NO MINVALUE, "maximum"
    for NO MAXVALUE. `restarts`: RESTART is set, with the value `restart` or, for None, the start value. `name`: of SEQUENCE NAME, with
    which pg_dump names the sequence of an identity column.
    """

    type: Type | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    start: int | None = None
    cache: int | None = None
    cycle: bool | None = None
    owner: tuple[Name, str] | None = None
    unbounded: frozenset[str] = frozenset()
    restarts: bool = False
    restart: int | None = None
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """CREATE [TEMPORARY] SEQUENCE [IF NOT EXISTS] name [options]."""

    name: Name
    options: SequenceOptions = SequenceOptions()
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class AlterSequence:
    """ALTER SEQUENCE [IF EXISTS] name options."""

    name: Name
    options: SequenceOptions
    if_exists: bool = False


ObjectKind: TypeAlias = Literal[
    "source", "table", "view", "materialized view", "sink", "index", "sequence", "subscription", "secret", "connection", "endpoint",
    "objective", "alert", "type", "domain",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP kind [CONCURRENTLY] [IF EXISTS] name, … [CASCADE | RESTRICT], or of ksqlDB's items [DELETE TOPIC].

    `of_ksqldb`: whether it is a statement of ksqlDB's dialect, whose errors have ksqlDB's messages.
    """

    kind: ObjectKind | Literal["stream"]
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False
    concurrently: bool = False
    delete_topic: bool = False
    of_ksqldb: bool = False


@dataclass(frozen=True, slots=True)
class AlterItem:
    """ALTER kind [IF EXISTS] name {RENAME TO … | SET SCHEMA … | OWNER TO … | SET (options) | RESET (…)}.

    Exactly one of `rename`, `schema`, `owner` and `options` is set. RESET has the value None in `options`. ALTER
    TABLE accepts any relation.
    """

    kind: ObjectKind
    name: Name
    if_exists: bool = False
    rename: str = ""
    schema: str = ""
    owner: str = ""
    options: tuple[tuple[str, OptionValue | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION owner].

    The default of the name is the owner's name.
    """

    name: Name | None
    owner: Name | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """ALTER SCHEMA name {RENAME TO … | OWNER TO …}. Exactly one of `rename` and `owner` is set."""

    name: Name
    rename: Name | None = None
    owner: Name | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP SCHEMA [IF EXISTS] name, … [CASCADE | RESTRICT]."""

    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class DropAbsent:
    """DROP kind [IF EXISTS] name, … of a kind of objects that Tailgate does not have. `table`: that of a trigger, rule or policy."""

    kind: str
    names: tuple[Name, ...]
    if_exists: bool = False
    table: Name | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON kind name IS {text | NULL}.

    For COMMENT ON COLUMN, `kind` is None and `name` the relation; for COMMENT ON CONSTRAINT, `kind` is
    'constraint' and `name` the table. `part`: the name of the column or constraint, or empty.
    """

    kind: ObjectKind | Literal["schema", "constraint", "database", "role"] | None
    name: Name
    part: str
    text: str | None


@dataclass(frozen=True, slots=True)
class AlterFunction:
    """ALTER FUNCTION name [(types)] OWNER TO owner."""

    function: FunctionName
    owner: str


@dataclass(frozen=True, slots=True)
class CommentOnFunction:
    """COMMENT ON FUNCTION name [(types)] IS {text | NULL}."""

    function: FunctionName
    text: str | None
