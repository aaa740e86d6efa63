"""Searches for a regular expression, in a time that is bounded or that can be cut off.

A search uses the first engine that can do it:

    few steps                 Python's engine, in this process: it holds the interpreter lock and
                              cannot be cancelled
    no look-around and no     RE2, in time proportional to the text
    back reference
    otherwise                 `external_search`: Python's engine in a process that can be killed;
                              a process that has none raises 54000
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import ProgramLimitExceeded

STEPS_MAX = 1_000_000  # of Python's engine in this process: about 20 ms

# The starts and ends of a match and of its groups; (-1, -1) for a group without a match.
Spans = Sequence[tuple[int, int]]


def find_spans(pattern: str, text: str, at: int) -> Spans | None:
    """Returns the first match of one of Python's patterns from a character on. Takes any time."""
    match = re.compile(pattern).search(text, at)
    return None if match is None else [match.span(group) for group in range(match.re.groups + 1)]


def _no_external_search(pattern: str, text: str, at: int) -> Spans | None:
    raise ProgramLimitExceeded("regular expression takes too long", hint="Search in a shorter text.")


# A process that can call find_spans() in another process, and stop it, assigns a function here.
external_search: Callable[[str, str, int], Spans | None] = _no_external_search


class Match(Protocol):
    def __getitem__(self, group: int, /) -> str | None: ...
    def groups(self) -> tuple[str | None, ...]: ...
    def start(self, group: int = 0, /) -> int: ...
    def end(self, group: int = 0, /) -> int: ...


@dataclass(frozen=True)
class Pattern:
    """A compiled regular expression.

    `re2` is the same expression for RE2, or None if RE2 does not support it. `power` bounds the
    steps of Python's engine (see `ambiguity`).
    """

    python: re.Pattern[str]
    re2: str | None
    power: int | None

    @property
    def groups(self) -> int:
        return self.python.groups

    def search(self, text: str, at: int = 0) -> Match | None:
        """Returns the first match from a character on. Raises 54000."""
        length = max(len(text) - at, 1)
        if self.power is not None and len(self.python.pattern) * length**self.power <= STEPS_MAX:
            return self.python.search(text, at)
        if self._re2_with_names is not None and not (at and self._looks_back):
            with suppress(pa.ArrowInvalid):  # RE2 limits repetitions and its memory
                return self._search_by_re2(text, at)
        spans = external_search(self.python.pattern, text, at)
        return None if spans is None else _SpansMatch(text, spans)

    @cached_property
    def _re2_with_names(self) -> str | None:
        """Returns the expression for RE2 with named groups; Arrow ignores other groups."""
        if self.re2 is None:
            return None
        expression = re.fullmatch(r"(\(\?[a-z]+\))(.*)", self.re2, re.S)
        assert expression is not None
        flags, body = expression.groups()
        number = 0

        def name_group(match: re.Match[str]) -> str:
            nonlocal number
            if match[0] != "(":
                return match[0]
            number += 1
            return f"(?P<g{number}>"

        escapes_brackets_and_groups = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?!\?)"
        return f"{flags}(?P<g0>" + re.sub(escapes_brackets_and_groups, name_group, body, flags=re.S) + ")"

    @property
    def _looks_back(self) -> bool:
        """Returns whether a match depends on the text before the search's start."""
        return self.re2 is not None and ("^" in re.sub(r"\\.|\[\^", "", self.re2) or r"\A" in self.re2)

    def _search_by_re2(self, text: str, at: int) -> Match | None:
        encoded = text[at:].encode()
        groups = pc.extract_regex_span(pa.array([encoded.decode()]), self._re2_with_names)[0].as_py()
        if groups is None:
            return None
        spans = []
        for byte_span in groups.values():
            if byte_span is None:
                spans.append((-1, -1))
                continue
            byte_start, byte_length = byte_span
            start = at + len(encoded[:byte_start].decode())
            length = len(encoded[byte_start : byte_start + byte_length].decode())
            spans.append((start, start + length))
        return _SpansMatch(text, spans)


@dataclass(frozen=True)
class _SpansMatch:
    """A match as the spans of its groups."""

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
