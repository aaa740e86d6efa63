"""What statements say, as frozen values; nothing in them is looked up in a catalog yet. Here is what they have in common.

    text ──► tokens ──► parse ──► Statement (`every`) ──► engine (CREATE, DROP) | gateway (all others)
                                   ├─ `defined`   views, functions, indexes, schemas, subscriptions
                                   ├─ `external`  sources, sinks, secrets, connections
                                   ├─ `written`   tables and what is written to them
                                   ├─ `asked`     what reads
                                   └─ `sessions`  blocks, settings, prepared statements, roles

Names are folded as PostgreSQL folds them. Positions are 0-based offsets in the text given to `parse` and take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from lake.names import Name


@dataclass(frozen=True, slots=True)
class SecretName:
    """SECRET name, as the value of an option."""

    name: Name


OptionValue: TypeAlias = str | int | float | bool | SecretName | tuple["OptionValue", ...] | None
Options: TypeAlias = tuple[tuple[str, OptionValue], ...]  # in the order typed; names in lower case


@dataclass(frozen=True, slots=True)
class QueryText:
    """A SELECT, VALUES or UNION … as typed, with its tree.

    `offset`: where `text` begins in the statement. Positions in the tree, and so in errors of binding it, count from the
    statement's start. `parsed`: the tree, where it is known; it is not pickled, for the text says the same in less.
    """

    text: str
    offset: int = field(default=0, compare=False)
    parsed: exp.Expr | None = field(default=None, compare=False, repr=False)

    @property
    def tree(self) -> exp.Expr:
        if self.parsed is None:
            from sql.grammar.queries import query
            from sql.tokens import Cursor

            cursor = Cursor(" " * self.offset + self.text)
            tree = query(cursor)
            cursor.finish()
            object.__setattr__(self, "parsed", tree)
            return tree
        return self.parsed

    def __reduce__(self) -> tuple[type[QueryText], tuple[str, int]]:
        return QueryText, (self.text, self.offset)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """AS OF AT LEAST: this time, or the oldest that can be read if that is later."""

    time: int | QueryText


Time: TypeAlias = int | QueryText | AtLeast  # in ms, or the query of the expression that gives it


@dataclass(frozen=True, slots=True)
class Empty:
    """No statement: blanks and comments."""


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a text: as typed, without the semicolon. `position`: where it begins in the whole text.

    `terminated`: a semicolon followed; a statement that ends too early is a syntax error at it, otherwise at the end of input.
    """

    text: str
    position: int
    terminated: bool = False


def option(options: Options, name: str, default: OptionValue = None) -> OptionValue:
    """The last value given for an option, or the default.

    >>> option((("snapshot", False),), "snapshot", True)
    False
    """
    return next((value for key, value in reversed(options) if key == name), default)
