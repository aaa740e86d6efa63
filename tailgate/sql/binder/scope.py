"""Scopes: the columns that can be named at one place of a query, by name and by table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tailgate.lake.errors import AmbiguousAlias, AmbiguousColumn, DuplicateAlias, FeatureNotSupported
from tailgate.lake.types import Field
from tailgate.sql.authorization import Demand
from tailgate.sql.plan import Column, Relation, Scalar, rows
from tailgate.sql.plan.rewriting import shifted


@dataclass(frozen=True, slots=True)
class Named:
    """A column that can be named. For JOIN … USING, it is the merged column.

    `hidden`: whether `*` leaves it out. `demand`: the privilege that a text needs that names the column of a relation.
    """

    name: str
    scalar: Scalar
    hidden: bool = False
    demand: Demand | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table in FROM, by its alias.

    `relation`: the relation's name, which the alias hides.
    `value`: a function with one column, for which the alias can also be used as a value.
    `item`: the id of the catalog item if the alias is its name, else 0. Items in different schemas
    can have the same name.
    `optional`: an outer join may have no row of the table. The columns are then NULL.
    `oid`: the id of the catalog item if it has a column `tableoid`, else 0.
    """

    alias: str
    columns: tuple[Named, ...]
    relation: str = ""
    value: bool = False
    item: int = 0
    optional: bool = False
    oid: int = 0


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that are visible at one place.

    `columns` are for names without a table and for `*`, `tables` for names with a table.
    """

    columns: tuple[Named, ...] = ()
    tables: tuple[Table, ...] = ()

    def joined(self, other: Scope, width: int) -> Scope:
        """Returns the scope of a join.

        The right side's columns come after the left side's `width`. Raises 42712.
        """
        moved = other.moved(width)
        for table in moved.tables:
            if any(t.alias == table.alias and not (t.item and table.item and t.item != table.item) for t in self.tables if t.alias):
                raise DuplicateAlias(f'table name "{table.alias}" specified more than once')
        return Scope(self.columns + moved.columns, self.tables + moved.tables)

    def as_optional(self) -> Scope:
        """Returns the scope of the side of an outer join that may have no row."""
        return Scope(self.columns, tuple(replace(t, optional=True) for t in self.tables))

    def with_oid(self, oid: int) -> Scope:
        """Returns the scope of one relation with a column `tableoid`."""
        return Scope(self.columns, tuple(replace(t, oid=oid) for t in self.tables))

    def moved(self, by: int) -> Scope:
        """Returns the scope with all column indexes shifted by a number."""

        def move(columns: tuple[Named, ...]) -> tuple[Named, ...]:
            return tuple(replace(c, scalar=shifted(c.scalar, by)) for c in columns)

        return Scope(move(self.columns), tuple(replace(t, columns=move(t.columns)) for t in self.tables))

    def table(self, alias: str, item: int = 0, position: int | None = None) -> Table | None:
        """Returns the table with an alias, or None.

        With `item`, the alias must be that item's name. Raises 42P09.
        """
        matches = [t for t in self.tables if t.alias == alias and item in (0, t.item)]
        if len(matches) > 1 and matches[0].item:
            raise AmbiguousAlias(f'table reference "{alias}" is ambiguous', position=position)
        return matches[0] if matches else None

    def column(self, name: str, table: Table | None, position: int | None) -> Named | None:
        """Finds a column by its name, in one table or in all.

        Returns None if there is none. Raises 42702.
        """
        matches = [c for c in (self if table is None else table).columns if c.name == name]
        if not matches and table is None:
            matches = [t.columns[0] for t in self.tables if t.value and t.alias == name]
        if len(matches) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position)
        return matches[0] if matches else None


@dataclass(frozen=True, slots=True)
class Source:
    """A relation and the scope that names its columns."""

    plan: Relation
    scope: Scope


def placed(scalar: Scalar, position: int | None) -> Scalar:
    """Sets the position of a column in the text. Returns other scalars unchanged."""
    return replace(scalar, position=position) if isinstance(scalar, Column) else scalar


def whole_row(table: Table, position: int | None) -> Scalar:
    """Returns the row of a table as a value, with the columns of `*`. Raises 0A000 for a table without columns."""
    columns = [c for c in table.columns if not c.hidden]
    if not columns:
        raise FeatureNotSupported("a row without columns is not supported", position=position)
    names = [c.name for c in columns]
    return (rows.row_if_any if table.optional else rows.row)([placed(c.scalar, position) for c in columns], names, position)


def of(
    alias: str,
    fields: tuple[Field, ...],
    names: tuple[str, ...] = (),
    relation: str = "",
    item: int = 0,
    hidden: Collection[int] = (),
    demands: Sequence[Demand | None] = (),
) -> Scope:
    """Returns the scope of one relation.

    `names` are the alias's new names for the first columns. `hidden`: the positions of columns that `*` leaves out.
    `demands`: of the first columns.
    """
    shown = names + tuple(f.name for f in fields[len(names) :])
    needs = (*demands, *(None for _ in fields[len(demands) :]))
    columns = tuple(Named(shown[i], Column(i, f.type), i in hidden, needs[i]) for i, f in enumerate(fields))
    return Scope(columns, (Table(alias, columns, relation, item=item),))
