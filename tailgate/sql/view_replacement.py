"""Checks the columns of CREATE OR REPLACE VIEW against those of the existing view.

Source: PostgreSQL 15, src/backend/commands/view.c (checkViewTupleDesc).
"""

from __future__ import annotations

from tailgate.lake.errors import InvalidTableDefinition
from tailgate.lake.types import Field


def check_columns(old: tuple[Field, ...], new: tuple[Field, ...]) -> None:
    """Raises 42P16 unless the new columns are the old ones, possibly followed by others."""
    if len(new) < len(old):
        raise InvalidTableDefinition("cannot drop columns from view")
    for a, b in zip(old, new, strict=False):
        if a.name != b.name:
            raise InvalidTableDefinition(f'cannot change name of view column "{a.name}" to "{b.name}"')
        if a.type != b.type:
            raise InvalidTableDefinition(f'cannot change data type of view column "{a.name}" from {a.type} to {b.type}')
