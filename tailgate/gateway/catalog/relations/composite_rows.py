"""Rows of pg_type and pg_class for composite types. Their attributes are in `rows`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailgate.lake.catalog import Catalog, Composite
from tailgate.lake.types import ARRAYS_OF_NAMED

CLASSES = 4 << 28  # the id of a composite type and this number are the oid of its row of pg_class


def types(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_type: for each composite type, its own and that of its array type."""
    for item in catalog.each(Composite):
        yield from row_types(item.id, item.id + ARRAYS_OF_NAMED, CLASSES + item.id, item.name, item.schema, item.owner)


def row_types(oid: int, array: int, relation: int, name: str, schema: int, owner: int) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_type of the type of rows, and of its array type."""
    common = {
        "typnamespace": schema, "typowner": owner, "typlen": -1, "typbyval": False, "typispreferred": False, "typisdefined": True,
        "typdelim": ",", "typmodin": 0, "typmodout": 0, "typalign": "d", "typstorage": "x", "typnotnull": False, "typbasetype": 0,
        "typtypmod": -1, "typndims": 0, "typcollation": 0,
    }  # fmt: skip
    yield common | {
        "oid": oid, "typname": name, "typtype": "c", "typcategory": "C", "typrelid": relation, "typelem": 0, "typarray": array,
        "typsubscript": 0, "typinput": 2290, "typoutput": 2291, "typreceive": 2402, "typsend": 2403, "typanalyze": 0,
    }  # fmt: skip
    yield common | {
        "oid": array, "typname": f"_{name}", "typtype": "b", "typcategory": "A", "typrelid": 0, "typelem": oid, "typarray": 0,
        "typsubscript": 6179, "typinput": 750, "typoutput": 751, "typreceive": 2400, "typsend": 2401, "typanalyze": 3816,
    }  # fmt: skip


def classes(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_class."""
    for item in catalog.each(Composite):
        yield {
            "oid": CLASSES + item.id, "relname": item.name, "relnamespace": item.schema, "reltype": item.id, "reloftype": 0,
            "relowner": item.owner, "relam": 0, "relfilenode": 0, "reltablespace": 0, "relpages": 0, "reltuples": -1.0,
            "relallvisible": 0, "reltoastrelid": 0, "relhasindex": False, "relisshared": False, "relpersistence": "p", "relkind": "c",
            "relnatts": len(item.columns), "relchecks": 0, "relhasrules": False, "relhastriggers": False, "relhassubclass": False,
            "relrowsecurity": False, "relforcerowsecurity": False, "relispopulated": True, "relreplident": "n", "relispartition": False,
            "relrewrite": 0, "relfrozenxid": 0, "relminmxid": 0,
        }  # fmt: skip
