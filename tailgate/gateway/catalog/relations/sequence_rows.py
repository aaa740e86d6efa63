"""Rows of pg_class and pg_sequence for sequences, and the shown text of defaults that use them.

`last_value` is the last value that a gateway has reserved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tailgate.lake.catalog import Catalog, Item, Sequence
from tailgate.lake.catalog.dropping import SEQUENCE
from tailgate.lake.catalog.schemas import TEMPORARY_ID
from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import FACTS, Field

CLASS = 1259  # the oid of pg_class
LITERAL = re.compile(r"'(?:[^']|'')*'")  # of a text
TEXTS = {"text": "text", "varchar": "character varying", "bpchar": "bpchar"}  # the types of its cast in a default, without lengths


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


def shown_default(text: str, column: Field, catalog: Catalog) -> str:
    """Returns the text of a column's default with the names of sequences in place of their ids. A literal of a text has its type."""

    def name(id: int) -> str:
        shown = catalog.name_of(catalog[id]).sql if id in catalog.items else str(id)
        return quoted_text(shown) + "::regclass"

    if LITERAL.fullmatch(text) and column.domain is None and not column.type.is_array:
        if column.type.enum is not None:
            return f"{text}::{catalog.name_of(catalog[column.type.enum.id]).sql}"
        if column.type.name in TEXTS:
            return f"{text}::{TEXTS[column.type.name]}"
    return SEQUENCE.sub(lambda match: name(int(match[1])), text)
