"""A search for a regular expression, in a time that is known before or that can be cut off.

few steps                 Python's engine, here: it holds the interpreter's lock and cannot be interrupted
no look-around            RE2, in a time in proportion to the text
anything else             `elsewhere`: Python's engine in a process that can be killed; without one 54000
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import of

STEPS_MAX = 1_000_000  # of Python's engine while nobody else can run: some 20 ms

Spans = Sequence[tuple[int, int]]  # of the match and its groups: where each begins and ends, -1 of a group that matched nothing


def spans(match: re.Match[str]) -> Spans:
    return [match.span(group) for group in range(match.re.groups + 1)]


def found(pattern: str, text: str, at: int) -> Spans | None:
    """The first match of one of Python's expressions from a character on; takes any time."""
    match = re.compile(pattern).search(text, at)
    return None if match is None else spans(match)


def nowhere(pattern: str, text: str, at: int) -> Spans | None:
    raise of("54000", "regular expression takes too long", hint="Look for it in a shorter text.")


# What a process sets that can run `found` somewhere else, and stop it.
elsewhere: Callable[[str, str, int], Spans | None] = nowhere


class Match(Protocol):
    def __getitem__(self, group: int, /) -> str | None: ...
    def groups(self) -> tuple[str | None, ...]: ...
    def start(self, group: int = 0, /) -> int: ...
    def end(self, group: int = 0, /) -> int: ...


@dataclass(frozen=True)
class Searched:
    """`python`: the expression; `linear`: the same for RE2, if that can; `power`: of the steps that `python` takes (`regexpchoices`)."""

    python: re.Pattern[str]
    linear: str | None
    power: int | None

    @property
    def groups(self) -> int:
        return self.python.groups

    def search(self, text: str, at: int = 0) -> Match | None:
        """The first match from a character on. Raises 54000."""
        length = max(len(text) - at, 1)
        if self.power is not None and len(self.python.pattern) * length**self.power <= STEPS_MAX:
            return self.python.search(text, at)
        if self._named is None or (at and self._looks_back):
            places = elsewhere(self.python.pattern, text, at)
            return None if places is None else _Spans(text, places)
        return self._by_re2(text, at)

    @cached_property
    def _named(self) -> str | None:
        """RE2's form with names for all groups, which is how it tells their places."""
        if self.linear is None:
            return None
        flags, body = re.fullmatch(r"(\(\?[a-z]+\))(.*)", self.linear, re.S).groups()  # type: ignore[union-attr]
        number = 0

        def group(match: re.Match[str]) -> str:
            nonlocal number
            if match[0] != "(":
                return match[0]
            number += 1
            return f"(?P<g{number}>"

        return f"{flags}(?P<g0>" + re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?!\?)", group, body, flags=re.S) + ")"

    @property
    def _looks_back(self) -> bool:
        return self.linear is not None and ("^" in re.sub(r"\\.|\[\^", "", self.linear) or r"\A" in self.linear)

    def _by_re2(self, text: str, at: int) -> Match | None:
        bytes = text[at:].encode()
        found = pc.extract_regex_span(pa.array([bytes.decode()]), self._named)[0].as_py()
        if found is None:
            return None
        places = []
        for place in found.values():
            if place is None:
                places.append((-1, -1))
                continue
            start, length = place
            before = len(bytes[:start].decode())
            places.append((at + before, at + before + len(bytes[start : start + length].decode())))
        return _Spans(text, places)


@dataclass(frozen=True)
class _Spans:
    text: str
    spans: Spans

    def __getitem__(self, group: int) -> str | None:
        start, end = self.spans[group]
        return None if start < 0 else self.text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        return tuple(self[n] for n in range(1, len(self.spans)))

    def start(self, group: int = 0) -> int:
        return self.spans[group][0]

    def end(self, group: int = 0) -> int:
        return self.spans[group][1]
