"""Window functions: call OVER (window), and named windows.

During binding, `Windowed` takes the place of a call in its expression. `Windows` then collects the
calls, adds one Window node for each combination of PARTITION BY and ORDER BY, and replaces the
calls by columns.

Source: PostgreSQL 15, src/backend/parser/parse_agg.c transformWindowFuncCall(), parse_clause.c
transformWindowDefinitions().
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from sqlglot import exp

from tailgate.lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    TailgateError,
    UndefinedObject,
    WindowingError,
    WrongObjectType,
)
from tailgate.lake.types import INT8, INTERVAL, UNKNOWN, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.expressions.aggregates import Parts, bind_aggregate_call, call_parts, is_aggregate
from tailgate.sql.binder.grouping import Windowed, has_windows, windowed
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.set_returning import refuse
from tailgate.sql.binder.types.coercion import bare_type, coerce
from tailgate.sql.binder.types.comparability import require_equality, require_order
from tailgate.sql.binder.types.overloads import arguments, fixed, function, result
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.aggregates import WITHIN_GROUP
from tailgate.sql.functions.entry import Function
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Bound, Column, Frame, Relation, Scalar, SortKey, Window, WindowCall
from tailgate.sql.plan.rewriting import parts, rebuild
from tailgate.sql.plan.sort_keys import sort_key

Named = Mapping[str, exp.Window]
Mode = Literal["rows", "range", "groups"]
BoundKind = Literal["unbounded preceding", "preceding", "current row", "following", "unbounded following"]
# Types of RANGE's offset by the type of the sort key; None: the type of the key.
OFFSETS: dict[str, Type | None] = {
    **dict.fromkeys(("date", "timestamp", "timestamptz", "time", "interval"), INTERVAL),
    **dict.fromkeys(("int2", "int4", "int8"), INT8),
    **dict.fromkeys(("float4", "float8", "numeric"), None),
}


WINDOW = "window definitions"  # the name of the clause in messages
FRAMES = ("ROWS", "RANGE", "GROUPS")


def wrong(message: str, at: int | None) -> TailgateError:
    """Returns the error 42P20, a windowing error."""
    return WindowingError(message, position=at)


def is_window(name: str) -> bool:
    """Returns whether a built-in window function has this name; aggregates do not count."""
    return any(r.kind == "window" for r in catalogue.calls(name))


def bind_window(binder: ExpressionBinder, node: exp.Window) -> Scalar:
    """Binds a call with OVER. Raises 42P20, 42809, 0A000."""
    parts = call_parts(node.this)
    at = parts.at
    clause = WINDOW if binder.clause in FRAMES else binder.clause
    if binder.within_window and clause not in (WINDOW, "FILTER"):
        raise wrong("window function calls cannot be nested", at)
    if not binder.aggregates or clause in ("HAVING", WINDOW):
        raise wrong(f"window functions are not allowed in {clause}", at)
    inner = replace(binder, within_window=True)
    bound_call, filter = _call(inner, parts)
    partition, order, spec = _window(replace(inner, clause=WINDOW), node)
    if spec is not None and spec.args["kind"].lower() == "range" and _has_offset(spec):  # which is added to the key
        order = tuple(replace(k, expression=fixed(k.expression)) for k in order)
    refuse((*bound_call.arguments, *partition, *(k.expression for k in order)), "window function")
    frame = _frame(inner, spec, order)
    call = WindowCall(bound_call.function, bound_call.arguments, bound_call.type, frame, filter, at)
    return cast(Scalar, Windowed(call, partition, order))


@dataclass(frozen=True, slots=True)
class BoundFunction:
    function: Function
    arguments: tuple[Scalar, ...]
    type: Type


def _call(binder: ExpressionBinder, parts: Parts) -> tuple[BoundFunction, Scalar | None]:
    name, at = parts.name, parts.at
    if is_aggregate(name):
        if name in WITHIN_GROUP:
            raise FeatureNotSupported(f"OVER is not supported for ordered-set aggregate {name}", position=at)
        if parts.distinct:
            raise FeatureNotSupported("DISTINCT is not implemented for window functions", position=at)
        if parts.order:
            raise FeatureNotSupported("aggregate ORDER BY is not implemented for window functions", position=at)
        call = bind_aggregate_call(binder, parts, nested=True)
        return BoundFunction(call.function, call.arguments, call.type), call.filter
    if catalogue.calls(name) and not is_window(name):
        raise WrongObjectType(f"OVER specified, but {name} is not a window function nor an aggregate function", position=at)
    if parts.where is not None:
        raise FeatureNotSupported("FILTER is not implemented for non-aggregate window functions", position=at)
    if parts.distinct:
        raise FeatureNotSupported("DISTINCT is not implemented for window functions", position=at)
    operands = [binder.bind(n) for n in parts.nodes]
    if name in ("lag", "lead") and len(operands) == 3:
        (first, third), _ = binder.unify([parts.nodes[0], parts.nodes[2]], [operands[0], operands[2]], name.upper())
        operands = [first, operands[1], third]
    row = function(name, tuple(s.type for s in operands), at)
    casts = tuple(binder.known(a) for a in arguments(row, operands, binder.parameters))
    return BoundFunction(row, casts, result(row, casts)), None


def _has_offset(spec: exp.WindowSpec) -> bool:
    return any(isinstance(spec.args.get(side), exp.Expr) for side in ("start", "end"))


def _window(binder: ExpressionBinder, node: exp.Window) -> tuple[tuple[Scalar, ...], tuple[SortKey, ...], exp.WindowSpec | None]:
    """Returns the PARTITION BY and ORDER BY expressions and the frame of a window.

    OVER name uses the named window itself. OVER (name …) adds clauses to it. Raises 42P20, 42704.
    """
    partition: tuple[Scalar, ...] = ()
    order: tuple[SortKey, ...] = ()
    spec = node.args.get("spec")
    alias = node.args.get("alias")
    alone = alias is not None and not any(node.args.get(k) for k in ("partition_by", "order", "spec")) and not node.meta.get("parentheses")
    if alias is not None:
        name, at = alias.name, position(alias) if position(alias) is not None else position(node)
        at = node.meta.get("definition", at)
        base = binder.windows.get(name)
        if base is None:
            raise UndefinedObject(f'window "{name}" does not exist', position=at)
        partition, order, inherited = _window(binder, base)
        if alone:
            return partition, order, inherited
        if node.args.get("partition_by"):
            raise wrong(f'cannot override PARTITION BY clause of window "{name}"', at)
        if node.args.get("order") and order:
            raise wrong(f'cannot override ORDER BY clause of window "{name}"', at)
        if inherited is not None:
            hint = None if any(node.args.get(k) for k in ("order", "spec")) else "Omit the parentheses in this OVER clause."
            raise WindowingError(f'cannot copy window "{name}" because it has a frame clause', hint=hint, position=at)
    if node.args.get("partition_by"):
        partition = tuple(sort_key(binder.typed(n)) for n in node.args["partition_by"])
        for key, item in zip(partition, node.args["partition_by"], strict=True):
            require_equality(key.type, leftmost(item))
    if node.args.get("order"):
        items = node.args["order"].expressions
        order = tuple(SortKey(binder.typed(n.this), bool(n.args.get("desc")), bool(n.args.get("nulls_first"))) for n in items)
        for sort, item in zip(order, items, strict=True):
            require_order(sort.expression.type, leftmost(item.this))
    if any(map(has_windows, (*partition, *(k.expression for k in order)))):
        raise wrong("window functions are not allowed in window definitions", position(node))
    return partition, order, spec


def _frame(binder: ExpressionBinder, spec: exp.WindowSpec | None, order: tuple[SortKey, ...]) -> Frame:
    if spec is None:
        return Frame()
    mode = cast(Mode, spec.args["kind"].lower())
    kinds = [_kind(spec.args[side], spec.args.get(f"{side}_side")) for side in ("start", "end") if spec.args.get(side) is not None]
    _check_kinds(kinds, spec.meta["bounds"])
    if mode == "groups" and not order:
        raise wrong("GROUPS mode requires an ORDER BY clause", spec.meta["definition"])
    start = _bound(binder, spec.args["start"], kinds[0], mode, order, spec.meta["definition"])
    end = Bound("current row")
    if len(kinds) > 1:
        end = _bound(binder, spec.args["end"], kinds[1], mode, order, spec.meta["definition"])
    return Frame(mode, start, end, spec.meta.get("exclude", "no others"))


def _kind(bound: exp.Expr | str, side: str | None) -> BoundKind:
    if bound == "CURRENT ROW":
        return "current row"
    preceding = (side or "").lower() == "preceding"
    if bound == "UNBOUNDED":
        return "unbounded preceding" if preceding else "unbounded following"
    return "preceding" if preceding else "following"


def _check_kinds(kinds: list[BoundKind], places: Sequence[int]) -> None:
    """Raises 42P20 if the end of a frame is before its start. `places` are the offsets of the bounds in the text."""
    start, end = kinds[0], kinds[1] if len(kinds) > 1 else "current row"
    if start == "unbounded following":
        raise wrong("frame start cannot be UNBOUNDED FOLLOWING", places[0])
    if end == "unbounded preceding":
        raise wrong("frame end cannot be UNBOUNDED PRECEDING", places[-1])
    if start == "current row" and end == "preceding":
        raise wrong("frame starting from current row cannot have preceding rows", places[-1])
    if start == "following" and len(kinds) == 1:
        raise wrong("frame starting from following row cannot end with current row", places[0])
    if start == "following" and end in ("preceding", "current row"):
        raise wrong("frame starting from following row cannot have preceding rows", places[-1])


def _bound(
    binder: ExpressionBinder, node: exp.Expr | str, kind: BoundKind, mode: Mode, order: tuple[SortKey, ...], at: int | None
) -> Bound:
    if not isinstance(node, exp.Expr):
        return Bound(kind)
    scalar = binder.within(mode.upper()).bind(node)
    column = node.find(exp.Column)
    if column is not None:
        raise InvalidColumnReference(f"argument of {mode.upper()} must not contain variables", position=position(column))
    if mode != "range":
        offset = coerce(scalar, INT8, binder.parameters, "assignment")
        if offset is None:
            raise DatatypeMismatch(
                f"argument of {mode.upper()} must be type bigint, not type {bare_type(scalar.type)}", position=leftmost(node)
            )
        return Bound(kind, offset)
    if len(order) != 1:
        raise wrong("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column", at)
    key = order[0].expression.type
    unsupported = f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {bare_type(key)}"
    if key.name not in OFFSETS:
        raise FeatureNotSupported(unsupported, position=leftmost(node))
    if scalar.type == UNKNOWN and OFFSETS[key.name] == INT8:  # PostgreSQL has a function for each integer type
        scalar = coerce(scalar, key, binder.parameters, "implicit") or scalar
    offset = coerce(scalar, OFFSETS[key.name] or key, binder.parameters, "implicit")
    if offset is None:
        raise FeatureNotSupported(
            f"{unsupported} and offset type {bare_type(scalar.type)}",
            hint="Cast the offset value to an appropriate type.",
            position=leftmost(node),
        )
    return Bound(kind, offset)


def named_windows(tree: exp.Select) -> dict[str, exp.Window]:
    """Returns the windows of the WINDOW clause by name. Raises 42P20 for a duplicate name."""
    windows: dict[str, exp.Window] = {}
    for alias in tree.args.get("windows") or []:
        if alias.alias in windows:
            raise wrong(f'window "{alias.alias}" is already defined', position(alias.args["alias"]))
        windows[alias.alias] = alias.this
    return windows


@dataclass
class Windows:
    """The distinct windows of a SELECT and their calls.

    The columns of the calls come after the `width` columns of the input relation.
    """

    width: int
    calls: dict[tuple[tuple[Scalar, ...], tuple[SortKey, ...]], list[WindowCall]] = field(default_factory=dict)

    def collect(self, scalar: Scalar) -> None:
        """Adds the window functions in a scalar."""
        if (window := windowed(scalar)) is not None:
            calls = self.calls.setdefault((window.partition, window.order), [])
            if window.call not in calls:
                calls.append(window.call)
            return
        if has_windows(scalar):
            for part in parts(scalar):
                self.collect(part)

    def over(self, scalar: Scalar) -> Scalar:
        """Returns an expression over the columns of the input relation and of the windows."""
        if (window := windowed(scalar)) is not None:
            before = 0
            for key, calls in self.calls.items():
                if key == (window.partition, window.order):
                    return Column(self.width + before + calls.index(window.call), window.type)
                before += len(calls)
        return rebuild(scalar, self.over) if has_windows(scalar) else scalar

    def plan(self, input: Relation) -> Relation:
        """Adds the Window nodes to a plan."""
        for (partition, order), calls in self.calls.items():
            input = Window(input, partition, order, tuple(calls))
        return input
