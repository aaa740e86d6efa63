"""The constraints between rows: the keys of a table and its foreign keys, as the catalog defines them.

A key is the primary key that a table was created with, which also identifies its stored rows, or a unique index whose
uniqueness is enforced. A primary key that was added later is such an index.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import count

from tailgate.lake.catalog import Catalog, Index, Item, Table
from tailgate.lake.catalog.custom_types import with_types_of
from tailgate.lake.catalog.formats import ForeignKeyConstraint, IndexExpression
from tailgate.lake.catalog.indexes import indexes
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.resolution import version as item_version


@dataclass(frozen=True, slots=True)
class Key:
    """Columns whose values differ between all rows of a table. `index`: the id of the unique index; 0 for the key of stored rows.

    The values of expressions have the positions that follow those of the table's columns (`key_expressions`). `condition`: the position
    of the value of WHERE; the key concerns only the rows for which it is true. `read`: the columns of the table on which it depends.
    """

    name: str
    columns: tuple[int, ...]
    index: int = 0
    primary: bool = False
    constraint: bool = True
    deferrable: bool = False
    nulls_distinct: bool = True
    condition: int | None = None
    read: frozenset[int] = frozenset()
    deferred: bool = False

    @property
    def compared(self) -> tuple[int, ...]:
        """Returns the columns whose values decide whether two rows have equal keys."""
        return self.columns if self.condition is None else (*self.columns, self.condition)

    def is_computed(self, width: int) -> bool:
        """Returns whether it has expressions or a condition. `width`: the number of the table's columns."""
        return any(column >= width for column in self.compared)


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key of `table` to a `key` of the table `referenced`. `columns`: of `table`, in the order of the key's columns."""

    table: Table
    constraint: ForeignKeyConstraint
    referenced: Table
    key: Key
    columns: tuple[int, ...]

    @property
    def name(self) -> str:
        """Returns the name of the constraint."""
        return self.constraint.name

    @property
    def deferrable(self) -> bool:
        """Returns whether a block may check it at COMMIT."""
        return self.constraint.deferrable

    @property
    def deferred(self) -> bool:
        """Returns whether a block checks it at COMMIT unless SET CONSTRAINTS says otherwise."""
        return self.constraint.deferred


def primary_key_name(table: Table) -> str:
    """Returns the name of the primary key that a table was created with."""
    return table.constraint or f"{table.name}_pkey"


def table_of_key(name: Name, catalog: Catalog) -> Table | None:
    """Returns the table whose first primary key has an index with this name, which is no item of the catalog, or None."""
    if catalog.resolution is not None:
        found = catalog.get(catalog.resolution.keys.get(name, 0))
        return found if isinstance(found, Table) else None
    tables = [table for table in catalog.each(Table) if table.key and primary_key_name(table) == name.name]
    places = (name.schema,) if name.schema is not None else catalog.path
    return next((table for place in places for table in tables if catalog.schema_of(table).name == place), None)


def keys_of(table: Item, catalog: Catalog) -> tuple[Key, ...]:
    """Returns the keys of a table, in the order in which PostgreSQL checks them."""
    if not isinstance(table, Table):
        return ()
    keys = [] if not table.key else [Key(primary_key_name(table), table.key, primary=True, read=frozenset(table.key))]
    free = count(len(table.columns))
    for i in enforced_indexes(table, catalog):
        columns = tuple(element if isinstance(element, int) else next(free) for element in i.elements)
        condition = None if i.condition is None else next(free)
        keys.append(Key(i.name, columns, i.id, i.primary, i.constraint, i.deferrable, i.nulls_distinct, condition, i.read, i.deferred))
    return tuple(keys)


def key_expressions(table: Item, catalog: Catalog) -> tuple[IndexExpression, ...]:
    """Returns the expressions and conditions of the unique indexes of a table, in the order of their positions in `Key`."""
    return tuple(expression for index in enforced_indexes(table, catalog) for expression in index.computed)


def enforced_indexes(table: Item, catalog: Catalog) -> tuple[Index, ...]:
    """Returns the unique indexes of a table whose uniqueness is enforced, by id."""
    return tuple(index for index in indexes(catalog, table.id) if index.enforced)


def primary_key(table: Item, catalog: Catalog) -> Key | None:
    """Returns the primary key of a table."""
    return next((key for key in keys_of(table, catalog) if key.primary), None)


def referenced_key(constraint: ForeignKeyConstraint, referenced: Table, catalog: Catalog) -> Key | None:
    """Returns the key whose columns a foreign key references; None if there is none."""
    keys = keys_of(referenced, catalog)
    return next((k for k in keys if not k.deferrable and k.condition is None and set(k.columns) == set(constraint.references)), None)


def references_of(table: Item, catalog: Catalog) -> tuple[Reference, ...]:
    """Returns the foreign keys of a table, in the order of their creation: that in which PostgreSQL checks them."""
    constraints = table.foreign_keys if isinstance(table, Table) else ()
    return tuple(_reference(table, constraint, catalog) for constraint in constraints if isinstance(table, Table))


def references_to(table: Item, catalog: Catalog) -> tuple[Reference, ...]:
    """Returns the foreign keys that reference a table, also its own."""
    others = sorted((other for other in catalog.each(Table) if other.foreign_keys), key=lambda other: other.id)
    return tuple(_reference(other, c, catalog) for other in others for c in other.foreign_keys if c.table == table.id)


def _reference(table: Table, constraint: ForeignKeyConstraint, catalog: Catalog) -> Reference:
    referenced = catalog.expect(Table, constraint.table)
    key = referenced_key(constraint, referenced, catalog)
    assert key is not None, "DROP refuses to remove the key of a foreign key"
    columns = tuple(constraint.columns[constraint.references.index(position)] for position in key.columns)
    return Reference(table, constraint, referenced, key, columns)


def version(table: Item, catalog: Catalog) -> str:
    """Returns a digest of all that decides which rows a table may have. A write that was evaluated under another version is void.

    The labels of enum types do not decide: rows have the labels' numbers, which never change. A table without conditions and
    expressions of keys has the digest of earlier versions, whose engine compares it during an upgrade.
    """
    types = [type for column in table.columns for type in column.type.named]
    enums = {type.enum.id: replace(type, enum=replace(type.enum, labels=())) for type in types if type.enum is not None}
    keys = [
        [k.name, k.columns, k.index, k.primary, k.nulls_distinct, *(() if k.condition is None else (k.condition,))]
        for k in keys_of(table, catalog)
    ]
    texts = [expression.text for expression in key_expressions(table, catalog)]
    references = [
        [r.table.id, r.name, r.columns, r.referenced.id, r.key.columns, *_rules(r.constraint)]
        for r in (*references_of(table, catalog), *references_to(table, catalog))
    ]
    unchecked = ["triggers disabled"] if table.storage.triggers_disabled else []
    text = json.dumps([item_version(with_types_of(table, enums)), keys, references, *([texts] if texts else []), *unchecked])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _rules(constraint: ForeignKeyConstraint) -> tuple[object, ...]:
    """Returns the actions of a foreign key, and what differs from other foreign keys: MATCH FULL, the columns of ON DELETE SET."""
    special = (constraint.match_full, constraint.set_columns) if constraint.match_full or constraint.set_columns else ()
    return constraint.on_delete, constraint.on_update, *special
