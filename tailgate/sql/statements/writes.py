"""Statements that write tables. Their trees are sqlglot's, created by `sql.grammar`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from sqlglot import exp

if TYPE_CHECKING:
    from tailgate.lake.catalog.names import Name
    from tailgate.sql.statements.session_statements import Execute
    from tailgate.sql.statements.values import Options, QueryText


OnCommit: TypeAlias = Literal["preserve rows", "delete rows", "drop"]


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE [TEMPORARY] TABLE name [(columns)] [WITH (options)] [ON COMMIT …] AS query [WITH NO DATA], and SELECT … INTO name.

    `query`: EXECUTE stands for the query of a prepared statement. `columns`: names for the first columns of the query. `options`: the
    WITH clause as typed, or ''.
    """

    name: Name
    query: QueryText | WithWrites | Execute
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    options: str = ""
    with_data: bool = True
    temporary: bool = False
    on_commit: OnCommit = "preserve rows"
    select_into: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as typed. Positions in its tree count from the start of the statement."""

    tree: exp.Expr = field(compare=False, repr=False)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Default:
    """The word DEFAULT in place of an expression."""

    position: int | None = field(default=None, compare=False)


InsertValue: TypeAlias = Expression | Default


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """The value of a column in (column, …) = (SELECT …): a column of the query, which has `count` columns."""

    tree: exp.Subquery = field(compare=False, repr=False)
    text: str
    index: int
    count: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment `column = value` of SET. `path`: the subscripts and the names of fields of `column[…].field`."""

    column: str
    value: InsertValue | QueryColumn
    path: tuple[Expression | str, ...] = ()
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ReturningItem:
    """An item of RETURNING: an expression with its label, * (`tree` is exp.Star), or name.*."""

    tree: exp.Expr = field(compare=False, repr=False)
    text: str = ""


@dataclass(frozen=True, slots=True)
class ColumnName:
    """The name of a column, with its position. `path`: the subscripts and the names of fields of `name[…].field` in INSERT."""

    name: str
    path: tuple[Expression | str, ...] = ()
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """A column of CREATE INDEX or ON CONFLICT. `name`: '' for an expression. `descending`, `nulls_first`: its order in an index.

    `collation`: the name in COLLATE, or ''.
    """

    name: str
    descending: bool = False
    nulls_first: bool = False
    position: int | None = field(default=None, compare=False)
    expression: Expression | None = None
    operator_class: str = ""
    collation: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class OnConflict:
    """ON CONFLICT [(columns) [WHERE condition] | ON CONSTRAINT name] {DO NOTHING | DO UPDATE SET … [WHERE where]}.

    `update`: None for DO NOTHING.
    """

    columns: tuple[IndexColumn, ...] = ()
    constraint: str | None = None
    update: tuple[Assignment, ...] | None = None
    where: Expression | None = None
    position: int | None = field(default=None, compare=False)
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO table [(columns)] [OVERRIDING {SYSTEM | USER} VALUE] …

    `rows`: the rows of VALUES, a query, or None for DEFAULT VALUES. `columns`: () if none are named.
    """

    table: Name
    rows: tuple[tuple[InsertValue, ...], ...] | QueryText | None
    columns: tuple[ColumnName, ...] = ()
    alias: str | None = None
    conflict: OnConflict | None = None
    returning: tuple[ReturningItem, ...] = ()
    ctes: exp.With | None = field(default=None, compare=False, repr=False)
    overriding: Literal["", "system", "user"] = ""


@dataclass(frozen=True, slots=True)
class CurrentOf:
    """CURRENT OF cursor, in WHERE of UPDATE and DELETE."""

    cursor: str


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE table SET … [FROM …] [WHERE …]. `sources`: the items of FROM."""

    table: Name
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    sources: tuple[exp.Expr, ...] = field(default=(), compare=False, repr=False)
    where: Expression | CurrentOf | None = None
    returning: tuple[ReturningItem, ...] = ()
    ctes: exp.With | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM table [USING …] [WHERE …]. `sources`: the items of USING."""

    table: Name
    alias: str | None = None
    sources: tuple[exp.Expr, ...] = field(default=(), compare=False, repr=False)
    where: Expression | CurrentOf | None = None
    returning: tuple[ReturningItem, ...] = ()
    ctes: exp.With | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MergeClause:
    """WHEN [NOT] MATCHED [AND condition] THEN action. `columns`, `row` and `overriding`: of INSERT; a `row` of None is DEFAULT VALUES."""

    matched: bool
    condition: Expression | None
    action: Literal["update", "delete", "insert", "nothing"]
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[ColumnName, ...] = ()
    row: tuple[InsertValue, ...] | None = None
    overriding: Literal["", "system", "user"] = ""


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO table USING source ON condition clause …"""

    table: Name
    source: exp.Expr = field(compare=False, repr=False)
    condition: Expression
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    ctes: exp.With | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WithWrites:
    """WITH … with INSERT, UPDATE or DELETE among its queries (`sql.grammar.queries.written`), before a query or a statement that writes."""

    ctes: exp.With = field(compare=False, repr=False)
    body: QueryText | Insert | Update | Delete | Merge


@dataclass(frozen=True, slots=True)
class WriteText:
    """The text of a statement with RETURNING, as typed, and its tree. `offset`: the position of `text` in the statement around it."""

    text: str
    statement: Insert | Update | Delete
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE name, … [RESTART IDENTITY | CONTINUE IDENTITY] [CASCADE | RESTRICT]."""

    tables: tuple[Name, ...]
    restart: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """COPY table [(columns)] FROM STDIN. `options`: all options except the format, as typed."""

    table: Name
    columns: tuple[ColumnName, ...] = ()
    format: Literal["text", "csv", "binary"] = "text"
    options: Options = ()
