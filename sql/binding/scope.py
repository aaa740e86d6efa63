"""What names mean at one place of a query: the columns of FROM, by name and by table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lake.errors import AmbiguousAlias, AmbiguousColumn, DuplicateAlias
from lake.types import Field
from sql.plan import Column, Scalar
from sql.rewrite import shifted


@dataclass(frozen=True, slots=True)
class Named:
    """A column as FROM shows it; of JOIN … USING the merged one."""

    name: str
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class Table:
    """What an alias stands for. `relation`: the name that it hides. `value`: a function's of one column, which its alias means too.

    `item`: id of the catalog's item whose own name the alias is: two of them in different schemas may have one name. 0 otherwise.
    """

    alias: str
    columns: tuple[Named, ...]
    relation: str = ""
    value: bool = False
    item: int = 0


@dataclass(frozen=True, slots=True)
class Scope:
    """`columns`: for names alone and for *; `tables`: for names with a table."""

    columns: tuple[Named, ...] = ()
    tables: tuple[Table, ...] = ()

    def joined(self, other: Scope, width: int) -> Scope:
        """Two sides of a join; the right side's columns come after `width` of the left."""
        moved = other.moved(width)
        for table in moved.tables:
            if any(t.alias == table.alias and not (t.item and table.item and t.item != table.item) for t in self.tables if t.alias):
                raise DuplicateAlias(f'table name "{table.alias}" specified more than once')
        return Scope(self.columns + moved.columns, self.tables + moved.tables)

    def moved(self, by: int) -> Scope:
        def move(columns: tuple[Named, ...]) -> tuple[Named, ...]:
            return tuple(Named(c.name, shifted(c.scalar, by)) for c in columns)

        return Scope(move(self.columns), tuple(replace(t, columns=move(t.columns)) for t in self.tables))

    def table(self, alias: str, item: int = 0, position: int | None = None) -> Table | None:
        """What an alias stands for; with `item`, only if it is that item's name. Raises 42P09."""
        found = [t for t in self.tables if t.alias == alias and item in (0, t.item)]
        if len(found) > 1 and found[0].item:
            raise AmbiguousAlias(f'table reference "{alias}" is ambiguous', position=position)
        return found[0] if found else None

    def column(self, name: str, table: Table | None, position: int | None) -> Scalar | None:
        """A column by its name, of one table or of all. Raises 42702."""
        found = [c for c in (self if table is None else table).columns if c.name == name]
        if not found and table is None:
            found = [t.columns[0] for t in self.tables if t.value and t.alias == name]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position)
        return placed(found[0].scalar, position) if found else None


def placed(scalar: Scalar, position: int | None) -> Scalar:
    return replace(scalar, position=position) if isinstance(scalar, Column) else scalar


def of(alias: str, fields: tuple[Field, ...], names: tuple[str, ...] = (), relation: str = "", item: int = 0) -> Scope:
    """The scope of one relation; `names` are those of its alias: the first columns' new names."""
    shown = names + tuple(f.name for f in fields[len(names) :])
    columns = tuple(Named(n, Column(i, f.type)) for i, (n, f) in enumerate(zip(shown, fields, strict=True)))
    return Scope(columns, (Table(alias, columns, relation, item=item),))
