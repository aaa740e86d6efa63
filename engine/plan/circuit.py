"""The whole catalog as one graph.

    compile_catalog(catalog) ──► Graph       same catalog, same graph: a restarted engine goes on with the state it finds

Ready items are kept up to date by what their sources bring. An item that is being filled gets that too, from the first moment on,
and besides it history, through source nodes of its own:

    live      Kafka ──► source S ──┬──────────────► operators of ready views ──► …
                                   └──edge──┐
    history   $fill/<node> ──► F ──same edge┴─────► operators of the new view, its own ──► relation of the new view

`fill_inputs` says what has to be sent on which of these channels: of a stored relation its rows at one time, of a topic its
records up to the offsets of that time. The order of history and changes does not matter, because an operator's output is a function
of the sum of its input. When all is in, `sharing` puts existing operators in the place of equal new ones.

A keyed source needs no filling, because it reads its topic from the first record on: it has a channel of its own where its topic is
read already. An append-only source has no node before a view reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from typing_extensions import assert_never

from engine.plan import nodes
from engine.plan.change import (
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
from engine.plan.digest import digest
from engine.plan.graph import (
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
from engine.plan.plans import Streams
from engine.plan.sources import decoding, entering
from lake.catalog import DEAD_LETTERS, DEAD_LETTERS_FIRST, DEAD_LETTERS_KEY, Catalog, Item, skips
from lake.inbox import TABLE
from lake.types import BOOL, Field

T = TypeVar("T")

FILL = "$fill/"
UNIT = (Field("c0", BOOL, False),)  # columns of change.Unit's row, which is (true)


@dataclass(frozen=True, slots=True)
class FillInput:
    """History that a new view needs, to be sent on `channel`, which is read by node `node`.

    'relation': the rows of `item` (a stored relation) at the time from which the new view gets changes. 'topic': the records of
    `item` (a source) from where its topic begins up to the offsets of that time. 'unit': the one row of UNIT (`item` is 0).
    """

    kind: Literal["relation", "topic", "unit"]
    item: int
    node: int
    channel: str


def compile_catalog(catalog: Catalog, streams: Streams) -> Graph:
    """The graph of all items, those which are being filled included."""
    builder = _Builder(catalog, streams)
    for item in sorted(catalog.items.values(), key=lambda i: i.id):
        builder.add(item)
    return builder.graph()


def fill_inputs(item: Item, stream: Stream) -> tuple[FillInput, ...]:
    """What fills a materialized view that is not ready."""
    found = []
    for i, leaf in enumerate(leaves(stream)):
        node = nodes.fill_node(item, i)
        channel = f"{FILL}{node}/{nodes.generation(item)}"  # so that a piece of an earlier fill reaches nobody
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
    """The operators of one graph that another has no more: their state is to be forgotten."""
    return tuple(sorted({o.node for o in before.operators} - {o.node for o in after.operators}))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where changes can be had: a node, and the steps from there."""

    node: int
    shape: Linear

    def then(self, shape: Linear) -> _Place:
        return _Place(self.node, Linear(self.shape.steps + shape.steps))


