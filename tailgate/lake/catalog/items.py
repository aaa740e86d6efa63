"""The objects of the catalog: a closed union with a class for each kind.

    Item = Source | Table | MaterializedView | Sink | …, with DeadLetters, ViewErrors, …

Code that treats the kinds differently uses `match` with `assert_never`, so that the type checker lists every place that a new
kind concerns. `lake.catalog.codec` reads and writes the stored form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from tailgate.lake.catalog.custom_types import Composite, CustomType, Domain, Enum
from tailgate.lake.catalog.formats import (
    Backfilled,
    Bytes,
    CheckConstraint,
    ConnectionSettings,
    DeclaredColumn,
    Failure,
    ForeignKeyConstraint,
    Include,
    IndexExpression,
    KsqldbItem,
    MessageFormat,
    SinkFormat,
    TransactionMetadata,
    option,
)
from tailgate.lake.catalog.item_fields import ItemFields, Namespace, ReaderFields, ReplaceableFields, ViewFields
from tailgate.lake.catalog.services import Alert, Endpoint, Objective
from tailgate.lake.types import Field, Type

CheckOption = Literal["", "local", "cascaded"]
ROUNDS = 1_000  # of a recursive query of a view, unless the view has another limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(ItemFields):
    """A Kafka topic as a relation (`engine.plan.sources.layout` describes how records become rows).

    - `channel`: "<reader>/<topic>".
    - `kafka`: the settings for access to the brokers.
    - `declared`: the declared columns, or None.
    - `primary_key`: the names of PRIMARY KEY (…) NOT ENFORCED.
    - `materialized`: whether the rows of a source without an envelope are stored.
    - `decimals`: how Debezium's JSON without a schema represents decimals.
    - `paused`: whether the source is not read.
    - `timestamp`: the column with the times of records, from which freshness lag counts; empty for Kafka's times.
    - `max_message_bytes`: limit for key and value together, or None.
    - `added`, `first_columns`: the names of the columns that REFRESH SCHEMA added at the end; the number of the other columns.
    - `start`: the first offset of each partition, or None for the first record.
    - `topic_id`: distinguishes the topic from another one of the same name.
    - `registry`: the URL of the schema registry, or empty. `lost`: descriptions of the newest losses of records.
    - `dead_letter_retention_ms`, `dead_letter_retention_bytes`: None for the default.
    - `retain_history_ms`: how long past states of the relation stay readable.
    - `ksqldb`: the properties of a declared stream or table of ksqlDB, or None.
    """

    kind: ClassVar[Literal["source"]] = "source"
    brokers: str = field(default="", metadata=option(always=True))
    topic: str = field(default="", metadata=option(always=True))
    channel: str = field(default="", metadata=option(always=True))
    kafka: ConnectionSettings = field(default_factory=dict, metadata=option(always=True))
    envelope: Literal["none", "upsert", "debezium"] = field(default="none", metadata=option(always=True))
    value_format: MessageFormat = field(default=Bytes(), metadata=option(always=True))
    key_format: MessageFormat | None = field(default=None, metadata=option(always=True))
    declared: tuple[DeclaredColumn, ...] | None = field(default=None, metadata=option("columns", always=True))
    primary_key: tuple[str, ...] = field(default=(), metadata=option(always=True))
    include: tuple[Include, ...] = field(default=(), metadata=option(always=True))
    materialized: bool = False
    decimals: Literal["precise", "string"] = "precise"
    on_error: Literal["dead letter", "fail", "null"] = "dead letter"
    paused: bool = False
    transactions: TransactionMetadata | None = None
    timestamp: str = ""
    max_message_bytes: int | None = None
    max_records_per_second: int | None = None
    added: tuple[str, ...] = ()
    first_columns: int | None = None
    start: Mapping[str, int] | None = None
    topic_id: str | None = None
    registry: str = ""
    lost: tuple[str, ...] = ()
    dead_letter_retention_ms: int | None = None
    dead_letter_retention_bytes: int | None = None
    retain_history_ms: int = 0
    ksqldb: KsqldbItem | None = None

    @property
    def append_only(self) -> bool:
        return not self.stored or self.envelope == "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters(ItemFields):
    """The records of a source that could not be decoded. It is created and dropped with the source."""

    kind: ClassVar[Literal["dead letters"]] = "dead letters"

    @property
    def append_only(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(ItemFields):
    """A table.

    - `defaults`, `generated`: expressions by column. `identity`: columns with a default of nextval.
    - `constraint`: the primary key's name. `key_comment`: the comment on the primary key.
    - `stored_names`: for columns that were renamed or dropped, by position, their names in the Delta table.
    - `of_stream`: the id of the derived stream of ksqlDB whose inserted rows it holds, and with which it is dropped, else 0.
    """

    kind: ClassVar[Literal["table"]] = "table"
    defaults: Mapping[str, str] = field(default_factory=dict, metadata=option(always=True))
    constraint: str | None = field(default=None, metadata=option(always=True))
    checks: tuple[CheckConstraint, ...] = ()
    foreign_keys: tuple[ForeignKeyConstraint, ...] = ()
    identity: Mapping[str, Literal["always", "by default"]] = field(default_factory=dict)
    generated: Mapping[str, str] = field(default_factory=dict)
    retain_history_ms: int = 0
    stored_names: Mapping[int, str] = field(default_factory=dict)
    key_comment: str = ""
    of_stream: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class View(ViewFields):
    """A view that is evaluated when it is read. `check_option`: that of its statement."""

    kind: ClassVar[Literal["view"]] = "view"
    check_option: CheckOption = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedView(ViewFields):
    """A view that the engine maintains.

    - `nodes`, `next_node`, `numberings`: the operators of the view (`engine.plan.views.nodes`).
    - `sizes`, `join_columns`: by relation, the rows that its plan assumes, and the columns of its shared joins (`engine.plan.views`).
    - `starts`: for each source that is not stored, by id, the first offset of each partition that the view contains; for a derived
      stream of ksqlDB of which it contains the newer rows only, the time after which these arrived.
    - `backfilled`: the part of each source that the view got by its backfill, by id.
    - `stale`: the time of the last tick of a view whose state is lost, or True if that time is unknown; None with intact state.
    - `failed`: why the view is no longer maintained, or None.
    - `on_error`: 'skip' omits rows that fail, instead of reporting them as errors of the view.
    - `has_new_columns`: whether this replacement has other columns than the item that it replaces, which is then dropped; it keeps its id.
    - `recursion_limit`: the number of rounds that a recursive query of the view may need.
    - `ksqldb`: the properties of a derived stream or table, or None. `paused`: no tick changes the view, whose query is paused or ended.
    """

    kind: ClassVar[Literal["materialized view"]] = "materialized view"
    nodes: tuple[tuple[str, int], ...] = ()
    next_node: int = 0
    numberings: int = field(default=0, metadata=option("fills"))
    sizes: Mapping[int, int] | None = None
    join_columns: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    starts: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    backfilled: Mapping[int, Backfilled] = field(default_factory=dict, metadata=option("filled"))
    stale: int | Literal[True] | None = None
    failed: Failure | None = None
    on_error: Literal["fail", "skip"] = "fail"
    has_new_columns: bool = field(default=False, metadata=option("anew"))
    retain_history_ms: int = 0
    recursion_limit: int = ROUNDS
    ksqldb: KsqldbItem | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewErrors(ItemFields):
    """The errors of a materialized view's rows. It is created and dropped with the view. `group`, `has_new_columns`: as of the view."""

    kind: ClassVar[Literal["view errors"]] = "view errors"
    group: int = 0
    has_new_columns: bool = field(default=False, metadata=option("anew"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(ReaderFields):
    """A Kafka topic that receives the changes of a relation, the first item of `depends`.

    - `kafka`: the settings for access to the brokers.
    - `message_key`: positions of the key's columns in the relation, or None.
    - `snapshot`: whether it begins with the rows at the time of its creation.
    - `headers`: the position of the column with headers, or None. `constant_headers`: names and values.
    - `has_query`: whether the relation is a view that was created with the sink, and is dropped with it.
    - `settings`: the options of WITH, without those for access.
    - `of_view`: whether the sink was created with its relation, a derived item of ksqlDB, and is dropped with it.
    """

    kind: ClassVar[Literal["sink"]] = "sink"
    is_relation: ClassVar[bool] = False
    brokers: str = field(default="", metadata=option(always=True))
    topic: str = field(default="", metadata=option(always=True))
    kafka: ConnectionSettings = field(default_factory=dict, metadata=option(always=True))
    value_format: SinkFormat = field(default=SinkFormat(type="avro"), metadata=option(always=True))
    key_format: SinkFormat | None = field(default=None, metadata=option(always=True))
    message_key: tuple[int, ...] | None = field(default=None, metadata=option("key", always=True))
    envelope: Literal["debezium", "upsert", "none"] = field(default="debezium", metadata=option(always=True))
    snapshot: bool = field(default=True, metadata=option(always=True))
    headers: int | None = None
    constant_headers: tuple[tuple[str, str], ...] = ()
    has_query: bool = field(default=False, metadata=option("query"))
    settings: Mapping[str, Any] = field(default_factory=dict, metadata=option("with", always=True))
    of_view: bool = False

    @property
    def query_view(self) -> int | None:
        """Returns the id of the view that was created with the sink, or None."""
        return self.depends[0] if self.has_query else None


Volatility = Literal["immutable", "stable", "volatile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(ReplaceableFields):
    """A user-defined function.

    `columns` are the arguments (names may be empty). `query` is the body: a query in which `$n` and their names stand for them.

    - `returns`: the type of the result; record for rows with several columns.
    - `defaults`: expressions for the last arguments, as text.
    - `rows`: the columns of a set-returning function; None if it returns one value.
    - `strict`: a NULL argument gives NULL, or an empty set. `variadic`: the last argument is an array of all further ones of a call.
    - `volatility`: as declared. It is only shown to users; the planner looks at the body.
    """

    kind: ClassVar[Literal["function"]] = "function"
    is_relation: ClassVar[bool] = False
    namespace: ClassVar[Namespace] = "function"
    returns: Type
    defaults: tuple[str, ...] = field(default=(), metadata=option(always=True))
    rows: tuple[Field, ...] | None = field(default=None, metadata=option(always=True))
    strict: bool = field(default=False, metadata=option(always=True))
    volatility: Volatility = field(default="volatile", metadata=option(always=True))
    variadic: bool = False

    @property
    def arguments(self) -> tuple[Field, ...]:
        """Returns the arguments."""
        return self.columns

    @property
    def types(self) -> tuple[Type, ...]:
        """Returns the types of the arguments."""
        return tuple(a.type for a in self.columns)

    @property
    def display_name(self) -> str:
        return f"{self.name}({','.join(map(str, self.types))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(ItemFields):
    """A user-defined index of a relation, the first item of `depends`, and dropped with it.

    An index has no rows: gateways build it from the relation's changes.

    - `positions`: the indexed columns, by their positions in the relation; `expressions`: the other columns of the index, by their places.
    - `condition`: that of WHERE; the index has only the rows for which it is true.
    - `descending`, `nulls_first`, `operator_classes` ('' is the default, () all defaults): for each column of the index, as declared.
    - `method`, `include`: as declared; the positions of the INCLUDE columns. These five have no effect.
    - `enforced`: whether writes of the table are checked. A unique index of another relation is not.
    - `constraint`: whether it is the index of a UNIQUE constraint or, with `primary`, of a primary key.
    - `deferrable`, `deferred`: as declared: whether a block may check it at COMMIT, and whether it does so without SET CONSTRAINTS.
    - `nulls_distinct`: whether rows with NULL are always unique.
    """

    kind: ClassVar[Literal["index"]] = "index"
    is_relation: ClassVar[bool] = False
    positions: tuple[int, ...] = field(metadata=option("columns"))
    descending: tuple[bool, ...]
    nulls_first: tuple[bool, ...]
    include: tuple[int, ...] = field(default=(), metadata=option(always=True))
    unique: bool = field(default=False, metadata=option(always=True))
    method: str = field(default="btree", metadata=option(always=True))
    enforced: bool = False
    constraint: bool = False
    primary: bool = False
    deferrable: bool = False
    deferred: bool = False
    nulls_distinct: bool = True
    expressions: tuple[IndexExpression, ...] = ()
    condition: IndexExpression | None = None
    operator_classes: tuple[str, ...] = ()

    @property
    def elements(self) -> tuple[int | IndexExpression, ...]:
        """Returns the columns of the index in order: positions in the relation, and expressions."""
        by_place = {expression.place: expression for expression in self.expressions}
        positions = iter(self.positions)
        return tuple(by_place.get(place) or next(positions) for place in range(len(self.positions) + len(by_place)))

    @property
    def computed(self) -> tuple[IndexExpression, ...]:
        """Returns the expressions and then the condition, in the order in which `Key` numbers them."""
        in_order = sorted(self.expressions, key=lambda expression: expression.place)
        return (*in_order, *(() if self.condition is None else (self.condition,)))

    @property
    def read(self) -> frozenset[int]:
        """Returns the positions of all columns of the relation that it depends on."""
        return frozenset((*self.positions, *self.include)).union(*(expression.columns for expression in self.computed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence(ItemFields):
    """A sequence. `position`: the last reserved value if `called`, else the next. `series`: counts resets. `column`: owns it, or ''."""

    kind: ClassVar[Literal["sequence"]] = "sequence"
    is_relation: ClassVar[bool] = False
    type: Literal["int2", "int4", "int8"]
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int
    cycle: bool
    position: int
    called: bool = False
    series: int = 0
    column: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(ItemFields):
    """A durable position in the changes of a relation, the first item of `depends` (`lake.readers.subscriptions`).

    - `retention_ms`: how long unacknowledged changes are kept.
    - `snapshot`: whether it begins with the rows at the time of its creation.
    - `progress`: whether it reports times that are complete.
    """

    kind: ClassVar[Literal["subscription"]] = "subscription"
    is_relation: ClassVar[bool] = False
    retention_ms: int
    snapshot: bool
    progress: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret(ItemFields):
    """An encrypted text (`lake.catalog.secrets`). `ciphertext`: its value."""

    kind: ClassVar[Literal["secret"]] = "secret"
    is_relation: ClassVar[bool] = False
    ciphertext: str = field(metadata=option("sealed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(ItemFields):
    """The access to a Kafka or a schema registry. Of `brokers` and `url`, it has the one of its type."""

    kind: ClassVar[Literal["connection"]] = "connection"
    is_relation: ClassVar[bool] = False
    type: Literal["kafka", "schema registry"]
    brokers: str = ""
    url: str = ""
    settings: ConnectionSettings = field(default_factory=dict, metadata=option(always=True))


Item: TypeAlias = (
    Source | DeadLetters | Table | View | MaterializedView | ViewErrors | Sink | Function | Index | Sequence | Subscription | Endpoint
    | Secret | Connection | Objective | Alert | CustomType | Enum | Composite | Domain
)  # fmt: skip
ItemType = TypeVar("ItemType", bound=Item)

Companion: TypeAlias = DeadLetters | ViewErrors  # created and dropped with another item
DroppedWithOwner: TypeAlias = DeadLetters | ViewErrors | Index | Sequence  # dropped with the item that they depend on
HistoryItem: TypeAlias = Source | Table | MaterializedView  # with `retain_history_ms`
Replaceable: TypeAlias = View | MaterializedView | Function  # with `group`
Reader: TypeAlias = View | MaterializedView | Function | Sink | Endpoint | Alert  # with `known_columns`


def ready(item: ItemType) -> ItemType:
    """Returns the item marked as ready."""
    return replace(item, ready=True)


def skips(item: Item) -> bool:
    """Returns whether a view omits rows that fail, instead of reporting them as errors of the view."""
    return isinstance(item, MaterializedView) and item.on_error == "skip"


def ksqldb_of(item: Item | None) -> KsqldbItem | None:
    """Returns the properties of a stream or table of ksqlDB, or None for another item."""
    return item.ksqldb if isinstance(item, Source | MaterializedView) else None


def hidden_positions(item: Item) -> frozenset[int]:
    """Returns the positions of the columns that `*` leaves out: pseudo columns of a table of ksqlDB, and the order of a stream's rows."""
    of = ksqldb_of(item)
    hidden = () if of is None else ("rowpartition", "rowoffset", "rowtime") if of.type == "table" else ("_arrival",)
    return frozenset(i for i, c in enumerate(item.columns) if c.name in hidden)
