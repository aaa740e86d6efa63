"""Compiles the whole catalog to one graph.

    compile_catalog(catalog) ──► Graph

The same catalog always gives the same graph, so a restarted engine finds its state.

Items that are ready are maintained from their sources. An item that is being backfilled receives
the same changes from the beginning and, in addition, history from source nodes that exist only for
it:

    live      Kafka ──► source S ──┬──────────────► operators of ready views ──► …
                                   └──edge──┐
    history   $fill/<node> ──► F ──same edge┴─────► operators of the new view ──► its relation

`fill_inputs` returns the history to send on these channels: the rows of a stored relation at one
time, or the records of a topic up to the offsets of that time. The order of history and changes
does not matter, because the output of an operator is a function of the sum of its input. When the
backfill is complete, `sharing` replaces the view's operators with equal existing ones.

A keyed source needs no backfill, because it reads its topic from the first record. If its topic is
already read, it gets a channel that is not shared. An append-only source has no node until a view
reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from typing_extensions import assert_never

from tailgate.engine.plan import nodes
from tailgate.engine.plan.change import (
    Joined,
    Kept,
    Leaf,
    Merged,
    Origin,
    Paired,
    Recomputed,
    Reduced,
    Source,
    Stateful,
    Stream,
    Timed,
    Topped,
    Unit,
    View,
    inputs,
    leaves,
    stateful,
)
from tailgate.engine.plan.digest import digest
from tailgate.engine.plan.graph import (
    DEAD_LETTER,
    ArrowDecoder,
    CaptureNode,
    DeadLetterEdge,
    Edge,
    Graph,
    JoinNode,
    Linear,
    OperatorNode,
    Output,
    RecomputeNode,
    ReduceNode,
    RelationTarget,
    Select,
    SetNode,
    SourceNode,
    TimerNode,
    TopKNode,
    UpsertNode,
)
from tailgate.engine.plan.plans import Streams
from tailgate.engine.plan.sources import decoding, entering
from tailgate.lake.catalog import DEAD_LETTERS, DEAD_LETTERS_FIRST, DEAD_LETTERS_KEY, Catalog, Item, skips
from tailgate.lake.inbox import TABLE
from tailgate.lake.types import BOOL, Field

T = TypeVar("T")

FILL = "$fill/"
# columns of the row of change.Unit, which is (true)
UNIT = (Field("c0", BOOL, False),)


@dataclass(frozen=True, slots=True)
class FillInput:
    """History that a new view needs; it is sent on `channel`, which `node` reads.

    - 'relation': the rows of the stored relation `item` at the time after which the view gets
      changes.
    - 'topic': the records of the source `item` from its start up to the offsets of that time.
    - 'unit': the one row of UNIT; `item` is 0.
    """

    kind: Literal["relation", "topic", "unit"]
    item: int
    node: int
    channel: str


def compile_catalog(catalog: Catalog, streams: Streams) -> Graph:
    """Returns the graph of all items, including those that are being backfilled."""
    builder = _Builder(catalog, streams)
    for item in sorted(catalog.items.values(), key=lambda i: i.id):
        builder.add(item)
    return builder.graph()


def fill_inputs(item: Item, stream: Stream) -> tuple[FillInput, ...]:
    """Returns the inputs of the backfill of a materialized view that is not ready."""
    found = []
    for i, leaf in enumerate(leaves(stream)):
        node = nodes.fill_node(item, i)
        # the generation is part of the name, so late batches of an earlier backfill are ignored
        channel = f"{FILL}{node}/{nodes.generation(item)}"
        match leaf:
            case Unit():
                found.append(FillInput("unit", 0, node, channel))
            case Source(id):
                found.append(FillInput("topic", id, node, channel))
            case Kept(id) | View(id):
                found.append(FillInput("relation", id, node, channel))
            case _:
                assert_never(leaf)
    return tuple(found)


def gone(before: Graph, after: Graph) -> tuple[int, ...]:
    """Returns the operators of `before` that are missing in `after`; their state can be removed."""
    return tuple(sorted({o.node for o in before.operators} - {o.node for o in after.operators}))


@dataclass(frozen=True, slots=True)
class _Place:
    """A point where changes can be read: the output of a node after some steps."""

    node: int
    shape: Linear

    def then(self, shape: Linear) -> _Place:
        """Returns this place followed by the steps of `shape`."""
        return _Place(self.node, Linear(self.shape.steps + shape.steps))


@dataclass
class _Builder:
    """The graph of a catalog while it is built, item by item."""

    catalog: Catalog
    streams: Streams
    sources: dict[int, SourceNode] = field(default_factory=dict)
    operators: dict[int, OperatorNode] = field(default_factory=dict)
    # not a set: UNION ALL of a stream with itself has the same edge twice
    edges: list[Edge] = field(default_factory=list)
    dead_letter_edges: set[DeadLetterEdge] = field(default_factory=set)
    outputs: list[Output] = field(default_factory=list)
    relations: dict[int, RelationTarget] = field(default_factory=dict)
    # per view: the positions of its operators and of its leaves
    numbers: dict[int, dict[Stateful | Leaf, int]] = field(default_factory=dict)
    fills: dict[int, tuple[FillInput, ...]] = field(default_factory=dict)  # per view

    def graph(self) -> Graph:
        """Returns the graph, with its parts in a deterministic order."""
        return Graph(
            tuple(self.sources[n] for n in sorted(self.sources)),
            tuple(self.operators.values()),
            _sorted(self.edges, lambda e: (e.origin, e.to, e.port, repr(e.shape))),
            _sorted(self.dead_letter_edges, lambda e: (e.source, e.to, e.port)),
            _sorted(self.outputs, lambda o: (o.relation, o.origin, repr(o.shape))),
            tuple(self.relations[r] for r in sorted(self.relations)),
        )

    def add(self, item: Item) -> None:
        """Adds an item's nodes to the graph, unless they exist or it has none."""
        match item.kind:
            case "source" if item.stored:
                self._stored(item)
            case "dead letters":
                self._dead_letters(item)
            case "materialized view" if nodes.maintained(item):
                self._view(item)
            case _:
                pass  # append-only sources are added with the views that read them; plain views and sinks have no nodes

    # ---- sources ---------------------------------------------------------------------------------------------------------------

    def _source(self, item: Item, node: int, channel: str) -> int:
        """Returns the node that decodes a source's records from a channel; creates it if necessary.

        Records that cannot be decoded go to the source's dead letters.
        """
        if node not in self.sources:
            decoder, shape, columns = decoding(item)
            self.sources[node] = SourceNode(node, channel, decoder, shape, columns, item.options.get("on_error", "dead letter"))
            for letters in self.catalog.dependents(item.id):
                if letters.kind == "dead letters":
                    self._dead_letters(letters)
                    self.dead_letter_edges.add(DeadLetterEdge(node, _letter(item), nodes.upsert_node(letters), 0))
        return node

    def _stored(self, item: Item) -> None:
        """Adds a stored source."""
        upsert = nodes.upsert_node(item)
        if item.id in self.relations:
            return
        origin = self._source(item, nodes.source_node(item), item.options["channel"])
        self.relations[item.id] = RelationTarget(item.id, item.columns, item.errors)
        if item.append_only:  # earlier rows do not matter
            self.outputs.append(Output(origin, Linear(), item.id))
            return
        self.operators[upsert] = _keeper(upsert, item)
        for shape in entering(item):
            self.edges.append(Edge(origin, shape, upsert, 0))
        self.outputs.append(Output(upsert, Linear(), item.id))

    def _table(self, item: Item) -> int:
        """Creates and returns the node for rows that are written to a table, when a view reads it.

        The log contains the table's changes without this node.
        """
        node = nodes.source_node(item)
        self.sources[node] = SourceNode(node, f"{TABLE}{item.id}", ArrowDecoder(item.columns), Linear(), item.columns)
        return node

    def _dead_letters(self, item: Item) -> None:
        """Adds the relation of a source's dead letters."""
        upsert = nodes.upsert_node(item)
        if upsert in self.operators:
            return
        columns = _anonymous(DEAD_LETTERS)
        self.operators[upsert] = UpsertNode(upsert, columns, DEAD_LETTERS_KEY, f"kept {item.id}", DEAD_LETTERS_FIRST)
        self.outputs.append(Output(upsert, Linear(), item.id))
        self.relations[item.id] = RelationTarget(item.id, item.columns, item.errors)

    # ---- views -----------------------------------------------------------------------------------------------------------------

    def _view(self, item: Item) -> None:
        """Adds a materialized view and the items that it reads."""
        if item.id in self.relations:
            return
        stream = self.streams(item)
        self.relations[item.id] = RelationTarget(item.id, item.columns, 0 if skips(item) else item.errors)
        own = stateful(stream)
        self.numbers[item.id] = {o: i for found in (own, leaves(stream)) for i, o in enumerate(found)}
        self.fills[item.id] = fill_inputs(item, stream)
        for operator in own:
            self._operator(item, operator)
        for place in self._places(item, stream):
            self.outputs.append(Output(place.node, place.shape, item.id))

    def _operator(self, item: Item, operator: Stateful) -> None:
        """Adds an operator of a view with the edges that lead to it."""
        node = self._node(item, operator)
        if node in self.operators:
            # shared with another view; the edges are the same
            return
        for port, input in enumerate(inputs(operator)):
            for place in self._places(item, input):
                self.edges.append(Edge(place.node, place.shape, node, port))
        self.operators[node] = _operator_node(node, operator, digest(operator, item, self.catalog))

    def _node(self, item: Item, operator: Stateful) -> int:
        return nodes.node_of(item, self.numbers[item.id][operator])

    def _places(self, item: Item, wanted: Stream) -> list[_Place]:
        """Returns the places where the changes of a part of the view's stream can be read.

        These are the live places and, during a backfill, also that of the history.
        """
        if isinstance(wanted.origin, Merged):
            return [p.then(wanted.shape) for input in wanted.origin.inputs for p in self._places(item, input)]
        places = self._live(item, wanted.origin)
        if not item.ready and isinstance(wanted.origin, Leaf):
            places.append(_Place(self._history(item, wanted.origin), _known(wanted.origin)))
        return [p.then(wanted.shape) for p in places]

    def _live(self, item: Item, origin: Origin) -> list[_Place]:
        """Returns the places where the live changes of an origin can be read."""
        match origin:
            case Source(id):
                source = self.catalog[id]
                return [_Place(self._source(source, nodes.source_node(source), source.options["channel"]), _known(origin))]
            case Kept(id) if self.catalog[id].kind == "table":
                return [_Place(self._table(self.catalog[id]), Linear())]
            case Kept(id):
                kept = self.catalog[id]
                self.add(kept)
                upserts = kept.kind == "dead letters" or not kept.append_only
                return [_Place(nodes.upsert_node(kept) if upserts else nodes.source_node(kept), _known(origin))]
            case View(id, below):
                view = self.catalog[id]
                self._view(view)
                return [p.then(below.shape) for p in self._live(view, below.origin)]
            case Unit():
                return []  # it never changes
            case Merged(inputs):
                return [p.then(i.shape) for i in inputs for p in self._live(item, i.origin)]
            case Joined() | Reduced() | Timed() | Paired() | Topped() | Recomputed():
                return [_Place(self._node(item, origin), Linear())]
            case _:
                assert_never(origin)

    def _history(self, item: Item, leaf: Leaf) -> int:
        """Returns the node that sends the history of a leaf to a new view; creates it if necessary."""
        fill = self.fills[item.id][self.numbers[item.id][leaf]]
        if fill.node not in self.sources:
            if isinstance(leaf, Source):
                self._source(self.catalog[leaf.item], fill.node, fill.channel)
            else:
                columns = UNIT if isinstance(leaf, Unit) else self.catalog[leaf.item].columns
                self.sources[fill.node] = SourceNode(fill.node, fill.channel, ArrowDecoder(columns), Linear(), columns)
        return fill.node


