"""Whether the first match of a regular expression, left to right, is also the longest one: PostgreSQL looks for the longest.

It is where one character decides every choice: which alternative, one more time or on. A pattern is looked at as Python parses it; sets of
characters are code points below 256, 256 for all beyond, and END for the end of the pattern, behind which anything may stand.

    (&|^)channel_id=([^&]*)      `&` begins the first alternative, and the second what is behind it: `c`
    .*a(ab)?                     `.` goes on where `a` does, and stopping earlier lets more follow: not decided

Of greedy repetitions alone more is known: what is not decided is still longest if all that is variable behind is characters one by one.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

try:
    parser: Any = importlib.import_module("re._parser")
    c: Any = importlib.import_module("re._constants")
except ImportError:  # before Python 3.11
    parser, c = importlib.import_module("sre_parse"), importlib.import_module("sre_constants")

BEYOND, END = 256, 257
ALL = frozenset(range(BEYOND + 1))
NULLABLE = frozenset({-1})  # stands for what follows
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT)
Set = frozenset[int]
Node = tuple[Any, Any]


@dataclass(frozen=True)
class Choices:
    """What follows from a pattern's choices.

    `first_is_longest`: whether its first match is what PostgreSQL finds. `power`: a search of a text takes a number of steps that is at
    most in proportion to this power of its length; None if it may double with each character.
    """

    first_is_longest: bool
    power: int | None


def choices(pattern: str) -> Choices:
    """Of a pattern of Python's."""
    tree = parser.parse(pattern)
    # the parser makes a set of (a|b)
    kinds = frozenset(_kinds(tree)) | ({c.BRANCH} if "|" in pattern else set())
    walk = _Walk(kinds, bool(tree.state.flags & re.IGNORECASE))
    try:
        walk.first(tree, frozenset({END}), ())
    except _TooMany:
        return Choices(False, None)
    return Choices(not walk.different, None if True in walk.undecided else 1 + max(1, len(walk.undecided)))


LOOKS_MAX = 20_000  # at parts of a pattern: what is repeated is looked at twice, and what is repeated within it four times


class _TooMany(Exception):
    """A pattern that nests repetitions too deep to be looked at."""


def _kinds(items: Iterable[Node]) -> Iterator[Any]:
    """The kinds of choices in a pattern."""
    for op, argument in items:
        if op is c.SUBPATTERN:
            yield from _kinds(argument[-1])
        elif op is c.BRANCH:
            yield op
            for branch in argument[1]:
                yield from _kinds(branch)
        elif op in REPEATS:
            if argument[0] != argument[1]:
                yield op
            yield from _kinds(argument[2])


def characters(op: Any, argument: Any) -> Set | None:
    """What a node that is one character may be; None of others."""
    if op is c.LITERAL:
        return frozenset({min(argument, BEYOND)})
    if op is c.NOT_LITERAL:
        return ALL - {argument}
    if op is c.ANY:
        return ALL
    if op is not c.IN:
        return None
    found: set[int] = set()
    for kind, value in argument:
        if kind is c.LITERAL:
            found.add(min(value, BEYOND))
        elif kind is c.RANGE:
            found.update(range(value[0], min(value[1], BEYOND) + 1))
            found.update({BEYOND} if value[1] >= BEYOND else ())
        elif kind is not c.NEGATE:
            return ALL
    return (ALL - (found - {BEYOND})) if argument[0][0] is c.NEGATE else frozenset(found)


def _folded(found: Set, ignoring: bool) -> Set:
    if not ignoring:
        return found
    both = (x for n in found for x in ((n,) if n >= BEYOND else (n, ord(chr(n).lower()[0]), ord(chr(n).upper()[0]))))
    return frozenset(min(x, BEYOND) for x in both)


@dataclass(frozen=True)
class _Walk:
    """`choices`: the kinds that the whole pattern has. `strict`: within what is repeated, where each time cuts the next one."""

    choices: frozenset[Any]
    ignoring: bool
    strict: bool = False
    looks: list[int] = field(default_factory=lambda: [0])
    different: list[Any] = field(default_factory=list)  # where the first match may be another one than the longest
    undecided: list[bool] = field(default_factory=list)  # choices that one character does not decide: whether they are repeated

    @property
    def lazy(self) -> bool:
        return self.choices == {c.MIN_REPEAT}

    def first(self, items: Sequence[Node], follow: Set, behind: tuple[Node, ...]) -> Set:
        """What the items, and then what follows, may begin with. `behind`: the items that follow."""
        for i in reversed(range(len(items))):
            follow = self._one(items[i], follow, (*items[i + 1 :], *behind))
        return follow

    def _one(self, item: Node, follow: Set, behind: tuple[Node, ...]) -> Set:
        self.looks[0] += 1
        if self.looks[0] > LOOKS_MAX:
            raise _TooMany
        op, argument = item
        found = characters(op, argument)
        if found is not None:
            return _folded(found, self.ignoring)
        if op is c.SUBPATTERN:
            return self.first(argument[-1], follow, behind)
        if op is c.BRANCH:
            return self._branches(argument[1], follow, behind)
        if op in REPEATS:
            return self._repeat(op is c.MAX_REPEAT, argument, follow, behind)
        if op is c.GROUPREF:
            self.undecided.append(self.strict)
            return ALL | follow
        if op in (c.ASSERT, c.ASSERT_NOT):
            replace(self, different=[]).first(argument[1], ALL | {END}, ())
        return follow  # a place, or what stands before or behind it

    def _branches(self, branches: Sequence[Any], follow: Set, behind: tuple[Node, ...]) -> Set:
        words = [tuple(argument for op, argument in b if op is c.LITERAL) for b in branches]
        plain = all(len(w) == len(b) for w, b in zip(words, branches, strict=True))
        apart = plain and not any(a == b[: len(a)] for a in words for b in words if a is not b)
        seen: Set = frozenset()
        for branch in branches:
            found = self.first(branch, follow, behind)
            if (found & seen and not apart) or END in seen or (END in found and c.MIN_REPEAT in self.choices):
                self.different.append(branch)
            if found & seen and self.strict:
                self.undecided.append(True)
            seen |= found
        return seen

    def _repeat(self, greedy: bool, argument: Any, follow: Set, behind: tuple[Node, ...]) -> Set:
        low, high, body = argument
        begins = self.first(body, NULLABLE, ())
        if begins & NULLABLE:
            self.different.append(body)
            self.undecided.append(True)
        inner = replace(self, strict=True) if high > 1 else self
        inner.first(body, follow | begins if high > 1 else follow, behind)
        if low != high:
            in_step = not self.strict and (self.lazy or (greedy and c.MIN_REPEAT not in self.choices)) and all(map(_in_step, behind))
            if (begins & follow and not in_step) or (END in follow and c.MIN_REPEAT in self.choices and not self.lazy):
                self.different.append(body)
            if begins & follow:
                self.undecided.append(self.strict)
        return begins if low else begins | follow


def _single(items: Sequence[Node]) -> bool:
    """Whether it is one character, in groups or not."""
    if len(items) != 1:
        return False
    op, argument = items[0]
    return _single(argument[-1]) if op is c.SUBPATTERN else characters(op, argument) is not None


def _in_step(item: Node) -> bool:
    """Whether it matches a fixed number of characters, or any number of them one by one."""
    op, argument = item
    if op is c.SUBPATTERN:
        return all(map(_in_step, argument[-1]))
    if op in REPEATS:
        return _single(argument[2])
    return op is not c.BRANCH and op is not c.GROUPREF
