"""The statements of a block of PL/pgSQL.

`line`: the line in the text of the block, counted from 1, for the context of errors. Expressions are texts, which a query evaluates.
A `Reference` is the name of a variable, which may have the label of its block before it and the name of a field behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level = Literal["DEBUG", "LOG", "INFO", "NOTICE", "WARNING", "EXCEPTION"]
Reference: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Declaration:
    """name [CONSTANT] type [NOT NULL] [:= default]. `type`: as typed; `copied`: TYPE or ROWTYPE for the type of what `type` names."""

    name: str
    type: str
    copied: Literal["", "type", "rowtype"]
    not_null: bool
    default: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Into:
    """INTO [STRICT] variable, …: the variables that get the first row of a result."""

    targets: tuple[Reference, ...]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement of SQL. Without `into`, it has no rows."""

    text: str
    into: Into | None
    line: int


@dataclass(frozen=True, slots=True)
class Perform:
    """PERFORM expression …: a query whose rows are discarded. `text`: the query."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Dynamic:
    """EXECUTE expression [INTO …] [USING value, …]: the statement that is the value of a text. `using`: the values of $1, $2, …"""

    expression: str
    into: Into | None
    using: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Assign:
    """variable := expression. `text`: the statement as typed, for the context of errors."""

    target: Reference
    expression: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """GET [CURRENT | STACKED] DIAGNOSTICS variable = item, …. `items`: ROW_COUNT, or with `stacked` those of `conditions.DIAGNOSTICS`."""

    targets: tuple[Reference, ...]
    items: tuple[str, ...]
    stacked: bool
    line: int


@dataclass(frozen=True, slots=True)
class Raise:
    """RAISE [level] ['format' [, argument …] | condition] [USING option = value, …].

    Without a format, a condition and options, it raises the error that the handler handles. `sqlstate`: that of the condition.
    """

    level: Level
    format: str | None
    arguments: tuple[str, ...]
    condition: str | None
    sqlstate: str | None
    options: tuple[tuple[str, str], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Assert:
    """ASSERT condition [, message]."""

    condition: str
    message: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition of IF or WHEN of CASE, and the statements that it selects."""

    condition: str
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class If:
    """IF condition THEN … [ELSIF condition THEN …] [ELSE …] END IF."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Case:
    """CASE [subject] WHEN … THEN … [ELSE …] END CASE. `otherwise`: None without ELSE."""

    subject: str | None
    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...] | None
    line: int


@dataclass(frozen=True, slots=True)
class Loop:
    """[WHILE condition] LOOP … END LOOP."""

    condition: str | None
    body: tuple[Node, ...]
    label: str | None
    line: int


@dataclass(frozen=True, slots=True)
class ForInteger:
    """FOR name IN [REVERSE] first .. last [BY step] LOOP … END LOOP."""

    name: str
    first: str
    last: str
    step: str | None
    reverse: bool
    body: tuple[Node, ...]
    label: str | None
    line: int


@dataclass(frozen=True, slots=True)
class ForRows:
    """FOR variable, … IN query LOOP … END LOOP."""

    targets: tuple[Reference, ...]
    query: Sql | Dynamic
    body: tuple[Node, ...]
    label: str | None
    line: int


@dataclass(frozen=True, slots=True)
class ForEach:
    """FOREACH variable IN ARRAY expression LOOP … END LOOP."""

    target: Reference
    expression: str
    body: tuple[Node, ...]
    label: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Exit:
    """EXIT or CONTINUE [label] [WHEN condition]. `continues`: CONTINUE."""

    continues: bool
    label: str | None
    condition: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Return:
    """RETURN: the end of the whole block."""

    line: int


@dataclass(frozen=True, slots=True)
class Handler:
    """WHEN condition [OR …] THEN …. `conditions`: as in `conditions.matches`."""

    conditions: tuple[str, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """[DECLARE …] BEGIN … [EXCEPTION WHEN …] END. With handlers, an error undoes the statements of the body."""

    declarations: tuple[Declaration, ...]
    body: tuple[Node, ...]
    handlers: tuple[Handler, ...]
    label: str | None


Node: TypeAlias = (
    Sql
    | Perform
    | Dynamic
    | Assign
    | Diagnostics
    | Raise
    | Assert
    | If
    | Case
    | Loop
    | ForInteger
    | ForRows
    | ForEach
    | Exit
    | Return
    | Block
)
