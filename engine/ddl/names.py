"""Names of new items."""

from __future__ import annotations

from collections.abc import Iterable

from lake.catalog import SCHEMA, Catalog
from lake.errors import DuplicateColumn, of
from lake.types import Field
from sql.statements import Name


def check_new(name: Name, catalog: Catalog) -> None:
    """42P07 if the name is taken, 3F000 if its schema is not there."""
    check_schema(name)
    catalog.check_new(name.name)


def check_schema(name: Name) -> None:
    if name.schema not in (None, SCHEMA):
        raise of("3F000", f'schema "{name.schema}" does not exist', position=name.position)


def check_columns(columns: Iterable[Field]) -> None:
    """42701 if two columns have one name."""
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise DuplicateColumn(f'column "{column.name}" specified more than once')
        seen.add(column.name)
