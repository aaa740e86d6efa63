"""EXPLAIN MATERIALIZED VIEW: the plan after its rewrites, and how each node is maintained.

    Reduce: keys=[is_vip, channel] aggregates=[count(*)]      maintained by: reduce, a row of state per group
    └─ Inner join: id = user_id                                  maintained by: join, both sides kept by key; shared with totals
       ├─ Scan: users (keyed)                                    maintained by: upsert on id
       └─ Scan: pageviews (append-only)

The text is stable: it contains no ids, digests or Spark SQL. EXPLAIN ANALYZE adds to each operator
the size of its state and its work in the last ticks. Ticks collect these figures, so the statement
does not scan anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tailgate.engine.plan.circuit.operators import AggregateCall
from tailgate.engine.plan.rewrites.passes import rewrite
from tailgate.engine.plan.rewrites.temporal import reads_clock
from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.change import STATEFUL, Origin, Stateful, Stream, stateful
from tailgate.engine.plan.rules.compile import compile_rewritten
from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.digest import digest
from tailgate.engine.plan.views.sizes import ROWS_MIN
from tailgate.engine.plan.views.streams import bound_plan
from tailgate.lake.catalog import Catalog, DeadLetters, Item, MaterializedView, Source
from tailgate.sql.functions.aggregates import COLLECTING, WITHIN_GROUP
from tailgate.sql.plan import (
    ArrivalJoin,
    Closing,
    Distinct,
    Filter,
    Join,
    Recursive,
    Reduce,
    Relation,
    Scan,
    SetOperation,
    TopK,
    Window,
    WithinJoin,
)
from tailgate.sql.plan.explain import lines
from tailgate.sql.plan.traversal import walk

FIRST = frozenset({"min", "max", "min_by", "max_by", "earliest_by_offset", "latest_by_offset"})
KEPT_IN_ORDER = COLLECTING | WITHIN_GROUP | FIRST | {"ksqldb_counts"}
# blanks between the tree and the notes
GAP = 4
# longer lines do not move the notes of the others to the right
WIDE = 80


@dataclass(frozen=True, slots=True)
class OperatorStatistics:
    """The work of an operator in the last ticks, and the size of its state; bytes are an estimate."""

    rows_in: int
    rows_out: int
    nanoseconds: int
    state_rows: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of operators over the last `ticks` ticks. `milliseconds`: their time, once for each partition.

    `nodes`: by node. A node that has not run since the engine started is missing.
    """

    ticks: int
    milliseconds: float
    nodes: Mapping[int, OperatorStatistics]


def explain(item: Item, catalog: Catalog, streams: Callable[[Item], Stream], statistics: Statistics | None = None) -> str:
    """Returns the text for a view of the catalog; a plain view is treated as a materialized one."""
    plan = rewrite(bound_plan(item, catalog))
    explained = _Explained(item, catalog, streams)
    tree = [
        (shown, _maintenance(explained, node) + (_statistics_text(explained.node(node), statistics) if statistics is not None else ""))
        for shown, node in lines(plan, lambda scan: scanned(scan, catalog))
    ]
    width = max((len(left) for left, _ in tree if len(left) <= WIDE), default=0) + GAP
    out = [f"{item.kind.capitalize()}: {item.name}"]
    out += [f"{left + ' ' * GAP:<{width}}maintained by: {right}" if right else left for left, right in tree]
    return "\n".join([*out, *_notes(plan, catalog)])


def _statistics_text(node: int | None, statistics: Statistics) -> str:
    """Returns the figures of an operator as text; empty if there are none."""
    did = statistics.nodes.get(node) if node is not None else None
    if did is None:
        return ""
    state = f"state: {did.state_rows} {'entry' if did.state_rows == 1 else 'entries'}, about {did.state_bytes} bytes"
    milliseconds = did.nanoseconds / 1e6
    share = f", {100 * milliseconds / statistics.milliseconds:.1f} % of the ticks" if statistics.milliseconds else ""
    return f"; {state}; last {statistics.ticks} ticks: {did.rows_in} changes in, {did.rows_out} out, {milliseconds:.2f} ms{share}"


class _Explained:
    """The operators that maintain the nodes of a view's plan."""

    def __init__(self, item: Item, catalog: Catalog, streams: Callable[[Item], Stream]) -> None:
        self.item, self.catalog, self.streams = item, catalog, streams
        self._known: dict[int, Origin] = {}

    def operator(self, plan: Relation) -> Stateful | None:
        """Returns the operator that maintains a plan node, or None."""
        origin = self._known.get(id(plan)) or compile_rewritten(plan, self.catalog, self.streams).origin
        if isinstance(origin, change.Reduce) and isinstance(plan, Reduce):
            # the aggregate determines how its input join is stored
            self._known[id(plan.input)] = origin.input.origin
        return origin if isinstance(origin, STATEFUL) else None

    def node(self, plan: Relation) -> int | None:
        """Returns the number of the operator that maintains a plan node, or None.

        For a scan it is the operator that maintains the stored source.
        """
        if isinstance(plan, Scan):
            item = self.catalog[plan.relation]
            return nodes.upsert_node(item) if isinstance(item, DeadLetters) or (isinstance(item, Source) and item.stored) else None
        linear = not isinstance(plan, (Join, ArrivalJoin, WithinJoin, Closing, Reduce, Distinct, SetOperation, Window, TopK, Recursive))
        if linear and not (isinstance(plan, Filter) and reads_clock(plan.condition)):
            return None
        operator = self.operator(plan)
        if operator is None or not isinstance(self.item, MaterializedView):
            return None
        return nodes.nodes_by_digest(self.item).get(digest(operator, self.item, self.catalog))

    def shared(self, operator: Stateful) -> str:
        """Returns a note with the other views that share an operator, or an empty text."""
        own_digest = digest(operator, self.item, self.catalog)
        others = [
            i.name
            for i in self.catalog.visible
            if isinstance(i, MaterializedView) and i.id != self.item.id and own_digest in nodes.digests(i)
        ]
        return f"; shared with {', '.join(others)}" if others else ""


