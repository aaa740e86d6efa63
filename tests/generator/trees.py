"""Statements as trees, so that a failing statement can be shrunk.

    Node ──► text           the statement
         └─► smaller trees  each without an optional part, with fewer items of a list, or with a part
                            in place of the node that contains it

Every node has a kind. A part may replace a node of the same kind. The kind of an expression is its
type.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

Part = "Node | str"


@dataclass(frozen=True)
class Node:
    """A part of a statement: a sequence of texts and nodes.

    The statement is valid without an `optional` part. A node with a `separator` is a list, which
    may be shortened to `least` items. Nothing inside a `fixed` node may change, because the result
    would no longer be unique.
    """

    kind: str
    parts: tuple[Node | str, ...]
    optional: bool = False
    separator: str | None = None
    least: int = 1
    fixed: bool = False

    @cached_property
    def text(self) -> str:
        return (self.separator or "").join(p if isinstance(p, str) else p.text for p in self.parts)

    @cached_property
    def size(self) -> int:
        """Returns the number of nodes."""
        return 1 + sum(p.size for p in self.parts if isinstance(p, Node))

    def __str__(self) -> str:
        return self.text


def node(kind: str, *parts: Node | str) -> Node:
    return Node(kind, parts)


def optional(*parts: Node | str) -> Node:
    """Returns an optional part, such as a clause."""
    return Node("clause", parts, optional=True)


def fixed(*parts: Node | str) -> Node:
    """Returns a part that must not change, such as an ORDER BY on which the result depends."""
    return Node("clause", parts, fixed=True)


def listed(parts: list[Node], separator: str = ", ", least: int = 1) -> Node:
    return Node("list", tuple(parts), separator=separator, least=least)


NOTHING = Node("nothing", ())

# The simplest expressions of any type; `{}` stands for the type.
SIMPLEST = ("NULL::{}", "{}")
LITERALS = {"bool": "true", "int4": "1", "text": "'a'"}


def simplest(kind: str) -> Iterator[Node]:
    """Yields the simplest expressions, if the kind is a type."""
    if not kind.startswith("="):
        return
    if kind[1:] in LITERALS:
        yield Node(kind, (LITERALS[kind[1:]],))
    yield Node(kind, (f"NULL::{kind[1:]}",))


def expression(type: str, *parts: Node | str) -> Node:
    """Returns a node whose kind is the type of an expression."""
    return Node("=" + type, parts)


def smaller(tree: Node) -> Iterator[Node]:
    """Yields smaller trees, those with the largest reduction first."""
    if tree.fixed:
        return
    yield from _clauses(tree)
    for part in _within(tree, tree.kind):
        yield part
    for candidate in simplest(tree.kind):
        if len(candidate.text) < len(tree.text):
            yield candidate
    if tree.separator is not None:
        yield from _shorter(tree)
    for i, part in sorted(enumerate(tree.parts), key=lambda p: -len(str(p[1]))):
        if isinstance(part, Node):
            for less in smaller(part):
                yield replace(tree, parts=(*tree.parts[:i], less, *tree.parts[i + 1 :]))


def _clauses(tree: Node) -> Iterator[Node]:
    for i, part in enumerate(tree.parts):
        if isinstance(part, Node) and part.optional:
            yield replace(tree, parts=(*tree.parts[:i], NOTHING, *tree.parts[i + 1 :]))


def _within(tree: Node, kind: str) -> Iterator[Node]:
    """Yields the inner nodes of a kind, the outermost first."""
    level = [p for p in tree.parts if isinstance(p, Node)]
    while level:
        for part in level:
            if part.kind == kind:
                yield part
        level = [p for part in level for p in part.parts if isinstance(p, Node)]


def _shorter(tree: Node) -> Iterator[Node]:
    """Yields a list without some of its items: a half, a quarter, …, one."""
    size = len(tree.parts)
    step = size // 2
    while step:
        for start in range(0, size, step):
            left = (*tree.parts[:start], *tree.parts[start + step :])
            if len(left) >= tree.least:
                yield replace(tree, parts=left)
        step //= 2


def shrunk(tree: Node, fails: Callable[[Node], bool], seconds: float) -> Node:
    """Returns the smallest failing tree found within the time limit."""
    end = time.monotonic() + seconds
    tried = {tree.text}
    again = True
    while again:
        again = False
        for less in smaller(tree):
            if time.monotonic() > end:
                return tree
            if less.text in tried or len(less.text) >= len(tree.text):
                continue
            tried.add(less.text)
            if fails(less):
                tree, again = less, True
                break
    return tree
