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

from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.decoders import ArrowDecoder
from tailgate.engine.plan.circuit.graph import DEAD_LETTER, DeadLetterEdge, Edge, Graph, Output, RelationTarget, SourceNode
from tailgate.engine.plan.circuit.steps import Project, Steps
from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.change import (
    Leaf,
    Origin,
    SingleRow,
    Source,
    Stateful,
    StoredRelation,
    Stream,
    View,
    inputs,
    leaves,
    stateful,
    table_leaves,
)
from tailgate.engine.plan.sources.envelopes import source_layout
from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.digest import digest, is_paused
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import (
    DEAD_LETTERS,
    DEAD_LETTERS_FIRST,
    DEAD_LETTERS_KEY,
    Catalog,
    DeadLetters,
    Item,
    MaterializedView,
    Table,
    items,
    skips,
)
from tailgate.lake.types import BOOL, Field
from tailgate.lake.writer.inbox import TABLE

T = TypeVar("T")

BACKFILL = "$fill/"
# columns of the row of change.SingleRow, which is (true)
SINGLE_ROW = (Field("c0", BOOL, False),)


@dataclass(frozen=True, slots=True)
class BackfillInput:
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


def backfill_inputs(item: MaterializedView, stream: Stream) -> tuple[BackfillInput, ...]:
    """Returns the inputs of the backfill of a materialized view that is not ready.

    The tables of joins as of arrival come before the streams.
    """
    backfills = []
    tables = {nodes.backfill_node(item, i) for i, leaf in enumerate(leaves(stream)) if leaf in table_leaves(stream)}
    for i, leaf in enumerate(leaves(stream)):
        node = nodes.backfill_node(item, i)
        # the generation is part of the name, so late batches of an earlier backfill are ignored
        channel = f"{BACKFILL}{node}/{item.numberings}"
        match leaf:
            case SingleRow():
                backfills.append(BackfillInput("unit", 0, node, channel))
            case Source(id):
                backfills.append(BackfillInput("topic", id, node, channel))
            case StoredRelation(id) | View(id):
                backfills.append(BackfillInput("relation", id, node, channel))
            case _:
                assert_never(leaf)
    return tuple(sorted(backfills, key=lambda b: b.node not in tables))


def removed_operators(before: Graph, after: Graph) -> tuple[int, ...]:
    """Returns the operators of `before` that are missing in `after`; their state can be removed."""
    return tuple(sorted({o.node for o in before.operators} - {o.node for o in after.operators}))


@dataclass(frozen=True, slots=True)
class _Place:
    """A point where changes can be read: the output of a node after some steps."""

    node: int
    shape: Steps

    def then(self, shape: Steps) -> _Place:
        """Returns this place followed by the steps of `shape`."""
        return _Place(self.node, Steps(self.shape.steps + shape.steps))


