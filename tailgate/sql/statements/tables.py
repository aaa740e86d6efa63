"""Statements that define and maintain tables: CREATE TABLE and ALTER TABLE with their constraints, VACUUM, LOCK and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from tailgate.lake.catalog.formats import ReferentialAction
from tailgate.lake.types import DomainType, Type
from tailgate.sql.statements.writes import OnCommit

if TYPE_CHECKING:
    from tailgate.lake.catalog.names import Name
    from tailgate.sql.statements.definitions import SequenceOptions
    from tailgate.sql.statements.values import Options

Identity: TypeAlias = Literal["always", "by default"]
Generation: TypeAlias = Identity | Literal["serial"]


# ---- columns and constraints


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of CREATE TABLE. `default`: the text of an expression, or None.

    `generated`: the column has a sequence with these `options`: that of a serial type, or of an identity column.
    `expression`: the text of GENERATED ALWAYS AS (expression) STORED, or None. `default_position`: of either text.
    `domain`: the domain, if the type was looked up and is one; then `type` is its base type. `collation`: the name in COLLATE, or ''.
    """

    name: str
    type: Type
    nullable: bool = True
    default: str | None = None
    position: int | None = field(default=None, compare=False)
    default_position: int | None = field(default=None, compare=False, repr=False)
    generated: Generation | None = None
    options: SequenceOptions | None = None
    type_position: int | None = field(default=None, compare=False, repr=False)
    expression: str | None = None
    domain: DomainType | None = None
    collation: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """CHECK (expression) of a table or column. `name`: None if the constraint has no name. `valid`: existing rows are checked."""

    name: str | None
    text: str
    position: int = field(compare=False, repr=False)
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Unique:
    """UNIQUE or PRIMARY KEY {(columns) | USING INDEX index}. `name`: None if the constraint has no name.

    `deferrable`, `deferred`: as of a foreign key.
    """

    name: str | None
    columns: tuple[str, ...]
    position: int = field(compare=False, repr=False)
    primary: bool = False
    nulls_distinct: bool = True
    deferrable: bool = False
    deferred: bool = False
    index: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """FOREIGN KEY (columns) REFERENCES table (references). `references`: () for the primary key of the table.

    `deferred`: it is checked at COMMIT unless SET CONSTRAINTS says otherwise. `valid`: existing rows are checked. `set_columns`: those of
    ON DELETE SET NULL or SET DEFAULT, () for all. `match_full`: MATCH FULL.
    """

    name: str | None
    columns: tuple[str, ...]
    table: Name
    references: tuple[str, ...]
    position: int = field(compare=False, repr=False)
    on_delete: ReferentialAction = "no action"
    on_update: ReferentialAction = "no action"
    deferrable: bool = False
    deferred: bool = False
    valid: bool = True
    set_columns: tuple[str, ...] = ()
    match_full: bool = False


Constraint: TypeAlias = Check | Unique | ForeignKey


# ---- CREATE TABLE


@dataclass(frozen=True, slots=True)
class Like:
    """LIKE relation [INCLUDING … | EXCLUDING …]. `place`: the number of columns before it. `including`: the options, in lower case."""

    relation: Name
    place: int
    including: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE [TEMPORARY] TABLE name (column, … [, constraint, …]) [WITH (options)] [ON COMMIT …].

    `key`: the columns of the primary key, or (). `constraint`: the name of the primary key.
    `options_at`: as for CreateView.
    """

    name: Name
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...] = ()
    constraint: str | None = None
    if_not_exists: bool = False
    key_position: int | None = field(default=None, compare=False)
    checks: tuple[Check, ...] = ()
    options: Options = ()
    options_at: tuple[int, int] = field(default=(0, 0), compare=False)
    uniques: tuple[Unique, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    temporary: bool = False
    on_commit: OnCommit = "preserve rows"
    likes: tuple[Like, ...] = ()


# ---- ALTER TABLE


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD [COLUMN] [IF NOT EXISTS] column. Its constraints are further actions."""

    column: TableColumn
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP [COLUMN] [IF EXISTS] column [CASCADE | RESTRICT]."""

    column: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME [COLUMN] column TO name."""

    column: str
    name: str


