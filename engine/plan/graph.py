"""The circuit as a value: what the planner hands to the runtime, and nothing of how it runs.

    channel ──decode──► SourceNode ──shape──┬──Edge──► OperatorNode ──Edge──► OperatorNode ──Output──► RelationTarget
                          │ undecodable     └──Output──► RelationTarget
                          └──DeadLetterEdge──► OperatorNode (upsert) ──Output──► RelationTarget

Sources and operators share one space of node numbers. A number belongs to one node for as long as the lake exists, because the
state of an operator is kept under it; a node that goes takes its number with it (`engine.plan.allocation`). Whoever compiles
the same catalog with the same allocation gets an equal graph, so graphs may be compared to see whether anything changed.

Columns have no names here: a row's columns are c0, c1, … in each place. Only the first step of a SourceNode's shape and of a
DeadLetterEdge's shape sees names, those of DECODED or of DEAD_LETTER.

The runtime turns each value into one call of the Java library's (engine/java/README.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lake.types import INT4, INT8, TEXT, Field, Type

# what the first step of a Kafka source's shape may name; `value` is a struct for AVRO and for JSON with declared columns
DECODED = ("key", "value", "__topic", "__partition", "__offset", "__timestamp", "__headers")

# what the first step of a dead letter edge's shape may name
DEAD_LETTER = ("topic", "partition", "offset", "timestamp", "key", "value", "error", "attempts", "since", "backfill")

# the columns that an upsert wants after those of the row: whether the key goes, and the position that orders changes of a key
DELETED, POSITION = "__deleted", "__position"

# the columns that a capture wants after those of the row (engine/java, ChangeEvent)
CAPTURED = (
    Field("__op", TEXT),
    Field("__origin", TEXT),
    Field("__lane", TEXT),
    Field("__position", TEXT),
    Field("__place", TEXT),
    Field("__time", INT8),
    Field("__marker", TEXT),
    Field("__partition", INT4),
)


# ---- linear steps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Where:
    """Keeps the rows whose `expression` (Spark SQL over c0, c1, … of the step before) is true."""

    expression: str


@dataclass(frozen=True, slots=True)
class Select:
    """A row of `expressions` (Spark SQL over c0, c1, … of the step before); they become c0, c1, … again."""

    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explode:
    """A row for each element of `array` (Spark SQL over c0, c1, …), none for NULL; with `outer` one of NULLs where there is none.

    Behind the columns come the element, or its `fields` if it is a struct (0: it is none), and its number, counted from 1 (bigint).
    """

    array: str
    fields: int = 0
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Linear:
    """A chain of steps, first step first. Without steps it is the identity."""

    steps: tuple[Where | Select | Explode, ...] = ()


# ---- decoding --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """How the bytes of a key or a value become a column.

    none: not decoded, the column is NULL of type binary. bytes: as they are. text: UTF-8 as a string. json: canonical text of a
    jsonb. csv: a line as a struct of texts, as `schema` says (JSON: columns, delimiter, header, nulls). regex: the groups of `schema`
    as a struct of texts. json_columns: an object as a struct of `columns` (Spark DDL). connect_json: Debezium's envelope or key, columns as
    `schema` says (engine/java, ConnectFormat). avro: by the writer's schema that its id names in `registry` (a URL), resolved to
    the reader's `schema` (JSON text); without a registry the writer's is the same, and `wire` tells whether an id stands in front.
    `access`: how the registry is reached (settings of `lake.secrets` as JSON, secrets by id), empty if its URL says all.
    protobuf: a message as a struct, as `schema` says (engine/java, ProtobufSchema).
    """

    kind: Literal["none", "bytes", "text", "json", "json_columns", "connect_json", "csv", "regex", "avro", "protobuf"]
    columns: str = ""
    schema: str = ""
    registry: str = ""
    wire: bool = True
    access: str = ""


@dataclass(frozen=True, slots=True)
class KafkaDecoder:
    """Kafka's rows to the columns of DECODED. `max_bytes`: of key and value together; a message with more fails. None: no limit."""

    key: FormatSpec
    value: FormatSpec
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ArrowDecoder:
    """Rows of a relation, with weights, to its columns c0, c1, …: what fills a view from a stored relation."""

    columns: tuple[Field, ...]


DecoderSpec = KafkaDecoder | ArrowDecoder
OnError = Literal["dead letter", "fail", "null"]  # what becomes of a record that fails: a dead letter, the source stalls, its value is NULL


JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]
SetKind = Literal["intersect", "except"]


# ---- nodes -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceNode:
    """Where rows come in: those of `channel`, decoded, then shaped. `columns` are what the shape gives.

    A channel is the name of a topic, or `$fill/<node>` for the history that fills a new view. Several nodes may read one.
    A row that fails in the decoder or in the shape goes to the node's dead letter edges, and nowhere if it has none.
    """

    node: int
    channel: str
    decoder: DecoderSpec
    shape: Linear
    columns: tuple[Field, ...]
    on_error: OnError = "dead letter"


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """Port 0: a row of `columns`, then `__deleted` (boolean), then `__position` (text, may be NULL). Out: `columns`.

    Keeps the newest row of each `key` and gives the difference. A row whose position is not above the kept one is dropped; one
    without a position always applies. `first`: how many columns there were at first, if they were fewer.
    """

    node: int
    columns: tuple[Field, ...]
    key: tuple[int, ...]
    fingerprint: str
    first: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureNode:
    """Port 0: a change event of a database's table. Out: `columns`, the rows of the table.

    With a `key` an event is a row of `columns`, then CAPTURED; without one (None) it is the row after and the row before, each a
    struct or NULL, then CAPTURED. Copies and old events that come late are dropped. `first` as of an upsert.
    """

    node: int
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    fingerprint: str
    first: int | None = None


