"""The text of a jsonpath as PostgreSQL prints it: with quoted names, and few parentheses.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath.c, printJsonPathItem.
"""

from __future__ import annotations

from tailgate.values.jsonpath.nodes import Node, Path
from tailgate.values.strings.jsonb import dump

PRIORITIES = {"or": 0, "and": 1, "compare": 2, "starts": 2}  # of operators; of sums 3, products 4, signs 5, others 6
ARITHMETIC = {"+": 3, "-": 3, "*": 4, "/": 4, "%": 4}
HIGHEST = 6


def text(path: Path) -> str:
    """Returns the text of a path.

    >>> from tailgate.values.jsonpath.parser import parse
    >>> text(parse("strict $.a[*] ? (@ > 1 && @.b == 'x')".replace("'", '"')))
    'strict $."a"[*]?(@ > 1 && @."b" == "x")'
    """
    return ("" if path.lax else "strict ") + _item(path.item, brackets=True)


def _priority(node: Node) -> int:
    if node.kind == "path":
        return _priority(node.arguments[0])
    if node.kind == "arithmetic":
        return ARITHMETIC[node.text] if len(node.arguments) > 1 else 5
    return PRIORITIES.get(node.kind, HIGHEST)


def _operand(node: Node, operator: Node) -> str:
    return _item(node, brackets=_priority(node) <= _priority(operator))


def _item(node: Node, *, brackets: bool = False) -> str:
    arguments = node.arguments
    match node.kind:
        case "root":
            return "$"
        case "current":
            return "@"
        case "last" | "null" | "true" | "false":
            return node.kind
        case "number":
            return node.text
        case "string":
            return dump(node.text)
        case "variable":
            return "$" + dump(node.text)
        case "path":
            base, *accessors = arguments
            shown = f"({base.text})" if base.kind == "number" else _item(base, brackets=True)
            return shown + "".join(map(_accessor, accessors))
        case "not":
            return f"!({_item(arguments[0])})"
        case "unknown":
            return f"({_item(arguments[0])}) is unknown"
        case "exists":
            return f"exists ({_item(arguments[0])})"
    shown = _operator(node)
    return f"({shown})" if brackets else shown


def _operator(node: Node) -> str:
    arguments = node.arguments
    if node.kind == "regex":
        flags = f' flag "{node.text}"' if node.text else ""
        return f"{_operand(arguments[0], node)} like_regex {dump(arguments[1].text)}{flags}"
    if len(arguments) == 1:
        return node.text + _operand(arguments[0], node)
    sign = {"or": "||", "and": "&&", "starts": "starts with"}.get(node.kind, node.text)
    return f"{_operand(arguments[0], node)} {sign} {_operand(arguments[1], node)}"


def _accessor(node: Node) -> str:
    match node.kind:
        case "key":
            return "." + dump(node.text)
        case "any_key":
            return ".*"
        case "all_elements":
            return "[*]"
        case "subscripts":
            return "[" + ",".join(" to ".join(map(_item, s.arguments)) for s in node.arguments) + "]"
        case "any_level":
            return ".**" + _levels(*map(int, node.text.split()))
        case "filter":
            return f"?({_item(node.arguments[0])})"
    return f".{node.text}()"


def _levels(first: int, last: int) -> str:
    if (first, last) == (0, -1):
        return ""
    shown = ["last" if level < 0 else str(level) for level in (first, last)]
    return "{" + (shown[0] if first == last else " to ".join(shown)) + "}"
