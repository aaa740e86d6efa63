"""Rows of pg_class and pg_sequence for sequences.

`last_value` is the last value that a gateway has reserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailgate.lake.catalog import Catalog, Item, Sequence
from tailgate.lake.catalog.schemas import TEMPORARY_ID
from tailgate.lake.types import FACTS

CLASS = 1259  # the oid of pg_class


def persistence(item: Item) -> str:
    """Returns pg_class.relpersistence."""
    return "t" if item.schema == TEMPORARY_ID else "p"


def classes(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_class, without the access list."""
    for item in catalog.each(Sequence):
        yield {
            "oid": item.id, "relname": item.name, "relnamespace": item.schema, "reltype": 0, "reloftype": 0, "relowner": item.owner,
            "relam": 0, "relfilenode": item.id, "reltablespace": 0, "relpages": 1, "reltuples": 1.0, "relallvisible": 0,
            "reltoastrelid": 0, "relhasindex": False, "relisshared": False, "relpersistence": persistence(item), "relkind": "S",
            "relnatts": 3, "relchecks": 0, "relhasrules": False, "relhastriggers": False, "relhassubclass": False, "relrowsecurity": False,
            "relforcerowsecurity": False, "relispopulated": True, "relreplident": "n", "relispartition": False, "relrewrite": 0,
            "relfrozenxid": 0, "relminmxid": 0,
        }  # fmt: skip


def pg_sequence(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_sequence."""
    for item in catalog.each(Sequence):
        yield {
            "seqrelid": item.id, "seqtypid": FACTS[item.type].oid, "seqstart": item.start, "seqincrement": item.increment,
            "seqmax": item.maximum, "seqmin": item.minimum, "seqcache": item.cache, "seqcycle": item.cycle,
        }  # fmt: skip
