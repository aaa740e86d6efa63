"""The statements of a block of PL/pgSQL.

`line`: the line in the text of the block, counted from 1, for the context of errors. Expressions are texts, which a query evaluates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level = Literal["DEBUG", "LOG", "INFO", "NOTICE", "WARNING", "EXCEPTION"]


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement of SQL without rows."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Perform:
    """PERFORM expression …: a query whose rows are discarded. `text`: the query."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Dynamic:
    """EXECUTE expression: the statement that is the value of a text."""

    expression: str
    line: int


@dataclass(frozen=True, slots=True)
class Raise:
    """RAISE [level] 'format' [, argument …]. Without a format, it raises the error that the handler handles."""

    level: Level
    format: str | None
    arguments: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition of IF, and the statements that it selects."""

    condition: str
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class If:
    """IF condition THEN … [ELSIF condition THEN …] [ELSE …] END IF."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Handler:
    """WHEN condition [OR …] THEN …. `conditions`: as in `conditions.matches`."""

    conditions: tuple[str, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """BEGIN … [EXCEPTION WHEN …] END. With handlers, an error undoes the statements of the body."""

    body: tuple[Node, ...]
    handlers: tuple[Handler, ...]


Node: TypeAlias = Sql | Perform | Dynamic | Raise | If | Block
