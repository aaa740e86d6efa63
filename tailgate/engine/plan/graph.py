"""The circuit as a value: the planner returns a `Graph`, the runtime runs it.

    channel ──decode──► SourceNode ──shape──┬──Edge──► OperatorNode ──Output──► RelationTarget
                          │ undecodable     └──Output──► RelationTarget
                          └──DeadLetterEdge──► OperatorNode (upsert) ──Output──► RelationTarget

Edges also lead from operators to other operators.

Sources and operators share one range of node numbers. The state of an operator is stored under its
number, so a number is never used for another node, not even after its node is removed
(`engine.plan.nodes`). Compiling the same catalog twice gives equal graphs, so graphs can be
compared to detect changes.

Columns have no names in a graph: the columns of a row are c0, c1, … at each step. Names exist only
in the first step of a SourceNode's shape (those of DECODED) and of a DeadLetterEdge's shape (those
of DEAD_LETTER).

The runtime turns each value into one call of the Java library (tailgate/engine/java/README.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailgate.lake.types import INT4, INT8, TEXT, Field, Type

# columns that the first step of a Kafka source's shape may read; `value` is a struct for AVRO and
# for JSON with declared columns
DECODED = ("key", "value", "__topic", "__partition", "__offset", "__timestamp", "__headers")

# columns that the first step of a dead letter edge's shape may read
DEAD_LETTER = ("topic", "partition", "offset", "timestamp", "key", "value", "error", "attempts", "since", "backfill")

# the columns that follow a row in the input of an upsert: whether the key is deleted, and the
# position that orders changes of a key
DELETED, POSITION = "__deleted", "__position"

# the columns that follow a row in the input of a capture (tailgate/engine/java, ChangeEvent)
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
    """A filter: keeps the rows whose `expression` (Spark SQL over the columns before it) is true."""

    expression: str


@dataclass(frozen=True, slots=True)
class Select:
    """A projection: computes `expressions` (Spark SQL over the columns before it), the new c0, c1, …."""

    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explode:
    """A step that returns one row for each element of `array` (Spark SQL over c0, c1, …).

    The element and its number, counted from 1 (bigint), follow the columns. If the element is a
    struct, its `fields` columns replace it (0: it is not a struct). An array that is NULL or empty
    gives no row, or with `outer` one row of NULLs.
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
    """The conversion of the bytes of a key or a value to a column, by `kind`.

    - none: not decoded; the column is a binary NULL.
    - bytes: the bytes themselves.
    - text: UTF-8 as a string.
    - json: canonical text of a jsonb.
    - json_columns: an object as a struct of `columns` (Spark DDL).
    - connect_json: Debezium's envelope or key; `schema` has the columns (tailgate/engine/java,
      ConnectFormat).
    - csv: a line as a struct of texts; `schema` is JSON with columns, delimiter, header and nulls.
    - regex: the groups of the pattern `schema` as a struct of texts.
    - avro: decoded with the writer's schema, which has an id in `registry` (a URL), and resolved to
      the reader's `schema` (JSON text). Without a registry the writer's schema equals the reader's,
      and `wire` is true if messages begin with Confluent's header.
    - protobuf: a message as a struct, described by `schema` (tailgate/engine/java, ProtobufSchema).

    `access` has the settings for requests to the registry (`lake.secrets`, as JSON, secrets by id).
    It is empty if the URL suffices.
    """

    kind: Literal["none", "bytes", "text", "json", "json_columns", "connect_json", "csv", "regex", "avro", "protobuf"]
    columns: str = ""
    schema: str = ""
    registry: str = ""
    wire: bool = True
    access: str = ""


@dataclass(frozen=True, slots=True)
class KafkaDecoder:
    """A decoder from Kafka records to the columns of DECODED.

    A record whose key and value together exceed `max_bytes` fails; None means no limit.
    """

    key: FormatSpec
    value: FormatSpec
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ArrowDecoder:
    """A decoder from weighted rows of a relation to c0, c1, …; backfills from stored relations use it."""

    columns: tuple[Field, ...]


DecoderSpec = KafkaDecoder | ArrowDecoder
# the effect of a record that fails: a dead letter is written, the source stalls, or the value is
# NULL
OnError = Literal["dead letter", "fail", "null"]


JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]
SetKind = Literal["intersect", "except"]


# ---- nodes -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceNode:
    """An input of the circuit: the rows of `channel`, decoded, then shaped into `columns`.

    A channel is the name of a topic, or `$fill/<node>` for the history that fills a new view.
    Several nodes may read one channel. A row that fails in the decoder or in the shape goes along
    the node's dead letter edges; without such edges it is dropped.
    """

    node: int
    channel: str
    decoder: DecoderSpec
    shape: Linear
    columns: tuple[Field, ...]
    on_error: OnError = "dead letter"


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """An operator that keeps the newest row of each `key` and emits the differences.

    Port 0: a row of `columns`, then `__deleted` (boolean), then `__position` (text, may be NULL).
    Output: `columns`. A row is ignored if its position is not above that of the stored row; a row
    without a position always applies. `first`: the original number of columns, if columns were
    added later.
    """

    node: int
    columns: tuple[Field, ...]
    key: tuple[int, ...]
    fingerprint: str
    first: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureNode:
    """An operator that turns change events of a database's table into the rows of the table.

    Port 0: change events. Output: `columns`. With a `key` an event is a row of `columns`, then
    CAPTURED. Without a key (None) it is the row after the change and the row before it, each a
    struct or NULL, then CAPTURED. Repeated and late events are dropped. `first`: as in UpsertNode.
    """

    node: int
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    fingerprint: str
    first: int | None = None


