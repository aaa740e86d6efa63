"""DROP: the items to drop, and the dependents that prevent it, reported in PostgreSQL's order.

    roots ──► their dependents, newest first, depth first ──► error 2BP01 (RESTRICT) | all items to drop (CASCADE)

Source: PostgreSQL 15, src/backend/catalog/dependency.c (findDependentObjects, reportDependentObjects).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tailgate.lake.catalog.catalog import Catalog
from tailgate.lake.catalog.custom_types import Composite, UserType, id_of
from tailgate.lake.catalog.item_fields import is_transient
from tailgate.lake.catalog.items import DroppedWithOwner, Item, MaterializedView, Sink, Table
from tailgate.lake.catalog.schemas import Database, Schema
from tailgate.lake.errors import DependentObjectsStillExist, FeatureNotSupported

Readers: TypeAlias = Callable[[Table, int], Sequence[Item]]
SEQUENCE = re.compile(r"'(\d+)'::regclass")  # in the stored text of a default


def no_readers(table: Table, place: int) -> Sequence[Item]:
    return ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """The items to drop. `items` includes the roots; `followers` are those that the statement did not name, for a NOTICE.

    `defaulted`: tables that remain and have a default with a sequence that is dropped. `referring`: tables that remain and have a
    foreign key to a table that is dropped. `columns`: columns, by position, of tables that remain, whose type is dropped.
    """

    items: tuple[Item, ...]
    followers: tuple[Item, ...]
    defaulted: tuple[Table, ...] = ()
    referring: tuple[Table, ...] = ()
    columns: tuple[tuple[Table, int], ...] = ()

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(item.id for item in self.items)


def dropping(catalog: Catalog, roots: Sequence[Item | Schema], *, cascade: bool, readers: Readers = no_readers) -> Dropped:
    """Returns the items to drop with these roots. Without `cascade`, raises 2BP01 if other items depend on them.

    `readers`: returns the items that read a column; with `cascade`, those of columns whose type is dropped are dropped.

    Companions, unfinished replacements, the view of a sink with a query, the table of a stream's inserted rows, and the views of push
    queries are dropped with their owner and never prevent it.
    """
    root_ids = {root.id for root in roots}
    going: dict[int, Item | Schema] = {}  # in reverse order
    because: dict[int, Item | Schema] = {}
    own: set[int] = set()

    def visit(this: Item | Schema) -> None:
        dependents = {item.id: item for item in _dependents(catalog, this)}
        if cascade and isinstance(this, UserType):
            dependents |= {item.id: item for table, place in _columns_of(catalog, this.id) for item in readers(table, place)}
        for dependent in sorted(dependents.values(), key=lambda item: -item.id):
            if dependent.id not in because and dependent.id not in root_ids:
                because[dependent.id] = this
                visit(dependent)
        going[this.id] = this
        for owned in _owned(catalog, this):
            if owned not in because and owned not in root_ids:
                own.add(owned)
                because[owned] = this
                visit(catalog[owned])

    for root in roots:
        visit(root)
    items = tuple(o for o in going.values() if isinstance(o, Item))
    followers = [i for i in reversed(items) if i.id not in root_ids and not _goes_with_owner(i) and not i.replaces and i.id not in own]
    ids = {item.id for item in items}
    defaults = [(t, c, s) for t in catalog.each(Table) if t.id not in ids for c, s in sequences_of(t) if s in ids]
    keys = [(t, k) for t in catalog.each(Table) if t.id not in ids for k in t.foreign_keys if k.table in ids]
    columns = [(t, place, e) for e in sorted(ids) for t, place in _columns_of(catalog, e) if t.id not in ids]
    columns.sort(key=lambda of: (not of[0].columns[of[1]].type.is_array, of[0].id, of[1]))
    attributes = _attributes_with(ids, catalog, cascade=cascade)
    of_columns: list[tuple[Table | Composite, int, int]] = [*attributes, *columns]
    if (of_columns or followers or defaults or keys) and not cascade:
        details = [
            f"{described_column(catalog, of, place)} depends on {described(catalog, catalog[e])}{'[]' * of.columns[place].type.is_array}"
            for of, place, e in of_columns
        ]
        details += [f"{described(catalog, i)} depends on {described(catalog, because[i.id])}" for i in followers]
        details += [
            f"default value for column {c} of {described(catalog, t)} depends on {described(catalog, catalog[s])}" for t, c, s in defaults
        ]
        details += [f"constraint {k.name} on {described(catalog, t)} depends on {described(catalog, catalog[k.table])}" for t, k in keys]
        what = "desired object(s)" if len(roots) > 1 else described(catalog, roots[0])
        raise DependentObjectsStillExist(
            f"cannot drop {what} because other objects depend on {'them' if len(roots) > 1 else 'it'}",
            detail="\n".join(details),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    defaulted, referring = {t.id: t for t, _, _ in defaults}, {t.id: t for t, _ in keys}
    places = tuple({(t.id, place): (t, place) for t, place, _ in columns}.values())
    return Dropped(
        tuple(sorted(items, key=lambda item: item.id)), tuple(followers), tuple(defaulted.values()), tuple(referring.values()), places
    )


def sequences_of(table: Table) -> tuple[tuple[str, int], ...]:
    """Returns the columns with the ids of the sequences in their defaults."""
    return tuple((column, int(id)) for column, text in table.defaults.items() for id in SEQUENCE.findall(text))


def without_defaults(table: Table, sequences: frozenset[int]) -> Table:
    """Returns the table without the defaults that use these sequences."""
    dropped = {column for column, id in sequences_of(table) if id in sequences}
    return replace(table, defaults={c: text for c, text in table.defaults.items() if c not in dropped})


def without_references(table: Table, tables: frozenset[int]) -> Table:
    """Returns the table without the foreign keys to these tables."""
    return replace(table, foreign_keys=tuple(key for key in table.foreign_keys if key.table not in tables))


def _columns_of(catalog: Catalog, type: int) -> list[tuple[Table, int]]:
    """Returns the columns of tables, by position, with a type or domain."""
    return [
        (table, place)
        for table in catalog.each(Table)
        for place, column in enumerate(table.columns)
        if not column.is_dropped and type in (id_of(column.type), 0 if column.domain is None else column.domain.id)
    ]


def _attributes_with(types: set[int], catalog: Catalog, *, cascade: bool) -> list[tuple[Composite, int, int]]:
    """Returns the attributes with one of these types: the composite type, the position and the type's id. Raises 0A000 with `cascade`."""
    attributes = [
        (composite, place, id)
        for composite in catalog.each(Composite)
        if composite.id not in types
        for place, column in reversed([*enumerate(composite.columns)])
        if (id := id_of(column.type)) in types
    ]
    if attributes and cascade:
        composite = described(catalog, attributes[0][0])
        hint = "Drop the composite type first, or its attribute."
        raise FeatureNotSupported(f"dropping an attribute of composite {composite} with its type is not supported", hint=hint)
    return attributes


