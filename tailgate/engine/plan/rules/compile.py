"""Compiles a bound plan to streams and operators that keep it up to date.

Queries that cannot be maintained are rejected with an error that names the feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from typing_extensions import assert_never

from tailgate.engine.plan.analysis.keys import keys
from tailgate.engine.plan.casts import cast_to
from tailgate.engine.plan.circuit import steps
from tailgate.engine.plan.circuit.operators import SortColumn
from tailgate.engine.plan.circuit.steps import NOTHING, Steps, Unnest, names, select, then, where
from tailgate.engine.plan.rewrites.equijoin import matching
from tailgate.engine.plan.rewrites.passes import rewrite
from tailgate.engine.plan.rewrites.shared import is_shared
from tailgate.engine.plan.rewrites.temporal import bounds, check_clock_reads, reads_clock
from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.aggregates import OperatorInput, aggregate
from tailgate.engine.plan.rules.change import Source, StoredRelation, Stream, View, reads_working_table, stateful
from tailgate.engine.plan.rules.values import ONE_COLUMN, values
from tailgate.engine.plan.rules.windows import window_function
from tailgate.lake.catalog import Catalog, DeadLetters, Item, MaterializedView, ViewErrors, items
from tailgate.lake.catalog.schemas import TAILGATE, is_system
from tailgate.lake.errors import FeatureNotSupported, InvalidRowCountInLimitClause, InvalidRowCountInResultOffsetClause
from tailgate.lake.types import INT8, Field
from tailgate.sql.plan import (
    ArrivalJoin,
    Call,
    Closing,
    Column,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Literal,
    Project,
    Recursive,
    Reduce,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Sort,
    SortKey,
    TopK,
    UnionAll,
    Values,
    Window,
    WithinJoin,
    WorkingTable,
)
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, shifted
from tailgate.sql.plan.sort_keys import has_equal_forms
from tailgate.sql.plan.traversal import is_identity, read_by
from tailgate.sql.render.spark import expression

# how late a row may be, in microseconds, if no GRACE PERIOD is given: ksqlDB's default
DEFAULT_GRACE = 24 * 3_600_000_000

# the origins whose changes arrive in the order of their records
_IN_ORDER = (Source, StoredRelation, View, change.SingleRow, *change.ORDERED)

# returns the stream of a materialized view
Streams = Callable[[Item], Stream]


def stream(plan: Relation, catalog: Catalog, views: Streams) -> Stream:
    """Rewrites a plan and returns its stream. Raises 0A000 if the plan cannot be maintained."""
    rewritten = rewrite(plan)
    check_clock_reads(rewritten)
    return compile_rewritten(rewritten, catalog, views)


def compile_rewritten(plan: Relation, catalog: Catalog, views: Streams) -> Stream:
    """Returns the stream of a rewritten plan, or of a part of one."""
    return _Compiler(catalog, views).stream(plan)


class _Compiler:
    """The compilation of plans over a catalog; `views` returns the streams of materialized views."""

    def __init__(self, catalog: Catalog, views: Streams) -> None:
        self._catalog = catalog
        self._views = views

    def stream(self, plan: Relation) -> Stream:
        """Returns the stream of a plan node and its inputs."""
        match plan:
            case Scan():
                return self._scan(plan)
            case Filter(input, condition):
                on_clock = tuple(c for c in conjuncts(condition) if reads_clock(c))
                others = tuple(c for c in conjuncts(condition) if not reads_clock(c))
                below = self.stream(input)
                if others:
                    below = replace(below, shape=then(below.shape, where(conjunction(others), below.columns)))
                return _temporal_filter(below, on_clock) if on_clock else below
            case Project(input, expressions, columns):
                below = self.stream(input)
                if is_identity(plan):
                    return replace(below, columns=columns)
                shape = then(below.shape, select(expressions or (NOTHING,), len(below.columns)))
                return replace(below, shape=shape, columns=columns or ONE_COLUMN)
            case Join():
                return self._join(plan)
            case ArrivalJoin():
                return self._arrival_join(plan)
            case WithinJoin():
                return self._within_join(plan)
            case Closing():
                return self._closing(plan)
            case Reduce():
                return self._aggregate(plan)
            case Distinct(input):
                below = self.stream(input)
                return Stream(change.Reduce(below, len(below.columns), ()), Steps(), below.columns, below.append_only)
            case Values():
                return values(plan)
            case UnionAll(each, columns):
                parts = tuple(self._as(i, columns) for i in each)
                return Stream(change.Union(parts), Steps(), parts[0].columns, all(p.append_only for p in parts))
            case SetOperation(left, right, kind, all_rows, columns):
                sides = self._as(left, columns), self._as(right, columns)
                return Stream(change.SetOperation(*sides, kind, all_rows), Steps(), sides[0].columns, False)
            case TopK():
                return self._top(plan)
            case Sort() | Limit():
                raise AssertionError("rewritten as top-k")
            case Generate():
                return self._generate(plan)
            case Window():
                return self._window(plan)
            case Recursive():
                return self._recursive(plan)
            case WorkingTable(number, columns):
                return Stream(change.WorkingTable(number), Steps(), columns, False)
            case _:
                assert_never(plan)

    def _recursive(self, plan: Recursive) -> Stream:
        """Compiles a recursive query whose rows have rounds. Raises 0A000 if the clock decides about rows in its step."""
        width, sort_keys = len(plan.columns), plan.base.columns[len(plan.columns) :]
        base, step = (self._as(side, (*plan.columns, *sort_keys)) for side in (plan.base, plan.step))
        for operator in stateful(step):
            if isinstance(operator, change.TemporalFilter) and reads_working_table(operator, plan.number):
                shown = f'comparing the clock with rows of recursive query "{plan.name}" is not supported in a materialized view'
                raise FeatureNotSupported(shown, hint="Compare it in the query's base, or with its result.")
        same = (i for i, f in enumerate(plan.columns[:-1]) if not has_equal_forms(f.type))
        keys = (*same, *range(width, width + len(sort_keys))) if sort_keys else ()
        fixpoint = change.Fixpoint(plan.number, base, step, plan.all, plan.limit, plan.name, keys)
        return Stream(fixpoint, Steps(), plan.columns, False)

    def _generate(self, plan: Generate) -> Stream:
        below = self.stream(plan.input)
        width, outputs = len(below.columns), len(plan.outputs)
        array = expression(Call(plan.function, plan.arguments, plan.outputs[0].type), names(width))
        shape = then(below.shape, Unnest(array, outputs if outputs > 1 else 0, plan.kind == "left"))
        hidden = _hidden(below, plan.input)
        if hidden or not plan.ordinality:
            shape = then(shape, steps.Project(names(hidden + len(plan.columns))[hidden:]))
        return replace(below, shape=shape, columns=plan.columns)

    def _as(self, plan: Relation, columns: tuple[Field, ...]) -> Stream:
        """Returns the stream of a plan with its columns cast to the types of `columns`.

        The stored form of a numeric depends on its modifiers, so types that differ only in these
        are cast.
        """
        below = self.stream(plan)
        if all(a.type.spark == b.type.spark for a, b in zip(plan.columns, columns, strict=True)):
            return replace(below, columns=columns or below.columns)
        cast = tuple(cast_to(Column(i, f.type), columns[i].type) for i, f in enumerate(plan.columns))
        return replace(below, shape=then(below.shape, select(cast, len(cast))), columns=columns)

    def _window(self, plan: Window) -> Stream:
        below = self.stream(plan.input)
        width = len(below.columns)
        entering = OperatorInput(0, [Column(i, f.type) for i, f in enumerate(below.columns)])
        partition, order = tuple(map(entering.column, plan.partition)), entering.sorted_by(plan.order)
        functions = tuple(window_function(c, plan, entering) for c in plan.calls)
        hidden = _hidden(below, plan.input)
        shape = Steps((steps.Project(names(hidden + len(plan.columns))[hidden:]),)) if hidden else Steps()
        return Stream(change.Window(_with_input(below, entering), width, partition, order, functions), shape, plan.columns, False)

    def _top(self, plan: TopK) -> Stream:
        below = self.stream(plan.input)
        into, partition, order = _with_sort_columns(below, plan.keys, plan.order)
        count, offset = _rows("LIMIT", plan.count, plan.position), _rows("OFFSET", plan.offset, plan.position) or 0
        return Stream(change.TopK(into, len(below.columns), partition, order, count, offset, plan.ties), Steps(), below.columns, False)

    def _scan(self, scan: Scan) -> Stream:
        item = self._catalog[scan.relation]
        if is_system(item.id):
            raise FeatureNotSupported(
                f"a materialized view over {TAILGATE}.{item.name} is not supported",
                hint="Its rows are not in the log. Create a view, and follow it with TAIL, SUBSCRIBE or a sink.",
                position=scan.position,
            )
        if isinstance(item, MaterializedView):
            below = self._views(item)
            return Stream(View(item.id, below), Steps(), item.columns, below.append_only)
        if isinstance(item, ViewErrors):
            raise FeatureNotSupported("a materialized view of a view's errors is not supported", position=scan.position)
        # fewer columns than the item: columns were added to it later
        width = None if len(scan.columns) == len(item.columns) else len(scan.columns)
        if isinstance(item, DeadLetters) or item.stored:
            append_only = (isinstance(item, items.Source) and item.append_only) or (isinstance(item, items.Table) and item.of_stream > 0)
            return Stream(StoredRelation(item.id, width), Steps(), scan.columns, append_only)
        if isinstance(item, items.Source):
            return Stream(Source(item.id, width), Steps(), scan.columns, True)
        raise FeatureNotSupported(f'a materialized view over {item.kind} "{item.name}" is not supported', position=scan.position)

    def _join(self, join: Join, measured: frozenset[int] | None = None) -> Stream:
        """Compiles a join.

        `measured`: the columns that aggregates above the join read, if only aggregates and their
        groups read it. A side that contributes only key and group columns has few distinct rows,
        each of them many times. It is then stored as rows with weights, even if it is append-only.
        """
        on = matching(join)
        left, right = self.stream(join.left), self.stream(join.right)
        append_only = join.kind in ("inner", "cross", "semi") and left.append_only and right.append_only
        if measured is not None:
            width = len(join.left.columns)
            left = replace(left, append_only=left.append_only and any(i < width for i in measured))
            right = replace(right, append_only=right.append_only and any(i >= width for i in measured))
        kind = "inner" if join.kind == "cross" else join.kind
        unique = any(k <= set(on.left) for k in keys(join.left)), any(k <= set(on.right) for k in keys(join.right))
        hidden = _hidden(left, join.left)
        conditions = tuple(shifted(c, hidden) for c in on.rest)
        rest = (where(conjunction(conditions), left.columns + right.columns),) if conditions else ()
        # the remaining conditions filter the joined rows
        if kind == "inner":
            operator, shape = change.Join(left, right, on.left, on.right, kind, on.null_safe, None, unique), Steps(rest)
        elif rest:
            operator, shape = change.Join(left, right, on.left, on.right, kind, on.null_safe, *rest), Steps()
        else:
            operator, shape = change.Join(left, right, on.left, on.right, kind, on.null_safe, None, unique), Steps()
        if not join.left.columns or not join.right.columns:
            shape = then(shape, steps.Project(tuple(f"c{hidden + i}" for i in range(len(join.columns))) or ("true",)))
        return Stream(operator, shape, join.columns or ONE_COLUMN, append_only)

    def _arrival_join(self, join: ArrivalJoin) -> Stream:
        """Compiles a join as of arrival.

        Raises 0A000 if a row of the left can be retracted, for other conditions than equalities, and for inputs that are not
        filters and projections of relations.
        """
        on = matching(join.as_join())
        left, right = self.stream(join.left), self.stream(join.right)
        problem = None
        if not left.append_only:
            problem = "over rows that may go"
        elif on.rest or any(on.null_safe):
            problem = "with other conditions than equalities in ON"
        elif not isinstance(left.origin, _IN_ORDER) or not isinstance(right.origin, change.Leaf):
            problem = "of a query other than filters and projections"
        if problem is not None:
            raise FeatureNotSupported(f"FOR SYSTEM_TIME AS OF PROCTIME() {problem} is not supported", position=join.position)
        return Stream(change.ArrivalJoin(left, right, on.left, on.right, join.kind), Steps(), join.columns, True)

    def _within_join(self, join: WithinJoin) -> Stream:
        """Compiles a join of two streams.

        Raises 0A000 if a row of a side can be retracted, for a comparison of NULLs, and for inputs that are not filters,
        projections or such joins of relations.
        """
        on = matching(join.as_join())
        left, right = self.stream(join.left), self.stream(join.right)
        problem = None
        if not left.append_only or not right.append_only:
            problem = "over rows that may go"
        elif on.rest or any(on.null_safe):
            problem = "with other conditions than equalities in ON"
        elif not isinstance(left.origin, _IN_ORDER) or not isinstance(right.origin, _IN_ORDER):
            problem = "of a query other than filters, projections and joins of streams"
        if problem is not None:
            raise FeatureNotSupported(f"JOIN … WITHIN {problem} is not supported", position=join.position)
        left_time, right_time = join.times
        assert isinstance(left_time, Column)
        assert isinstance(right_time, Column)
        times = left_time.index, right_time.index - len(join.left.columns)
        grace = DEFAULT_GRACE if join.grace is None else join.grace
        eager = join.grace is None
        operator = change.WithinJoin(left, right, on.left, on.right, join.kind, *times, join.before, join.after, grace, eager)
        return Stream(operator, Steps(), join.columns, True)

    def _closing(self, plan: Closing) -> Stream:
        """Compiles the closing of windows.

        Raises 0A000 if a row can be retracted, and for an input that is not filters, projections or joins of streams.
        """
        below = self.stream(plan.input)
        if not below.append_only or not isinstance(below.origin, _IN_ORDER):
            problem = "of a query other than filters, projections and joins of streams" if below.append_only else "over rows that may go"
            raise FeatureNotSupported(f"a grace period of windows {problem} is not supported", position=plan.position)
        entering = OperatorInput(0, [Column(i, f.type) for i, f in enumerate(below.columns)])
        time, end = entering.column(plan.time), entering.column(plan.end)
        merged = plan.session
        session = None if merged is None else (entering.column(merged.start), tuple(map(entering.column, merged.keys)))
        operator = change.Closing(_with_input(below, entering), len(below.columns), time, end, plan.grace, plan.last, session)
        return Stream(operator, Steps(), below.columns, plan.last or session is None)

    def _aggregate(self, node: Reduce) -> Stream:
        measured = frozenset(i for call in node.aggregates for s in read_by(call) for i in columns_of(s))
        below = self._join(node.input, measured) if isinstance(node.input, Join) and not is_shared(node.input) else self.stream(node.input)
        entering = OperatorInput(len(node.keys), list(node.keys))
        calls = tuple(aggregate(call, entering) for call in node.aggregates)
        retention = None
        if node.retention is not None:
            retention = change.Retention(_clock(below.origin), entering.column(node.retention.end), node.retention.length)
        scalars = entering.scalars
        expressions = tuple(scalars) or (NOTHING,)
        columns = tuple(Field(f"c{i}", e.type) for i, e in enumerate(expressions))
        into = replace(below, shape=then(below.shape, select(expressions, len(below.columns))), columns=columns)
        shape = Steps() if node.columns else Steps((select((NOTHING,), 0),))
        return Stream(change.Reduce(into, len(node.keys), calls, retention), shape, node.columns or ONE_COLUMN, False)


def _clock(origin: change.Origin) -> Stream:
    """Returns the times of the rows whose windows an operator closes."""
    assert isinstance(origin, change.Closing), "a retention of rows without windows"
    rows, time = origin.input, origin.input.columns[origin.time]
    shape = then(rows.shape, select((Column(origin.time, time.type),), len(rows.columns)))
    return replace(rows, shape=shape, columns=(time,))


def _hidden(below: Stream, plan: Relation) -> int:
    """Returns the number of hidden columns at the start of a stream.

    A plan without columns has ONE_COLUMN in its stream.
    """
    return len(below.columns) - len(plan.columns)


def _with_sort_columns(
    below: Stream, partition: tuple[Scalar, ...], order: tuple[SortKey, ...]
) -> tuple[Stream, tuple[int, ...], tuple[SortColumn, ...]]:
    """Appends the columns for partitioning and sorting to a stream.

    Returns the stream, the positions of the partition columns, and the sort order.
    """
    entering = OperatorInput(0, [Column(i, f.type) for i, f in enumerate(below.columns)])
    split = tuple(map(entering.column, partition))
    sort = entering.sorted_by(tuple(k for k in order if k.expression not in partition and columns_of(k.expression)))
    return _with_input(below, entering), split, sort


def _with_input(below: Stream, entering: OperatorInput) -> Stream:
    """Appends the scalars that an operator needs, and that are not columns already, to a stream."""
    scalars, width = tuple(entering.scalars), len(below.columns)
    if len(scalars) == width:
        return below
    columns = (*below.columns, *(Field(f"c{i}", s.type) for i, s in enumerate(scalars[width:], width)))
    return replace(below, shape=then(below.shape, select(scalars, width)), columns=columns)


def _rows(clause: str, scalar: Scalar | None, position: int | None) -> int | None:
    """Returns the constant row count of a LIMIT or OFFSET; None means no limit.

    Raises 0A000 if it is not a literal, 2201W or 2201X if it is negative.
    """
    if scalar is None:
        return None
    if not isinstance(scalar, Literal):
        raise FeatureNotSupported(f"{clause} of other than a number in a materialized view is not supported", position=position)
    if scalar.value is None:
        return None
    assert isinstance(scalar.value, int)
    if scalar.value < 0:
        error = InvalidRowCountInLimitClause if clause == "LIMIT" else InvalidRowCountInResultOffsetClause
        raise error(f"{clause} must not be negative", position=position)
    return scalar.value


def _temporal_filter(below: Stream, conditions: tuple[Scalar, ...]) -> Stream:
    """Returns the rows for which the clock is within the bounds of all conditions.

    A row with a bound that is NULL is never visible.
    """
    clock_bounds = [b for c in conditions for b in bounds(c)]
    width = len(below.columns)
    rows = tuple(Column(i, f.type) for i, f in enumerate(below.columns))
    with_times = select((*rows, *(b.time for b in clock_bounds)), width)
    bounds_known = steps.Filter(" AND ".join(f"c{width + i} IS NOT NULL" for i in range(len(clock_bounds))))
    times = []
    for kind, strictest in (("from", "greatest"), ("until", "least")):
        names = [f"c{width + i}" for i, b in enumerate(clock_bounds) if b.kind == kind]
        times.append("CAST(NULL AS BIGINT)" if not names else names[0] if len(names) == 1 else f"{strictest}({', '.join(names)})")
    with_bounds = steps.Project((*(f"c{i}" for i in range(width)), *times))
    columns = (*below.columns, Field("from", INT8), Field("until", INT8))
    entering = Stream(below.origin, then(below.shape, with_times, bounds_known, with_bounds), columns, below.append_only)
    forever = all(b.kind == "from" for b in clock_bounds)
    return Stream(change.TemporalFilter(entering), Steps(), below.columns, below.append_only and forever)
