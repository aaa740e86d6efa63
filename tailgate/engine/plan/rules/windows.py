"""Compiles window functions to those of the circuit, which read columns of the operator's input.

For frames of RANGE the input has extra columns with the values at which the frames start and end.
"""

from __future__ import annotations

from tailgate.engine.plan.casts import cast_to
from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.rules.aggregates import OperatorInput, extreme, filtered
from tailgate.lake.errors import FeatureNotSupported, InvalidPrecedingOrFollowingSize
from tailgate.lake.types import TIMESTAMP, numeric
from tailgate.sql.binder.types.overloads import operator, result
from tailgate.sql.functions.aggregates import ANY_NULL, MAINTAINED, WITHIN_GROUP
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.set_returning import DAY
from tailgate.sql.plan import Bound, Call, Literal, Scalar, Window, WindowCall
from tailgate.sql.plan.sort_keys import sort_key

MICROS_OF_TIME = Function("microseconds", ("time",), "numeric", *("CAST({0} AS DECIMAL(38,0))",) * 2)
MICROS_OF_INTERVAL = Function("microseconds", ("interval",), "numeric", *("CAST({0}.micros AS DECIMAL(38,0))",) * 2)
NEGATIVE = "invalid preceding or following size in window function"


def window_function(call: WindowCall, node: Window, entering: OperatorInput) -> operators.WindowCall:
    """Returns the circuit's form of a window function. Raises 0A000 if it cannot be maintained."""
    name, arguments = call.function.name, call.arguments
    if call.function.kind == "aggregate" and (name not in MAINTAINED or name in WITHIN_GROUP):
        raise FeatureNotSupported(f"{name} over a window in a materialized view is not supported", position=call.position)
    if name in ("min", "max"):
        name, arguments = extreme(name, cast_to(arguments[0], call.type))
    if name == "count" and not arguments and call.filter is not None:
        arguments = (Literal(True, call.filter.type),)
    columns = tuple(entering.column(filtered(call.filter, a)) for a in arguments)
    filter = entering.column(call.filter) if call.filter is not None and name in ANY_NULL else -1
    function = operators.AggregateCall(name, columns, call.type, False, filter)
    frame = call.frame
    compares_values = frame.mode == "range" and (frame.start.offset is not None or frame.end.offset is not None)
    key = entering.column(_key(node)) if compares_values else -1
    bounds = tuple(_bound(b, call, node, entering) for b in (frame.start, frame.end))
    return operators.WindowCall(function, frame.mode, bounds[0], bounds[1], frame.exclude, key)


def _bound(bound: Bound, call: WindowCall, node: Window, entering: OperatorInput) -> operators.FrameBound:
    """Returns the circuit's form of a frame bound. Raises 22013 for a negative offset, or 0A000."""
    if bound.offset is None:
        return operators.FrameBound(bound.kind)
    offset = bound.offset
    if call.frame.mode == "range":
        if isinstance(offset, Literal) and _negative(offset, node.order[0].expression.type.name):
            raise InvalidPrecedingOrFollowingSize(NEGATIVE, position=call.position)
        return operators.FrameBound(bound.kind, 0, entering.column(_reached(bound, node)))
    if not isinstance(offset, Literal) or not isinstance(offset.value, int):
        raise FeatureNotSupported("a frame's offset that is not a number is not supported in a view", position=call.position)
    if offset.value < 0:
        which = "starting" if bound is call.frame.start else "ending"
        raise InvalidPrecedingOrFollowingSize(f"frame {which} offset must not be negative", position=call.position)
    return operators.FrameBound(bound.kind, offset.value)


def _negative(offset: Literal, key: str) -> bool:
    """Returns whether an offset is negative for a sort key of this type."""
    value = offset.value
    if isinstance(value, tuple):
        months, days, micros = (part for part in value if isinstance(part, int))
        match key:
            case "time":
                return micros < 0
            case "interval":
                return (months * 30 + days) * DAY + micros < 0
        return min(months, days, micros) < 0
    return not isinstance(value, str | bytes | None) and not value >= 0


def _key(node: Window) -> Scalar:
    """Returns the sort key, cast to a type in which offsets can be added without overflow."""
    scalar = node.order[0].expression
    match scalar.type.name:
        case "int2" | "int4" | "int8":
            return cast_to(scalar, numeric(0))
        case "numeric":
            return cast_to(scalar, numeric(scalar.type.decimal[1]))
        case "date":
            return cast_to(scalar, TIMESTAMP)
        case "time":
            return Call(MICROS_OF_TIME, (scalar,), numeric(0))
        case "interval":
            return sort_key(scalar)
    return scalar


def _reached(bound: Bound, node: Window) -> Scalar:
    """Returns the value at which a row's frame starts or ends."""
    key, offset = _key(node), bound.offset
    assert offset is not None
    match node.order[0].expression.type.name:
        case "time":
            offset = Call(MICROS_OF_INTERVAL, (offset,), numeric(0))
        case "interval":
            offset = sort_key(offset)
    sign = "-" if (bound.kind == "preceding") != node.order[0].descending else "+"
    other = offset if offset.type.name in ("interval", key.type.name) else cast_to(offset, key.type)
    function = operator(sign, (key.type, other.type), None)
    return Call(function, (key, other), result(function, (key, other)))
