"""A regular expression looked for in a bounded number of steps.

Python's engine is the fastest for what is short, but has no limit, cannot be cancelled and holds the interpreter while it looks. So where
it might take too long, RE2 looks instead, in a time in proportion to the text; and what neither can do in bounds is an error, 54000.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import of

STEPS_MAX = 100_000_000  # of Python's engine at worst, a second or a few
SHORT_MAX = 20  # characters of a text for which even every combination may be tried


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
        length = len(text) - at
        if length <= SHORT_MAX or (self.power is not None and length**self.power <= STEPS_MAX):
            return self.python.search(text, at)
        if self._named is None or (at and self._looks_back):
            raise of("54000", "regular expression takes too long", hint="Look for it in a shorter text.")
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
        spans = []
        for place in found.values():
            if place is None:
                spans.append((-1, -1))
                continue
            start, length = place
            before = len(bytes[:start].decode())
            spans.append((at + before, at + before + len(bytes[start : start + length].decode())))
        return _Spans(text, spans)


@dataclass(frozen=True)
class _Spans:
    text: str
    spans: Sequence[tuple[int, int]]

    def __getitem__(self, group: int) -> str | None:
        start, end = self.spans[group]
        return None if start < 0 else self.text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        return tuple(self[n] for n in range(1, len(self.spans)))

    def start(self, group: int = 0) -> int:
        return self.spans[group][0]

    def end(self, group: int = 0) -> int:
        return self.spans[group][1]
