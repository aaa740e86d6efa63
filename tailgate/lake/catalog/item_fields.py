"""The fields that the items of the catalog share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from tailgate.lake.catalog.formats import Record, option
from tailgate.lake.catalog.roles import OPERATOR_ID, PRIVILEGES_OF, RELATION_PRIVILEGES, SCHEMA_ID
from tailgate.lake.catalog.schemas import TRANSIENT_ID
from tailgate.lake.types import Field

# Items of different namespaces may have the same name. As PostgreSQL's pg_class, the first has everything that has no namespace itself.
Namespace: TypeAlias = Literal["relation", "function", "endpoint", "type"]
NAMESPACES: Mapping[str | None, Namespace] = {
    "function": "function",
    "endpoint": "endpoint",
    "type": "type",
    "enum": "type",
    "composite": "type",
    "domain": "type",
}  # of kinds; else "relation"


def namespace_of(kind: str | None) -> Namespace:
    """Returns the namespace of the items of a kind, as statements name it."""
    return NAMESPACES.get(kind, "relation")


DEFAULT_COLLATION = "default"  # PostgreSQL's name for the collation of the database


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStorage(Record):
    """The storage of a column by ALTER TABLE: as in pg_attribute, empty for the default. `parameters`: of SET (…).

    `collation`: the name in COLLATE, of a column of a table or an index; empty for the default of the type.
    """

    statistics: int = -1
    storage: str = ""
    compression: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    collation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage(Record):
    """The storage of a table or an index by its statements. The system catalog shows it; only `triggers_disabled` has another effect.

    - `parameters`: of WITH and of SET (…). `columns`: by position in the table, or place in the index.
    - `replica_identity`: as in pg_class. `replica_index`: the id of its index, 0 for that of the key.
    - `clustered`: the id of the index of CLUSTER, 0 for that of the key.
    - `triggers_disabled`: after DISABLE TRIGGER ALL, changes of the table do not check foreign keys and cause no referential actions.
    """

    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    columns: Mapping[int, ColumnStorage] = field(default_factory=dict, hash=False)
    replica_identity: Literal["d", "n", "f", "i"] = "d"
    replica_index: int = 0
    clustered: int | None = None
    triggers_disabled: bool = False

    def of(self, position: int) -> ColumnStorage:
        """Returns the storage of a column."""
        return self.columns.get(position) or ColumnStorage()


@dataclass(frozen=True, slots=True)
class ItemFields(Record):
    """The fields that every item has.

    - `columns`: the arguments of a function, the attributes of a composite type, the value of a domain; empty for other items that are
      no relations.
    - `key`: positions of the columns that identify a row; None if the relation may hold duplicates.
    - `stored`: whether the lake keeps its rows (keyed sources, tables, materialized views, dead letters).
    - `errors`: id of the relation with its errors; 0 if the item is not maintained.
    - `depends`: ids of the items that its definition names.
    - `sql`: the statement that created it, as typed, but without the value of a secret.
    - `query`: the text of a view after AS, or the body of a function.
    - `ready`: whether the backfill has finished. Clients cannot read an item that is not ready. A
      change that puts an item as not ready, even again, makes its relations empty.
    - `owner`: id of the role that created it.
    - `replaces`: the id of the item that this item will replace after its backfill, else 0. Until
      then only the engine sees this item.
    - `schema`: id of the schema that contains the name.
    - `comments`: its comment under "", comments of its columns under their names, that of an index's constraint under "constraint".
    - `storage`: of a table or an index, as statements describe it.
    - `unknown_options`: options that this version does not know. They are written back unchanged.

    Names in `sql` and `query` are resolved with the search path `public`; names in other schemas are
    qualified.
    """

    id: int
    name: str
    columns: tuple[Field, ...] = ()
    key: tuple[int, ...] | None = None
    stored: bool = False
    errors: int = 0
    depends: tuple[int, ...] = ()
    sql: str = ""
    query: str = ""
    ready: bool = True
    owner: int = OPERATOR_ID
    replaces: int = 0
    schema: int = SCHEMA_ID
    comments: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    storage: Storage = field(default=Storage(), kw_only=True)
    unknown_options: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False)

    kind: ClassVar[str]
    is_relation: ClassVar[bool] = True  # whether the item has rows and columns
    namespace: ClassVar[Namespace] = "relation"

    @property
    def privileges(self) -> Mapping[str, str]:
        """Returns the privileges that can be granted, with their letters."""
        return PRIVILEGES_OF.get(self.kind, RELATION_PRIVILEGES)

    @property
    def privileges_of_everyone(self) -> frozenset[str]:
        """Returns the privileges that PUBLIC has by default."""
        return frozenset(self.privileges) if self.namespace == "type" else frozenset()

    @property
    def display_name(self) -> str:
        """Returns the name for messages; a function's includes the types of its arguments."""
        return self.name

    @property
    def append_only(self) -> bool:
        """Returns whether rows are only added: dead letters, and sources without an envelope even if stored."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFields(ItemFields):
    """An item whose definition reads relations.

    - `known_columns`: for each relation that got columns after the item was defined, by id, the number of columns that
      the item knows.
    """

    known_columns: Mapping[int, int] = field(default_factory=dict, metadata=option("widths"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceableFields(ReaderFields):
    """An item that CREATE OR REPLACE may replace. `group`: the id of the group of replacements that it belongs to, else 0."""

    group: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFields(ReplaceableFields):
    """A view, maintained or not.

    - `numeric_rules`: the rules by which numerics of its query are typed (`sql.numeric_types`). The state of its
      operators has these types. Views of earlier versions have no such field.
    """

    numeric_rules: int = 1


def is_transient(item: ItemFields) -> bool:
    """Returns whether an item is a view of a push query, which is dropped when its query ends, or the relation of its errors."""
    return item.schema == TRANSIENT_ID


def known_columns(item: ItemFields) -> Mapping[int, int]:
    """Returns, for each relation that got columns after this item was defined, how many columns the item knows."""
    return item.known_columns if isinstance(item, ReaderFields) else {}