@dataclass(frozen=True, slots=True)
class JoinNode:
    """Ports 0 and 1: `left` and `right`. Out: the columns of the left, then of the right (semi, anti: of the left alone).

    Pairs are of equal keys, and pass the `condition` (over the left's columns, then the right's) if there is one. Both keys have
    equal types; a NULL in a key matches nothing, or NULL where the column is `null_safe`; without key columns every pair matches.
    Of the left and of the right: `append_only`: that a side never takes a row back; `unique`: that a key has one row of it at most.
    """

    node: int
    kind: JoinKind
    left: tuple[Field, ...]
    right: tuple[Field, ...]
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Where | None
    append_only: tuple[bool, bool]
    unique: tuple[bool, bool]
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.left if self.kind in ("semi", "anti") else self.left + self.right


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of the input to sort by."""

    column: int
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One result of a reduce: a function over columns of the input; count without columns counts rows.

    `filter`: the boolean column that must be true of a row for it to count, or -1. `order`: in which values are taken, before the order
    of the values themselves. `fraction`: of a percentile.
    """

    function: str
    columns: tuple[int, ...]
    type: Type
    distinct: bool = False
    filter: int = -1
    order: tuple[SortColumn, ...] = ()
    fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class ReduceNode:
    """Port 0: `input`. Out: the `key` columns, then one column per aggregate, one row for each group that has rows.

    Without key columns there is exactly one row, also over no input. Without aggregates it is DISTINCT. NULLs form a group.
    """

    node: int
    input: tuple[Field, ...]
    key: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    append_only: bool
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        results = tuple(Field(f"{a.function}{i}", a.type) for i, a in enumerate(self.aggregates))
        return tuple(self.input[k] for k in self.key) + results


@dataclass(frozen=True, slots=True)
class TimerNode:
    """Port 0: a row of `columns`, then from when on and until when it is there (bigint, milliseconds; NULL: no bound). Out: `columns`."""

    node: int
    columns: tuple[Field, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class SetNode:
    """Ports 0 and 1: `columns` each. Out: the rows of INTERSECT or EXCEPT, of sets or with `all` of bags. NULLs are equal."""

    node: int
    kind: SetKind
    all: bool
    columns: tuple[Field, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class TopKNode:
    """Port 0: `input`. Out: its first `width` columns.

    Of each partition the first `count` rows (None: all) in `order` after `offset`, with `ties` those equal in order to the last one.
    `append_only`: that the input never takes a row back.
    """

    node: int
    input: tuple[Field, ...]
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    count: int | None
    offset: int
    ties: bool
    append_only: bool
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.input[: self.width]


@dataclass(frozen=True, slots=True)
class FrameBound:
    """Where a frame begins or ends, by PostgreSQL's words; `offset` of ROWS and GROUPS; of RANGE the column of the value it reaches to."""

    kind: str
    offset: int = 0
    column: int = -1


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window function or an aggregate over a frame; `key`: the column that RANGE's values are compared with, or -1."""

    function: Aggregate
    mode: str
    start: FrameBound
    end: FrameBound
    exclude: str
    key: int


@dataclass(frozen=True, slots=True)
class RecomputeNode:
    """Port 0: `input`. Out: its first `width` columns, then one for each function, over the rows of each partition in `order`."""

    node: int
    input: tuple[Field, ...]
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    functions: tuple[WindowFunction, ...]
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        results = tuple(Field(f"{f.function.function}{i}", f.function.type) for i, f in enumerate(self.functions))
        return self.input[: self.width] + results


OperatorNode = UpsertNode | CaptureNode | JoinNode | ReduceNode | TimerNode | SetNode | TopKNode | RecomputeNode


# ---- edges -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edge:
    """From a source or an operator to a port of an operator; errors of `shape` go to every relation below."""

    origin: int
    shape: Linear
    to: int
    port: int


@dataclass(frozen=True, slots=True)
class DeadLetterEdge:
    """From the records that a source could not decode (columns DEAD_LETTER) to a port of an operator."""

    source: int
    shape: Linear
    to: int
    port: int


@dataclass(frozen=True, slots=True)
class Output:
    """From a source or an operator to a relation; errors of `shape` go to the relation's errors."""

    origin: int
    shape: Linear
    relation: int


@dataclass(frozen=True, slots=True)
class RelationTarget:
    """A relation whose net changes each tick returns, and the id of the relation of its errors (0: it has none)."""

    relation: int
    columns: tuple[Field, ...]
    errors: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A circuit. Operators are in topological order; the other parts are sorted by number."""

    sources: tuple[SourceNode, ...] = ()
    operators: tuple[OperatorNode, ...] = ()
    edges: tuple[Edge, ...] = ()
    dead_letter_edges: tuple[DeadLetterEdge, ...] = ()
    outputs: tuple[Output, ...] = ()
    relations: tuple[RelationTarget, ...] = ()
