"""Statements as trees: random ones are built as trees, so that one that fails can be made small.

    Node ──► text           the statement
         └─► smaller trees  each without an optional part, with fewer items of a list, or with a part in place of what holds it

Every node has a kind. A part may stand in the place of another of its kind: of an expression the kind is its type.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

Part = "Node | str"


@dataclass(frozen=True)
class Node:
    """A part of a statement: texts and nodes, one after the other.

    `optional`: the statement may do without it. `separator`: of a list, whose parts may go as long as `least` are left. `fixed`: nothing
    inside it may change, because the answer would no longer be one.
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
        """The number of nodes."""
        return 1 + sum(p.size for p in self.parts if isinstance(p, Node))

    def __str__(self) -> str:
        return self.text


def node(kind: str, *parts: Node | str) -> Node:
    return Node(kind, parts)


def optional(*parts: Node | str) -> Node:
    """A clause."""
    return Node("clause", parts, optional=True)


def fixed(*parts: Node | str) -> Node:
    """What decides the answer, such as the order of rows that are counted."""
    return Node("clause", parts, fixed=True)


def listed(parts: list[Node], separator: str = ", ", least: int = 1) -> Node:
    return Node("list", tuple(parts), separator=separator, least=least)


NOTHING = Node("nothing", ())

# What an expression of a type is at its simplest; `{}` is the type.
SIMPLEST = ("NULL::{}", "{}")
LITERALS = {"bool": "true", "int4": "1", "text": "'a'"}


def simplest(kind: str) -> Iterator[Node]:
    """The simplest parts of a kind, if it is the type of an expression."""
    if not kind.startswith("="):
        return
    if kind[1:] in LITERALS:
        yield Node(kind, (LITERALS[kind[1:]],))
    yield Node(kind, (f"NULL::{kind[1:]}",))


def expression(type: str, *parts: Node | str) -> Node:
    """A node whose kind is the type of an expression."""
    return Node("=" + type, parts)


def smaller(tree: Node) -> Iterator[Node]:
    """Trees that are smaller, those that lose most first."""
    if tree.fixed:
        return
    yield from _clauses(tree)
    for part in _within(tree, tree.kind):
        yield part
    for made in simplest(tree.kind):
        if len(made.text) < len(tree.text):
            yield made
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
    """The parts of a kind, those closest to the top first."""
    level = [p for p in tree.parts if isinstance(p, Node)]
    while level:
        for part in level:
            if part.kind == kind:
                yield part
        level = [p for part in level for p in part.parts if isinstance(p, Node)]


def _shorter(tree: Node) -> Iterator[Node]:
    """A list without some of its items: half of them, a quarter, …, one."""
    size = len(tree.parts)
    step = size // 2
    while step:
        for start in range(0, size, step):
            left = (*tree.parts[:start], *tree.parts[start + step :])
            if len(left) >= tree.least:
                yield replace(tree, parts=left)
        step //= 2


def shrunk(tree: Node, fails: Callable[[Node], bool], seconds: float) -> Node:
    """The smallest tree that was found within a time and that still fails."""
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