def _operator_node(node: int, operator: Stateful, fingerprint: str) -> OperatorNode:
    """Returns the node of an operator."""
    match operator:
        case Joined(left, right, left_key, right_key, kind, null_safe, condition, unique):
            sides = _anonymous(left.columns), _anonymous(right.columns)
            append_only = left.append_only, right.append_only
            return JoinNode(node, kind, *sides, left_key, right_key, null_safe, condition, append_only, unique, fingerprint)
        case Reduced(input, keys, aggregates):
            return ReduceNode(node, _anonymous(input.columns), tuple(range(keys)), aggregates, input.append_only, fingerprint)
        case Paired(left, right, kind, all):
            return SetNode(node, kind, all, _anonymous(left.columns), fingerprint)
        case Timed(input):
            return TimerNode(node, _anonymous(input.columns[:-2]), fingerprint)
        case Topped(input, width, partition, order, count, offset, ties):
            return TopKNode(node, _anonymous(input.columns), width, partition, order, count, offset, ties, input.append_only, fingerprint)
        case Recomputed(input, width, partition, order, functions):
            return RecomputeNode(node, _anonymous(input.columns), width, partition, order, functions, fingerprint)
        case _:
            assert_never(operator)


def _known(leaf: Leaf) -> Linear:
    """Returns the projection to the columns that a relation had when the view was created."""
    width = leaf.width if isinstance(leaf, Source | Kept) else None
    return Linear() if width is None else Linear((Select(tuple(f"c{i}" for i in range(width))),))


