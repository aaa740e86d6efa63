"""The values of expressions, types and queries, as the parser returns them.

Names are those of the catalog (`names.catalog_name`). A `position` is an offset in the statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written: VARCHAR, DECIMAL(4, 2), ARRAY<INT>, MAP<VARCHAR, INT>, STRUCT<a INT, b VARCHAR>.

    `name`: in lower case. `numbers`: precision and scale. `arguments`: the types in <…>. `fields`: the
    names of a struct's fields, whose types are `arguments`. `last_comma`: the position of a comma before `>`, -1 for none.
    """

    name: str
    numbers: tuple[int, ...] = ()
    arguments: tuple[TypeName, ...] = ()
    fields: tuple[str, ...] = ()
    position: int = field(default=0, compare=False)
    last_comma: int = field(default=-1, compare=False)


# ---- expressions -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: a text, a number, a boolean or NULL."""

    value: str | int | float | Decimal | bool | None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """[source.]column."""

    column: str
    source: str | None = None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """function(arguments). `star`: COUNT(*). `name`: in lower case."""

    name: str
    arguments: tuple[Expression, ...]
    star: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with one or two operands: NOT, AND, OR, comparisons, LIKE, arithmetic, ||, IS NULL, IS DISTINCT FROM."""

    operator: str
    operands: tuple[Expression, ...]
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class InList:
    """operand [NOT] IN (items)."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Between:
    """operand [NOT] BETWEEN low AND high."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CaseExpression:
    """CASE [operand] WHEN … THEN … [ELSE …] END."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST(operand AS type)."""

    operand: Expression
    type: TypeName
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """operand->field, or operand->* with the name None."""

    operand: Expression
    name: str | None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Subscript:
    """operand[index]."""

    operand: Expression
    index: Expression
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Constructor:
    """ARRAY[…], MAP(key := value, …) or STRUCT(name := value, …). `keys`: of a map, or the names of a struct."""

    kind: Literal["array", "map", "struct"]
    values: tuple[Expression, ...]
    keys: tuple[Expression, ...] | tuple[str, ...] = ()
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Lambda:
    """(parameters) => body."""

    parameters: tuple[str, ...]
    body: Expression
    position: int = field(default=0, compare=False)


Expression: TypeAlias = (
    Constant
    | ColumnReference
    | FunctionCall
    | Operation
    | InList
    | Between
    | CaseExpression
    | Cast
    | FieldAccess
    | Subscript
    | Constructor
    | Lambda
)


def walk(part: Any) -> Iterator[Any]:
    """Yields an expression, or each of a tuple of them, and all values below it, in pre-order."""
    parts = [part]
    while parts:
        part = parts.pop()
        if isinstance(part, tuple):
            parts.extend(reversed(part))
            continue
        yield part
        if is_dataclass(part):
            parts.extend(getattr(part, attribute.name) for attribute in reversed(fields(part)))


# ---- queries ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An item of a projection: an expression with its alias, or * (`expression` None), possibly of one source."""

    expression: Expression | None
    alias: str | None = None
    source: str | None = None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SourceName:
    """A stream or a table in FROM, with its alias."""

    name: str
    alias: str | None = None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class JoinClause:
    """A join. `within`: before and after, in ms. `grace`: GRACE PERIOD, in ms."""

    kind: Literal["inner", "left", "right", "full"]
    source: SourceName
    condition: Expression
    within: tuple[int, int] | None = None
    grace: int | None = None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class WindowClause:
    """WINDOW TUMBLING, HOPPING or SESSION (…). All times in ms; `size` is the gap of a session.

    `misplaced`: the position of a time after one that it comes before in ksqlDB's grammar, -1 for none.
    """

    kind: Literal["tumbling", "hopping", "session"]
    size: int
    advance: int | None = None
    retention: int | None = None
    grace: int | None = None
    position: int = field(default=0, compare=False)
    misplaced: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """SELECT … `emit`: '' without EMIT. `limits`: the greatest numbers of values of COLLECT_LIST and COLLECT_SET."""

    items: tuple[SelectItem, ...]
    source: SourceName
    joins: tuple[JoinClause, ...] = ()
    window: WindowClause | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: Literal["", "changes", "final"] = ""
    limit: int | None = None
    position: int = field(default=0, compare=False)
    limits: tuple[tuple[str, int], ...] = ()

    @property
    def sources(self) -> tuple[SourceName, ...]:
        """Returns the streams and tables of FROM and JOIN."""
        return (self.source, *(join.source for join in self.joins))