@dataclass
class _Builder:
    """The graph of a catalog while it is built, item by item."""

    catalog: Catalog
    streams: Streams
    sources: dict[int, SourceNode] = field(default_factory=dict)
    operators: dict[int, operators.Operator] = field(default_factory=dict)
    # not a set: UNION ALL of a stream with itself has the same edge twice
    edges: list[Edge] = field(default_factory=list)
    dead_letter_edges: set[DeadLetterEdge] = field(default_factory=set)
    outputs: list[Output] = field(default_factory=list)
    relations: dict[int, RelationTarget] = field(default_factory=dict)
    # per view: the positions of its operators and of its leaves
    numbers: dict[int, dict[Stateful | Leaf, int]] = field(default_factory=dict)
    fills: dict[int, tuple[BackfillInput, ...]] = field(default_factory=dict)  # per view

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
        match item:
            case items.Source(stored=True):
                self._stored(item)
            case DeadLetters():
                self._dead_letters(item)
            case MaterializedView() if nodes.is_maintained(item):
                self._view(item)
            case _:
                pass  # append-only sources are added with the views that read them; plain views and sinks have no nodes

    # ---- sources ---------------------------------------------------------------------------------------------------------------

    def _source(self, item: items.Source, node: int, channel: str) -> int:
        """Returns the node that decodes a source's records from a channel; creates it if necessary.

        Records that cannot be decoded go to the source's dead letters.
        """
        if node not in self.sources:
            layout = source_layout(item)
            self.sources[node] = SourceNode(node, channel, layout.decoder, layout.shape, layout.source_columns, item.on_error)
            for letters in self.catalog.dependents(item.id):
                if isinstance(letters, DeadLetters):
                    self._dead_letters(letters)
                    self.dead_letter_edges.add(DeadLetterEdge(node, _letter(item), nodes.upsert_node(letters), 0))
        return node

    def _stored(self, item: items.Source) -> None:
        """Adds a stored source."""
        upsert = nodes.upsert_node(item)
        if item.id in self.relations:
            return
        origin = self._source(item, nodes.source_node(item), item.channel)
        self.relations[item.id] = RelationTarget(item.id, item.columns, item.errors)
        if item.append_only:  # earlier rows do not matter
            self.outputs.append(Output(origin, Steps(), item.id))
            return
        self.operators[upsert] = _upsert(upsert, item)
        for shape in source_layout(item).entering:
            self.edges.append(Edge(origin, shape, upsert, 0))
        self.outputs.append(Output(upsert, Steps(), item.id))

    def _table(self, item: Table) -> int:
        """Creates and returns the node for rows that are written to a table, when a view reads it.

        The log contains the table's changes without this node.
        """
        node = nodes.source_node(item)
        self.sources[node] = SourceNode(node, f"{TABLE}{item.id}", ArrowDecoder(item.columns), Steps(), item.columns)
        return node

    def _dead_letters(self, item: DeadLetters) -> None:
        """Adds the relation of a source's dead letters."""
        upsert = nodes.upsert_node(item)
        if upsert in self.operators:
            return
        columns = _numbered(DEAD_LETTERS)
        self.operators[upsert] = operators.Upsert(upsert, columns, DEAD_LETTERS_KEY, f"kept {item.id}", DEAD_LETTERS_FIRST)
        self.outputs.append(Output(upsert, Steps(), item.id))
        self.relations[item.id] = RelationTarget(item.id, item.columns, item.errors)

    # ---- views -----------------------------------------------------------------------------------------------------------------

    def _view(self, item: MaterializedView) -> None:
        """Adds a materialized view and the items that it reads."""
        if item.id in self.relations:
            return
        stream = self.streams(item)
        repeats = item.ksqldb is not None and item.ksqldb.type == "table"
        self.relations[item.id] = RelationTarget(item.id, item.columns, 0 if skips(item) else item.errors, repeats)
        operators = stateful(stream)
        self.numbers[item.id] = {o: i for origins in (operators, leaves(stream)) for i, o in enumerate(origins)}
        self.fills[item.id] = backfill_inputs(item, stream)
        for operator in operators:
            self._operator(item, operator)
        for place in self._places(item, stream):
            self.outputs.append(Output(place.node, place.shape, item.id))

    def _operator(self, item: MaterializedView, operator: Stateful) -> None:
        """Adds an operator of a view with the edges that lead to it."""
        node = self._node(item, operator)
        if node in self.operators:
            # shared with another view; the edges are the same
            return
        for port, input in enumerate(inputs(operator)):
            for place in self._places(item, input):
                self.edges.append(Edge(place.node, place.shape, node, port + self._history_port(item, operator, place)))
        self.operators[node] = _operator_node(node, operator, digest(operator, item, self.catalog), filling=not item.ready)

    def _history_port(self, item: MaterializedView, operator: Stateful, place: _Place) -> int:
        """Returns the first port of history for an edge with it to an operator that depends on the order of its input, else 0.

        What leaves an operator of the view itself during its fill is history, because live changes wait at the first such one.
        """
        is_history = isinstance(operator, change.ORDERED) and not item.ready and nodes.owner(place.node) == item.id
        return len(inputs(operator)) if is_history else 0

    def _node(self, item: MaterializedView, operator: Stateful) -> int:
        return nodes.node_of(item, self.numbers[item.id][operator])

    def _places(self, item: MaterializedView, stream: Stream) -> list[_Place]:
        """Returns the places where the changes of a part of the view's stream can be read.

        These are the live places and, during a backfill, also that of the history.
        """
        if isinstance(stream.origin, change.Union):
            return [p.then(stream.shape) for input in stream.origin.inputs for p in self._places(item, input)]
        places = self._live(item, stream.origin)
        if not item.ready and isinstance(stream.origin, Leaf):
            places.append(_Place(self._history(item, stream.origin), _first_columns(stream.origin)))
        return [p.then(stream.shape) for p in places]

    def _live(self, item: MaterializedView, origin: Origin) -> list[_Place]:
        """Returns the places where the live changes of an origin can be read."""
        match origin:
            case Source(id):
                source = self.catalog.expect(items.Source, id)
                return [_Place(self._source(source, nodes.source_node(source), source.channel), _first_columns(origin))]
            case StoredRelation(id) if isinstance(table := self.catalog[id], Table):
                return [_Place(self._table(table), _first_columns(origin))]
            case StoredRelation(id):
                stored = self.catalog[id]
                self.add(stored)
                upserts = isinstance(stored, DeadLetters) or not stored.append_only
                return [_Place(nodes.upsert_node(stored) if upserts else nodes.source_node(stored), _first_columns(origin))]
            case View(id) if is_paused(self.catalog[id]):
                return []  # no tick changes it
            case View(id, below):
                view = self.catalog.expect(MaterializedView, id)
                self._view(view)
                return self._places(view, below)  # if the view is being filled, too, its history passes through it
            case SingleRow():
                return []  # it never changes
            case change.Union(inputs):
                return [p.then(i.shape) for i in inputs for p in self._live(item, i.origin)]
            case change.Join() | change.ArrivalJoin() | change.WithinJoin() | change.SetOperation() | change.Fixpoint():
                return [_Place(self._node(item, origin), Steps())]
            case change.WorkingTable(number):
                fixpoints = [o for o in self.numbers[item.id] if isinstance(o, change.Fixpoint) and o.number == number]
                assert len(fixpoints) == 1, "a plan with two forms of one recursive query"
                return [_Place(self._node(item, fixpoints[0]), Steps())]
            case change.Closing() | change.Reduce() | change.TemporalFilter() | change.TopK() | change.Window():
                return [_Place(self._node(item, origin), Steps())]
            case _:
                assert_never(origin)

    def _history(self, item: MaterializedView, leaf: Leaf) -> int:
        """Returns the node that sends the history of a leaf to a new view; creates it if necessary."""
        node = nodes.backfill_node(item, self.numbers[item.id][leaf])
        fill = next(f for f in self.fills[item.id] if f.node == node)
        if fill.node not in self.sources:
            if isinstance(leaf, Source):
                self._source(self.catalog.expect(items.Source, leaf.item), fill.node, fill.channel)
            else:
                columns = SINGLE_ROW if isinstance(leaf, SingleRow) else self.catalog[leaf.item].columns
                self.sources[fill.node] = SourceNode(fill.node, fill.channel, ArrowDecoder(columns), Steps(), columns)
        return fill.node


