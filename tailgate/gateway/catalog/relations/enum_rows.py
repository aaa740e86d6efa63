"""Rows of pg_type and pg_enum for enum types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailgate.lake.catalog import Catalog, Enum
from tailgate.lake.catalog.custom_types import SPACING
from tailgate.lake.types import ARRAYS_OF_NAMED

TYPE = 1247  # the oid of pg_type
LABELS = 11 << 28  # where the oids of labels begin
LABELS_OF_TYPE = 1024  # more than a type may have


def types(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_type: for each enum type, its own and that of its array type."""
    for item in catalog.each(Enum):
        common = {
            "typnamespace": item.schema, "typowner": item.owner, "typispreferred": False, "typisdefined": True, "typdelim": ",",
            "typrelid": 0, "typmodin": 0, "typmodout": 0, "typalign": "i", "typnotnull": False, "typbasetype": 0, "typtypmod": -1,
            "typndims": 0, "typcollation": 0,
        }  # fmt: skip
        array = item.id + ARRAYS_OF_NAMED
        yield common | {
            "oid": item.id, "typname": item.name, "typlen": 4, "typbyval": True, "typtype": "e", "typcategory": "E", "typelem": 0,
            "typarray": array, "typsubscript": 0, "typinput": 3506, "typoutput": 3507, "typreceive": 3532, "typsend": 3533,
            "typanalyze": 0, "typstorage": "p",
        }  # fmt: skip
        yield common | {
            "oid": array, "typname": f"_{item.name}", "typlen": -1, "typbyval": False, "typtype": "b", "typcategory": "A",
            "typelem": item.id, "typarray": 0, "typsubscript": 6179, "typinput": 750, "typoutput": 751, "typreceive": 2400,
            "typsend": 2401, "typanalyze": 3816, "typstorage": "x",
        }  # fmt: skip


def pg_enum(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_enum."""
    for item in catalog.each(Enum):
        for place, (number, text) in enumerate(item.labels, 1):
            oid = LABELS + (item.id * LABELS_OF_TYPE + place) % (1 << 28)
            yield {"oid": oid, "enumtypid": item.id, "enumsortorder": number / SPACING, "enumlabel": text}
