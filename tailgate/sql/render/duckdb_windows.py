"""Renders window functions as DuckDB SQL.

If the result depends on the order of peers (rows that are equal in ORDER BY), the peers are sorted by
all columns of the input. Functions that must recognize peers (rank, frames in RANGE and GROUPS) have
only the requested order in OVER; they sort peers inside the aggregate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.functions.aggregates import COLLECTING, STRICT
from tailgate.sql.functions.windows import FRAMED
from tailgate.sql.plan import Bound, Frame, Literal, Scalar, Window, WindowCall
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.plan.sort_keys import sort_key
from tailgate.sql.render.duckdb_aggregates import (
    EXTREME,
    extreme_order,
    filter_clause,
    general_values,
    is_extreme_of_arrays,
    order_by,
    sort_terms,
)
from tailgate.sql.render.templates import fill_template

Spell = Callable[[Scalar], str]
PLACES = frozenset({"row_number", "ntile", "lag", "lead"})  # depend on the position of each row
SHOWN = FRAMED | COLLECTING  # depend on the order of rows in the frame
INTERVAL = "(to_months({0}.months) + to_days({0}.days) + to_microseconds({0}.micros))"


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a window function, whose SQL depends on the frame.

    `framed`: the function reads the rows of the frame. `over_order`: the sort terms in OVER.
    `argument_order`: the sort terms inside the aggregate.
    """

    call: WindowCall
    node: Window
    spell: Spell
    framed: bool
    over_order: list[str]
    argument_order: list[str]

    def over(self, frame: Frame) -> str:
        """Returns the SQL of the call over a frame."""
        call, spell = self.call, self.spell
        partition = f"PARTITION BY {', '.join(map(spell, self.node.partition))}" if self.node.partition else ""
        clause = f" OVER ({partition}{order_by(self.over_order)}{_frame(frame, self.node, spell) if self.framed else ''})"
        texts = [spell(a) for a in call.arguments]
        conditions = [] if call.filter is None else [spell(call.filter)]
        present = [f"{texts[i]} IS NOT NULL" for i in STRICT.get(call.function.name, (0,)) if i < len(texts)]
        marks = {
            "distinct": "",
            "order": order_by(self.argument_order),
            "filter": filter_clause(conditions) + clause,
            "present": filter_clause([*conditions, *present]) + clause,
            **(general_values(texts[0], conditions, present, over=clause) if call.function.takes_general else {}),
        }
        template = call.function.duckdb
        if is_extreme_of_arrays(call.function, call.arguments):
            template, marks["order"] = EXTREME, extreme_order(call.function, call.arguments[0], spell)
        return fill_template(template, texts, [a.type for a in call.arguments], call.type, call.type.duckdb, marks=marks)


def window(call: WindowCall, node: Window, spell: Spell) -> str:
    """Returns the SQL of a call over the input of its node, whose columns are c0, c1, …

    Raises 0A000 if DuckDB cannot evaluate it.
    """
    _check_supported(call)
    name, framed = call.function.name, call.function.kind == "aggregate" or call.function.name in FRAMED
    rows = name in PLACES or (framed and call.frame.mode == "rows")
    order_terms = sort_terms(node.order, spell)
    all_terms = order_terms + [f"c{i} ASC NULLS LAST" for i in range(len(node.input.columns))]
    peers = framed and call.frame.exclude in ("group", "ties")  # peers must stay peers, so their order is not defined
    over_order = all_terms if rows and not peers else order_terms
    if framed and call.frame.mode == "range" and _has_offset(call.frame):
        over_order = [_range_term(node, spell)]
    rendering = _Call(call, node, spell, framed, over_order, all_terms if name in SHOWN and not rows else [])
    if not framed or call.frame.exclude != "ties" or not _without_current_row(call.frame):
        text = rendering.over(call.frame)
    else:  # DuckDB would add the current row to the frame
        text = rendering.over(replace(call.frame, exclude="group"))
        if call.frame.mode == "range":  # with an offset from NULL, the frame has the current row and its peers
            text = f"(CASE WHEN {spell(node.order[0].expression)} IS NULL THEN {rendering.over(call.frame)} ELSE {text} END)"
    if name == "count" and framed and call.frame.start.offset is not None and call.frame.start.kind == call.frame.end.kind:
        text = f"greatest({text}, 0)"  # DuckDB subtracts the bounds, also if the frame ends before it starts
    return text