def notices(item: Item, stream: Stream) -> tuple[str, ...]:
    """Returns warnings about how a view is maintained, for CREATE to show before the view grows."""
    if any(isinstance(o, change.Join) and not o.left_key for o in stateful(stream)):
        return (f'a join of materialized view "{item.name}" has no equality between its sides, and is kept in one partition',)
    return ()


def scanned(scan: Scan, catalog: Catalog) -> str:
    """Returns the description of a scan: name, kind, and size if it is known."""
    item = catalog[scan.relation]
    kind = ("append-only" if item.append_only else "keyed") if isinstance(item, Source) else item.kind
    return f"{item.name} ({kind}{f', about {scan.rows} rows' if (scan.rows or 0) > ROWS_MIN else ''})"


def _maintenance(explained: _Explained, plan: Relation) -> str:
    """Returns how a node is maintained."""
    match plan:
        case Scan(relation=id):
            item = explained.catalog[id]
            if isinstance(item, Source | DeadLetters) and item.key is not None:
                return f"upsert on {', '.join(item.columns[k].name for k in item.key)}"
            return "changes" if isinstance(item, Source) and item.stored else ""
        case Join():
            operator = explained.operator(plan)
            assert isinstance(operator, change.Join)
            return f"join, {_join_state(operator)}{explained.shared(operator)}"
        case ArrivalJoin():
            return "join as of arrival, the right kept by key"
        case Closing(last=last, session=session):
            return "closing, late rows dropped" if session is None and not last else "closing, rows kept while their windows are open"
        case WithinJoin():
            return "join within, both sides kept while their windows are open"
        case Reduce() | Distinct():
            operator = explained.operator(plan)
            assert isinstance(operator, change.Reduce)
            state = "one row" if not operator.keys else "a row of state per group"
            ordered_functions = KEPT_IN_ORDER - FIRST if operator.input.append_only else KEPT_IN_ORDER
            ordered = [
                _limited(a) if operator.input.append_only else a.function
                for a in operator.aggregates
                if a.function in ordered_functions or (a.distinct and a.function not in ("min", "max"))
            ]
            if ordered:
                state += f", values in order for {', '.join(dict.fromkeys(ordered))}"
            note = "; append-only input" if operator.input.append_only else ""
            until = "" if operator.retention is None else ", released by the stream time"
            return f"reduce, {state}{until}{note}{explained.shared(operator)}"
        case SetOperation():
            operator = explained.operator(plan)
            return f"set operation, counts of each row on both sides{explained.shared(operator) if operator is not None else ''}"
        case Recursive(all=all):
            return f"fixpoint, {'copies' if all else 'derivations'} of each row by round, in one partition"
        case Filter(condition=condition) if reads_clock(condition):
            operator = explained.operator(plan)
            return (
                f"temporal filter, rows in the order in which they come or go{explained.shared(operator) if operator is not None else ''}"
            )
        case Window(partition=partition):
            operator = explained.operator(plan)
            assert isinstance(operator, change.Window)
            state = "rows in order by key" if partition else "rows in order, in one partition"
            return f"window, {state}, touched partitions computed again{explained.shared(operator)}"
        case TopK(keys=keys):
            operator = explained.operator(plan)
            assert isinstance(operator, change.TopK)
            rows = "the rows shown" if operator.input.append_only and operator.count is not None else "rows"
            state = f"{rows} in order by key" if keys else f"{rows} in order, in one partition"
            note = "; append-only input" if operator.input.append_only else ""
            return f"top-k, {state}{note}{explained.shared(operator)}"
        case _:
            return "linear"


def _join_state(join: change.Join) -> str:
    """Returns how a join stores its inputs."""
    by = "by key" if join.left_key else "in one partition, because there is no equality"
    if join.kind == "inner":
        grows = join.left.append_only and not join.unique[0], join.right.append_only and not join.unique[1]
        return f"both sides kept {by}{_for_sides(join.unique, ', {}one row a key')}{_for_sides(grows, ', {}never looked up')}"
    if join.condition is not None:
        return f"both sides kept {by}, partners counted for each row"
    if join.kind in ("semi", "anti"):
        return f"the left kept {by}{', one row a key' if join.unique[0] else ''}, the right counted"
    return f"both sides kept {by}{_for_sides(join.unique, ', {}one row a key')}, partners counted for each key"


def _for_sides(sides: tuple[bool, bool], text: str) -> str:
    """Returns `text` with the name of the side to which it applies, or with "" if both.

    Returns an empty text if it applies to neither.
    """
    if not any(sides):
        return ""
    return text.format("" if all(sides) else "the left " if sides[0] else "the right ")


def _notes(plan: Relation, catalog: Catalog) -> list[str]:
    """Returns a note for each append-only source that is not stored."""
    scanned = {node.relation: None for node in walk(plan) if isinstance(node, Scan)}
    appended = [catalog[id].name for id in scanned if isinstance(catalog[id], Source) and not catalog[id].stored]
    return [f"Note: {name} is what its topic held when the view was created, and everything since." for name in sorted(appended)]


def _limited(call: AggregateCall) -> str:
    """Returns the name of an aggregate with the number of values that it keeps."""
    if not call.limit and not call.unique:
        return call.function
    count = f" {'first' if call.limit > 0 else 'last'} {abs(call.limit)}" if call.limit else ""
    return f"the{count}{' distinct values' if call.unique else ''} of {call.function}"
