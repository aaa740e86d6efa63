"""The tree of a path of jsonpath.

$.a[*] ? (@.b > 1)     path(root, key 'a', all elements, filter(greater(path(current, key 'b'), number 1)))
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """An item of a path.

    - `kind`, and `text` and `arguments` by kind:
      - `root`, `current`, `last`, `null`, `true`, `false`; `number`, `string`, `variable`: `text`
      - `path`: the arguments are an item and the accessors behind it
      - accessors: `key`: `text`; `any_key`; `all_elements`; `subscripts`: the arguments are `one` or `range`; `any_level`: `text`
        is 'first last', where -1 is the last level; `filter`: a predicate; `method`: `text` is its name
      - operators: `or`, `and`, `not`, `unknown`, `exists`; `compare`: `text` is the sign; `starts`; `regex`: an item and a `string`,
        `text` is the flags; `arithmetic`: `text` is the sign, one or two arguments
    """

    kind: str
    text: str = ""
    arguments: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """A whole path. In lax mode, arrays are unwrapped where a single value is expected, and missing members are ignored."""

    lax: bool
    item: Node


def is_predicate(node: Node) -> bool:
    """Returns whether an item is a condition."""
    return node.kind in ("or", "and", "not", "unknown", "exists", "compare", "starts", "regex")