def _check_supported(call: WindowCall) -> None:
    """Raises 0A000 if DuckDB cannot evaluate a call."""
    name, arguments = call.function.name, call.arguments
    if not call.function.duckdb:
        raise FeatureNotSupported(f"window function {call.function} is not supported", position=call.position)
    if name == "string_agg" and columns_of(arguments[1]):
        raise FeatureNotSupported("string_agg with a delimiter that is not constant is not supported", position=call.position)
    if name == "ntile" and columns_of(arguments[0]):  # PostgreSQL evaluates it for the first row of the partition
        raise FeatureNotSupported("ntile of an argument that is not constant is not supported", position=call.position)


def _without_current_row(frame: Frame) -> bool:
    """Returns whether a frame ends before the current row or starts after it."""
    return _beyond(frame.start, "following") or _beyond(frame.end, "preceding")


def _has_offset(frame: Frame) -> bool:
    return frame.start.offset is not None or frame.end.offset is not None


def _range_term(node: Window, spell: Spell) -> str:
    """Returns the sort key in a type that does not overflow when an offset is added or subtracted."""
    (key,) = node.order
    type, text = key.expression.type, spell(key.expression)
    match type.name:
        case "int2" | "int4" | "int8" | "time":  # a time is in microseconds
            text = f"CAST({text} AS HUGEINT)"
        case "interval":
            text = spell(sort_key(key.expression))
        case "date":
            text = f"CAST({text} AS TIMESTAMP)"
        case "numeric":
            text = f"CAST({text} AS DECIMAL(38,{type.decimal[1]}))"
    return f"{text} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _frame(frame: Frame, node: Window, spell: Spell) -> str:
    """Returns the frame clause, or '' for the default frame without ORDER BY."""
    text = f" {frame.mode.upper()} BETWEEN {_bound(frame.start, frame, node, spell)} AND {_bound(frame.end, frame, node, spell)}"
    if frame == Frame():
        return text if node.order else ""
    return text + (f" EXCLUDE {frame.exclude.upper()}" if frame.exclude != "no others" else "")


def _beyond(bound: Bound, kind: str) -> bool:
    """Returns whether a bound has this kind and an offset other than zero."""
    if bound.kind != kind or bound.offset is None:
        return False
    value = bound.offset.value if isinstance(bound.offset, Literal) else None
    return any(value) if isinstance(value, tuple) else value != 0


def _bound(bound: Bound, frame: Frame, node: Window, spell: Spell) -> str:
    """Returns a bound of a frame. The SQL fails for negative and NULL offsets, as in PostgreSQL."""
    if bound.offset is None:
        return bound.kind.upper()
    text = spell(bound.offset)
    which = "starting" if bound is frame.start else "ending"
    none = f"error('[22004] frame {which} offset must not be null')"
    if frame.mode != "range":
        negative = f"error('[22013] frame {which} offset must not be negative')"
        return f"(CASE WHEN {text} < 0 THEN {negative} WHEN {text} IS NULL THEN {none} ELSE {text} END) {bound.kind.upper()}"
    key, zero = node.order[0].expression.type, "0"
    match bound.offset.type.name:
        case "interval" if key.name == "time":
            text = f"CAST(({text}).micros AS HUGEINT)"
        case "interval" if key.name == "interval":
            text = spell(sort_key(bound.offset))
        case "interval":
            text, zero = INTERVAL.replace("{0}", text), "INTERVAL 0 DAY"
        case "int8":
            text = f"CAST({text} AS HUGEINT)"
        case "numeric":
            text = f"CAST({text} AS DECIMAL(38,{key.decimal[1]}))"
    is_negative = f"{text} < {zero}"
    if bound.offset.type.name in ("float4", "float8"):
        is_negative += f" OR isnan({text})"
    negative = "error('[22013] invalid preceding or following size in window function')"
    return f"(CASE WHEN {is_negative} THEN {negative} WHEN {text} IS NULL THEN {none} ELSE {text} END) {bound.kind.upper()}"