def _goes_with_owner(item: Item) -> bool:
    """Returns whether an item is dropped with another without preventing it."""
    return isinstance(item, DroppedWithOwner) or (isinstance(item, Sink) and item.of_view) or is_transient(item)


def _owned(catalog: Catalog, of: Item | Schema) -> tuple[int, ...]:
    """Returns the ids of the items that an item reads and that are dropped with it."""
    if isinstance(of, Sink):
        return () if of.query_view is None else (of.query_view,)
    table = inserted_rows(of, catalog) if isinstance(of, MaterializedView) else None
    return () if table is None else (table.id,)


def inserted_rows(stream: MaterializedView, catalog: Catalog) -> Table | None:
    """Returns the table with the rows that were inserted into a derived stream of ksqlDB, or None if there is none."""
    inputs = (catalog.items.get(id) for id in stream.depends)
    return next((item for item in inputs if isinstance(item, Table) and item.of_stream == stream.id), None)


def _dependents(catalog: Catalog, of: Item | Schema) -> tuple[Item, ...]:
    if isinstance(of, Item):
        return catalog.dependents(of.id)
    return tuple(i for i in catalog.items.values() if i.schema == of.id)


def described_column(catalog: Catalog, of: Table | Composite, place: int) -> str:
    """Returns the description of a column as in PostgreSQL's messages: `column a of table t`."""
    return f"column {of.columns[place].name} of {'composite ' * isinstance(of, Composite)}{described(catalog, of)}"


def described(catalog: Catalog, this: Item | Schema | Database) -> str:
    """Returns an object's description as in PostgreSQL's messages: `view s.v`."""
    if isinstance(this, Database):
        return "the database"
    if isinstance(this, Schema):
        return f"schema {this.name}"
    kind = "type" if isinstance(this, UserType) else this.kind
    return f"{kind} {catalog.name_of(this).sql}{this.display_name.removeprefix(this.name)}"