def _operator_node(node: int, operator: Stateful, fingerprint: str, *, filling: bool) -> operators.Operator:
    """Returns the node of an operator. `filling`: whether its view is being filled."""
    match operator:
        case change.ArrivalJoin(left, right, left_key, right_key, kind):
            sides = _numbered(left.columns), _numbered(right.columns)
            return operators.ArrivalJoin(node, kind, *sides, left_key, right_key, filling, fingerprint)
        case change.WithinJoin(left, right, left_key, right_key, kind):
            sides = _numbered(left.columns), _numbered(right.columns)
            times = operator.left_time, operator.right_time, operator.before, operator.after, operator.grace
            return operators.WithinJoin(node, kind, *sides, left_key, right_key, *times, operator.eager, filling, fingerprint)
        case change.Closing(input, width, time, end, grace, last, session):
            return operators.Closing(node, _numbered(input.columns), width, time, end, grace, last, session, filling, fingerprint)
        case change.Join(left, right, left_key, right_key, kind, null_safe, condition, unique):
            sides = _numbered(left.columns), _numbered(right.columns)
            append_only = left.append_only, right.append_only
            return operators.Join(node, kind, *sides, left_key, right_key, null_safe, condition, append_only, unique, fingerprint)
        case change.Reduce(input, keys, aggregates, retention):
            columns, key = _numbered(input.columns), tuple(range(keys))
            until = None if retention is None else (retention.end, retention.length)
            return operators.Reduce(node, columns, key, aggregates, input.append_only, until, fingerprint)
        case change.SetOperation(left, right, kind, all):
            return operators.SetOperation(node, kind, all, _numbered(left.columns), fingerprint)
        case change.Fixpoint(_, base, _, all, limit, name, keys):
            columns, width = _numbered(base.columns), 1 + (len(keys) or len(base.columns) - 1)
            return operators.Fixpoint(node, columns[:width], columns[width:], keys, all, limit, name, fingerprint)
        case change.TemporalFilter(input):
            return operators.TemporalFilter(node, _numbered(input.columns[:-2]), fingerprint)
        case change.TopK(input, width, partition, order, count, offset, ties):
            return operators.TopK(
                node, _numbered(input.columns), width, partition, order, count, offset, ties, input.append_only, fingerprint
            )
        case change.Window(input, width, partition, order, functions):
            return operators.Window(node, _numbered(input.columns), width, partition, order, functions, fingerprint)
        case _:
            assert_never(operator)


