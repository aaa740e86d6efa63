"""What names mean at one place of a query: the columns of FROM, by name and by table.

Source: PostgreSQL 15, src/backend/parser/parse_relation.c; its guesses at typos too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lake.errors import AmbiguousColumn, DuplicateAlias, TailgateError, UndefinedColumn, UndefinedTable
from lake.types import Field
from sql.plan import Column, Scalar
from sql.rewrite import shifted

DISTANCE_MAX = 3  # edits between a typo and what was meant


@dataclass(frozen=True, slots=True)
class Named:
    """A column as FROM shows it; of JOIN … USING the merged one."""

    name: str
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class Table:
    """What an alias stands for; `relation`: the name that it hides, if any."""

    alias: str
    columns: tuple[Named, ...]
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """`columns`: for names alone and for *; `tables`: for names with a table. `outer`: names further out, which nothing may use yet."""

    columns: tuple[Named, ...] = ()
    tables: tuple[Table, ...] = ()
    outer: Scope | None = field(default=None)

    def joined(self, other: Scope, width: int) -> Scope:
        """Two sides of a join; the right side's columns come after `width` of the left."""
        moved = other.moved(width)
        for table in moved.tables:
            if any(t.alias == table.alias for t in self.tables if t.alias):
                raise DuplicateAlias(f'table name "{table.alias}" specified more than once')
        return Scope(self.columns + moved.columns, self.tables + moved.tables, self.outer)

    def moved(self, by: int) -> Scope:
        def move(columns: tuple[Named, ...]) -> tuple[Named, ...]:
            return tuple(Named(c.name, shifted(c.scalar, by)) for c in columns)

        return Scope(move(self.columns), tuple(Table(t.alias, move(t.columns), t.relation) for t in self.tables), self.outer)

    def column(self, name: str, table: str | None, position: int | None) -> Scalar:
        """Raises 42703, 42702, 42P01."""
        if table is not None:
            return self._qualified(name, table, position)
        found = [c for c in self.columns if c.name == name]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position)
        if not found:
            raise self._missing(name, None, position)
        return placed(found[0].scalar, position)

    def _qualified(self, name: str, table: str, position: int | None) -> Scalar:
        found = [c for c in self.table(table, position).columns if c.name == name]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position)
        if not found:
            raise self._missing(name, table, position)
        return placed(found[0].scalar, position)

    def table(self, alias: str, position: int | None) -> Table:
        found = next((t for t in self.tables if t.alias == alias), None)
        if found is None:
            hidden = next((t for t in self.tables if t.relation == alias), None)
            if hidden is not None:
                raise UndefinedTable(
                    f'invalid reference to FROM-clause entry for table "{alias}"',
                    hint=f'Perhaps you meant to reference the table alias "{hidden.alias}".',
                    position=position,
                )
            raise UndefinedTable(f'missing FROM-clause entry for table "{alias}"', position=position)
        return found

    def _missing(self, name: str, table: str | None, position: int | None) -> TailgateError:
        """42703 with the column that was likely meant."""
        best, near = DISTANCE_MAX + 1, list[str]()
        for t in self.tables:
            penalty = distance(table, t.alias) if table is not None else 0
            for c in t.columns:
                edits = distance(name, c.name)
                if edits > len(name) // 2 or edits + penalty > DISTANCE_MAX:
                    continue
                edits += penalty
                if edits < best:
                    best, near = edits, []
                if edits == best:
                    near.append(f'"{t.alias}.{c.name}"')
        hint = None
        if len(near) == 1:
            hint = f"Perhaps you meant to reference the column {near[0]}."
        elif len(near) == 2:
            hint = f"Perhaps you meant to reference the column {near[0]} or the column {near[1]}."
        shown = f"{table}.{name}" if table is not None else f'"{name}"'
        return UndefinedColumn(f"column {shown} does not exist", hint=hint, position=position)


def placed(scalar: Scalar, position: int | None) -> Scalar:
    return replace(scalar, position=position) if isinstance(scalar, Column) else scalar


def of(alias: str, fields: tuple[Field, ...], names: tuple[str, ...] = (), relation: str = "") -> Scope:
    """The scope of one relation; `names` are those of its alias: the first columns' new names."""
    shown = names + tuple(f.name for f in fields[len(names) :])
    columns = tuple(Named(n, Column(i, f.type)) for i, (n, f) in enumerate(zip(shown, fields, strict=True)))
    return Scope(columns, (Table(alias, columns, relation),))


def distance(a: str, b: str) -> int:
    """Levenshtein's; more than DISTANCE_MAX may come out as anything above it.

    >>> distance("user_id", "uesr_id")
    2
    """
    if abs(len(a) - len(b)) > DISTANCE_MAX:
        return DISTANCE_MAX + 1
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]
