"""The circuit as a value: the planner returns a `Graph`, the runtime runs it.

    channel ──decode──► SourceNode ──shape──┬──Edge──► Operator ──Output──► RelationTarget
                          │ undecodable     └──Output──► RelationTarget
                          └──DeadLetterEdge──► Operator (upsert) ──Output──► RelationTarget

Edges also lead from operators to other operators.

Sources and operators share one range of node numbers. The state of an operator is stored under its
number, so a number is never used for another node, not even after its node is removed
(`engine.plan.views.nodes`). Compiling the same catalog twice gives equal graphs, so graphs can be
compared to detect changes.

Columns have no names in a graph: the columns of a row are c0, c1, … at each step. Names exist only
in the first step of a SourceNode's shape (those of DECODED) and of a DeadLetterEdge's shape (those
of DEAD_LETTER).

The runtime turns each value into one call of the Java library (tailgate/engine/java/README.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.engine.plan.circuit.decoders import DecoderSpec, OnError
from tailgate.engine.plan.circuit.operators import Operator
from tailgate.engine.plan.circuit.steps import Steps
from tailgate.lake.types import Field

# columns that the first step of a dead letter edge's shape may read
DEAD_LETTER = ("topic", "partition", "offset", "timestamp", "key", "value", "error", "attempts", "since", "backfill")


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
    shape: Steps
    columns: tuple[Field, ...]
    on_error: OnError = "dead letter"


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from a source or an operator to a port of an operator.

    Errors in `shape` go to all relations that depend on the edge.
    """

    origin: int
    shape: Steps
    to: int
    port: int


@dataclass(frozen=True, slots=True)
class DeadLetterEdge:
    """An edge from a source's undecodable records (columns DEAD_LETTER) to a port of an operator."""

    source: int
    shape: Steps
    to: int
    port: int


@dataclass(frozen=True, slots=True)
class Output:
    """An edge from a source or an operator to a relation. Errors in `shape` belong to the relation."""

    origin: int
    shape: Steps
    relation: int


@dataclass(frozen=True, slots=True)
class RelationTarget:
    """A relation whose net changes each tick returns; `errors`: the id of its error relation, or 0.

    `repeats`: whether ticks of one record also return the rows that are removed and added again, for a table of ksqlDB.
    """

    relation: int
    columns: tuple[Field, ...]
    errors: int
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """A circuit. Operators are in topological order; the other parts are sorted by number."""

    sources: tuple[SourceNode, ...] = ()
    operators: tuple[Operator, ...] = ()
    edges: tuple[Edge, ...] = ()
    dead_letter_edges: tuple[DeadLetterEdge, ...] = ()
    outputs: tuple[Output, ...] = ()
    relations: tuple[RelationTarget, ...] = ()
