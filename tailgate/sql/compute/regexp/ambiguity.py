"""Decides whether the first match of a regular expression is also the longest match.

PostgreSQL finds the longest match; Python and Java find the first. The two are the same if the next
character decides every choice: which alternative, and whether to repeat once more or to continue.

    (&|^)channel_id=([^&]*)      decided: `&` begins the first alternative, `c` follows the second
    .*a(ab)?                     undecided: `.` and what follows both begin with `a`

Greedy repetitions need less: an undecided one still finds the longest match if everything variable
after it repeats single characters.

The analysis works on Python's parse tree. A set of characters contains code points below 256, BEYOND
for all others, and END for the end of the pattern, after which anything may follow.
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
CONTINUATION = frozenset({-1})  # a placeholder for the characters that follow
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT)
CharacterSet = frozenset[int]
Node = tuple[Any, Any]


@dataclass(frozen=True)
class Analysis:
    """The properties of a pattern.

    `first_is_longest` tells whether its first match is the one that PostgreSQL finds. A search takes
    a number of steps that is at most proportional to this `power` of the text's length; None if the
    number may double with each character, or if the pattern is too complex to be analyzed.
    """

    first_is_longest: bool
    power: int | None


# Visits of a pattern's nodes. A repetition's body is visited twice, a nested one's four times. A set counts as one visit more
# for each MEMBERS ranges and characters in it.
VISITS_MAX, MEMBERS = 20_000, 16


class _TooComplex(Exception):
    """The pattern nests repetitions so deeply that its analysis would take too long."""


def analyze(pattern: str) -> Analysis:
    """Analyzes a pattern in Python's syntax."""
    tree = parser.parse(pattern)
    # The parser turns alternatives of single characters such as (a|b) into a set.
    branches = {c.BRANCH} if "|" in pattern else set()
    walk = _Walk(frozenset(_choice_kinds(tree)) | branches, bool(tree.state.flags & re.IGNORECASE))
    try:
        walk.first_characters(tree, frozenset({END}), ())
    except _TooComplex:
        return Analysis(False, None)
    exponential = any(walk.undecided)
    return Analysis(not walk.ambiguous, None if exponential else 1 + max(1, len(walk.undecided)))


def _choice_kinds(items: Iterable[Node]) -> Iterator[Any]:
    """Yields the kinds of choices in a pattern."""
    for op, argument in items:
        if op is c.SUBPATTERN:
            yield from _choice_kinds(argument[-1])
        elif op is c.BRANCH:
            yield op
            for branch in argument[1]:
                yield from _choice_kinds(branch)
        elif op in REPEATS:
            if argument[0] != argument[1]:
                yield op
            yield from _choice_kinds(argument[2])


def _characters(op: Any, argument: Any) -> CharacterSet | None:
    """Returns the characters that a node matches if it matches one character, else None."""
    if op is c.LITERAL:
        return frozenset({min(argument, BEYOND)})
    if op is c.NOT_LITERAL:
        return ALL - {argument}
    if op is c.ANY:
        return ALL
    if op is not c.IN:
        return None
    members: set[int] = set()
    for kind, value in argument:
        if kind is c.LITERAL:
            members.add(min(value, BEYOND))
        elif kind is c.RANGE:
            members.update(range(value[0], min(value[1], BEYOND) + 1))
            members.update({BEYOND} if value[1] >= BEYOND else ())
        elif kind is not c.NEGATE:
            return ALL
    negated = argument[0][0] is c.NEGATE
    return (ALL - (members - {BEYOND})) if negated else frozenset(members)


def _both_cases(characters: CharacterSet) -> CharacterSet:
    """Adds the other case of each letter."""
    cased: set[int] = set()
    for n in characters:
        cased.add(n)
        if n < BEYOND:
            cased.update((ord(chr(n).lower()[0]), ord(chr(n).upper()[0])))
    return frozenset(min(n, BEYOND) for n in cased)


