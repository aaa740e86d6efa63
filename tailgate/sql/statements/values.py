"""Values that all kinds of statements share: options, query texts, times.

Statements are frozen values. Their names are not resolved yet.

    text ──► tokens ──► parse ──► Statement (`every`) ──► engine (CREATE, DROP) | gateway (all others)
                                   ├─ `defined`   views, functions, indexes, schemas, subscriptions
                                   ├─ `external`  sources, sinks, secrets, connections
                                   ├─ `written`   CREATE TABLE, INSERT, UPDATE, DELETE, COPY FROM
                                   ├─ `asked`     queries, TAIL, SHOW, EXPLAIN, cursors
                                   └─ `sessions`  transactions, settings, prepared statements, roles

Names are folded as in PostgreSQL. Positions are 0-based offsets in the text that is passed to `parse`,
and are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.sql.grammar.parser import parse_query


@dataclass(frozen=True, slots=True)
class SecretName:
    """SECRET name, as the value of an option."""

    name: Name


OptionValue: TypeAlias = str | int | float | bool | SecretName | tuple["OptionValue", ...] | None
Options: TypeAlias = tuple[tuple[str, OptionValue], ...]  # in the order of the text; names in lower case


@dataclass(frozen=True, slots=True)
class QueryText:
    """The text of a query, as typed, with its tree.

    `offset`: the position of `text` in the statement. Positions in the tree, and in errors of the binder,
    count from the start of the statement. `parsed`: the tree, if it is known; it is not pickled, because
    the text is smaller.
    """

    text: str
    offset: int = field(default=0, compare=False)
    parsed: exp.Expr | None = field(default=None, compare=False, repr=False)

    @property
    def tree(self) -> exp.Expr:
        if self.parsed is None:
            tree = parse_query(" " * self.offset + self.text)
            object.__setattr__(self, "parsed", tree)
            return tree
        return self.parsed

    def __reduce__(self) -> tuple[type[QueryText], tuple[str, int]]:
        return QueryText, (self.text, self.offset)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """AS OF AT LEAST: this time, or the oldest readable time if that is later."""

    time: int | QueryText


Time: TypeAlias = int | QueryText | AtLeast  # milliseconds, or a query that computes them


@dataclass(frozen=True, slots=True)
class Empty:
    """An empty statement: only blanks and comments."""


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a text, as typed, without the semicolon. `position`: its offset in the whole text.

    `terminated`: a semicolon follows. If so, the syntax error of an incomplete statement is at the
    semicolon, else at the end of input.
    """

    text: str
    position: int
    terminated: bool = False


def option(options: Options, name: str, default: OptionValue = None) -> OptionValue:
    """Returns the last value of an option, or the default if the option is not given.

    >>> option((("snapshot", False),), "snapshot", True)
    False
    """
    return next((value for key, value in reversed(options) if key == name), default)