def _keeper(node: int, item: Item) -> UpsertNode | CaptureNode:
    """Returns the operator that stores the rows of a keyed source."""
    columns, fingerprint, first = _anonymous(item.columns), f"kept {item.id}", item.options.get("first_columns")
    if item.options["envelope"] == "debezium":
        return CaptureNode(node, columns, item.key, fingerprint, first)
    assert item.key is not None
    return UpsertNode(node, columns, item.key, fingerprint, first)


def _letter(source: Item) -> Linear:
    """Returns the step from a dead letter to the input of its upsert.

    A record without an error was decoded by a retry, so its dead letter is deleted. The topic is
    that of the source, because the record's column may contain the name of a channel.
    """
    columns = ["'" + source.options["topic"] + "'", *(f"`{name}`" for name in DEAD_LETTER[1:])]
    return Linear((Select((*columns, "`error` IS NULL", "CAST(NULL AS STRING)")),))


def _anonymous(columns: tuple[Field, ...]) -> tuple[Field, ...]:
    """Renames the columns to c0, c1, …: an operator is then the same for all views that share it."""
    return tuple(Field(f"c{i}", c.type) for i, c in enumerate(columns))


def _sorted(values: Iterable[T], key: Callable[[T], tuple[int | str, ...]]) -> tuple[T, ...]:
    return tuple(sorted(values, key=key))
