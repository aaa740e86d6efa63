"""Tests that items of a block may be in a schema that the block creates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.lake.catalog import Catalog, Change, Enum
from tailgate.lake.catalog.schemas import Schema


def test_an_enum_type_in_a_schema_of_its_block() -> None:
    change = Change(put=(Enum(16385, "mood", schema=16384, labels=((1, "sad"),)),), put_schemas=(Schema(16384, "app"),))
    installation = cast(Installation, SimpleNamespace(engine=SimpleNamespace(catalog=Catalog())))
    assert Installation.numbered(installation, change) == change
