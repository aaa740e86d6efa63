"""Columns of pg_attribute and pg_type about the storage of a type's values."""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.types import Type

COLLATION = {"text": 100, "varchar": 100, "bpchar": 100, "name": 950}
ALIGNMENT = {1: "c", 2: "s", 4: "i", 8: "d", 12: "d", 16: "c", 64: "c", -1: "i"}
ALIGNED = ("record", "int8range", "tsrange", "tstzrange")  # as 8 bytes, their arrays too
STORAGE = {"numeric": "m"}
BY_VALUE = (1, 2, 4, 8)


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
    storage = STORAGE.get(type.name, "x") if type.size == -1 else "p"
    return Storage(type.size, type.size in BY_VALUE, align, storage, COLLATION.get(type.name, 0))
