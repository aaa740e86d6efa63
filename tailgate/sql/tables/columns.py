"""ALTER TABLE … DROP COLUMN and RENAME COLUMN: the changed table and the items of its columns.

A dropped column keeps its place in stored rows, where it has another name and no value in new rows. A renamed column keeps
its name in the Delta table.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecDropColumn, renameatt_internal).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from tailgate.lake import constraints
from tailgate.lake.catalog import Catalog, Change, Index, Item, Sequence, Table
from tailgate.lake.catalog.dropping import described
from tailgate.lake.catalog.formats import IndexExpression
from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import DependentObjectsStillExist, DuplicateColumn, FeatureNotSupported, TailgateError
from tailgate.lake.types import DROPPED, Field
from tailgate.sql.bind import bind_query
from tailgate.sql.binder.writes import generated
from tailgate.sql.definitions import apply_edits
from tailgate.sql.lexer.tokens import tokens

Value = TypeVar("Value")


def dropped_column(table: Table, position: int, catalog: Catalog, *, cascade: bool) -> tuple[Change, tuple[str, ...]]:
    """Returns the change that drops a column, and notices. Raises 2BP01, 0A000."""
    name = table.columns[position].name
    what = f"column {name} of {described(catalog, table)}"
    if sum(not column.is_dropped for column in table.columns) == 1:
        raise FeatureNotSupported("a table without columns is not supported")
    readers = readers_of(table, position, catalog)
    keys = [key for key in constraints.keys_of(table, catalog) if position in key.read]
    references = [r for r in constraints.references_to(table, catalog) if r.key in keys]
    dependents = [*(described(catalog, item) for item in readers)]
    dependents += [f"constraint {r.name} on {described(catalog, r.table)}" for r in references]
    computed = () if name in table.generated else generated.dependents(table, position)
    dependents += [f"column {column} of {described(catalog, table)}" for column in computed]
    if readers or ((references or computed) and not cascade):
        hint = "Use DROP ... CASCADE to drop the dependent objects too." if not (readers and cascade) else "Drop these views first."
        raise DependentObjectsStillExist(
            f"cannot drop {what} because other objects depend on it",
            detail="\n".join(f"{dependent} depends on {what}" for dependent in dependents),
            hint=hint,
        )
    put: dict[int, Item] = {}
    dropped: list[int] = []
    for column in computed:
        change, _ = dropped_column(table, [c.name for c in table.columns].index(column), catalog, cascade=True)
        catalog = catalog.apply(change)
        table = catalog.expect(Table, table.id)
        put |= {item.id: item for item in change.put}
        dropped += change.drop
    after = replace(
        table,
        key=None if position in (table.key or ()) else table.key,
        constraint=None if position in (table.key or ()) else table.constraint,
        key_comment="" if position in (table.key or ()) else table.key_comment,
        columns=_with(table, position, Field(f"{DROPPED}{position + 1}........", table.columns[position].type)),
        defaults=_without(table.defaults, name),
        identity=_without(table.identity, name),
        generated=_without(table.generated, name),
        comments=_without(table.comments, name),
        checks=tuple(check for check in table.checks if position not in check.columns),
        foreign_keys=tuple(key for key in table.foreign_keys if position not in key.columns),
        stored_names={position: name, **table.stored_names},
    )
    put[table.id] = after
    for reference in references:
        other = catalog.expect(Table, reference.table.id) if reference.table.id != table.id else after
        put[other.id] = replace(other, foreign_keys=tuple(key for key in other.foreign_keys if key.name != reference.name))
    owned = [s.id for s in catalog.each(Sequence) if s.depends == (table.id,) and s.column == name]
    indexes = [i.id for i in catalog.each(Index) if table.id in i.depends and position in i.read]
    notices = tuple(f"drop cascades to {dependent}" for dependent in dependents)
    return Change(put=tuple(put.values()), drop=(*dropped, *owned, *indexes)), notices


def renamed_column(table: Table, position: int, name: str, catalog: Catalog) -> Change:
    """Returns the change that gives a column another name. Raises 42701, 0A000."""
    old = table.columns[position].name
    if name in [column.name for column in table.columns]:
        raise DuplicateColumn(f'column "{name}" of relation "{table.name}" already exists')
    readers = readers_of(table, position, catalog)
    if readers:
        raise FeatureNotSupported(
            f"renaming a column that {described(catalog, readers[0])} reads is not supported", hint="Drop that first, and create it again."
        )
    computed = generated.dependents(table, position)
    expressions = {c: _renamed(text, old, name) if c in computed else text for c, text in table.generated.items()}
    after = replace(
        table,
        columns=_with(table, position, replace(table.columns[position], name=name)),
        defaults=_with_key(table.defaults, old, name),
        identity=_with_key(table.identity, old, name),
        generated=_with_key(expressions, old, name),
        comments=_with_key(table.comments, old, name),
        checks=tuple(replace(c, text=_renamed(c.text, old, name)) if position in c.columns else c for c in table.checks),
        stored_names={position: old, **table.stored_names},
    )
    owned = (replace(s, column=name) for s in catalog.each(Sequence) if s.depends == (table.id,) and s.column == old)
    indexes = (_with_renamed(i, position, old, name) for i in catalog.each(Index) if table.id in i.depends and position in i.read)
    return Change(put=(after, *owned, *indexes))


def _with_renamed(index: Index, position: int, old: str, new: str) -> Index:
    """Returns an index with another name of a column in its expressions and its condition."""

    def renamed(expression: IndexExpression) -> IndexExpression:
        return replace(expression, text=_renamed(expression.text, old, new)) if position in expression.columns else expression

    condition = None if index.condition is None else renamed(index.condition)
    return replace(index, expressions=tuple(map(renamed, index.expressions)), condition=condition)


def stored_name(table: Table, name: str) -> Mapping[int, str]:
    """Returns `stored_names` of a table after a column with this name is added: no two stored columns have the same name."""
    used = {table.stored_names.get(i, column.name) for i, column in enumerate(table.columns)}
    if name not in used:
        return table.stored_names
    free = next(f"{name}_{number}" for number in range(2, len(used) + 3) if f"{name}_{number}" not in used)
    return {**table.stored_names, len(table.columns): free}


def readers_of(table: Table, position: int, catalog: Catalog) -> list[Item]:
    """Returns the items that read a column of a table: they mean something else, or nothing, without it."""
    hidden = Field(f"{DROPPED}{position + 1}........", table.columns[position].type)
    without = catalog.stored.apply(Change(put=(replace(table, columns=_with(table, position, hidden)),)))
    return [item for item in catalog.dependents(table.id) if not isinstance(item, Index | Sequence) and _reads(item, without)]


def _reads(item: Item, without: Catalog) -> bool:
    if item.kind not in ("view", "materialized view"):
        return True  # the columns that other items read are not known
    widths = getattr(item, "known_columns", {})
    try:
        query = bind_query(item.query, without, view=True, widths=widths)
    except TailgateError:
        return True
    return len(query.plan.columns) != len(item.columns)


def _with(table: Table, position: int, column: Field) -> tuple[Field, ...]:
    return tuple(column if i == position else other for i, other in enumerate(table.columns))


def _without(values: Mapping[str, Value], name: str) -> dict[str, Value]:
    return {key: value for key, value in values.items() if key != name}


def _with_key(values: Mapping[str, Value], old: str, new: str) -> dict[str, Value]:
    return {new if key == old else key: value for key, value in values.items()}


def _renamed(text: str, old: str, new: str) -> str:
    """Returns the text of a condition with another name of a column."""
    row = tokens(text)
    names = [
        token
        for token, following in pairwise(row)
        if token.kind in ("word", "quoted") and token.value == old and following.value not in ("(", ".")
    ]
    return apply_edits(text, [(token.position, token.end, quoted(new)) for token in names])
