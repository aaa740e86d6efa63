"""Evaluates a jsonpath on a JSON value.

A condition is true, false or unknown (None). Items are produced one by one, because lax mode stops at the first one
where that decides.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath_exec.c.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tailgate.lake.errors import TailgateError, UndefinedObject, of
from tailgate.lake.types import FLOAT8
from tailgate.sql.compute.regexp import patterns
from tailgate.values.codec.style import DEFAULT
from tailgate.values.jsonpath.nodes import Node, Path
from tailgate.values.numbers import floats
from tailgate.values.numeric import arithmetic
from tailgate.values.strings.jsonb import Json

MEMBER, ARRAY, OBJECT, NUMBER = "2203A", "22039", "2203C", "2203B"  # not found
SUBSCRIPT, SINGLETON, NON_NUMERIC = "22033", "22038", "22036"
OPERATIONS = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
}
INT_MAX = 2**31 - 1
INFINITE_LEVEL = 2**31


class PathError(Exception):
    """An error of the evaluation, which conditions and silent calls suppress."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.error = of(sqlstate, message)


@dataclass(frozen=True, slots=True)
class Context:
    """The place of an evaluation.

    `forgiving`: missing members and elements do not fail. `size`: of the innermost array with subscripts.
    """

    path: Path
    root: Json
    variables: dict[str, Json]
    forgiving: bool
    current: Json = None
    size: int = -1

    @property
    def lax(self) -> bool:
        return self.path.lax


def items(path: Path, value: Json, variables: dict[str, Json]) -> Iterator[Json]:
    """Yields the items of a path. Raises PathError."""
    context = Context(path, value, variables, path.lax, value)
    return _items(context, path.item, value, context.lax)


def exists(path: Path, value: Json, variables: dict[str, Json]) -> bool:
    """Returns whether a path has items. Raises PathError."""
    return _has_items(Context(path, value, variables, path.lax, value), path.item, value)


def _items(context: Context, node: Node, value: Json, unwrap: bool) -> Iterator[Json]:
    if node.kind == "path":
        return _chain(context, node.arguments, value, unwrap)
    return _chain(context, (node,), value, unwrap)


def _chain(context: Context, nodes: tuple[Node, ...], value: Json, unwrap: bool) -> Iterator[Json]:
    """Yields the items of a chain of accessors on a value. `unwrap`: the first one applies to the elements of an array."""
    node, rest = nodes[0], nodes[1:]
    match node.kind:
        case "path":
            yield from _chain(context, (*node.arguments, *rest), value, unwrap)
        case "root":
            yield from _following(context, rest, context.root)
        case "current":
            yield from _following(context, rest, context.current)
        case "null" | "true" | "false" | "number" | "string" | "variable" | "last":
            yield from _following(context, rest, _constant(context, node))
        case "arithmetic":
            for item in _arithmetic(context, node, value):
                yield from _following(context, rest, item)
        case "filter" if not (unwrap and isinstance(value, list)):
            if _condition(replace(context, current=value), node.arguments[0], value):
                yield from _following(context, rest, value)
        case "key" | "any_key" | "filter":
            if unwrap and isinstance(value, list):
                yield from _of_elements(context, nodes, value)
            else:
                yield from _members(context, node, rest, value)
        case "all_elements" | "subscripts" | "any_level":
            yield from _elements(context, node, rest, value)
        case "method":
            yield from _method(context, nodes, value, unwrap)
        case _:
            yield from _following(context, rest, _condition(context, node, value))


def _following(context: Context, rest: tuple[Node, ...], item: Json) -> Iterator[Json]:
    """Returns the items of the rest of a chain on an item."""
    return _chain(context, rest, item, context.lax) if rest else iter((item,))


def _of_elements(context: Context, nodes: tuple[Node, ...], elements: list[Json]) -> Iterator[Json]:
    for element in elements:
        yield from _chain(context, nodes, element, False)


def _members(context: Context, node: Node, rest: tuple[Node, ...], value: Json) -> Iterator[Json]:
    if not isinstance(value, dict):
        if not context.forgiving and node.kind == "key":
            raise PathError(MEMBER, "jsonpath member accessor can only be applied to an object")
        if not context.forgiving:
            raise PathError(OBJECT, "jsonpath wildcard member accessor can only be applied to an object")
    elif node.kind == "any_key":
        for member in value.values():
            yield from _following(context, rest, member)
    elif node.text in value:
        yield from _following(context, rest, value[node.text])
    elif not context.forgiving:
        raise PathError(MEMBER, f'JSON object does not contain key "{node.text}"')


