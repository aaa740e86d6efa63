"""The error of CREATE for a name that another stream or table has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailgate.lake.catalog import Catalog, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import DuplicateTable
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem, ItemType


def name_in_use(type: ItemType, name: str, other: KsqldbItem, position: int) -> DuplicateTable:
    """Returns the error of a new stream or table whose name another one has."""
    return DuplicateTable(f"Cannot add {type} '{ksqldb_name(name)}': A {other.type} with the same name already exists", position=position)


@contextmanager
def named(statement: CreateItem | CreateAs, catalog: Catalog) -> Iterator[None]:
    """Gives the error of a name in use ksqlDB's message, if the other relation is a stream or table of ksqlDB."""
    try:
        yield
    except DuplicateTable:
        other = ksqldb_of(catalog.relation(Name(statement.name)))
        if other is None:
            raise
        raise name_in_use(statement.type, statement.name, other, statement.position) from None