@dataclass(frozen=True, slots=True)
class JoinNode:
    """A join by key.

    Ports 0 and 1: `left` and `right`. Output: the columns of the left, then of the right (semi and
    anti joins: only those of the left).

    Two rows match if their keys are equal and `condition`, if any, is true; it reads the left's
    columns, then the right's. Both keys have equal types. A NULL in a key matches nothing, except
    that it matches NULL where the column is `null_safe`. Without key columns all pairs match. Two
    flags are given for each side: `append_only`, if it never retracts a row, and `unique`, if it
    has at most one row per key.
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
        """Returns the columns of the output."""
        return self.left if self.kind in ("semi", "anti") else self.left + self.right


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of the input that rows are sorted by."""

    column: int
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One result of a reduce: a function over columns of the input.

    count without columns counts rows. `filter`: the boolean column that must be true for a row to
    be aggregated, or -1. `order`: the order in which values are aggregated, before the order of the
    values themselves. `fraction`: the fraction of a percentile.
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
    """Grouped aggregation: one row for each group that has rows.

    Port 0: `input`. Output: the `key` columns, then one column per aggregate. Without key columns
    there is exactly one row, also for empty input. Without aggregates the node is DISTINCT. NULLs
    form a group.
    """

    node: int
    input: tuple[Field, ...]
    key: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    append_only: bool
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        results = tuple(Field(f"{a.function}{i}", a.type) for i, a in enumerate(self.aggregates))
        return tuple(self.input[k] for k in self.key) + results


@dataclass(frozen=True, slots=True)
class TimerNode:
    """A temporal filter: emits each row while the clock is within the row's bounds.

    Port 0: a row of `columns`, then the times (bigint, milliseconds; NULL: no bound) from which and
    until which the row is visible. Output: `columns`.
    """

    node: int
    columns: tuple[Field, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class SetNode:
    """INTERSECT or EXCEPT of two inputs with equal `columns`. NULLs are equal.

    With `all` the operation is on bags, otherwise on sets.
    """

    node: int
    kind: SetKind
    all: bool
    columns: tuple[Field, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class TopKNode:
    """The first rows of each partition. Output: the first `width` columns of `input` (port 0).

    In each partition the rows are sorted by `order`, `offset` rows are skipped, and the next
    `count` are kept (None: all). With `ties` the rows that are equal in order to the last one are
    kept, too. `append_only`: the input never retracts a row.
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
        """Returns the columns of the output."""
        return self.input[: self.width]


@dataclass(frozen=True, slots=True)
class FrameBound:
    """The start or end of a window frame; `kind` is PostgreSQL's keyword.

    `offset` is used by ROWS and GROUPS. `column` is used by RANGE: it has the value that the frame
    extends to.
    """

    kind: str
    offset: int = 0
    column: int = -1


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window function, or an aggregate over a frame.

    `key`: the column that RANGE compares with the bounds, or -1.
    """

    function: Aggregate
    mode: str
    start: FrameBound
    end: FrameBound
    exclude: str
    key: int


@dataclass(frozen=True, slots=True)
class RecomputeNode:
    """Window functions over the partitions of `input` (port 0).

    Output: the first `width` columns of the input, then one per function. Each function sees the
    rows of the row's partition in `order`.
    """

    node: int
    input: tuple[Field, ...]
    width: int
    partition: tuple[int, ...]
    order: tuple[SortColumn, ...]
    functions: tuple[WindowFunction, ...]
    fingerprint: str

    @property
    def columns(self) -> tuple[Field, ...]:
        """Returns the columns of the output."""
        results = tuple(Field(f"{f.function.function}{i}", f.function.type) for i, f in enumerate(self.functions))
        return self.input[: self.width] + results


OperatorNode = UpsertNode | CaptureNode | JoinNode | ReduceNode | TimerNode | SetNode | TopKNode | RecomputeNode


# ---- edges -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from a source or an operator to a port of an operator.

    Errors in `shape` go to all relations that depend on the edge.
    """

    origin: int
    shape: Linear
    to: int
    port: int


@dataclass(frozen=True, slots=True)
class DeadLetterEdge:
    """An edge from a source's undecodable records (columns DEAD_LETTER) to a port of an operator."""

    source: int
    shape: Linear
    to: int
    port: int


@dataclass(frozen=True, slots=True)
class Output:
    """An edge from a source or an operator to a relation. Errors in `shape` belong to the relation."""

    origin: int
    shape: Linear
    relation: int


@dataclass(frozen=True, slots=True)
class RelationTarget:
    """A relation whose net changes each tick returns; `errors`: the id of its error relation, or 0."""

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