def _first_columns(leaf: Leaf) -> Steps:
    """Returns the projection to the columns that a relation had when the view was created."""
    width = leaf.width if isinstance(leaf, Source | StoredRelation) else None
    return Steps() if width is None else Steps((Project(tuple(f"c{i}" for i in range(width))),))


def _upsert(node: int, item: items.Source) -> operators.Upsert | operators.CdcUpsert | operators.CdcBag:
    """Returns the operator that stores the rows of a keyed source."""
    columns, fingerprint, first = _numbered(item.columns), f"kept {item.id}", item.first_columns
    if item.envelope == "debezium":
        if item.key is None:
            return operators.CdcBag(node, columns, fingerprint, first)
        return operators.CdcUpsert(node, columns, item.key, fingerprint, first)
    assert item.key is not None
    return operators.Upsert(node, columns, item.key, fingerprint, first)


def _letter(source: items.Source) -> Steps:
    """Returns the step from a dead letter to the input of its upsert.

    A record without an error was decoded by a retry, so its dead letter is deleted. The topic is
    that of the source, because the record's column may contain the name of a channel.
    """
    columns = ["'" + source.topic + "'", *(f"`{name}`" for name in DEAD_LETTER[1:])]
    return Steps((Project((*columns, "`error` IS NULL", "CAST(NULL AS STRING)")),))


def _numbered(columns: tuple[Field, ...]) -> tuple[Field, ...]:
    """Renames the columns to c0, c1, …: an operator is then the same for all views that share it."""
    return tuple(Field(f"c{i}", c.type) for i, c in enumerate(columns))


def _sorted(values: Iterable[T], key: Callable[[T], tuple[int | str, ...]]) -> tuple[T, ...]:
    return tuple(sorted(values, key=key))