@dataclass(frozen=True, slots=True)
class SetType:
    """ALTER [COLUMN] column [SET DATA] TYPE type [USING expression]. `using`: the expression as typed at `position`, or None.

    `casts`: the expression is a cast of the column to the type. `domain`, `collation`: as of a column.
    """

    column: str
    type: Type
    using: str | None = None
    position: int = field(default=0, compare=False, repr=False)
    type_position: int | None = field(default=None, compare=False, repr=False)
    domain: DomainType | None = None
    casts: bool = field(default=False, repr=False)
    collation: str = ""


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER [COLUMN] column {SET DEFAULT expression | DROP DEFAULT}. `default`: the expression as typed, or None."""

    column: str
    default: str | None


@dataclass(frozen=True, slots=True)
class SetNullable:
    """ALTER [COLUMN] column {SET | DROP} NOT NULL."""

    column: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class AddIdentity:
    """ALTER [COLUMN] column ADD GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(options)]."""

    column: str
    generated: Identity
    options: SequenceOptions


@dataclass(frozen=True, slots=True)
class SetIdentity:
    """ALTER [COLUMN] column {SET GENERATED … | SET option | RESTART …} …. `generated`: None without SET GENERATED."""

    column: str
    generated: Identity | None
    options: SequenceOptions


@dataclass(frozen=True, slots=True)
class DropIdentity:
    """ALTER [COLUMN] column DROP IDENTITY [IF EXISTS]."""

    column: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropExpression:
    """ALTER [COLUMN] column DROP EXPRESSION [IF EXISTS]."""

    column: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """ADD constraint. `new_column`: the column of ADD COLUMN IF NOT EXISTS that declares it; it is only added with the column."""

    constraint: Constraint
    new_column: str = ""


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CONSTRAINT [IF EXISTS] name [CASCADE | RESTRICT]."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class ValidateConstraint:
    """VALIDATE CONSTRAINT name."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameConstraint:
    """RENAME CONSTRAINT constraint TO name."""

    constraint: str
    name: str


@dataclass(frozen=True, slots=True)
class SetOwner:
    """OWNER TO role."""

    role: str


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """An action that changes nothing, such as SET UNLOGGED: all tables are durable. `words`: as in errors."""

    words: str


@dataclass(frozen=True, slots=True)
class Toggle:
    """{ENABLE | DISABLE} {TRIGGER | RULE} name, ENABLE and DISABLE TRIGGER {ALL | USER}. `words`: those before the name."""

    words: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class SetClustered:
    """{CLUSTER ON index | SET WITHOUT CLUSTER}. `index`: '' for none."""

    index: str


@dataclass(frozen=True, slots=True)
class SetParameters:
    """SET (name = value, …) or RESET (name, …) of a table, or of a column if `column` is not ''. None resets a parameter."""

    parameters: tuple[tuple[str, str | None], ...]
    column: str = ""


@dataclass(frozen=True, slots=True)
class SetColumnStorage:
    """ALTER COLUMN … SET {STATISTICS | STORAGE | COMPRESSION}: the one that is not None."""

    column: str
    statistics: int | None = None
    storage: str | None = None
    compression: str | None = None


@dataclass(frozen=True, slots=True)
class SetReplicaIdentity:
    """REPLICA IDENTITY {DEFAULT | NOTHING | FULL | USING INDEX name}, as in pg_class."""

    identity: Literal["d", "n", "f", "i"]
    index: str = ""


StorageAction: TypeAlias = WithoutEffect | Toggle | SetClustered | SetParameters | SetColumnStorage | SetReplicaIdentity
TableAction: TypeAlias = (
    AddColumn
    | DropColumn
    | RenameColumn
    | SetType
    | SetDefault
    | SetNullable
    | AddIdentity
    | SetIdentity
    | DropIdentity
    | DropExpression
    | AddConstraint
    | DropConstraint
    | ValidateConstraint
    | RenameConstraint
    | SetOwner
    | StorageAction
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE [IF EXISTS] [ONLY] name action, …, for the actions that change the table's definition."""

    name: Name
    actions: tuple[TableAction, ...]
    if_exists: bool = False


# ---- maintenance


@dataclass(frozen=True, slots=True)
class Refresh:
    """REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]."""

    view: Name
    concurrently: bool = False
    with_data: bool = True


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM or ANALYZE of tables, each with the columns that are named, or of all tables. `analyzes`: columns may be named."""

    command: Literal["VACUUM", "ANALYZE"]
    tables: tuple[tuple[Name, tuple[str, ...]], ...] = ()
    analyzes: bool = True


@dataclass(frozen=True, slots=True)
class Reindex:
    """REINDEX {INDEX | TABLE | SCHEMA | DATABASE | SYSTEM} [CONCURRENTLY] name."""

    kind: Literal["index", "table", "schema", "database", "system"]
    name: Name
    concurrently: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """CLUSTER [table [USING index]]."""

    table: Name | None = None
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """CHECKPOINT."""


@dataclass(frozen=True, slots=True)
class Lock:
    """LOCK [TABLE] name, … [IN mode MODE] [NOWAIT]. `mode` is in lower case."""

    tables: tuple[Name, ...]
    mode: str = "access exclusive"
