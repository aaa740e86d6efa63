"""Evaluates a jsonpath on a JSON value.

A condition is true, false or unknown (None). Items are produced one by one, because lax mode stops at the first one
where that decides.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath_exec.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from typing import Any

from tailgate.lake.errors import TailgateError, UndefinedObject
from tailgate.sql.compute.jsonb.layout import offset
from tailgate.sql.compute.jsonb.path_methods import ARRAY, PathError, applied
from tailgate.sql.compute.jsonb.path_times import Moment
from tailgate.sql.compute.jsonb.path_times import order as order_of_times
from tailgate.sql.compute.jsonb.path_times import read as read_time
from tailgate.sql.compute.regexp import patterns
from tailgate.values.jsonpath.nodes import Node, Path
from tailgate.values.numeric import arithmetic
from tailgate.values.strings.jsonb import Json

MEMBER, OBJECT, NUMBER = "2203A", "2203C", "2203B"  # not found
SUBSCRIPT, SINGLETON = "22033", "22038"
OPERATIONS = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
}
INT_MAX = 2**31 - 1
BASE_FACTOR = 10_000_000_000  # of the number of a base in the ids of keyvalue()
INFINITE_LEVEL = 2**31


@dataclass(frozen=True, slots=True)
class Context:
    """The place of an evaluation.

    `forgiving`: missing members and elements do not fail. `size`: of the innermost array with subscripts. `base`: the value that
    contains the items, with its number; the objects that keyvalue() has made are numbered by `numbers`. `zone`: that of the
    session, in functions that compare times with and without a zone.
    """

    path: Path
    root: Json
    variables: dict[str, Json]
    forgiving: bool
    current: Json = None
    size: int = -1
    base: Json = None
    base_number: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: count(2))
    zone: str | None = None

    @property
    def lax(self) -> bool:
        return self.path.lax


def items(path: Path, value: Json, variables: dict[str, Json], zone: str | None) -> Iterator[Json]:
    """Yields the items of a path. Raises PathError."""
    context = Context(path, value, variables, path.lax, value, base=value, zone=zone)
    return (item.text if isinstance(item, Moment) else item for item in _items(context, path.item, value, context.lax))


def exists(path: Path, value: Json, variables: dict[str, Json], zone: str | None) -> bool:
    """Returns whether a path has items. Raises PathError."""
    return _has_items(Context(path, value, variables, path.lax, value, base=value, zone=zone), path.item, value)


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
            yield from _following(replace(context, base=context.root, base_number=0), rest, context.root)
        case "current":
            yield from _following(context, rest, context.current)
        case "variable":
            of_variables = replace(context, base=context.variables, base_number=1)
            yield from _following(of_variables, rest, _constant(context, node))
        case "null" | "true" | "false" | "number" | "string" | "last":
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
    if name == "keyvalue":
        return _key_values(context, rest, value)
    if name == "datetime":
        return _following(context, rest, read_time(value))
    if name == "type" and isinstance(value, Moment):
        return _following(context, rest, value.type_name)
    return _following(context, rest, applied(name, value, lax=context.lax))


def _key_values(context: Context, rest: tuple[Node, ...], value: Json) -> Iterator[Json]:
    if not isinstance(value, dict):
        raise PathError(OBJECT, "jsonpath item method .keyvalue() can only be applied to an object")
    id = Decimal(context.base_number * BASE_FACTOR + (offset(value, context.base) if value else 0))
    for key, member in value.items():
        item: Json = {"id": id, "key": key, "value": member}
        yield from _following(replace(context, base=item, base_number=next(context.numbers)), rest, item)


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
            result = _of_pair(node, a, b, context.zone)
            if result is None and not context.lax:
                return None
            if result and context.lax:
                return True
            holds, is_unknown = holds or bool(result), is_unknown or result is None
    return True if holds else None if is_unknown else False


def _plain(context: Context, node: Node, value: Json) -> Iterator[Json]:
    return _items(context, node, value, context.lax)


def _of_pair(node: Node, a: Json, b: Json, zone: str | None) -> bool | None:
    match node.kind:
        case "compare" if isinstance(a, Moment) and isinstance(b, Moment):
            order = order_of_times(a, b, zone)
            return None if order is None else _compared(node.text, Decimal(order), Decimal(0))
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