def _elements(context: Context, node: Node, rest: tuple[Node, ...], value: Json) -> Iterator[Json]:
    if node.kind == "any_level":
        first, last = (INFINITE_LEVEL if int(n) < 0 else int(n) for n in node.text.split())
        forgiving = replace(context, forgiving=True)
        for item in (*((value,) if first == 0 else ()), *_deeper(value, 1, first, last)):
            yield from _following(forgiving, rest, item)
    elif not isinstance(value, list) and not context.lax:
        if not context.forgiving:
            wildcard = "wildcard " if node.kind == "all_elements" else ""
            raise PathError(ARRAY, f"jsonpath {wildcard}array accessor can only be applied to an array")
    elif node.kind == "subscripts":
        yield from _subscripts(context, node, rest, value)
    else:
        for element in value if isinstance(value, list) else [value]:
            yield from _following(context, rest, element)


def _constant(context: Context, node: Node) -> Json:
    match node.kind:
        case "number":
            return Decimal(node.text)
        case "string":
            return node.text
        case "last":
            return Decimal(context.size - 1)
        case "variable":
            if node.text not in context.variables:
                raise UndefinedObject(f'could not find jsonpath variable "{node.text}"')
            return context.variables[node.text]
    return {"null": None, "true": True, "false": False}[node.kind]


def _deeper(value: Json, level: int, first: int, last: int) -> Iterator[Json]:
    """Yields the values below a value, down to a level. Level INFINITE_LEVEL as the first one means the leaves."""
    if level > last or not isinstance(value, dict | list):
        return
    for item in value.values() if isinstance(value, dict) else value:
        is_leaf = not isinstance(item, dict | list)
        if level >= first or (first == last == INFINITE_LEVEL and is_leaf):
            yield item
        yield from _deeper(item, level + 1, first, last)


def _subscripts(context: Context, node: Node, rest: tuple[Node, ...], value: Json) -> Iterator[Json]:
    elements = value if isinstance(value, list) else [value]
    inside = replace(context, size=len(elements))
    for subscript in node.arguments:
        bounds = [_subscript(inside, bound, value) for bound in subscript.arguments]
        first, last = bounds[0], bounds[-1]
        if not context.forgiving and (first < 0 or first > last or last >= len(elements)):
            raise PathError(SUBSCRIPT, "jsonpath array subscript is out of bounds")
        for element in elements[max(first, 0) : max(last + 1, 0)]:
            yield from _following(context, rest, element)


def _subscript(context: Context, node: Node, value: Json) -> int:
    results = list(_items(context, node, value, context.lax))
    if len(results) != 1 or not isinstance(results[0], Decimal):
        raise PathError(SUBSCRIPT, "jsonpath array subscript is not a single numeric value")
    number = int(results[0])
    if not -INT_MAX - 1 <= number <= INT_MAX:
        raise PathError(SUBSCRIPT, "jsonpath array subscript is out of integer range")
    return number


def _operand(context: Context, node: Node, value: Json) -> Iterator[Json]:
    """Yields the items of an operand. In lax mode arrays are unwrapped."""
    for item in _items(context, node, value, context.lax):
        if context.lax and isinstance(item, list):
            yield from item
        else:
            yield item


def _arithmetic(context: Context, node: Node, value: Json) -> Iterator[Json]:
    sign = node.text
    if len(node.arguments) == 1:
        for item in _operand(context, node.arguments[0], value):
            if not isinstance(item, Decimal):
                raise PathError(NUMBER, f"operand of unary jsonpath operator {sign} is not a numeric value")
            yield arithmetic.negated(item) if sign == "-" else item
        return
    operands = []
    for side, operand in zip(("left", "right"), node.arguments, strict=True):
        results = list(_operand(context, operand, value))
        if len(results) != 1 or not isinstance(results[0], Decimal):
            raise PathError(SINGLETON, f"{side} operand of jsonpath operator {sign} is not a single numeric value")
        operands.append(results[0])
    try:
        yield OPERATIONS[sign](*operands)
    except TailgateError as error:
        raise PathError(error.sqlstate, error.message) from None


def _method(context: Context, nodes: tuple[Node, ...], value: Json, unwrap: bool) -> Iterator[Json]:
    name, rest = nodes[0].text, nodes[1:]
    if unwrap and isinstance(value, list) and name not in ("type", "size"):
        return _of_elements(context, nodes, value)
    if name == "size" and not isinstance(value, list) and context.forgiving and not context.lax:
        return iter(())
    return _following(context, rest, _applied(context, name, value))


def _applied(context: Context, name: str, value: Json) -> Json:
    match name:
        case "type":
            return type_name(value)
        case "size":
            if not isinstance(value, list) and not context.lax:
                raise PathError(ARRAY, "jsonpath item method .size() can only be applied to an array")
            return Decimal(len(value) if isinstance(value, list) else 1)
        case "double":
            return _double(value)
    if not isinstance(value, Decimal):
        raise PathError(NON_NUMERIC, f"jsonpath item method .{name}() can only be applied to a numeric value")
    return {"abs": arithmetic.absolute, "floor": arithmetic.floor, "ceiling": arithmetic.ceiling}[name](value)


