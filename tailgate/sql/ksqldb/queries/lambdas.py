"""TRANSFORM, FILTER and REDUCE: calls with lambdas.

    FILTER(array, x => x > 1)            ──►  ksqldb_filter(array, ksqldb_variable(1), … ksqldb_variable(1) …)
    FILTER(map, (k, v) => k = 'a')       ──►  the map of: ksqldb_filter(the structures of K and V, …)

An entry of a map is a structure with the fields K and V.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Invocation Functions".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tailgate.lake.errors import DatatypeMismatch, DuplicateColumn, TailgateError, UndefinedFunction
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import Expression, FunctionCall, Lambda, TypeName
from tailgate.sql.ksqldb.functions import refused
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.typed.coercion import of_one_type
from tailgate.sql.ksqldb.typed.values import Typed, of_json, to_json

PARAMETERS_MAX = 3


class Bodies(Protocol):
    """The translation of the expressions around a call."""

    def expression(self, expression: Expression) -> Typed: ...

    def body(self, function: Lambda, values: Sequence[Typed], *, condition: bool = False) -> Typed: ...

    def variable(self) -> str: ...


def invocation(call: FunctionCall, bodies: Bodies) -> Typed:
    """Returns the value of a call with lambdas. Raises 42883 for other arguments, and 42804 for a lambda with a result of another type."""
    if not call.arguments or isinstance(call.arguments[0], Lambda):
        raise _refused(call, bodies)
    collection = bodies.expression(call.arguments[0])
    items, is_map = collection.text, collection.type.name == "map"
    if collection.type.name not in ("array", "map"):
        raise _refused(call, bodies)
    if is_map:
        items = f"ksqldb_entries({items}, false)"
    match call.name, call.arguments[1:]:
        case "transform", (Lambda() as function,) if not is_map:
            element = bodies.variable()
            value = bodies.body(_checked(call, function, 1), _values(collection, element))
            text = f"ksqldb_transform({items}, {element}, {to_json(value)})"
            return Typed(text, TypeName("array", arguments=(_known(value.type),)), may_fail=True)
        case "transform", (Lambda() as of_key, Lambda() as of_value) if is_map:
            return _map_of(call, of_key, of_value, collection, bodies)
        case "filter", (Lambda() as function,):
            element = bodies.variable()
            condition = bodies.body(_checked(call, function, 1 + is_map), _values(collection, element), condition=True)
            text = f"ksqldb_filter({items}, {element}, {condition.text})"
            return Typed(f"ksqldb_map_of({text})" if is_map else text, collection.type, may_fail=True)
        case "reduce", (state, Lambda() as function) if not isinstance(state, Lambda):
            return _reduction(bodies.expression(state), _checked(call, function, 2 + is_map), collection, items, bodies)
    raise _refused(call, bodies)


def _values(collection: Typed, element: str) -> list[Typed]:
    """Returns the values of a lambda's parameters for an element of an array, or the key and the value of an entry of a map."""
    inner = collection.type.arguments[-1]
    if collection.type.name == "array":
        return [of_json(element, inner, may_fail=True)]
    return [Typed(f"({element} ->> 'K')", types.VARCHAR), of_json(f"({element} -> 'V')", inner, may_fail=True)]


def _map_of(call: FunctionCall, of_key: Lambda, of_value: Lambda, collection: Typed, bodies: Bodies) -> Typed:
    element = bodies.variable()
    key, value = (bodies.body(_checked(call, f, 2), _values(collection, element)) for f in (of_key, of_value))
    if key.type != types.VARCHAR:
        raise DatatypeMismatch(f"keys of maps are VARCHAR(STRING), not {types.shown(key.type)}", position=of_key.position)
    entry = f"jsonb_build_object('K', {key.text}, 'V', {to_json(value)})"
    text = f"ksqldb_map_of(ksqldb_transform(ksqldb_entries({collection.text}, false), {element}, {entry}))"
    return Typed(text, TypeName("map", arguments=(types.VARCHAR, _known(value.type))), may_fail=True)


def _reduction(initial: Typed, function: Lambda, collection: Typed, items: str, bodies: Bodies) -> Typed:
    """Returns the last state; of a collection that is NULL, the initial state."""
    state, element = bodies.variable(), bodies.variable()
    type = _known(initial.type)
    value = bodies.body(function, [of_json(state, type, may_fail=True), *_values(collection, element)])
    if not types.is_coercible(value.type, type):
        message = f"the state of REDUCE is {types.shown(type)}, and its lambda returns {types.shown(value.type)}"
        raise DatatypeMismatch(message, position=function.position)
    (_, result), _ = of_one_type((Typed("", type), value), (function.body, function.body), function.position)
    text = f"ksqldb_reduce({items}, {to_json(initial)}, {state}, {element}, {to_json(result)})"
    return of_json(f"CASE WHEN {collection.text} IS NULL THEN {to_json(initial)} ELSE {text} END", type, may_fail=True)


def _known(type: TypeName) -> TypeName:
    return types.VARCHAR if type == types.UNKNOWN else type


def _checked(call: FunctionCall, function: Lambda, count: int) -> Lambda:
    """Returns a lambda with a number of parameters. Raises 42883 or 42701."""
    if len(function.parameters) != count:
        raise UndefinedFunction(
            f"{call.name.upper()} expects a lambda with {count} arguments here, got: {len(function.parameters)}", position=function.position
        )
    for n, name in enumerate(function.parameters):
        if name in function.parameters[:n]:
            raise DuplicateColumn(f"Lambda arguments must have different names: {ksqldb_name(name)}", position=function.position)
    return function


def _refused(call: FunctionCall, bodies: Bodies) -> TailgateError:
    shown = ["LAMBDA" if isinstance(a, Lambda) else types.in_schema(bodies.expression(a).type) for a in call.arguments]
    return refused(call.name, shown, call.position)
