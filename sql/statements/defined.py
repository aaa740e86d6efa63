"""What CREATE, ALTER, DROP and COMMENT of views, functions, indexes, schemas and subscriptions say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from lake.names import Name
from lake.routines import Volatility
from lake.types import Type
from sql.statements.values import Options, OptionValue, QueryText


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [TEMPORARY] [MATERIALIZED] VIEW name [(columns)] [WITH (options)] AS query.

    `replace`: OR REPLACE was written. `temporary`: it ends with the session; never of a materialized view.
    """

    name: Name
    query: QueryText
    materialized: bool = False
    columns: tuple[str, ...] = ()
    options: Options = ()
    if_not_exists: bool = False
    replace: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class CreateSubscription:
    """CREATE SUBSCRIPTION name FROM relation. `retention`: an interval as written, or None. `snapshot`, `progress`: as of TAIL."""

    name: Name
    from_item: Name
    retention: str | None = None
    snapshot: bool = True
    progress: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument, or a column of RETURNS TABLE. `name`: empty if it has none. `default`: the text of its expression."""

    name: str
    type: Type
    default: str | None = None


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION name (arguments) RETURNS … LANGUAGE SQL … AS body, or RETURN expression.

    One of `returns`, `table` (RETURNS TABLE) and `row` (RETURNS SETOF relation). `many`: a set of rows.
    """

    name: Name
    arguments: tuple[FunctionArgument, ...]
    returns: Type | None
    table: tuple[FunctionArgument, ...] | None
    row: Name | None
    many: bool
    body: QueryText
    volatility: Volatility = "volatile"
    strict: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class FunctionName:
    """name [(types)]; `types`: None if none were written, which is right if there is one function of the name."""

    name: Name
    types: tuple[Type, ...] | None = None


@dataclass(frozen=True, slots=True)
class DropFunction:
    functions: tuple[FunctionName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class IndexColumn:
    name: str
    descending: bool = False
    nulls_first: bool = False
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE [UNIQUE] INDEX [name] ON relation (columns), or CREATE DEFAULT INDEX ON relation."""

    name: Name | None
    relation: Name
    columns: tuple[IndexColumn, ...] = ()
    include: tuple[str, ...] = ()
    unique: bool = False
    method: Literal["btree", "hash"] = "btree"
    default: bool = False
    if_not_exists: bool = False


ObjectKind: TypeAlias = Literal[
    "source", "table", "view", "materialized view", "sink", "index", "subscription", "secret", "connection"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drop:
    kind: ObjectKind
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AlterItem:
    """ALTER kind [IF EXISTS] name RENAME TO `rename` | SET SCHEMA `schema` | SET (`options`) | RESET (RETAIN HISTORY), which is
    `options` with None. One of them; ALTER TABLE takes any relation."""

    kind: ObjectKind
    name: Name
    if_exists: bool = False
    rename: str = ""
    schema: str = ""
    options: tuple[tuple[str, OptionValue | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION owner]. One of the two is there; without a name it has the owner's."""

    name: Name | None
    owner: Name | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """ALTER SCHEMA name RENAME TO `rename` | OWNER TO `owner`. One of the two."""

    name: Name
    rename: Name | None = None
    owner: Name | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON kind name IS text. `column`: of COMMENT ON COLUMN relation.column, where `kind` is None. `text`: None removes it."""

    kind: ObjectKind | Literal["schema"] | None
    name: Name
    column: str
    text: str | None


@dataclass(frozen=True, slots=True)
class CommentOnFunction:
    """COMMENT ON FUNCTION name [(types)] IS text."""

    function: FunctionName
    text: str | None
