"""Columns of pg_class, pg_index, pg_attribute and pg_type about storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tailgate.gateway.catalog.relations.constraint_rows import INDEXES
from tailgate.gateway.catalog.relations.fixed_rows import values
from tailgate.lake.catalog import Index, Item
from tailgate.lake.catalog.indexes import collation_of
from tailgate.lake.catalog.item_fields import ColumnStorage
from tailgate.lake.types import Type

COLLATION = {"text": 100, "varchar": 100, "bpchar": 100, "name": 950}
ALIGNMENT = {1: "c", 2: "s", 4: "i", 8: "d", 12: "d", 16: "c", 64: "c", -1: "i"}
ALIGNED = ("record", "int8range", "tsrange", "tstzrange")  # as 8 bytes, their arrays too
STORAGE = dict.fromkeys(("numeric", "inet", "cidr"), "m")
BY_VALUE = (1, 2, 4, 8)


@cache
def collations() -> dict[str, int]:
    """Returns the oids of the collations of columns and indexes. Not when the module is imported: to read them starts threads of Arrow."""
    return {name: oid for name, oid in values("pg_collation", "collname", "oid") if name in ("C", "POSIX", "ucs_basic")}


@dataclass(frozen=True, slots=True)
class Storage:
    """The columns attlen, attbyval, attalign, attstorage and attcollation."""

    length: int
    by_value: bool
    alignment: str
    storage: str
    collation: int


def storage_of(type: Type) -> Storage:
    """Returns how values of a type are stored."""
    align = "d" if type.is_array and type.facts.size in (8, 12) else "i" if type.is_array else ALIGNMENT.get(type.size, "i")
    if type.name in ALIGNED:
        align = "d"
    if type.size == 16:
        align = "d" if type.name == "interval" else "c"
    storage = "p" if type.size != -1 else "x" if type.is_array else STORAGE.get(type.name, "x")
    return Storage(type.size, type.size in BY_VALUE, align, storage, COLLATION.get(type.name, 0))


def options_of(item: Item) -> list[str] | None:
    """Returns the storage parameters of a table or an index, as reloptions has them."""
    return _options(item.storage.parameters)


def _options(parameters: Mapping[str, str]) -> list[str] | None:
    return [f"{name}={value}" for name, value in parameters.items()] or None


def replica_index(item: Item) -> int | None:
    """Returns the oid of the index that is the replica identity of a table, or None."""
    if item.storage.replica_identity != "i":
        return None
    return item.storage.replica_index or INDEXES + item.id


def clustered_index(item: Item) -> int | None:
    """Returns the oid of the index by which CLUSTER has ordered a table, or None."""
    clustered = item.storage.clustered
    return None if clustered is None else clustered or INDEXES + item.id


def index_collations(index: Index, relation: Item, types: Sequence[Type]) -> list[int]:
    """Returns the oids of the collations of an index's columns, 0 for types without one. `types`: of the columns but those of INCLUDE."""
    oids = ((COLLATION.get(type.name, 0), collation_of(index, place, relation)) for place, type in enumerate(types))
    return [collations().get(name, oid) if oid else 0 for oid, name in oids]


def altered_storage(column: ColumnStorage | None) -> dict[str, Any]:
    """Returns the columns of pg_attribute that ALTER TABLE … ALTER COLUMN has set."""
    if column is None:
        return {}
    storage = {"attstorage": column.storage} if column.storage else {}
    collation = {"attcollation": collations()[column.collation]} if column.collation else {}
    return {
        "attstattarget": column.statistics, "attcompression": column.compression, "attoptions": _options(column.parameters),
        **storage, **collation,
    }  # fmt: skip