@dataclass
class _Builder:
    catalog: Catalog
    streams: Streams
    sources: dict[int, SourceNode] = field(default_factory=dict)
    operators: dict[int, OperatorNode] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)  # one may be there twice, of a union of a stream with itself
    dead_letter_edges: set[DeadLetterEdge] = field(default_factory=set)
    outputs: list[Output] = field(default_factory=list)
    relations: dict[int, RelationTarget] = field(default_factory=dict)
    numbers: dict[int, dict[Stateful | Leaf, int]] = field(default_factory=dict)  # per view, of its operators, and of its leaves
    fills: dict[int, tuple[FillInput, ...]] = field(default_factory=dict)  # per view

    def graph(self) -> Graph:
        return Graph(
            tuple(self.sources[n] for n in sorted(self.sources)),
            tuple(self.operators.values()),
            _sorted(self.edges, lambda e: (e.origin, e.to, e.port, repr(e.shape))),
            _sorted(self.dead_letter_edges, lambda e: (e.source, e.to, e.port)),
            _sorted(self.outputs, lambda o: (o.relation, o.origin, repr(o.shape))),
            tuple(self.relations[r] for r in sorted(self.relations)),
        )

    def add(self, item: Item) -> None:
        match item.kind:
            case "source" if item.stored:
                self._stored(item)
            case "dead letters":
                self._dead_letters(item)
            case "materialized view" if nodes.maintained(item):
                self._view(item)
            case _:
                pass  # append-only sources come with what reads them; plain views and sinks need nothing

    # ---- sources ---------------------------------------------------------------------------------------------------------------

    def _source(self, item: Item, node: int, channel: str) -> int:
        """The node that decodes an item's records from a channel; what it cannot decode goes to the item's dead letters."""
        if node not in self.sources:
            decoder, shape, columns = decoding(item)
            self.sources[node] = SourceNode(node, channel, decoder, shape, columns, item.options.get("on_error", "dead letter"))
            for letters in self.catalog.dependents(item.id):
                if letters.kind == "dead letters":
                    self._dead_letters(letters)
                    self.dead_letter_edges.add(DeadLetterEdge(node, _letter(item), nodes.upsert_node(letters), 0))
        return node

    def _stored(self, item: Item) -> None:
        upsert = nodes.upsert_node(item)
        if item.id in self.relations:
            return
        origin = self._source(item, nodes.source_node(item), item.options["channel"])
        self.relations[item.id] = RelationTarget(item.id, item.columns, item.errors)
        if item.append_only:  # nothing need be known of the rows before
            self.outputs.append(Output(origin, Linear(), item.id))
            return
        self.operators[upsert] = _keeper(upsert, item)
        for shape in entering(item):
            self.edges.append(Edge(origin, shape, upsert, 0))
        self.outputs.append(Output(upsert, Linear(), item.id))

    def _table(self, item: Item) -> int:
        """The node that brings what is written to a table, once a view reads it. Its relation's changes are the log's without it."""
        node = nodes.source_node(item)
        self.sources[node] = SourceNode(node, f"{TABLE}{item.id}", ArrowDecoder(item.columns), Linear(), item.columns)
        return node

    def _dead_letters(self, item: Item) -> None:
        upsert = nodes.upsert_node(item)
        if upsert in self.operators:
            return
        columns = _anonymous(DEAD_LETTERS)
        self.operators[upsert] = UpsertNode(upsert, columns, DEAD_LETTERS_KEY, f"kept {item.id}", DEAD_LETTERS_FIRST)
        self.outputs.append(Output(upsert, Linear(), item.id))
        self.relations[item.id] = RelationTarget(item.id, item.columns, item.errors)

    # ---- views -----------------------------------------------------------------------------------------------------------------

    def _view(self, item: Item) -> None:
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
        node = self._node(item, operator)
        if node in self.operators:
            return  # another view's too, and its edges are the same
        for port, input in enumerate(inputs(operator)):
            for place in self._places(item, input):
                self.edges.append(Edge(place.node, place.shape, node, port))
        self.operators[node] = _operator_node(node, operator, digest(operator, item, self.catalog))

    def _node(self, item: Item, operator: Stateful) -> int:
        return nodes.node_of(item, self.numbers[item.id][operator])

    def _places(self, item: Item, wanted: Stream) -> list[_Place]:
        """Where the changes of a part of `item`'s stream are had: live, and while it is filled also from its history."""
        if isinstance(wanted.origin, Merged):
            return [p.then(wanted.shape) for input in wanted.origin.inputs for p in self._places(item, input)]
        places = self._live(item, wanted.origin)
        if not item.ready and isinstance(wanted.origin, Leaf):
            places.append(_Place(self._history(item, wanted.origin), _known(wanted.origin)))
        return [p.then(wanted.shape) for p in places]

    def _live(self, item: Item, origin: Origin) -> list[_Place]:
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
        fill = self.fills[item.id][self.numbers[item.id][leaf]]
        if fill.node not in self.sources:
            if isinstance(leaf, Source):
                self._source(self.catalog[leaf.item], fill.node, fill.channel)
            else:
                columns = UNIT if isinstance(leaf, Unit) else self.catalog[leaf.item].columns
                self.sources[fill.node] = SourceNode(fill.node, fill.channel, ArrowDecoder(columns), Linear(), columns)
        return fill.node


def _operator_node(node: int, operator: Stateful, fingerprint: str) -> OperatorNode:
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
    """To the columns of a relation that a view knows: those that there were when it was made."""
    width = leaf.width if isinstance(leaf, Source | Kept) else None
    return Linear() if width is None else Linear((Select(tuple(f"c{i}" for i in range(width))),))


def _keeper(node: int, item: Item) -> UpsertNode | CaptureNode:
    columns, fingerprint, first = _anonymous(item.columns), f"kept {item.id}", item.options.get("first_columns")
    if item.options["envelope"] == "debezium":
        return CaptureNode(node, columns, item.key, fingerprint, first)
    assert item.key is not None
    return UpsertNode(node, columns, item.key, fingerprint, first)


def _letter(source: Item) -> Linear:
    """A dead letter as an upsert wants it; without an error it was decoded at last.

    Its topic is the source's: the column may hold the name of a channel.
    """
    columns = ["'" + source.options["topic"] + "'", *(f"`{name}`" for name in DEAD_LETTER[1:])]
    return Linear((Select((*columns, "`error` IS NULL", "CAST(NULL AS STRING)")),))


def _anonymous(columns: tuple[Field, ...]) -> tuple[Field, ...]:
    """Without names, so that an operator is the same whoever asked for it first."""
    return tuple(Field(f"c{i}", c.type) for i, c in enumerate(columns))


def _sorted(values: Iterable[T], key: Callable[[T], tuple[int | str, ...]]) -> tuple[T, ...]:
    return tuple(sorted(values, key=key))