@dataclass(frozen=True)
class _Walk:
    """A walk over a pattern's nodes.

    `choice_kinds` are those of the whole pattern. `repeated` tells whether the nodes are inside of a
    repetition, where the length of one iteration affects the next.
    """

    choice_kinds: frozenset[Any]
    ignore_case: bool
    repeated: bool = False
    visits: list[int] = field(default_factory=lambda: [0])  # shared by all walks of a pattern
    ambiguous: list[Any] = field(default_factory=list)  # choices whose first match may not be the longest
    undecided: list[bool] = field(default_factory=list)  # choices of more than one character: `repeated`

    @property
    def only_lazy(self) -> bool:
        return self.choice_kinds == {c.MIN_REPEAT}

    def first_characters(self, items: Sequence[Node], following: CharacterSet, later: tuple[Node, ...]) -> CharacterSet:
        """Returns the characters that the items may begin with.

        `following` are the characters that may come after the items, and `later` the items that do.
        """
        for i in reversed(range(len(items))):
            following = self._node(items[i], following, (*items[i + 1 :], *later))
        return following

    def _node(self, item: Node, following: CharacterSet, later: tuple[Node, ...]) -> CharacterSet:
        op, argument = item
        self.visits[0] += 1 + (len(argument) // MEMBERS if op is c.IN else 0)
        if self.visits[0] > VISITS_MAX:
            raise _TooComplex
        characters = _characters(op, argument)
        if characters is not None:
            return _both_cases(characters) if self.ignore_case else characters
        if op is c.SUBPATTERN:
            return self.first_characters(argument[-1], following, later)
        if op is c.BRANCH:
            return self._branches(argument[1], following, later)
        if op in REPEATS:
            return self._repeat(op is c.MAX_REPEAT, argument, following, later)
        if op is c.GROUPREF:
            self.undecided.append(self.repeated)
            return ALL | following
        if op in (c.ASSERT, c.ASSERT_NOT):
            replace(self, ambiguous=[]).first_characters(argument[1], ALL | {END}, ())
        return following  # an assertion matches no characters

    def _branches(self, branches: Sequence[Any], following: CharacterSet, later: tuple[Node, ...]) -> CharacterSet:
        words = [tuple(argument for op, argument in b if op is c.LITERAL) for b in branches]
        all_literal = all(len(w) == len(b) for w, b in zip(words, branches, strict=True))
        prefix_free = all_literal and not any(a == b[: len(a)] for a in words for b in words if a is not b)
        lazy = c.MIN_REPEAT in self.choice_kinds
        earlier: CharacterSet = frozenset()  # the first characters of the branches before
        for branch in branches:
            first = self.first_characters(branch, following, later)
            overlaps = bool(first & earlier)
            if (overlaps and not prefix_free) or END in earlier or (END in first and lazy):
                self.ambiguous.append(branch)
            if overlaps and self.repeated:
                self.undecided.append(True)
            earlier |= first
        return earlier

    def _repeat(self, greedy: bool, argument: Any, following: CharacterSet, later: tuple[Node, ...]) -> CharacterSet:
        low, high, body = argument
        first = self.first_characters(body, CONTINUATION, ())
        if first & CONTINUATION:  # the body may match nothing
            self.ambiguous.append(body)
            self.undecided.append(True)
        inner = replace(self, repeated=True) if high > 1 else self
        inner.first_characters(body, following | first if high > 1 else following, later)
        if low != high:
            lazy = c.MIN_REPEAT in self.choice_kinds
            uniform = self.only_lazy or (greedy and not lazy)
            longest_anyway = not self.repeated and uniform and all(map(_is_stepwise, later))
            overlaps = bool(first & following)
            if (overlaps and not longest_anyway) or (END in following and lazy and not self.only_lazy):
                self.ambiguous.append(body)
            if overlaps:
                self.undecided.append(self.repeated)
        return first if low else first | following


def _is_single_character(items: Sequence[Node]) -> bool:
    """Returns whether items match one character, in groups or not."""
    if len(items) != 1:
        return False
    op, argument = items[0]
    return _is_single_character(argument[-1]) if op is c.SUBPATTERN else _characters(op, argument) is not None


def _is_stepwise(item: Node) -> bool:
    """Returns whether an item has a fixed length or repeats single characters."""
    op, argument = item
    if op is c.SUBPATTERN:
        return all(map(_is_stepwise, argument[-1]))
    if op in REPEATS:
        return _is_single_character(argument[2])
    return op is not c.BRANCH and op is not c.GROUPREF