def _double(value: Json) -> Json:
    if not isinstance(value, Decimal | str):
        raise PathError(NON_NUMERIC, "jsonpath item method .double() can only be applied to a string or numeric value")
    try:
        number = floats.read(value if isinstance(value, str) else f"{value:f}", FLOAT8, DEFAULT)
    except TailgateError:
        number = math.nan
    if math.isfinite(number):
        return value if isinstance(value, Decimal) else Decimal(f"{Decimal(f'{number:.15g}'):f}")
    if isinstance(value, Decimal):
        message = "numeric argument of jsonpath item method .double() is out of range for type double precision"
    else:
        message = "string argument of jsonpath item method .double() is not a valid representation of a double precision number"
    raise PathError(NON_NUMERIC, message)


def type_name(value: Json) -> str:
    names: dict[type[Any], str] = {bool: "boolean", Decimal: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


# --- conditions ----------------------------------------------------------------------------------


def _condition(context: Context, node: Node, value: Json) -> bool | None:
    match node.kind:
        case "and" | "or":
            decisive = node.kind == "or"
            left = _condition(context, node.arguments[0], value)
            if left is decisive:
                return left
            right = _condition(context, node.arguments[1], value)
            if right is decisive:
                return right
            return None if left is None or right is None else not decisive
        case "not":
            inner = _condition(context, node.arguments[0], value)
            return None if inner is None else not inner
        case "unknown":
            return _condition(context, node.arguments[0], value) is None
        case "exists":
            return _exists(context, node.arguments[0], value)
        case "compare" | "starts":
            return _of_pairs(context, node, value, node.arguments[1])
    return _of_pairs(context, node, value, None)


def _exists(context: Context, node: Node, value: Json) -> bool | None:
    try:
        return _has_items(context, node, value)
    except PathError:
        return None


def _has_items(context: Context, node: Node, value: Json) -> bool:
    """Returns whether a path has items. In lax mode, errors behind the first one do not count, nor those of the operand of a sign."""
    if not context.lax:
        return bool(list(_items(context, node, value, False)))
    if node.kind == "arithmetic" and len(node.arguments) == 1:
        return any(isinstance(item, Decimal) for item in _operand(context, node.arguments[0], value))
    results = _items(context, node, value, True)
    return next(results, results) is not results


def _of_pairs(context: Context, node: Node, value: Json, right: Node | None) -> bool | None:
    """Returns whether a condition holds for a pair of items of both operands. In strict mode, all pairs are tested."""
    try:
        lefts = list(_operand(context, node.arguments[0], value))
        rights: list[Json] = [None]
        if right is not None:
            rights = list((_operand if node.kind == "compare" else _plain)(context, right, value))
    except PathError:
        return None
    holds, is_unknown = False, False
    for a in lefts:
        for b in rights:
            result = _of_pair(node, a, b)
            if result is None and not context.lax:
                return None
            if result and context.lax:
                return True
            holds, is_unknown = holds or bool(result), is_unknown or result is None
    return True if holds else None if is_unknown else False


def _plain(context: Context, node: Node, value: Json) -> Iterator[Json]:
    return _items(context, node, value, context.lax)


def _of_pair(node: Node, a: Json, b: Json) -> bool | None:
    match node.kind:
        case "compare":
            return _compared(node.text, a, b)
        case "starts":
            return a.startswith(b) if isinstance(a, str) and isinstance(b, str) else None
    return regex(node).search(a) is not None if isinstance(a, str) else None


def regex(node: Node) -> Any:
    """Returns the compiled pattern of LIKE_REGEX."""
    return patterns.compiled(*regex_arguments(node), searching=False)


def regex_arguments(node: Node) -> tuple[str, str]:
    """Returns the pattern of LIKE_REGEX and its flags as PostgreSQL's regular expressions have them."""
    flags = node.text
    case = "i" if "i" in flags else ""
    if "q" in flags:
        return node.arguments[1].text, case + "q"
    lines = ("w" if "m" in flags else "") if "s" in flags else ("n" if "m" in flags else "p")
    return node.arguments[1].text, case + lines


def _compared(sign: str, a: Json, b: Json) -> bool | None:
    if type(a) is not type(b):
        return sign == "!=" if a is None or b is None else None
    if isinstance(a, dict | list):
        return None
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    if a is None:
        a = b = 0
    match sign:
        case "==":
            return bool(a == b)
        case "!=":
            return bool(a != b)
        case "<":
            return bool(a < b)
        case "<=":
            return bool(a <= b)
        case ">":
            return bool(a > b)
    return bool(a >= b)
