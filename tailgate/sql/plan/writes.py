"""Bound INSERT, COPY, UPDATE, DELETE, MERGE and TRUNCATE: the table, and plans for the changes and RETURNING.

In these plans the relation `INCOMING` contains the rows to insert: the columns of the table, then
`place`, the position of the row in the statement, from 0. The executor of a plan provides it.

`demands` are the privileges to write the table and those that the plans need (`sql.authorization`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tailgate.lake.catalog import Sequence, Table
from tailgate.lake.catalog.formats import ReferentialAction
from tailgate.lake.constraints import Key, Reference
from tailgate.lake.types import INT8, Field, Type
from tailgate.sql.authorization import OWNERSHIP, Demand
from tailgate.sql.plan import Project, Relation, Scan

INCOMING = 0  # a relation id that is not the id of any item
RETURNED = 1 << 40  # the relation id of the rows that the first statement in WITH returns; the ids of the others follow
CURRENT = 1 << 41  # the relation id of the current row of a cursor
PLACE = Field("place", INT8, False)
Checks: TypeAlias = tuple[tuple[str, Relation], ...]  # (constraint, a plan over INCOMING: the places of rows that violate it)


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """A constraint of the domain of a column. `column`: its position. `constraint`: the name of a check; None for NOT NULL.

    `forbidden`: a plan over INCOMING for the places of the rows that violate it.
    """

    column: int
    constraint: str | None
    forbidden: Relation


# referential actions that write the referencing table
CHANGING_ACTIONS: frozenset[ReferentialAction] = frozenset(("cascade", "set null", "set default"))


@dataclass(frozen=True, slots=True)
class TableRules:
    """The rules that the rows of a written table must satisfy.

    `referring`: the foreign keys that reference the table, each with a plan for the row of its defaults if it has the action SET
    DEFAULT. `version`: as of `lake.constraints.version`. `generated`: a plan over INCOMING for the values of the generated columns,
    None without any. `domains`: the constraints of the columns' domains, which are checked first. `key_values`: a plan over INCOMING
    for the columns and the values that `Key` numbers behind them, None without expressions and conditions.
    """

    table: Table
    checks: Checks
    keys: tuple[Key, ...]
    references: tuple[Reference, ...]
    referring: tuple[tuple[Reference, Relation | None], ...]
    version: str
    generated: Relation | None = None
    domains: tuple[DomainCheck, ...] = ()
    key_values: Relation | None = None


@dataclass(frozen=True, slots=True)
class InsertRows:
    """A bound INSERT or COPY.

    `rows`: a plan with the columns of the table. For COPY it reads the client's rows from INCOMING; None
    if these have all columns. `conflict`: the action for a row whose key exists. `arbiter`: the key to which
    this action applies, None for all keys. `existing`: for DO UPDATE, a plan over INCOMING and the table. Its columns are
    the place, the existing row with the same key, whether WHERE is true, and the new row. `returning`: a plan
    over INCOMING, None without RETURNING. `view_checks`: of the views with CHECK OPTION through which it writes.
    """

    table: Table
    rows: Relation | None
    existing: Relation | None
    conflict: str  # 'error', 'nothing', 'update'
    arbiter: Key | None = None
    returning: Relation | None = None
    parameters: tuple[Type, ...] = ()
    demands: tuple[Demand, ...] = ()
    rules: tuple[TableRules, ...] = ()
    view_checks: Checks = ()


@dataclass(frozen=True, slots=True)
class CurrentRow:
    """The current row of a cursor, for WHERE CURRENT OF. `key`: the columns of the table by which its row is found.

    The executor of a plan provides the values of these columns, and a place, as the relation CURRENT.
    """

    cursor: str
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """A bound UPDATE or DELETE.

    `rows`: one row per affected row: the old columns, the number of copies (int8), the new columns (UPDATE
    only), then those of the other relations if RETURNING may read them. `pinned`: the WHERE clause fixes the key, so the
    statement reads at most one row of the table. `returning`: a plan over INCOMING, which has the new row as it is stored (the old
    row for DELETE) and the columns of the other relations; None without RETURNING. `view_checks`: as of `InsertRows`.
    `current`: set for WHERE CURRENT OF.
    """

    table: Table
    rows: Relation
    updates: bool
    pinned: bool
    returning: Relation | None = None
    parameters: tuple[Type, ...] = ()
    demands: tuple[Demand, ...] = ()
    rules: tuple[TableRules, ...] = ()
    view_checks: Checks = ()
    current: CurrentRow | None = None


@dataclass(frozen=True, slots=True)
class MergeRows:
    """A bound MERGE.

    `rows`: one row per row of the source for which a clause has an action: the old columns and their number of copies (int8; all NULL
    without a match), the number of the clause from 0, then the new columns. `actions`: of each clause.
    """

    table: Table
    rows: Relation
    actions: tuple[Literal["update", "delete", "insert", "nothing"], ...]
    parameters: tuple[Type, ...] = ()
    demands: tuple[Demand, ...] = ()
    rules: tuple[TableRules, ...] = ()


@dataclass(frozen=True, slots=True)
class TruncateTables:
    """A bound TRUNCATE.

    `rules`: of each table. `cascaded`: the names of the tables that CASCADE adds, for notices. `restarted`: the sequences of RESTART
    IDENTITY.
    """

    tables: tuple[Table, ...]
    rules: tuple[TableRules, ...] = ()
    cascaded: tuple[str, ...] = ()
    parameters: tuple[Type, ...] = ()
    restarted: tuple[Sequence, ...] = ()

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns the demands for TRUNCATE on each table, and for the ownership of the sequences."""
        sequences = (Demand(OWNERSHIP, sequence.id) for sequence in self.restarted)
        return (*(Demand("TRUNCATE", table.id) for table in self.tables), *sequences)


@dataclass(frozen=True, slots=True)
class WithRows:
    """A bound WITH whose parts write.

    `parts`: the name of each statement in WITH, and of each query whose functions are volatile, with its plan. Other plans find the
    rows of its RETURNING or of the query as the relation RETURNED + its number, with their places as the last column. `body`: the
    plan of the query or statement behind WITH. All plans see the tables as they are before the statement.
    """

    parts: tuple[tuple[str, InsertRows | ChangeRows | Relation], ...]
    body: Relation | InsertRows | ChangeRows | MergeRows
    parameters: tuple[Type, ...] = ()
    demands: tuple[Demand, ...] = ()


BoundWrite: TypeAlias = InsertRows | ChangeRows | MergeRows | TruncateTables | WithRows


def is_without_rows(plan: Relation) -> bool:
    """Returns whether a plan is for the rows of a statement in WITH that has no RETURNING."""
    return isinstance(plan, Project) and not plan.columns and isinstance(plan.input, Scan) and plan.input.relation >= RETURNED


def is_item(relation: int) -> bool:
    """Returns whether a relation id of a plan is that of an item, and not of the statement's own rows."""
    return INCOMING < relation < RETURNED
